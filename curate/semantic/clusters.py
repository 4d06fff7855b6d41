"""Clusters: centres fitted once to a sample, every vector to the nearest, and in each cluster who stays."""

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
from transforms.embedding import Vectors
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
    """Per partition of clusters: the documents that resemble one that stays, by shard.

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
        """Publish what goes of partition `item.unit`, and return how many documents were looked at."""
        exchange, looked_at = self.plan.gone, 0
        counts = {"compared": 0, "given_up": 0}
        with exchange.collect() as collector:
            for rows, before in pieces(self.clustered.batches(item.unit), HELD):
                looked_at += len(rows)
                counts["given_up"] += before * len(rows)
                found = self._gone(rows, counts)
                collector.add(found, self.plan.shards.by_shard(found.column("ref").to_numpy()))
            publish_files(self.store, item, self.name, {exchange.file: collector.finish()}, {"duplicates": counts})
        return looked_at

    def _gone(self, rows: pa.Table, counts: dict[str, int]) -> pa.RecordBatch:
        """Return which of the documents of a cluster go, as rows of `GONE`."""
        rows = rows.take(pc.sort_indices(rows.column("order"))).combine_chunks()
        vectors = matrix(rows.column("vector"), self.plan.dimension)
        goes, keeper, cosine = self._decided(vectors, rows.column("ref").to_numpy(), counts)
        mine, theirs = rows.take(pa.array(goes)), rows.take(pa.array(keeper)).combine_chunks()
        survivors = pc.binary_slice(theirs.column("order"), -16).cast(ID).combine_chunks()
        references = self.plan.shards.references_of(theirs.column("ref").to_numpy())
        columns = [mine.column("ref"), survivors, references, pa.array(cosine), mine.column("cluster")]
        arrays = [c.combine_chunks() if isinstance(c, pa.ChunkedArray) else c for c in columns]
        return pa.RecordBatch.from_arrays(arrays, schema=GONE)

    def _decided(self, vectors: Vectors, refs: Indices, counts: dict[str, int]) -> tuple[Indices, Indices, Indices]:
        """Return which documents go, in keep order, those that they go for, and the cosine of both."""
        operation, frozen = self.plan.operation, ~self.plan.shards.are_documents(refs)
        keeper, cosine = np.full(len(refs), STAYS, np.int64), np.zeros(len(refs), np.int64)
        for part, given_up in divided(vectors, operation.cap):
            counts["given_up"] += given_up
            if len(part):
                found = keep_unlike(vectors[part], operation.similarity, frozen[part])
                goes = np.flatnonzero(found.keeper != STAYS)
                keeper[part[goes]], cosine[part[goes]] = part[found.keeper[goes]], found.cosine[goes]
                counts["compared"] += found.compared
        goes = np.flatnonzero(keeper != STAYS)
        return goes, keeper[goes], cosine[goes]


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
