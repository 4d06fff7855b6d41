"""Who stays: the sequential rule over all edges, and what becomes of the texts that equal one that goes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from curate.deduplication.exact import verdicts_exchange
from curate.deduplication.plan import CANDIDATES, EDGES, NEAR, SIMILARITY, VERDICTS, Plan, Refs
from curate.jobs import Item, Resources, publish_files
from curate.regroup import Exchange, Regrouped
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
        return Resources(memory=self.plan.resources.memory + 228 * self.edges)

    def run(self, item: Item) -> int:
        """Publish which documents go and because of which other, by shard; return how many edges there are."""
        plan, exchange = self.plan, near_exchange(self.plan)
        files = (plan.file("verify", partition, "edges.parquet") for partition in range(plan.bucket_partitions))
        edges = pa.concat_tables([EDGES.empty_table(), *(pq.read_table(file, schema=EDGES) for file in files)])
        a, b, shared, whole, band = (edges.column(name).to_numpy() for name in EDGES.names)
        refs, local = np.unique(np.concatenate([a, b]), return_inverse=True)
        orders, ids = self._orders(refs)
        rank = np.empty(len(refs), np.int64)
        rank[np.asarray(pc.sort_indices(orders))] = np.arange(len(refs))
        decided = survivors(rank, local[: len(a)], local[len(a) :], shared, whole)
        goes = np.flatnonzero(decided.keeper != STAYS)
        keeper, edge = decided.keeper[goes], decided.edge[goes]
        columns = [refs[goes], refs[keeper], ids.take(pa.array(keeper)).combine_chunks()]
        columns += [column[edge] for column in (shared, whole, band)]
        arrays = [column if isinstance(column, pa.Array) else pa.array(column) for column in columns]
        found = pa.RecordBatch.from_arrays(arrays, schema=NEAR)
        with exchange.collect() as near:
            near.add(found, plan.by_shard(refs[goes]))
            publish_files(self.store, item, self.name, {exchange.file: near.finish()}, {})
        return len(a)

    def _orders(self, refs: Refs) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
        """Return keep order and ids of the documents `refs`, which are sorted."""
        kept = (
            batch.filter(pa.array(np.isin(batch.column("ref").to_numpy(), refs)))
            for batch in self.candidates.batches(0)
        )
        table = pa.Table.from_batches(list(kept), CANDIDATES)
        return table.column("order"), table.column("id")


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
        plan, exchange, count = self.plan, verdicts_exchange(self.plan), 0
        near = self.near.table(item.unit)
        gone = near.column("ref").to_numpy()
        with exchange.collect() as verdicts:
            columns = ["ref", "keeper_id", None, *SIMILARITY]
            for rows in (_verdicts(batch, columns) for batch in near.to_batches()):
                verdicts.add(rows, plan.by_shard(rows.column("ref").to_numpy()))
                count += rows.num_rows
            for batch in self.keepers.batches(item.unit):
                rows = _resolved(batch, near, gone)
                verdicts.add(rows, plan.by_shard(rows.column("ref").to_numpy()))
                count += rows.num_rows
            publish_files(self.store, item, self.name, {exchange.file: verdicts.finish()}, {})
        return count


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
    row = pa.array(place, mask=~there)
    later = near.take(row).combine_chunks().to_batches()
    if not later:
        return _verdicts(rows, ["ref", "keeper_id", None, *[None] * len(SIMILARITY)])
    goes = pa.array(there)
    arrays = [
        rows.column("ref"),
        pc.if_else(goes, later[0].column("keeper_id"), rows.column("keeper_id")),
        pc.if_else(goes, rows.column("keeper_id"), pa.scalar(None, rows.column("keeper_id").type)),
        *(later[0].column(name) for name in SIMILARITY),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=VERDICTS)
