"""Near duplicates, second half, by shard: pairs within it are compared, shingle sets for all other pairs passed on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curate.deduplication.compare import Comparison, pieces, publish_edges
from curate.deduplication.estimate import SHINGLES_MEMORY
from curate.deduplication.pairs import by_node, owned_exchange
from curate.deduplication.plan import CANDIDATES, SETS, SHARD_BITS, Plan, Refs, cursor_of, of_shard
from curate.deduplication.templates import left_out_of
from curate.regroup import Collector, Exchange, Regrouped
from curate.running.jobs import Item, Resources
from curate.store import Store
from transforms.minhash import Sets, portions, sets_of
from transforms.shingles import NOTHING
from transforms.word_hashes import Hashes

TEXT_BYTES: Final = 4 << 20
"""Bytes of text whose shingle sets are made at a time."""

COPIED_SHINGLES: Final = 1 << 21
"""Shingles handed on at a time: a document of many clusters goes to many partitions."""

NO_PAIRS: Final = (np.zeros(0, np.int64), np.zeros(0, np.int64))

Flags = npt.NDArray[np.bool_]


def sets_exchange(plan: Plan) -> Exchange:
    """Return the regrouping of shingle sets by owner of pairs."""
    return replace(plan.exchange("sets", SETS, ("ref",), owned_exchange(plan).partitions), codec="none")


def candidates_exchange(plan: Plan) -> Exchange:
    """Return the regrouping of the keep order of all candidates by document."""
    return plan.exchange("order", CANDIDATES, ("ref",), plan.bucket_partitions)


@dataclass(frozen=True, slots=True)
class ShinglesJob:
    """Per input shard: its edges, id and keep order of its candidates, and their sets for pairs with other shards.

    The shard is read once, and its texts again for each further `PAIRS_HELD` pairs or `SHINGLES_HELD` shingles.
    """

    plan: Plan
    wanted: Regrouped
    inside: Regrouped
    name: str = "deduplicate: shingles"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return Resources(memory=self.plan.resources.memory + SHINGLES_MEMORY)

    def run(self, item: Item) -> int:
        """Publish edges, keep order and sets of shard `item.unit`, and return how many pairs were compared."""
        plan = self.plan
        with sets_exchange(plan).collect(2) as sets, candidates_exchange(plan).collect(2) as orders:
            found = self._comparisons(item.unit, sets, orders)
            return publish_edges(plan, item, self.name, found, (sets, orders))

    def _comparisons(self, shard: int, sets: Collector, orders: Collector) -> Iterator[Comparison]:
        """Yield all pairs of `shard`, compared; what others need is collected while it is read for the first time."""
        passes = pieces(of_shard(self.plan, self.inside, shard))
        a, b = next(passes, NO_PAIRS)
        first = Comparison(a, b, self.plan.minhash)
        self._read(shard, first, sets, orders)
        yield first
        yield from self._again(shard, *first.rest())
        for a, b in passes:
            yield from self._again(shard, a, b)

    def _read(self, shard: int, comparison: Comparison, sets: Collector, orders: Collector) -> None:
        cursor, paired = cursor_of(self.plan, self.wanted, shard), self._rows(shard, comparison.a, comparison.b)
        inside = paired.copy()
        for a, b in pieces(of_shard(self.plan, self.inside, shard)):
            inside |= self._rows(shard, a, b)
        left_out, digests = left_out_of(self.plan), self.plan.digests(shard)
        for batch, refs in self.plan.ordered(shard):
            demands = _demands(cursor.below(int(refs[-1]) + 1))
            rows, asked = refs - (shard << SHARD_BITS), np.isin(refs, demands[:, 0])
            known = digests.slice(int(rows[0]), len(rows))
            orders.add(*self._orders(batch, refs, known, inside[rows] | asked))
            for some, made in self._sets(batch, refs, paired[rows] | asked, left_out):
                comparison.meet(some, made)
                _send(some, made, demands, sets)

    def _again(self, shard: int, a: Refs, b: Refs) -> Iterator[Comparison]:
        """Yield these pairs, compared."""
        left_out = left_out_of(self.plan) if len(a) else NOTHING
        while len(a):
            comparison, paired = Comparison(a, b, self.plan.minhash), self._rows(shard, a, b)
            for batch, refs in self.plan.batches(shard, "text"):
                for some, made in self._sets(batch, refs, paired[refs - (shard << SHARD_BITS)], left_out):
                    comparison.meet(some, made)
            yield comparison
            a, b = comparison.rest()

    def _rows(self, shard: int, *refs: Refs) -> Flags:
        """Return which rows of `shard` are among `refs`."""
        rows = np.zeros(self.plan.rows[shard], np.bool_)
        for some in refs:
            rows[some - (shard << SHARD_BITS)] = True
        return rows

    def _orders(
        self, batch: pa.RecordBatch, refs: Refs, digests: pa.Array, candidates: Flags
    ) -> tuple[pa.RecordBatch, Refs]:
        """Return the keep order of the candidates, and the partition of each."""
        plan, shard, there = self.plan, int(refs[0]) >> SHARD_BITS, pa.array(candidates)
        mine = (batch if plan.needs_length else batch.drop_columns("text")).filter(there)
        orders = plan.sided(shard, plan.orders(shard, mine, digests.filter(there)))
        columns = [pa.array(refs[candidates]), mine.column("id"), orders]
        rows = pa.RecordBatch.from_arrays(columns, schema=CANDIDATES)
        return rows, by_node(refs[candidates], plan.bucket_partitions)

    def _sets(self, batch: pa.RecordBatch, refs: Refs, needed: Flags, left_out: Hashes) -> Iterator[tuple[Refs, Sets]]:
        """Yield the documents that are needed, some at a time, and their shingle sets."""
        texts, mine = batch.column("text").filter(pa.array(needed)), refs[needed]
        for first, last in portions(texts, TEXT_BYTES):
            yield mine[first:last], sets_of(texts.slice(first, last - first), self.plan.minhash, left_out)


def _demands(wanted: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """Return rows of `WANTED`, each once."""
    rows = np.stack([wanted.column(name).to_numpy() for name in ("ref", "partition")], axis=1)
    return np.unique(rows, axis=0) if len(rows) else rows


def _send(refs: Refs, made: Sets, demands: npt.NDArray[np.int64], sets: Collector) -> None:
    """Collect the sets of the documents `refs`, once for each partition that wants them."""
    low, high = np.searchsorted(demands[:, 0], [refs[0], refs[-1] + 1])
    mine = demands[low:high]
    local = np.searchsorted(refs, mine[:, 0])
    for start, stop in _cut(np.diff(made.offsets)[local], COPIED_SHINGLES):
        rows = _lists(made, local[start:stop])
        sets.add(pa.RecordBatch.from_arrays([pa.array(mine[start:stop, 0]), rows], schema=SETS), mine[start:stop, 1])


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
