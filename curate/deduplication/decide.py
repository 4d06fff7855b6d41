"""Who stays: the sequential rule over all edges, and what becomes of the texts that equal one that goes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from curate.accounting.statistics import Statistics
from curate.deduplication.estimate import EDGE_MEMORY
from curate.deduplication.exact import verdict_exchanges
from curate.deduplication.plan import (
    CANDIDATES,
    EDGES,
    NEAR,
    ROOTED_ORDERS,
    SIMILARITY,
    VERDICTS,
    Plan,
    Refs,
    edges_files,
)
from curate.deduplication.shown import count_between, with_survivors
from curate.regroup import Collector, Exchange, Regrouped
from curate.running.jobs import Item, Resources, publish_files
from curate.store import Store
from transforms.duplicates import STAYS, survivors


def near_exchange(plan: Plan) -> Exchange:
    """Return the regrouping of near duplicates that go, by shard."""
    return plan.exchange("near", NEAR, ("ref",), plan.shard_partitions)


@dataclass(frozen=True, slots=True)
class DecideJob:
    """Once: the sequential rule in keep order over all edges.

    Memory: 100 bytes an edge, and the keep order of the documents that have one.
    """

    plan: Plan
    candidates: Regrouped
    edges: int
    name: str = "deduplicate: decide"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs: with 64 bytes of keep order a document."""
        return Resources(memory=self.plan.resources.memory + EDGE_MEMORY * self.edges)

    def run(self, item: Item) -> int:
        """Publish which documents go and because of which other, by shard; return how many edges there are."""
        plan, exchange = self.plan, near_exchange(self.plan)
        files = (plan.file(task, unit, "edges.parquet") for task, unit in edges_files(plan))
        edges = pa.concat_tables([EDGES.empty_table(), *(pq.read_table(file, schema=EDGES) for file in files)])
        documents = Documents.of(self._orders(edges))
        found = documents.decide(edges, plan.keep)
        with exchange.collect() as near:
            near.add(found, plan.by_shard(found.column("ref").to_numpy()))
            publish_files(self.store, item, self.name, {exchange.file: near.finish()}, {})
        return int(edges.num_rows)

    def _orders(self, edges: pa.Table) -> pa.Table:
        """Return the documents that have an edge."""
        refs = np.unique(np.concatenate([edges.column(name).to_numpy() for name in ("a", "b")]))
        kept = (
            batch.filter(pa.array(np.isin(batch.column("ref").to_numpy(), refs)))
            for partition in range(self.plan.bucket_partitions)
            for batch in self.candidates.batches(partition)
        )
        return pa.Table.from_batches(list(kept), CANDIDATES)


@dataclass(frozen=True, slots=True)
class Documents:
    """Some documents that have edges: refs, sorted, ids, and their rank in keep order."""

    refs: Refs
    ids: pa.Array
    rank: npt.NDArray[np.int64]

    @classmethod
    def of(cls, rows: pa.Table) -> Documents:
        """Return the documents of rows of `CANDIDATES`."""
        rows = rows.sort_by("ref").combine_chunks()
        rank = np.empty(rows.num_rows, np.int64)
        rank[np.asarray(pc.sort_indices(rows.column("order")))] = np.arange(rows.num_rows)
        ids = rows.column("id").combine_chunks()
        return cls(rows.column("ref").to_numpy(), ids, rank)

    def decide(self, edges: pa.Table, keep: int, decided: npt.NDArray[np.int8] | None = None) -> pa.RecordBatch:
        """Return those that go, as rows of `NEAR`, given all their `edges`.

        With `decided` (1 stays, 0 goes, -1 not yet) these are the edges whose later end is to be decided now.
        """
        a, b = (np.searchsorted(self.refs, edges.column(name).to_numpy()) for name in ("a", "b"))
        similarity = [edges.column(name).to_numpy() for name in SIMILARITY]
        verdict = survivors(self.rank, a, b, *similarity[:2], keep=keep, before=decided)
        goes = np.flatnonzero(verdict.keeper != STAYS)
        keeper, edge = verdict.keeper[goes], verdict.edge[goes]
        columns = [pa.array(self.refs[goes]), pa.array(self.refs[keeper]), self.ids.take(pa.array(keeper))]
        columns += [pa.array(column[edge]) for column in similarity]
        return pa.RecordBatch.from_arrays(columns, schema=NEAR)


@dataclass(frozen=True, slots=True)
class DecideComponentsJob:
    """Per partition of components: the sequential rule in keep order over their edges.

    Components are decided on together while they have `Plan.held_edges` edges at most. A larger one is cut by keep
    order into ranges with as many edges, decided on one after the other; the partition is read for each.
    Memory: `held_edges`, and the keep order of the documents of a component.
    """

    plan: Plan
    edges: Regrouped
    orders: Regrouped
    name: str = "deduplicate: decide on components"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return Resources(memory=self.plan.resources.memory + EDGE_MEMORY * self.plan.held_edges)

    def run(self, item: Item) -> int:
        """Publish which documents of partition `item.unit` go, by shard; return how many edges there are."""
        plan, exchange, total = self.plan, near_exchange(self.plan), 0
        with exchange.collect() as near:
            for first, last, count in self._ranges(item.unit):
                total += count
                orders = pa.Table.from_batches(list(_rooted(self.orders, item.unit, first, last)), ROOTED_ORDERS)
                for found in self._decided(item.unit, first, last, count, Documents.of(orders)):
                    near.add(found, plan.by_shard(found.column("ref").to_numpy()))
            publish_files(self.store, item, self.name, {exchange.file: near.finish()}, {})
        return total

    def _ranges(self, partition: int) -> Iterator[tuple[int, int, int]]:
        """Yield ranges of roots, first and last, and their edges: at most `held_edges`, or one component."""
        sizes: dict[int, int] = {}
        for batch in self.edges.batches(partition):
            roots, counts = np.unique(batch.column("root").to_numpy(), return_counts=True)
            for root, count in zip(roots.tolist(), counts.tolist(), strict=True):
                sizes[root] = sizes.get(root, 0) + count
        held: list[int] = []
        total = 0
        for root, count in sizes.items():  # they came sorted
            if held and total + count > self.plan.held_edges:
                yield held[0], held[-1], total
                held, total = [], 0
            held.append(root)
            total += count
        if held:
            yield held[0], held[-1], total

    def _decided(
        self, partition: int, first: int, last: int, count: int, documents: Documents
    ) -> Iterator[pa.RecordBatch]:
        """Yield the documents that go, of the components from `first` to `last`, which have `count` edges."""
        if count <= self.plan.held_edges:
            edges = pa.Table.from_batches(list(_rooted(self.edges, partition, first, last)), self.edges.exchange.schema)
            yield documents.decide(edges, self.plan.keep)
            return
        sizes = np.zeros(len(documents.refs), np.int64)  # edges by the rank of their later end
        for batch in _rooted(self.edges, partition, first, last):
            np.add.at(sizes, _later(documents, batch), 1)
        decided = np.full(len(documents.refs), -1, np.int8)
        for low, high in _cuts(sizes, self.plan.held_edges):
            batches = _rooted(self.edges, partition, first, last)
            mine = [batch.filter(pa.array(_between(_later(documents, batch), low, high))) for batch in batches]
            found = documents.decide(pa.Table.from_batches(mine), self.plan.keep, decided)
            decided[_between(documents.rank, low, high)] = 1
            decided[np.searchsorted(documents.refs, found.column("ref").to_numpy())] = 0
            yield found


def _rooted(rows: Regrouped, partition: int, first: int, last: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the components from `first` to `last`."""
    for batch in rows.batches(partition):
        roots = batch.column("root").to_numpy()
        start, stop = np.searchsorted(roots, [first, last + 1])
        if start < stop:
            yield batch.slice(int(start), int(stop - start))


def _later(documents: Documents, edges: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """Return the rank of the later end of each edge."""
    a, b = (documents.rank[np.searchsorted(documents.refs, edges.column(name).to_numpy())] for name in ("a", "b"))
    return np.asarray(np.maximum(a, b))


def _between(ranks: npt.NDArray[np.int64], low: int, high: int) -> npt.NDArray[np.bool_]:
    return np.asarray((ranks >= low) & (ranks < high))


def _cuts(sizes: npt.NDArray[np.int64], limit: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of ranks with `limit` edges at most, or one rank."""
    ends, low = np.cumsum(sizes), 0
    while low < len(sizes):
        before = int(ends[low - 1]) if low else 0
        high = max(low + 1, int(np.searchsorted(ends, before + limit, side="right")))
        yield low, high
        low = high


@dataclass(frozen=True, slots=True)
class ResolveJob:
    """Per partition of shards: the near duplicates of these shards, and the texts that equal a text of these shards.

    A text whose equal goes as a near duplicate goes for the same survivor: nothing names one that is gone.
    Memory: the near duplicates of the partition, 48 bytes each.
    """

    plan: Plan
    keepers: Regrouped
    near: Regrouped
    name: str = "deduplicate: resolve"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return self.plan.resources

    def run(self, item: Item) -> int:
        """Publish the verdicts of partition `item.unit`, by shard, and return how many there are."""
        wanted, count = verdict_exchanges(self.plan), 0
        near = self.near.table(item.unit)
        gone = near.column("ref").to_numpy()
        columns = ["ref", "keeper", "keeper_id", None, *SIMILARITY]
        found = (_verdicts(batch, columns) for batch in near.to_batches())
        further = (_resolved(batch, near, gone) for batch in self.keepers.batches(item.unit))
        shown: Statistics = {}
        pairs: Statistics = {}
        with ExitStack() as stack:
            collectors = [stack.enter_context(exchange.collect(len(wanted))) for exchange in wanted]
            for rows in chain(found, further):
                shown = with_survivors(shown, self.plan, rows)
                count_between(pairs, self.plan, rows)
                for collector in collectors:
                    self._collect(collector, rows)
                count += rows.num_rows
            files = {collector.exchange.file: collector.finish() for collector in collectors}
            publish_files(self.store, item, self.name, files, {**shown, **({"between": pairs} if pairs else {})})
        return count

    def _collect(self, collector: Collector, rows: pa.RecordBatch) -> None:
        schema = collector.exchange.schema
        mine = pa.RecordBatch.from_arrays([rows.column(name) for name in schema.names], schema=schema)
        collector.add(mine, self.plan.by_shard(rows.column(schema.names[0]).to_numpy()))


def _verdicts(rows: pa.RecordBatch, columns: list[str | None]) -> pa.RecordBatch:
    arrays = [
        pa.nulls(rows.num_rows, column.type) if name is None else rows.column(name)
        for name, column in zip(columns, VERDICTS, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=VERDICTS)


def _resolved(rows: pa.RecordBatch, near: pa.Table, gone: Refs) -> pa.RecordBatch:
    """Return the verdicts of texts that equal one that stays (rows of `KEEPERS`), given the near duplicates that go."""
    keepers = rows.column("keeper").to_numpy()
    place = np.searchsorted(gone, keepers)
    there = place < len(gone)
    there[there] = gone[place[there]] == keepers[there]
    goes = pa.array(there)
    row = pa.array(place, mask=~there)
    later = near.take(row).combine_chunks().to_batches()
    if not later:
        return _verdicts(rows, ["ref", "keeper", "keeper_id", None, *[None] * len(SIMILARITY)])
    arrays = [
        rows.column("ref"),
        *(pc.if_else(goes, later[0].column(name), rows.column(name)) for name in ("keeper", "keeper_id")),
        pc.if_else(goes, rows.column("keeper_id"), pa.scalar(None, rows.column("keeper_id").type)),
        *(later[0].column(name) for name in SIMILARITY),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=VERDICTS)
