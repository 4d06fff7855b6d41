"""Whether our filters and datatrove's give one verdict, given the same words and sentences, and if not, why not.

Passages are cut from ../shared (books, LaTeX, code, twelve languages, licences, human rights in 388 languages), and
edge cases are put together here from pieces on which rules turn. Each text goes through our transforms and through
datatrove's filters: those themselves where datatrove can be imported with what it needs (`--peers`), with its word and
sentence splitters replaced by ours, else their restatement in `benchmarks.plain_filters`. A disagreement is explained
by the fewest of that module's readings that have to change for datatrove's rules to give our verdict; the search ends,
for with all of them changed the restatement is ours. That both restatements are what they claim is checked, too.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.plain_filters import PLAIN, READINGS, Verdict, sentences_of, words_of
from benchmarks.plain_gopher import lines_of, trim
from transforms.c4_rules import C4Documents, C4Lines, MC4Paragraphs
from transforms.fineweb_rules import FineWebQuality
from transforms.gopher_rules import GopherQuality, GopherRepetition
from transforms.outcome import Transform
from transforms.sharing import Sharing

SHARED: Final = Path("../shared/data")
SOURCES: Final = (
    ("corpora/multidomain.parquet", "text"),
    ("lid/udhr2.parquet", "text"),
    ("duplicates/spdx_docs.parquet", "text"),
    ("extraction/wcxb_dev.parquet", "gold_text"),
)
LENGTHS: Final = (300, 600, 1_000, 1_500, 2_500)
"""Code points of passages, in turn."""
BATCH: Final = 1_000

CHAINS: Final[dict[str, tuple[Transform, ...]]] = {
    "GopherQuality": (GopherQuality(),),
    "GopherRepetition": (GopherRepetition(),),
    "C4": (C4Documents(min_sentences=None), C4Lines(min_words=3), C4Documents(None, (), min_sentences=5)),
    "FineWebQuality": (FineWebQuality(max_characters_in_duplicate_lines=0.01),),
    "MC4Paragraphs": (MC4Paragraphs(),),
}
"""Our filters, with datatrove's numbers where the papers have others."""

Filter = Callable[[str], Verdict]


@dataclass(slots=True)
class Parity:
    """Verdicts compared, per filter."""

    texts: int = 0
    equal: Counter[str] = field(default_factory=Counter)
    explained: dict[str, Counter[tuple[str, ...]]] = field(default_factory=dict)
    examples: dict[tuple[str, tuple[str, ...]], str] = field(default_factory=dict)
    unexplained: list[str] = field(default_factory=list)

    @property
    def different(self) -> int:
        """The disagreements."""
        return self.texts * len(CHAINS) - self.equal.total()


def passages(count: int, seed: int = 0) -> list[str]:
    """Return `count` passages cut from the sources that are there, at places drawn from `seed`."""
    draw, texts = random.Random(seed), []
    for path, column in SOURCES:
        if (SHARED / path).exists():
            names = pq.read_schema(SHARED / path).names
            values = pq.read_table(SHARED / path, columns=[column]) if column in names else None
            texts.append([text for text in values.column(0).to_pylist() if text] if values else [])
    texts = [found for found in texts if found]
    cut = []
    for number in range(count if texts else 0):
        source = (
            texts[0] if number % 5 < 3 else texts[1 + number % max(1, len(texts) - 1)] if len(texts) > 1 else texts[0]
        )
        text, length = draw.choice(source), LENGTHS[number % len(LENGTHS)]
        start = draw.randrange(max(1, len(text) - length + 1))
        cut.append(text[start : start + length])
    return cut


PIECES: Final = (
    "The quick brown fox jumps over the lazy dog.",
    "We have walked with that keeper to the sea, and the wind was cold.",
    "to be or not to be",
    "and of the",
    "Short line",
    "He said that it would be “fine.”",
    "- a bullet of the list",
    "• another one",
    "It ends like this...",
    "And like this…",
    "......",
    "# # #",
    "| | |",
    "-- -- --",
    "12345 67890",
    "１ １ １",
    "Please enable JavaScript to go on.",
    "We like javascripts of that kind.",
    "This site uses cookies to be nice.",
    "Reuses cookies of yours.",
    "Read the privacy  policy with care.",
    "Lorem ipsum dolor sit amet.",
    "A lorem-ipsum of sorts, all of it.",
    "function f() { return 1; }",
    "A fact of note.[12]",
    "A fact of note [citation needed].",
    "A fact of note. [3]",
    "Its history[edit]goes back to them.",
    "the keepers' boats'",
    "— — — .",
    "!!! ???",
    "中文字符。这是一个句子！好吗？",
    "これはテストです。",
    "ภาษาไทยเป็นภาษา",
    "हिन्दी भाषा है।",
    "هل هذا سؤال؟",
    "x" * 1001 + " is long.",
    "Mr. Smith went to e.g. the shop. He left.",
    "\u1b4e\u1b5f a word\u2e60",
    "a a a a a a a a",
    "the end the end the End the END",
)
JOINS: Final = (*"\n" * 3, "\n\n", "\n \n", " \n", "\r\n", *"\r\u2028\x0b\x0c\x1c\x85 ", "  ", "\n\t", "\u00a0\n")


def edge_cases(count: int, seed: int = 1) -> list[str]:
    """Return `count` texts of pieces on which rules turn, most of them with repetitions."""
    draw = random.Random(seed)
    texts = ["", " ", "\n", "\n\n", "The cat sat.", "!!!", "a", "\x1c\n\x1d", ".\n.\n.\n."]
    while len(texts) < count:
        some = draw.sample(PIECES, draw.choice((1, 2, 3, 5, 9, 14)))
        joins = draw.sample(JOINS, draw.choice((1, 2, 4)))
        chosen = draw.choices(some, k=draw.choice((1, 3, 6, 12, 25)))
        texts.append("".join(piece + draw.choice(joins) for piece in chosen))
    return texts[:count]


def ours(name: str, texts: Sequence[str]) -> list[Verdict]:
    """Return the verdicts of our transforms."""
    verdicts: list[Verdict] = []
    for first in range(0, len(texts), BATCH):
        some = texts[first : first + BATCH]
        ids = [row.to_bytes(16, "big") for row in range(len(some))]
        batch = pa.record_batch({"id": pa.array(ids, pa.binary(16)), "text": pa.array(some, pa.large_string())})
        dropped: dict[bytes, str] = {}
        shared = Sharing()
        for transform in CHAINS[name]:
            outcome = shared.apply(transform, batch)
            batch, columns = outcome.kept, outcome.dropped.to_pydict()
            dropped |= dict(zip(columns["id"], columns["reason"], strict=True))
        kept = dict(zip(batch.column("id").to_pylist(), batch.column("text").to_pylist(), strict=True))
        left = {one: _joined([trim(line) for line in lines_of(text)]) for one, text in kept.items()}
        verdicts += [dropped.get(one) or (left[one] if name == "C4" else None) for one in ids]
    return verdicts


def _joined(lines: Sequence[str]) -> tuple[str, str]:
    """Return what is left of a text: whether a line that stays keeps its White_Space is no verdict."""
    return "text", "\n".join(line.strip() for line in lines).strip()


def restated() -> dict[str, Filter]:
    """Return datatrove's filters as `benchmarks.plain_filters` restates them."""

    def of(name: str) -> Filter:
        plain, theirs = PLAIN[name], frozenset(READINGS[name])
        return lambda text: plain(text, theirs)

    return {name: of(name) for name in CHAINS}


@contextmanager
def datatrove_filters() -> Iterator[dict[str, Filter]]:
    """Yield datatrove's filters themselves, their splitters of words and sentences replaced by ours until the end."""
    from datatrove.data import Document
    from datatrove.pipeline.filters import (
        C4ParagraphFilter,
        C4QualityFilter,
        FineWebQualityFilter,
        GopherQualityFilter,
        GopherRepetitionFilter,
        c4_filters,
        fineweb_quality_filter,
        gopher_quality_filter,
        gopher_repetition_filter,
    )

    filters: dict[str, Any] = {
        "GopherQuality": GopherQualityFilter(),
        "GopherRepetition": GopherRepetitionFilter(),
        "C4": C4QualityFilter(),
        "FineWebQuality": FineWebQualityFilter(),
        "MC4Paragraphs": C4ParagraphFilter(),
    }

    def of(name: str) -> Filter:
        def verdict(text: str) -> Verdict:
            document = Document(text=text, id="")
            try:
                answer = filters[name].filter(document)
            except ZeroDivisionError:
                return "error"
            if answer is not True:
                return answer[1] if isinstance(answer, tuple) else "dropped"
            return _joined(document.text.split("\n")) if name == "C4" else None

        return verdict

    with ExitStack() as stack:
        for module in (gopher_quality_filter, gopher_repetition_filter, fineweb_quality_filter):
            words = patch.object(module, "split_into_words", lambda text, language: list(words_of(text)))
            stack.enter_context(words)
        sentences = patch.object(c4_filters, "split_into_sentences", lambda line, language: [line] * sentences_of(line))
        stack.enter_context(sentences)
        yield {name: of(name) for name in CHAINS}


def same(one: Verdict, other: Verdict) -> bool:
    """Return whether both drop, or both keep the same text; an error is neither."""
    if "error" in (one, other):
        return one == other
    return isinstance(one, str) == isinstance(other, str) and (isinstance(one, str) or one == other)


def explain(name: str, text: str, our: Verdict) -> tuple[str, ...] | None:
    """Return the fewest readings that have to change for datatrove's rules to give our verdict."""
    everything, plain = tuple(READINGS[name]), PLAIN[name]
    for size in range(1, len(everything) + 1):
        for changed in combinations(everything, size):
            if same(plain(text, frozenset(everything) - {*changed}), our):
                return changed
    return None


def compare(texts: Sequence[str], filters: dict[str, Filter]) -> Parity:
    """Return how the verdicts of our filters on `texts` compare with those of `filters`."""
    parity, again = Parity(len(texts)), restated()
    for name, their in filters.items():
        parity.explained[name] = Counter()
        for text, our in zip(texts, ours(name, texts), strict=True):
            found = their(text)
            if same(our, found):
                parity.equal[name] += 1
                continue
            why = explain(name, text, our) if same(again[name](text), found) else None
            if why is None:
                parity.unexplained.append(f"{name}: ours {our!r}, datatrove's {found!r} of {text[:300]!r}")
                continue
            parity.explained[name][why] += 1
            parity.examples.setdefault((name, why), text)
    return parity


def lines_of_report(parity: Parity) -> Iterator[str]:
    """Yield the report: per filter the verdicts that agree, then each kind of disagreement with who is right."""
    for name in CHAINS:
        yield f"{name}: {parity.equal[name]:,} of {parity.texts:,} verdicts agree"
        for readings, count in parity.explained[name].most_common():
            yield f"  {count:6,} × {' + '.join(readings)}"
    yield "readings (what datatrove does: who is right by the paper, why):"
    for name, counts in parity.explained.items():
        used = {reading for readings in counts for reading in readings}
        for reading, what in READINGS[name].items():
            if reading in used:
                yield f"  {name}, {reading}: {what.theirs}: {what.right}: {what.why}"
    yield from (f"UNEXPLAINED {one}" for one in parity.unexplained[:20])
