"""Words: what the other panels call things, for a reader who meets them here first."""

from __future__ import annotations

from typing import Final

from viewers.loading import Report
from viewers.panels.panel import Panel
from viewers.tables import facts

MEANINGS: Final = (
    ("batch, sequence, step", "training reads in steps; each reads a batch of sequences, each of so many tokens"),
    ("cache, component, cell", "the tokens of a part of the documents, which a mixture gives one weight"),
    ("digest, key", "names made by hashing: of what came out, and of the work that makes it before it is done"),
    ("document, source", "a text with its rights; a named folder or bucket of files that documents come from"),
    ("epochs", "how many times all of a component is read"),
    ("fails, rule, threshold", "a filter has rules: what a rule measures must keep to its threshold"),
    ("gap", "bytes of a file that hold no record that can be read"),
    ("hold out", "keep texts apart from training, to measure the loss on them"),
    ("Jaccard similarity", "of two texts: the shingles that both have, of those that either has; 1 is the same set"),
    ("MinHash, bands, buckets", "hashes, the likelier equal the more two texts resemble; who shares some is compared"),
    ("mixture, phase, plan", "which components are read how often, in stretches of training, worked out"),
    ("nats", "the unit of loss: natural logarithms of how improbable the next token seemed; less is better"),
    ("near miss", "a document that stays, within 5 % of a threshold"),
    ("output", "documents that the recipe hands out under a name"),
    ("quarantine", "where documents go on which a step crashes, hangs or takes too much memory"),
    ("recipe, stage, step", "a Python function of stages, each made whole on disk; a stage has steps"),
    ("shard", "a piece of a stage that one task makes"),
    ("shingle", "a run of words that stand next to each other, as five"),
    ("survivor", "the document that stays for those that go as its duplicates"),
    ("Switch", "a step that sends documents to filters of their own, by a column as their language"),
)


def words(report: Report) -> Panel:
    """Return the panel, the same for every report."""
    del report
    lede = "Look up what the other panels call things. Filters as Gopher, C4 and FineWeb are named after their origin."
    return Panel("words", "Words", lede, facts(MEANINGS))
