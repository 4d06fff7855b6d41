"""Items of benchmarks told in other words: `SecondOpinion` compares vectors of an embedder, and only ever tags.

Words that are the same are `Decontaminate`'s business. What was rephrased or translated has other words; whether a text
says the same is what an embedder knows (`transforms.embedding`): any model that gives vectors may be plugged in. The
default, `HashedTfidf`, sees the same words in another order, no synonyms and no other language.

An item is its question, with the answer where it has fewer than `SHORT` words. Documents are cut into windows of
`SCALES` words that overlap by half; an item is compared with windows of the least scale that holds it (of its first
words, where it is longer than the last). What is written is the column `resembles`: canonical JSON of the most similar
items, or null. Nothing is dropped for it: a vector is no evidence that a reader can check, a pair of texts is.

Invariants: the outcome for a document depends on it, the items and the vectors alone; cosines are compared in integers.
Cost: the embedder on ten times the text, and a product with the items of a scale per window: with the default .1 to .5
MB/s per core at 6,000 items, and so much less with more: for documents that are worth it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Final, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transforms.benchmark_items import Benchmark, Item
from transforms.canonical import canonical_json
from transforms.embedding import Embedder, HashedTfidf, directions
from transforms.exact_numbers import Number, exact
from transforms.outcome import Outcome, kept, require
from transforms.schema import set_columns, with_columns
from transforms.segmentation import find_words
from transforms.semantic import SCALE, cosine_of, exact_type, reaches

RESEMBLES: Final = pa.field("resembles", pa.large_string())
"""What `SecondOpinion` writes: canonical JSON, null where nothing is alike."""

SCALES: Final = (12, 24, 48, 96, 192)
"""Words of windows."""
SHORT: Final = 12
"""Words of a question below which its answer is part of it."""
SHOWN: Final = 5
"""Items that are named for a document at most: the most similar."""
ROWS: Final = 1 << 10
"""Windows compared at a time; changes no outcome."""

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SecondOpinion:
    """Tags documents with the items that a window of theirs resembles.

    Args:
        benchmarks: one or several, each under its own name and split.
        embedder: what makes vectors of texts; an instance.
        similarity: cosine from which on a window resembles an item, four decimals at most. It is the embedder's: for
            the default .8 is nearly the same words.

    Raises:
        ValueError: an argument is out of its range.
    """

    benchmarks: tuple[Benchmark, ...] | Sequence[Benchmark] | Benchmark
    embedder: Embedder = field(default_factory=HashedTfidf)
    similarity: Fraction | Number | str = Fraction(4, 5)

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        given = (self.benchmarks,) if isinstance(self.benchmarks, Benchmark) else tuple(self.benchmarks)
        object.__setattr__(self, "benchmarks", given)
        object.__setattr__(self, "similarity", exact(self.similarity))
        if not given or len({benchmark.title for benchmark in given}) < len(given):
            raise ValueError("SecondOpinion needs benchmarks, each under its own name and split")
        if isinstance(self.embedder, type) or not isinstance(self.embedder, Embedder):
            raise ValueError(f"SecondOpinion(embedder={self.embedder!r}): give an instance, as HashedTfidf()")
        if not 0 < self._least <= 1 or SCALE % self._least.denominator:
            raise ValueError(f"SecondOpinion(similarity={self.similarity!r}): give a cosine like 0.8, at most 1")

    @property
    def isolated(self) -> bool:
        """Whether the embedder wants a child process."""
        return bool(getattr(self.embedder, "isolated", False))

    @property
    def _least(self) -> Fraction:
        return exact(self.similarity)

    @property
    def _named(self) -> tuple[Benchmark, ...]:
        return tuple(self.benchmarks)  # type: ignore[arg-type]

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return `schema` with the column `resembles`; `text` is needed."""
        require(schema, "SecondOpinion", text=pa.large_string())
        return with_columns(schema, RESEMBLES)

    def ready(self) -> None:
        """Load what the embedder needs, and the vectors of the items.

        Raises:
            BenchmarkError: a benchmark's file changed or is gone.
        """
        if (ready := getattr(self.embedder, "ready", None)) is not None:
            ready()
        _vectors_of(self._named, cast(Hashable, self.embedder))

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Write the column."""
        self.output_schema(batch.schema)
        tags: list[str | None] = [None] * len(batch)
        for row, found in self.resembling(batch.column("text")):
            tags[row] = canonical_json({"items": found})
        return kept(set_columns(batch, {RESEMBLES: pa.array(tags, RESEMBLES.type)}))

    def resembling(self, text: pa.LargeStringArray) -> Iterator[tuple[int, list[dict[str, Any]]]]:
        """Yield (row, items that it resembles, the most similar first) of the rows that resemble one."""
        scales = _vectors_of(self._named, cast(Hashable, self.embedder))
        for row in range(len(text)):
            one = text.slice(row, 1)
            best: dict[tuple[int, int], tuple[int, tuple[int, int]]] = {}
            for scale, items in zip(SCALES, scales, strict=True):
                for item, cosine, span in self._alike(one, scale, items):
                    best[item] = max(best.get(item, (0, (0, 0))), (cosine, span), key=lambda found: found[0])
            if best:
                ranked = sorted(best.items(), key=lambda pair: (-pair[1][0], pair[0]))
                yield row, [self._described(item, *found) for item, found in ranked[:SHOWN]]

    def _described(self, item: tuple[int, int], cosine: int, span: tuple[int, int]) -> dict[str, Any]:
        benchmark, number = item
        title = self._named[benchmark].title
        return {"benchmark": title, "item": number, "cosine": [cosine, SCALE], "span": list(span)}

    def _alike(
        self, text: pa.LargeStringArray, scale: int, items: _Items
    ) -> Iterator[tuple[tuple[int, int], int, tuple[int, int]]]:
        """Yield (item, cosine in 1 / `SCALE`, span in code points) of windows that reach the threshold."""
        if not len(items.numbers):
            return
        for windows, spans in _windows(text[0].as_py(), scale):
            mine = directions(self.embedder, windows)
            squares = _squares(mine)
            products = mine.astype(items.vectors.dtype) @ items.vectors.T
            lengths = np.sqrt(squares)[:, None] * items.lengths
            for window, place in np.argwhere(products >= lengths * (float(self._least) - 1e-4)).tolist():
                product, other = int(products[window, place]), int(items.squares[place])
                if reaches(product, int(squares[window]), other, self._least):
                    yield items.numbers[place], cosine_of(product, int(squares[window]), other), spans[window]


@dataclass(frozen=True, slots=True)
class _Items:
    """Items of a scale: (benchmark, number) and vector of each, and its length."""

    numbers: list[tuple[int, int]]
    vectors: npt.NDArray[Any]
    squares: Integers
    lengths: npt.NDArray[np.float64]


@lru_cache(maxsize=4)
def _vectors_of(benchmarks: tuple[Benchmark, ...], hashed: Hashable) -> tuple[_Items, ...]:
    """Return the items of each of `SCALES`; those without words are in none."""
    embedder = cast(Embedder, hashed)
    numbers: list[list[tuple[int, int]]] = [[] for _ in SCALES]
    texts: list[list[str]] = [[] for _ in SCALES]
    for number, benchmark in enumerate(benchmarks):
        for item in benchmark.items():
            text, size = _said(item)
            if size:
                scale = int(np.searchsorted(SCALES, min(size, SCALES[-1])))
                numbers[scale].append((number, item.number))
                texts[scale].append(text)
    made = []
    for mine, said in zip(numbers, texts, strict=True):
        vectors = directions(embedder, pa.array(said, pa.large_string()))
        squares = _squares(vectors)
        there = np.flatnonzero(squares)
        exactly = vectors[there].astype(exact_type(embedder.dimension))
        made.append(_Items([mine[i] for i in there.tolist()], exactly, squares[there], np.sqrt(squares[there])))
    return tuple(made)


def _said(item: Item) -> tuple[str, int]:
    """Return what is compared of an item, at most as many words as the last scale has, and how many these are."""
    text = item.question or item.passage
    if len(_borders(text)) <= SHORT:
        text = f"{text}\n{item.answer}"
    borders = _borders(text)
    if len(borders) > SCALES[-1]:
        text = text.encode()[: borders[SCALES[-1] - 1][1]].decode()
    return text, len(borders)


def _borders(text: str) -> list[tuple[int, int]]:
    """Return where words begin and end, in bytes."""
    words = find_words(pa.array([text], pa.large_string()))
    return list(zip(words.starts.tolist(), words.ends.tolist(), strict=True))


def _windows(text: str, scale: int) -> Iterator[tuple[pa.LargeStringArray, list[tuple[int, int]]]]:
    """Yield windows of `scale` words that overlap by half, `ROWS` at a time, and their code points; one at least."""
    data, borders = text.encode(), _borders(text)
    points = np.concatenate([[0], np.cumsum((np.frombuffer(data, np.uint8) & 0xC0) != 0x80)])
    starts = list(range(0, max(1, len(borders) - scale // 2), scale // 2))
    for first in range(0, len(starts) if borders else 0, ROWS):
        cut = [(borders[s][0], borders[min(s + scale, len(borders)) - 1][1]) for s in starts[first : first + ROWS]]
        spans = [(int(points[start]), int(points[end])) for start, end in cut]
        yield pa.array([data[start:end].decode() for start, end in cut], pa.large_string()), spans


def _squares(vectors: npt.NDArray[np.int8]) -> Integers:
    return np.asarray(np.einsum("ij,ij->i", vectors, vectors, dtype=np.int64), np.int64)
