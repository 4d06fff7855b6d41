"""Exact similarity of pairs whose shingle sets come by in the order of documents, in bounded memory.

A pair is compared when its second document comes by, with the first one held. Where the first ones are too many to
hold, all sets are gone through again for the rest (`Comparison.rest`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curate.deduplication.plan import EDGES, SIMILARITY, Plan, Refs
from curate.regroup import Collector
from curate.running.jobs import Item, Spooled, publish_files
from curate.writer import write_parquet
from transforms.minhash import MinHash, Sets, first_bands
from transforms.similarity import edges

PAIRS_HELD: Final = 1 << 21
"""Pairs that are compared in one pass."""

SHINGLES_HELD: Final = 1 << 24
"""Shingles of first documents that are held in one pass: 128 MiB."""

Hashes = npt.NDArray[np.uint64]


@dataclass(slots=True)
class Held:
    """Shingle sets of some documents, in their order, in one array that grows: those of `refs`."""

    refs: Refs = field(default_factory=lambda: np.zeros(0, np.int64))
    offsets: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))
    _values: Hashes = field(default_factory=lambda: np.empty(SHINGLES_HELD, np.uint64))  # untouched pages cost nothing

    @property
    def sets(self) -> Sets:
        """What is held."""
        return Sets(self.offsets, self._values[: self.offsets[-1]])

    def add(self, refs: Refs, sets: Sets) -> None:
        """Hold these too; their documents come after all others."""
        end, first = int(self.offsets[-1]), int(sets.offsets[0])
        after = end + int(sets.offsets[-1]) - first
        if after > len(self._values):
            values = np.empty(max(after, 2 * len(self._values)), np.uint64)
            values[:end] = self._values[:end]
            self._values = values
        self._values[end:after] = sets.values[first : sets.offsets[-1]]
        self.refs = np.concatenate([self.refs, refs])
        self.offsets = np.concatenate([self.offsets, sets.offsets[1:] - first + end])

    def keep(self, first: int, wanted: npt.NDArray[np.bool_]) -> None:
        """Forget those from row `first` on that are not `wanted`."""
        start, sizes = int(self.offsets[first]), np.diff(self.offsets[first:])
        values = self._values[start : self.offsets[-1]][np.repeat(wanted, sizes)]
        self._values[start : start + len(values)] = values
        self.refs = np.concatenate([self.refs[:first], self.refs[first:][wanted]])
        self.offsets = np.concatenate([self.offsets[: first + 1], start + np.cumsum(sizes[wanted])])


class Comparison:
    """One pass over the sets of all documents that the pairs (a[i], b[i]) have; a < b, and pairs are sorted."""

    def __init__(self, a: Refs, b: Refs, minhash: MinHash) -> None:
        self.a, self.b, self.minhash = a, b, minhash
        self._by_second = np.argsort(b, kind="stable")
        self._seconds = b[self._by_second]
        self._wanted = np.unique(a)
        self._held, self._end = Held(), int(np.iinfo(np.int64).max)
        self._found: list[npt.NDArray[np.int64]] = []

    def meet(self, refs: Refs, sets: Sets) -> None:
        """Compare all pairs whose second documents are among `refs`, which have `sets`, and hold the first ones."""
        if not len(refs):
            return
        before = len(self._held.refs)
        self._held.add(refs, sets)
        low, high = np.searchsorted(self._seconds, [refs[0], refs[-1] + 1])
        rows = self._by_second[low:high]
        rows = rows[self.a[rows] < self._end]
        if len(rows):
            self._found.append(self._compared(rows))
        self._keep(before)

    def _keep(self, before: int) -> None:
        """Hold the first documents of pairs until there is no more room."""
        held, refs = self._held, self._held.refs[before:]
        wanted = np.isin(refs, self._wanted, assume_unique=True) & (refs < self._end)
        room = np.searchsorted(np.cumsum(np.diff(held.offsets[before:]) * wanted), SHINGLES_HELD - held.offsets[before])
        late = refs[room + 1 :][wanted[room + 1 :]]
        if len(late):
            self._end = int(late[0])
            wanted[room + 1 :] = False
        held.keep(before, wanted)

    def _compared(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the columns of `EDGES` of those of the pairs `rows` that reach the threshold."""
        held, a, b = self._held, self.a[rows], self.b[rows]
        left, right = np.searchsorted(held.refs, a), np.searchsorted(held.refs, b)
        found = edges(held.sets, left, right, self.minhash.ratio, self.minhash.measure)
        bands = first_bands(held.sets, left[found.pair], right[found.pair], self.minhash)
        return np.stack([a[found.pair], b[found.pair], found.shared, found.whole, bands])

    @property
    def compared(self) -> int:
        """How many pairs were compared."""
        return int(np.searchsorted(self.a, self._end))

    def rest(self) -> tuple[Refs, Refs]:
        """Return the pairs that are to be compared in another pass."""
        return self.a[self.compared :], self.b[self.compared :]

    def edges(self) -> pa.RecordBatch:
        """Return the pairs at or above the threshold, sorted, as rows of `EDGES`."""
        found = np.concatenate([np.zeros((2 + len(SIMILARITY), 0), np.int64), *self._found], axis=1)
        found = found[:, found[0] < self._end]  # others were compared before it was known that they would not be held
        found = found[:, np.lexsort((found[1], found[0]))]
        return pa.RecordBatch.from_arrays([pa.array(column) for column in found], schema=EDGES)


def pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Refs, Refs]]:
    """Yield the pairs of `batches`, at most `PAIRS_HELD` at a time."""
    for batch in batches:
        for first in range(0, batch.num_rows, PAIRS_HELD):
            rows = batch.slice(first, PAIRS_HELD)
            yield rows.column("a").to_numpy(), rows.column("b").to_numpy()


def publish_edges(
    plan: Plan, item: Item, task: str, comparisons: Iterator[Comparison], others: Sequence[Collector] = ()
) -> int:
    """Publish the edges of `comparisons` and what `others` collected meanwhile; return how many pairs were compared."""
    compared = 0

    def edges_of() -> Iterator[pa.RecordBatch]:
        nonlocal compared
        for comparison in comparisons:
            compared += comparison.compared
            yield comparison.edges()

    with plan.store.spool() as path:
        written = write_parquet(path, edges_of(), EDGES)
        files: dict[str, Spooled] = {made.exchange.file: made.finish() for made in others}
        counts = {"duplicates": {"compared": compared, "edges": written.rows}}
        publish_files(plan.store, item, task, {**files, "edges.parquet": (path, written.rows)}, counts)
    return compared
