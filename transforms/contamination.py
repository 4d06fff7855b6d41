"""Benchmark items in training text: `Decontaminate((Benchmark.jsonl(…), …))` drops, cuts or tags documents with them.

What is compared are words without case, punctuation or line breaks (`contamination_words`), of units of the items
(`contamination_index`: questions, choices, answers, passages; what of them is too short, too plain or too common to
count), found by hashed 5-grams and aligned with the document so that edits, labels, markup and foreign words between
the parts do not hide them (`contamination_alignment`). The measure is the *coverage of the item*: the share of the
weight of the unit's words that stand in the document, in order.

Verdicts:
- **leak**: coverage reaches the threshold, and no number or name is another one;
- **variant**: it does when numbers in place of numbers and capitalised words in place of capitalised words are counted
  as covered, and at least half is there word by word;
- **quotation**: what is found is the item's passage, or a long quotation within the question, which the benchmark
  itself has from elsewhere.
A unit of which fewer than `ngram` words count is found only as a whole, without a difference in any word.

Invariants: the outcome for a document depends on it, the benchmarks' files and the configuration alone; positions in
evidence are code points of the text that came in; a cut document has exactly the code points that its edit says.
Cost: see `contamination_index` and `contamination_scan`. The index is loaded once per process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import groupby
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa

from transforms.benchmark_items import Benchmark, BenchmarkError, Item
from transforms.canonical import canonical_json
from transforms.contamination_common import NO_PHRASES, Phrases, read_phrases
from transforms.contamination_findings import (
    LEAK,
    QUOTATION,
    SHOWN,
    VARIANT,
    VERDICTS,
    Finding,
    gravity,
    joined,
    merged_places,
    ranges,
)
from transforms.contamination_index import (
    Index,
    Protection,
    build_index,
    load_index,
    protection,
    protection_of,
    unprotectable,
)
from transforms.contamination_places import CodePoints, without_places
from transforms.contamination_scan import Match, find_matches
from transforms.contamination_units import PARTS, PASSAGE
from transforms.duplicates import text_digests
from transforms.exact_numbers import Number, decimal_text, exact
from transforms.fitted import LocalFile, file_of
from transforms.models import Model, Unfitted
from transforms.not_trained import NOT_TRAINED, not_trained
from transforms.outcome import Outcome, kept, require
from transforms.schema import set_columns, with_columns

__all__ = [
    "CONTAMINATION",
    "Benchmark",
    "BenchmarkError",
    "Decontaminate",
    "Finding",
    "Item",
    "Protection",
    "protection",
    "unprotectable",
]

CONTAMINATION: Final = pa.field("contamination", pa.large_string())
"""What `Decontaminate(…, action="tag")` writes: the evidence as canonical JSON, null where nothing is found."""

NEARLY: Final = "near miss"
"""What a document is that stays without a verdict because an item is not covered far enough."""
ACTIONS: Final = ("drop", "cut", "tag", "mask")
MEASURE: Final = "coverage of the item"

NEAR: Final = Fraction(19, 20)
"""Share of the threshold from which on a document that stays is a near miss."""


@dataclass(frozen=True, slots=True)
class Decontaminate:
    """Finds items of `benchmarks` in documents, and drops, cuts or tags.

    Args:
        benchmarks: one or several, each under its own name.
        ngram: parts of an item of fewer words that count are found only as a whole.
        coverage: least share of an item's words that count, taken as it prints.
        action: "drop" the document; "cut" the words of the item out of it (a document without any other word is
            dropped); "tag" writes the column `contamination` and keeps everything; "mask" writes the column
            `not_trained` (see `NOT_TRAINED`): the text stays, the places of the item are no targets of training.
        verdicts: what to drop, cut or mask for. A document with other findings stays; it is among `Outcome.near` under
            its verdict, as all findings are for "tag" and "mask", or as "contamination: near miss".
        common: phrases that are common in a corpus: what `fit_phrases` gives, or its file. Words that only these cover
            do not count.

    Raises:
        ValueError: an argument is out of its range.
        BenchmarkError: a benchmark's file is not there.
    """

    benchmarks: tuple[Benchmark, ...] | Sequence[Benchmark] | Benchmark
    ngram: int = 13
    coverage: Fraction | Number | str = Fraction(4, 5)
    action: str = "drop"
    verdicts: tuple[str, ...] = (LEAK, VARIANT)
    common: Phrases | Model | LocalFile | None = field(default=None, metadata={"key": "if given"})

    version: ClassVar[int] = 3
    libraries: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        given = (self.benchmarks,) if isinstance(self.benchmarks, Benchmark) else tuple(self.benchmarks)
        object.__setattr__(self, "benchmarks", given)
        object.__setattr__(self, "coverage", exact(self.coverage))
        object.__setattr__(self, "verdicts", tuple(verdict for verdict in VERDICTS if verdict in self.verdicts))
        names = [benchmark.title for benchmark in given]
        if not names or len(set(names)) < len(names):
            raise ValueError(f"benchmarks are at least one, each under its own name and split, got {names}")
        if not 1 <= self.ngram <= 64:
            raise ValueError(f"ngram is a number from 1 to 64, got {self.ngram!r}")
        if not Fraction(1, 2) <= self._least <= 1:
            raise ValueError(f"coverage is a share from 0.5 to 1, got {self.coverage!r}")
        if self.action not in ACTIONS or not self.verdicts:
            raise ValueError(f"action is one of {ACTIONS} and verdicts some of {VERDICTS}, got {self.action!r}")

    @property
    def _least(self) -> Fraction:
        return self.coverage if isinstance(self.coverage, Fraction) else exact(self.coverage)

    @property
    def _named(self) -> tuple[Benchmark, ...]:
        return tuple(self.benchmarks)  # type: ignore[arg-type]

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return `schema`, with the column that "tag" or "mask" writes; `text` is needed."""
        require(schema, "Decontaminate", text=pa.large_string())
        column = {"tag": CONTAMINATION, "mask": NOT_TRAINED}.get(self.action)
        return with_columns(schema, column) if column is not None else schema

    def ready(self) -> None:
        """Raise `BenchmarkError` where a benchmark cannot be used, and compile the kernels: before any work is done."""
        self._try(self.index())

    def warm(self) -> None:
        """Compile the kernels, while `common` is not there yet."""
        self._try(build_index(self._named, [(0, item) for item in self._named[0].items()[:20]]))

    def _try(self, index: Index) -> None:
        some = [item.question or item.passage for item in self._named[0].items()[:20]]
        for match in find_matches(pa.array(some, pa.large_string()), index, 1, 2):
            self._judge(index, match, CodePoints(some[match.document].encode()))

    def index(self) -> Index:
        """Return the index of the benchmarks, loaded once per process.

        Raises:
            BenchmarkError: a benchmark's file changed or is gone.
            FittedError: that of common phrases is.
        """
        if self.common is None or isinstance(self.common, Phrases):
            return load_index(self._named, self.common or NO_PHRASES)
        return load_index(self._named, read_phrases(file_of(self.common, "Decontaminate")))

    def protection(self) -> tuple[Protection, ...]:
        """Return how much of each benchmark is checked at all."""
        return protection_of(self.index())

    def card(self) -> dict[str, Any]:
        """Return what stands in a manifest beside the configuration: how many items are checked at all.

        While common phrases are still to be fitted it is without them; the card of these says what they change.
        """
        known = replace(self, common=None) if isinstance(self.common, Unfitted) else self
        return {
            "protection": {
                found.benchmark: {
                    "items": found.items,
                    "joined": len(found.joined),
                    "short": len(found.short),
                    "plain": len(found.plain),
                }
                for found in known.protection()
            }
        }

    def findings(self, text: pa.LargeStringArray, index: Index | None = None) -> dict[int, list[Finding]]:
        """Return row → what is found there, near misses too, the gravest first; `index` in place of the usual one."""
        index = index or self.index()
        least = NEAR * self._least
        matches = find_matches(text, index, least.numerator, least.denominator)
        found: dict[int, list[Finding]] = {}
        for row, several in groupby(matches, key=lambda match: match.document):
            if judged := self._judge_all(index, CodePoints(text[row].as_buffer()), several):
                found[row] = judged
        return found

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Drop, cut or tag.

        Raises:
            BenchmarkError: a benchmark's file changed or is gone.
        """
        self.output_schema(batch.schema)
        found = self.findings(batch.column("text"))
        ids = batch.column("id")
        if self.action in ("tag", "mask"):
            write = self._tags if self.action == "tag" else self._masks
            stay = [{"id": ids[row].as_py(), **self._row(mine)} for row, mine in sorted(found.items())]
            return kept(set_columns(batch, write(batch, found)), near=stay)
        dropped, edits, near = [], [], []
        stays = np.ones(len(batch), np.bool_)
        changed: dict[int, str] = {}
        for row, mine in found.items():
            identity = ids[row].as_py()
            acted = [finding for finding in mine if finding.verdict in self.verdicts]
            if not acted:
                near.append({"id": identity, **self._row(mine)})
            elif (
                self.action == "cut" and (left := without_places(batch.column("text")[row].as_py(), _places(acted)))[1]
            ):
                changed[row] = left[0]
                edits.append({"id": identity, **self._edit(acted, left[1])})
            else:
                stays[row] = False
                dropped.append({"id": identity, **self._row(acted)})
        rows = _with_texts(batch, changed).filter(pa.array(stays))
        return kept(rows, dropped=dropped, edits=edits, near=near)

    def _tags(self, batch: pa.RecordBatch, found: Mapping[int, list[Finding]]) -> dict[pa.Field, pa.Array]:
        """Return the column of evidence."""
        verdicts = {row: [f for f in mine if f.verdict] for row, mine in found.items()}
        tags = [self._evidence(verdicts[row]) if verdicts.get(row) else None for row in range(len(batch))]
        return {CONTAMINATION: pa.array(tags, CONTAMINATION.type)}

    def _masks(self, batch: pa.RecordBatch, found: Mapping[int, list[Finding]]) -> dict[pa.Field, pa.Array]:
        """Return the column of places that are no targets."""
        masks: list[str | None] = [None] * len(batch)
        for row, mine in found.items():
            if acted := [finding for finding in mine if finding.verdict in self.verdicts]:
                text = batch.column("text").slice(row, 1)
                masks[row] = not_trained(merged_places(acted), text_digests(text)[0].as_py())
        return {NOT_TRAINED: pa.array(masks, NOT_TRAINED.type)}

    def found_items(self, findings: Iterable[Finding]) -> dict[str, dict[str, list[int]]]:
        """Return benchmark → verdict → numbers of the items found, ascending; equal items are all of them there.

        An item stands under its gravest verdict only.
        """
        titles = [benchmark.title for benchmark in self._named]
        gravest: dict[tuple[str, int], str] = {}
        for finding in sorted((f for f in findings if f.verdict), key=gravity):
            for benchmark, number in self.index().equal_items(titles.index(finding.benchmark), finding.item):
                gravest.setdefault((titles[benchmark], number), finding.verdict)
        found: dict[str, dict[str, list[int]]] = {}
        for (title, number), verdict in sorted(gravest.items()):
            found.setdefault(title, {}).setdefault(verdict, []).append(number)
        return found

    def _evidence(self, findings: list[Finding]) -> str:
        """Return the first findings in words, and the numbers of all items found."""
        shown: dict[str, Any] = {"found": [finding.described() for finding in findings[:SHOWN]]}
        if len(findings) > SHOWN:
            shown["more"] = len(findings) - SHOWN
        items = self.found_items(findings)
        if items:
            shown["items"] = {
                title: {verdict: ranges(numbers) for verdict, numbers in mine.items()} for title, mine in items.items()
            }
        return canonical_json(shown)

    def _judge_all(self, index: Index, places: CodePoints, matches: Iterable[Match]) -> list[Finding]:
        """Return the findings of one document, one per part of an item, the gravest and most covered first."""
        best: dict[tuple[str, int, str], Finding] = {}
        for match in matches:
            finding = self._judge(index, match, places)
            if finding is not None:
                key = (finding.benchmark, finding.item, finding.part)
                best[key] = joined(best[key], finding) if key in best else finding
        return sorted(best.values(), key=gravity)

    def _judge(self, index: Index, match: Match, places: CodePoints) -> Finding | None:
        part = int(index.units.part[match.unit])
        benchmark, number = index.items[int(index.units.item[match.unit])]
        whole = int(index.counting[match.unit]) < self.ngram
        verdict, covered = self._verdict(match, part, whole)
        if verdict is None:
            return None
        spans = tuple((places.before(start), places.before(end)) for start, end in match.spans)
        return Finding(
            verdict, self._named[benchmark].title, number, PARTS[part], covered, match.total, whole,
            match.longest, match.numbers, match.names, match.missing, spans,
        )  # fmt: skip

    def _verdict(self, match: Match, part: int, whole: bool) -> tuple[str | None, int]:
        """Return the verdict ("" for a near miss, None for nothing) and the words that count as covered."""
        if whole:
            verdict = QUOTATION if part >= PASSAGE else LEAK
            return (verdict if match.numbers + match.names + match.missing == 0 else None), match.same
        changed = match.numbers + match.names > 0 and part < PASSAGE and 2 * match.same >= match.total
        covered = match.same + match.changed if changed else match.same
        if covered < self._least * match.total:
            return ("" if covered >= NEAR * self._least * match.total else None), covered
        return (QUOTATION if part >= PASSAGE else VARIANT if changed else LEAK), covered

    def _row(self, findings: list[Finding]) -> dict[str, Any]:
        """Return the ledger's columns for a document with `findings`."""
        first = findings[0]
        return {
            "transform": "Decontaminate",
            "reason": f"contamination: {first.verdict or NEARLY}",
            "measure": MEASURE,
            "numerator": first.covered,
            "denominator": first.of,
            "threshold": "< 1" if first.whole else f"< {decimal_text(self._least)}",
            "evidence": self._evidence(findings),
        }

    def _edit(self, findings: list[Finding], cut: int) -> dict[str, Any]:
        return {
            "transform": "Decontaminate",
            "reason": f"contamination: {findings[0].verdict}",
            "cut": cut,
            "inserted": 0,
            "evidence": self._evidence(findings),
        }


def _places(findings: Sequence[Finding]) -> Iterable[tuple[int, int]]:
    return (span for finding in findings for span in finding.spans)


def _with_texts(batch: pa.RecordBatch, changed: Mapping[int, str]) -> pa.RecordBatch:
    if not changed:
        return batch
    texts = batch.column("text").to_pylist()
    for row, text in changed.items():
        texts[row] = text
    return set_columns(batch, {batch.schema.field("text"): pa.array(texts, pa.large_string())})
