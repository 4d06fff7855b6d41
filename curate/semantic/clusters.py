"""Clusters: centres fitted once to a sample, every vector to the nearest, in each who stays, and across borders.

Two documents that mean the same may lie on both sides of a border. Those that stay in their cluster are compared once
more, with those that have the same two clusters nearest, in either order; each is in one such group, so what is decided
there is final. What others went for in the first round stays: so every survivor that the ledger names is one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from curate.regroup import Regrouped
from curate.running.jobs import Item, Resources, publish_files
from curate.semantic.plan import GONE, HELD, Clustered, matrix
from curate.semantic.vectors import Sample
from curate.store import Store
from curate.writer import write_parquet
from transforms.schema import ID
from transforms.semantic import STAYS, divided, keep_unlike
from transforms.spherical_kmeans import Rows, group_rows, products, unit_rows

Indices = npt.NDArray[np.int64]

CENTRES: Final = pa.schema([pa.field("centre", pa.large_binary(), nullable=False)])
"""Centres as int16, little-endian."""

ROWS_AT_ONCE: Final = 4096


@dataclass(frozen=True, slots=True)
class CentresJob:
    """Once: the centres of clusters, fitted to the documents with the lowest text digests."""

    plan: Clustered
    name: str = "semantic: centres"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.shards.store

    @property
    def resources(self) -> Resources:
        """What a task needs: 64 documents a cluster, and their products with the centres."""
        return Resources(memory=self.plan.resources.memory + (128 << 10) * self.plan.clusters)

    def run(self, item: Item) -> int:
        """Publish the centres, and return how many documents they are fitted to."""
        plan, sample = self.plan, Sample(self.plan)
        for unit in range(plan.shards.units):
            sample.add_table(pq.read_table(plan.file("vectors", unit, "sample.parquet"), schema=plan.sample))
        vectors = matrix(sample.rows().column("vector"), plan.dimension)
        centres = list(group_rows(unit_rows(vectors), plan.clusters).centres) if len(vectors) else []
        stored = pa.array([row.astype("<i2").tobytes() for row in centres], pa.large_binary())
        rows = pa.record_batch([stored], schema=CENTRES)
        with self.store.spool() as path:
            written = write_parquet(path, [rows], CENTRES)
            told = {"semantic": {"clusters": written.rows}}
            publish_files(self.store, item, self.name, {"centres.parquet": (path, written.rows)}, told)
        return len(vectors)


@dataclass(frozen=True, slots=True)
class AssignJob:
    """Per shard, of references too: its vectors, by cluster."""

    plan: Clustered
    name: str = "semantic: nearest centres"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.shards.store

    @property
    def resources(self) -> Resources:
        """What a task needs: with products of some vectors with all centres."""
        return Resources(memory=self.plan.resources.memory + 16 * ROWS_AT_ONCE * self.plan.clusters)

    def run(self, item: Item) -> int:
        """Publish the vectors of shard `item.unit`, and return how many there are."""
        plan, exchange, count = self.plan, self.plan.clustered, 0
        rows = pq.read_table(plan.file("centres", 0, "centres.parquet"), schema=CENTRES).column("centre").to_pylist()
        centres = np.array([np.frombuffer(row, "<i2") for row in rows], np.int16)
        with (
            exchange.collect() as collector,
            pq.ParquetFile(plan.file("vectors", item.unit, "vectors.parquet")) as file,
        ):
            for batch in filter(len, file.iter_batches(ROWS_AT_ONCE)):
                nearest, second = two_nearest(unit_rows(matrix(batch.column("vector"), plan.dimension)), centres)
                columns = [pa.array(nearest), pa.array(second), *batch.columns]
                made = pa.RecordBatch.from_arrays(columns, schema=exchange.schema)
                collector.add(made, nearest * exchange.partitions // plan.clusters)
                count += batch.num_rows
            publish_files(self.store, item, self.name, {exchange.file: collector.finish()}, {})
        return count


def two_nearest(rows: Rows, centres: Rows) -> tuple[Indices, Indices]:
    """Return the nearest and the second nearest of `centres` for each of `rows`; with one centre it is both."""
    found = products(rows, centres)
    nearest = found.argmax(axis=1)
    if len(centres) > 1:
        found[np.arange(len(rows)), nearest] = np.iinfo(np.int64).min
    return nearest, found.argmax(axis=1)


@dataclass(frozen=True, slots=True)
class UnlikeJob:
    """Per partition of clusters: the documents that resemble one that stays, by shard; and who stays, by border.

    A cluster is held with at most `HELD` documents; what is beyond is compared among itself.
    """

    plan: Clustered
    clustered: Regrouped
    name: str = "semantic: compare"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.shards.store

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return self.plan.deciding

    def run(self, item: Item) -> int:
        """Publish what goes of partition `item.unit` and what stays; return how many documents were looked at."""
        gone, borders, looked_at = self.plan.gone, self.plan.borders, 0
        counts = {"compared": 0, "given_up": 0}
        with gone.collect(2) as goes, borders.collect(2) as stays:
            for rows, before in pieces(self.clustered.batches(item.unit), HELD):
                looked_at += len(rows)
                counts["given_up"] += before * len(rows)
                decided = _Decided.of(self.plan, rows, np.zeros(len(rows), np.bool_), counts)
                found = decided.gone(self.plan, "cluster")
                goes.add(found, self.plan.shards.by_shard(found.column("ref").to_numpy()))
                left = self._stay(decided)
                stays.add(left, left.column("cluster").to_numpy() % borders.partitions)
            files = {made.exchange.file: made.finish() for made in (goes, stays)}
            publish_files(self.store, item, self.name, files, {"duplicates": counts})
        return looked_at

    def _stay(self, decided: _Decided) -> pa.RecordBatch:
        """Return what stays of a cluster, with its border and whether it is named as a survivor."""
        stays = np.ones(len(decided.rows), np.bool_)
        stays[decided.goes] = False
        named = np.zeros(len(decided.rows), np.bool_)
        named[decided.keeper] = True
        home, following = (decided.rows.column(name).to_numpy()[stays] for name in ("cluster", "next"))
        border = np.minimum(home, following) * self.plan.clusters + np.maximum(home, following)
        mine = decided.rows.filter(pa.array(stays)).combine_chunks()
        vectors = [mine.column(name).combine_chunks() for name in self.plan.vectors.names]
        columns = [pa.array(border), pa.array(home), pa.array(named[stays]), *vectors]
        return pa.RecordBatch.from_arrays(columns, schema=self.plan.borders.schema)


@dataclass(frozen=True, slots=True)
class BordersJob:
    """Per partition of borders: of those that stay in two clusters next to each other, what resembles another one.

    A document that others went for stays: the ledger names it.
    """

    plan: Clustered
    borders: Regrouped
    name: str = "semantic: compare across borders"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.shards.store

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return self.plan.deciding

    def run(self, item: Item) -> int:
        """Publish what goes of partition `item.unit`, and return how many documents were looked at."""
        gone, looked_at, counts = self.plan.gone, 0, {"compared": 0, "given_up": 0}
        with gone.collect() as goes:
            for rows, before in pieces(self.borders.batches(item.unit), HELD):
                looked_at += len(rows)
                counts["given_up"] += before * len(rows)
                named = rows.column("named").to_numpy()
                found = _Decided.of(self.plan, rows, np.asarray(named, np.bool_), counts).gone(self.plan, "home")
                goes.add(found, self.plan.shards.by_shard(found.column("ref").to_numpy()))
            publish_files(self.store, item, self.name, {gone.file: goes.finish()}, {"duplicates": counts})
        return looked_at


@dataclass(frozen=True, slots=True)
class _Decided:
    """Documents in keep order, which of them go, for which others, and the cosine of both."""

    rows: pa.Table
    goes: Indices
    keeper: Indices
    cosine: Indices

    @classmethod
    def of(cls, plan: Clustered, rows: pa.Table, stay: npt.NDArray[np.bool_], counts: dict[str, int]) -> _Decided:
        """Return what becomes of `rows`, of which those stay that `stay` says, and those of references."""
        order = np.asarray(pc.sort_indices(rows.column("order")))
        rows = rows.take(pa.array(order)).combine_chunks()
        vectors = matrix(rows.column("vector"), plan.dimension)
        always = stay[order] | ~plan.shards.are_documents(rows.column("ref").to_numpy())
        keeper, cosine = np.full(len(rows), STAYS, np.int64), np.zeros(len(rows), np.int64)
        for part, given_up in divided(vectors, plan.operation.cap):
            counts["given_up"] += given_up
            if len(part):
                found = keep_unlike(vectors[part], plan.operation.similarity, always[part])
                goes = np.flatnonzero(found.keeper != STAYS)
                keeper[part[goes]], cosine[part[goes]] = part[found.keeper[goes]], found.cosine[goes]
                counts["compared"] += found.compared
        goes = np.flatnonzero(keeper != STAYS)
        return cls(rows, goes, keeper[goes], cosine[goes])

    def gone(self, plan: Clustered, home: str) -> pa.RecordBatch:
        """Return what goes, as rows of `GONE`; `home` is the column of its cluster."""
        mine, theirs = self.rows.take(pa.array(self.goes)), self.rows.take(pa.array(self.keeper)).combine_chunks()
        survivors = pc.binary_slice(theirs.column("order"), -16).cast(ID).combine_chunks()
        references = plan.shards.references_of(theirs.column("ref").to_numpy())
        columns = [mine.column("ref"), survivors, references, pa.array(self.cosine), mine.column(home)]
        arrays = [c.combine_chunks() if isinstance(c, pa.ChunkedArray) else c for c in columns]
        return pa.RecordBatch.from_arrays(arrays, schema=GONE)


def pieces(batches: Iterator[pa.RecordBatch], most: int) -> Iterator[tuple[pa.Table, int]]:
    """Yield the rows of clusters that come one after the other, at most so many, and how many of its cluster came."""
    held: list[pa.RecordBatch] = []
    cluster, count, before = -1, 0, 0
    for batch in batches:
        numbers, first = batch.column("cluster").to_numpy(), 0
        while first < len(numbers):
            if numbers[first] != cluster or count == most:
                if held:
                    yield pa.Table.from_batches(held), before
                before = before + count if numbers[first] == cluster else 0
                held, cluster, count = [], int(numbers[first]), 0
            last = min(int(np.searchsorted(numbers, cluster, side="right")), first + most - count)
            held.append(batch.slice(first, last - first))
            count, first = count + last - first, last
    if held:
        yield pa.Table.from_batches(held), before
