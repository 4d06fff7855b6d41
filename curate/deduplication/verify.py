"""Near duplicates, second half: shingle sets of candidates, and the exact similarity of every pair.

The sets that a partition of pairs needs come to it in the order of documents. A pair is compared when its second
document comes by, with the first one held; where the first ones are too many to hold, the partition is gone through
again for the rest. So memory is bounded whatever the clusters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curate.deduplication.estimate import SHINGLES_MEMORY
from curate.deduplication.pairs import by_node, owned_exchange
from curate.deduplication.plan import CANDIDATES, EDGES, SETS, SIMILARITY, Plan, Refs, cursor_of
from curate.deduplication.templates import left_out_of
from curate.regroup import Collector, Exchange, Regrouped
from curate.running.jobs import Item, Resources, Spooled, publish_files
from curate.store import Store
from curate.writer import write_parquet
from transforms.minhash import MinHash, Sets, first_bands, portions, sets_of
from transforms.similarity import REFUSED, edges

TEXT_BYTES: Final = 4 << 20
"""Bytes of text whose shingle sets are made at a time."""

COPIED_SHINGLES: Final = 1 << 21
"""Shingles handed on at a time: a document of many clusters goes to many partitions."""

PAIRS_HELD: Final = 1 << 21
"""Pairs that are compared in one pass."""

SHINGLES_HELD: Final = 1 << 24
"""Shingles of first documents that are held in one pass: 128 MiB."""

Hashes = npt.NDArray[np.uint64]


def sets_exchange(plan: Plan) -> Exchange:
    """Return the regrouping of shingle sets by owner of pairs."""
    return plan.exchange("sets", SETS, ("ref",), owned_exchange(plan).partitions)


def candidates_exchange(plan: Plan) -> Exchange:
    """Return the regrouping of the keep order of all candidates by document."""
    return plan.exchange("order", CANDIDATES, ("ref",), plan.bucket_partitions)


@dataclass(frozen=True, slots=True)
class ShinglesJob:
    """Per input shard: id and keep order of its candidates, and their shingle sets, to all pairs that need them."""

    plan: Plan
    wanted: Regrouped
    name: str = "deduplicate: shingles"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return self.plan.resources

    def run(self, item: Item) -> int:
        """Publish the shingle sets of shard `item.unit`, and return how many documents have one."""
        plan, cursor, count = self.plan, cursor_of(self.plan, self.wanted, item.unit), 0
        left_out = left_out_of(plan)
        with sets_exchange(plan).collect(2) as sets, candidates_exchange(plan).collect(2) as orders:
            for batch, refs in plan.ordered(item.unit):
                wanted = cursor.below(int(refs[-1]) + 1)
                needed = np.unique(wanted.column("ref").to_numpy())
                mine = batch.take(pa.array(needed - refs[0]))
                count += mine.num_rows
                keep_order = plan.sided(item.unit, plan.orders(item.unit, mine))
                columns = [pa.array(needed), mine.column("id"), keep_order]
                rows = pa.RecordBatch.from_arrays(columns, schema=CANDIDATES)
                orders.add(rows, by_node(needed, plan.bucket_partitions))
                self._sets(mine.column("text"), needed, wanted, (left_out, sets))
            files = {collector.exchange.file: collector.finish() for collector in (sets, orders)}
            publish_files(self.store, item, self.name, files, {})
        return count

    def _sets(self, texts: pa.Array, refs: Refs, wanted: pa.RecordBatch, known: tuple[Hashes, Collector]) -> None:
        """Add the sets of the documents `refs`, which have `texts`, once for each partition that wants them.

        `known` are the shingles that are left out, and what the sets are added to.
        """
        left_out, sets = known
        demands = np.stack([wanted.column(name).to_numpy() for name in ("ref", "partition")], axis=1)
        demands = np.unique(demands, axis=0) if len(demands) else demands
        for first, last in portions(texts, TEXT_BYTES):
            made = sets_of(texts.slice(first, last - first), self.plan.minhash, left_out)
            low, high = np.searchsorted(demands[:, 0], [refs[first], refs[last - 1] + 1])
            mine = demands[low:high]
            local = np.searchsorted(refs[first:last], mine[:, 0])
            sizes = np.diff(made.offsets)
            for start, stop in _cut(sizes[local], COPIED_SHINGLES):
                rows = _lists(made, local[start:stop])
                batch = pa.RecordBatch.from_arrays([pa.array(mine[start:stop, 0]), rows], schema=SETS)
                sets.add(batch, mine[start:stop, 1])


def _cut(sizes: npt.NDArray[np.int64], limit: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows that have `limit` values or little more together."""
    ends, start = np.cumsum(sizes), 0
    while start < len(sizes):
        before = int(ends[start - 1]) if start else 0
        stop = min(len(sizes), int(np.searchsorted(ends, before + limit)) + 1)
        yield start, stop
        start = stop


def _lists(sets: Sets, rows: npt.NDArray[np.int64]) -> pa.Array:
    bounds = zip(sets.offsets[rows].tolist(), sets.offsets[rows + 1].tolist(), strict=True)
    values = np.concatenate([sets.values[:0], *(sets.values[first:last] for first, last in bounds)])
    offsets = np.concatenate([[0], np.cumsum(np.diff(sets.offsets)[rows])]).astype(np.int64)
    return pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(values))


@dataclass(frozen=True, slots=True)
class VerifyJob:
    """Per partition of pairs: the exact similarity of each, and the edges at or above the threshold."""

    plan: Plan
    pairs: Regrouped
    sets: Regrouped
    name: str = "deduplicate: verify"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return Resources(memory=self.plan.resources.memory + SHINGLES_MEMORY)

    def run(self, item: Item) -> int:
        """Publish the edges of partition `item.unit`, and return how many pairs were compared."""
        counts = {"compared": 0}
        with self.store.spool() as path:
            written = write_parquet(path, self._edges(item.unit, counts), EDGES)
            files: dict[str, Spooled] = {"edges.parquet": (path, written.rows)}
            publish_files(self.store, item, self.name, files, {"duplicates": {**counts, "edges": written.rows}})
        return counts["compared"]

    def _edges(self, partition: int, counts: dict[str, int]) -> Iterator[pa.RecordBatch]:
        for a, b in _pairs(self.pairs.batches(partition)):
            counts["compared"] += len(a)
            while len(a):
                done, found = self._pass(partition, a, b)
                yield found
                a, b = a[done:], b[done:]

    def _pass(self, partition: int, a: Refs, b: Refs) -> tuple[int, pa.RecordBatch]:
        """Compare as many of the pairs, which are sorted, as one pass does; return how many, and the edges."""
        held = _Held(np.unique(a), self.plan.minhash)
        order = np.argsort(b, kind="stable")
        found = np.full((len(SIMILARITY), len(a)), REFUSED, np.int64)
        for batch in self.sets.batches(partition):
            refs = batch.column("ref").to_numpy()
            held.add(refs, batch.column("shingles"))
            low, high = np.searchsorted(b[order], [refs[0], refs[-1] + 1])
            rows = order[low:high]
            rows = rows[a[rows] < held.end]
            if len(rows):
                found[:, rows] = held.compare(refs, batch.column("shingles"), a[rows], b[rows])
        done = int(np.searchsorted(a, held.end))
        similar = np.flatnonzero(found[0, :done] != REFUSED)
        columns = [a[similar], b[similar], *found[:, similar]]
        return done, pa.RecordBatch.from_arrays([pa.array(column) for column in columns], schema=EDGES)


def _pairs(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[Refs, Refs]]:
    """Yield at most `PAIRS_HELD` pairs at a time."""
    for batch in batches:
        for first in range(0, batch.num_rows, PAIRS_HELD):
            rows = batch.slice(first, PAIRS_HELD)
            yield rows.column("a").to_numpy(), rows.column("b").to_numpy()


@dataclass(slots=True)
class _Held:
    """The sets of the first documents of pairs, of which `wanted` are to be held; those below `end` are."""

    wanted: Refs
    minhash: MinHash
    values: dict[int, Hashes] = field(default_factory=dict)
    shingles: int = 0
    end: int = np.iinfo(np.int64).max

    def add(self, refs: Refs, sets: pa.Array) -> None:
        """Hold what is wanted of these sets, in order, until there is no more room."""
        for row in np.flatnonzero(np.isin(refs, self.wanted)).tolist():
            if self.shingles >= SHINGLES_HELD:
                self.end = min(self.end, int(refs[row]))
                return
            values = _values(sets, row).copy()
            self.values[int(refs[row])] = values
            self.shingles += len(values)

    def compare(self, refs: Refs, sets: pa.Array, a: Refs, b: Refs) -> npt.NDArray[np.int64]:
        """Return the similarity of the pairs whose second documents are among `refs`, `REFUSED` below the threshold."""
        names, first = np.unique(a, return_inverse=True)
        mine = [self.values[name] for name in names.tolist()]
        lengths = np.concatenate([[len(v) for v in mine], pc.list_value_length(sets).to_numpy()]).astype(np.int64)
        values = np.concatenate([*mine, sets.flatten().to_numpy()])
        joined = Sets(np.concatenate([[0], np.cumsum(lengths)]), values)
        left, right = first.reshape(-1).astype(np.int64), np.searchsorted(refs, b) + len(names)
        found = edges(joined, left, right, self.minhash.ratio, self.minhash.measure)
        bands = first_bands(joined, left[found.pair], right[found.pair], self.minhash)
        similarity = np.full((len(SIMILARITY), len(a)), REFUSED, np.int64)
        similarity[:, found.pair] = found.shared, found.whole, bands
        return similarity


def _values(sets: pa.Array, row: int) -> Hashes:
    return np.asarray(sets[row].values.to_numpy(), np.uint64)
