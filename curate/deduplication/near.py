"""Near duplicates: bands to buckets, buckets to pairs, pairs to verified edges, edges to who stays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from curate.deduplication.exact import exact_drops
from curate.deduplication.plan import (
    BANDS,
    CANDIDATES,
    EDGES,
    NEAR,
    PAIRS,
    SHARD_BITS,
    SHINGLES,
    Plan,
    shards_of,
)
from curate.exchange import partition_of, read_partition, write_exchange
from curate.jobs import Item, publish_files
from curate.store import Store
from curate.writer import write_parquet
from transforms.duplicates import STAYS, jaccard_pairs, leading_bits, split_buckets, survivors, text_digests
from transforms.minhash import MinHash, Sets, band_keys, portions, scoped_keys, shingle_sets, split_keys
from transforms.order_key import group_hashes, order_keys

Refs = npt.NDArray[np.int64]

BATCH_BYTES: Final = 64 << 20
"""Bytes of text whose shingle sets are written at a time."""

_MIX: Final = np.uint64(0x9E3779B97F4A7C15)


def _minhash(plan: Plan) -> MinHash:
    if plan.method is None:
        raise TypeError("near duplicates need a method")
    return plan.method


@dataclass(frozen=True, slots=True)
class BandsJob:
    """Per input shard: the band keys of the documents that equal no other, by bucket."""

    plan: Plan
    name: str = "deduplicate: bands"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    def run(self, item: Item) -> int:
        """Publish the band keys of shard `item.unit` and return its rows."""
        batch = self.plan.batch(item.unit)
        stays = pc.greater(pc.binary_length(batch.column("text")), 0).to_numpy(zero_copy_only=False)
        stays[exact_drops(self.plan, item.unit).column("ref").to_numpy() - (item.unit << SHARD_BITS)] = False
        rows = np.flatnonzero(stays)
        table = self._bands(batch.take(pa.array(rows)), rows + (item.unit << SHARD_BITS))
        partitions = self.plan.bucket_partitions
        with self.store.spool() as path:
            written = write_exchange(
                path, table, partition_of(table.column("bucket").to_numpy(), partitions), partitions
            )
            publish_files(self.store, item, self.name, {"bands.exchange": (path, written)}, {})
        return int(batch.num_rows)

    def _bands(self, batch: pa.RecordBatch, refs: Refs) -> pa.Table:
        minhash = _minhash(self.plan)
        text = batch.column("text")
        keys = band_keys(text, minhash)
        splits = split_keys(keys)
        if self.plan.within is not None:
            keys = scoped_keys(keys, group_hashes(batch.column(self.plan.within)))
        order, bands = leading_bits(text_digests(text)), minhash.bands
        arrays = [keys.reshape(-1), splits.reshape(-1), np.repeat(order, bands), np.repeat(refs, bands)]
        return pa.Table.from_arrays([pa.array(array) for array in arrays], schema=BANDS)


@dataclass(frozen=True, slots=True)
class CandidatesJob:
    """Per partition of buckets: the pairs that share one, by pair; and their documents, by shard."""

    plan: Plan
    name: str = "deduplicate: candidates"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    def run(self, item: Item) -> int:
        """Publish the candidate pairs of partition `item.unit`, and return how many rows were looked at."""
        plan = self.plan
        paths = [plan.file("bands", shard, "bands.exchange") for shard in range(len(plan.shards))]
        table = read_partition(paths, item.unit, BANDS)
        bucket, split, order, refs = (table.column(name).to_numpy() for name in BANDS.names)
        found = split_buckets(bucket, split, order, refs, _minhash(plan).cap)
        pairs = pa.table([pa.array(found.a), pa.array(found.b)], schema=PAIRS)
        documents = pa.table([pa.array(np.unique(np.concatenate([found.a, found.b])))], schema=CANDIDATES)
        counts = {
            "duplicates": {
                "proposed": len(found.a),
                "given_up": found.given_up,
                "split_buckets": found.buckets,
            }
        }
        by_pair = partition_of(_pair_hash(found.a, found.b), plan.bucket_partitions)
        by_shard = shards_of(documents.column("ref").to_numpy()) % plan.shard_partitions
        with self.store.spool() as first, self.store.spool() as second:
            files = {
                "pairs.exchange": (first, write_exchange(first, pairs, by_pair, plan.bucket_partitions)),
                "documents.exchange": (second, write_exchange(second, documents, by_shard, plan.shard_partitions)),
            }
            publish_files(self.store, item, self.name, files, counts)
        return int(table.num_rows)


def _pair_hash(a: Refs, b: Refs) -> npt.NDArray[np.uint64]:
    mixed = (a.astype(np.uint64) * _MIX) ^ (b.astype(np.uint64) + _MIX)
    mixed ^= mixed >> np.uint64(29)
    return mixed * np.uint64(0xBF58476D1CE4E5B9)


@dataclass(frozen=True, slots=True)
class ShinglesJob:
    """Per input shard: id, keep order and shingle set of its candidates."""

    plan: Plan
    name: str = "deduplicate: shingles"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    def run(self, item: Item) -> int:
        """Publish the shingle sets of shard `item.unit`, and return how many documents have one."""
        plan, shard = self.plan, item.unit
        paths = [
            plan.file("candidates", partition, "documents.exchange") for partition in range(plan.bucket_partitions)
        ]
        refs = np.unique(read_partition(paths, shard % plan.shard_partitions, CANDIDATES).column("ref").to_numpy())
        refs = refs[shards_of(refs) == shard]
        batch = plan.batch(shard).take(pa.array(refs - (shard << SHARD_BITS)))
        with self.store.spool() as path:
            written = write_parquet(path, self._batches(batch, refs), SHINGLES)
            publish_files(self.store, item, self.name, {"shingles.parquet": (path, written.rows)}, {})
        return len(refs)

    def _batches(self, batch: pa.RecordBatch, refs: Refs) -> Iterator[pa.RecordBatch]:
        """Yield the rows of `refs` in batches of bounded size: the offsets of a list array have 32 bits."""
        text, orders = batch.column("text"), order_keys(batch, self.plan.prefer, self.plan.sources)
        for first, last in portions(text, BATCH_BYTES):
            rows = last - first
            sets = shingle_sets(text.slice(first, rows), _minhash(self.plan).ngram)
            shingles = pa.ListArray.from_arrays(pa.array(sets.offsets.astype(np.int32)), pa.array(sets.values))
            arrays = [
                pa.array(refs[first:last]),
                batch.column("id").slice(first, rows),
                orders.slice(first, rows),
                shingles,
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=SHINGLES)


@dataclass(frozen=True, slots=True)
class VerifyJob:
    """Per partition of pairs: the exact Jaccard similarity of each, and the edges at or above the threshold."""

    plan: Plan
    name: str = "deduplicate: verify"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    def run(self, item: Item) -> int:
        """Publish the edges of partition `item.unit`, and return how many pairs were compared."""
        plan = self.plan
        paths = [plan.file("candidates", partition, "pairs.exchange") for partition in range(plan.bucket_partitions)]
        table = read_partition(paths, item.unit, PAIRS)
        pairs = np.unique(np.stack([table.column("a").to_numpy(), table.column("b").to_numpy()], axis=1), axis=0)
        names, local = np.unique(pairs, return_inverse=True)
        local = local.reshape(pairs.shape)
        a, b = np.ascontiguousarray(local[:, 0]), np.ascontiguousarray(local[:, 1])
        intersection, union = jaccard_pairs(read_sets(plan, names), a, b)
        similar = _minhash(plan).similar(intersection, union)
        columns = [pairs[similar, 0], pairs[similar, 1], intersection[similar], union[similar]]
        edges = pa.RecordBatch.from_arrays([pa.array(column) for column in columns], schema=EDGES)
        counts = {"duplicates": {"compared": len(pairs), "edges": edges.num_rows}}
        with self.store.spool() as path:
            write_parquet(path, [edges], EDGES)
            publish_files(self.store, item, self.name, {"edges.parquet": (path, edges.num_rows)}, counts)
        return len(pairs)


def read_sets(plan: Plan, refs: Refs) -> Sets:
    """Return the shingle sets of the documents `refs`, which are sorted and unique."""
    offsets, values = [np.zeros(1, np.int64)], [np.empty(0, np.uint64)]
    total = 0
    for shard in np.unique(shards_of(refs)).tolist():
        wanted = refs[shards_of(refs) == shard]
        table = pq.read_table(plan.file("shingles", shard, "shingles.parquet"), columns=["ref", "shingles"])
        mine = table.filter(pc.is_in(table.column("ref"), pa.array(wanted))).column("shingles")
        for chunk in mine.chunks:  # joined they might have more shingles than a list array can hold
            offsets.append(np.cumsum(np.asarray(pc.list_value_length(chunk), np.int64)) + total)
            values.append(np.asarray(chunk.flatten(), np.uint64))
            total += len(values[-1])
    return Sets(np.concatenate(offsets), np.concatenate(values))


@dataclass(frozen=True, slots=True)
class DecideJob:
    """Once: the sequential rule in keep order over all edges."""

    plan: Plan
    name: str = "deduplicate: decide"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    def run(self, item: Item) -> int:
        """Publish which documents go and because of which other, by shard; return how many edges there are."""
        plan = self.plan
        files = [plan.file("verify", partition, "edges.parquet") for partition in range(plan.bucket_partitions)]
        edges = pa.concat_tables([EDGES.empty_table(), *(pq.read_table(file, schema=EDGES) for file in files)])
        a, b, intersection, union = (edges.column(name).to_numpy() for name in EDGES.names)
        refs, local = np.unique(np.concatenate([a, b]), return_inverse=True)
        orders, ids = self._orders(refs)
        rank = np.empty(len(refs), np.int64)
        rank[np.asarray(pc.sort_indices(orders))] = np.arange(len(refs))
        decided = survivors(rank, local[: len(a)], local[len(a) :], intersection, union)
        goes = np.flatnonzero(decided.keeper != STAYS)
        keeper, edge = decided.keeper[goes], decided.edge[goes]
        columns = [refs[goes], refs[keeper], None, intersection[edge], union[edge]]
        arrays = [ids.take(pa.array(keeper)) if column is None else pa.array(column) for column in columns]
        found = pa.Table.from_arrays(arrays, schema=NEAR)
        with self.store.spool() as path:
            by_shard = shards_of(refs[goes]) % plan.shard_partitions
            rows = write_exchange(path, found, by_shard, plan.shard_partitions)
            publish_files(self.store, item, self.name, {"near.exchange": (path, rows)}, {})
        return len(a)

    def _orders(self, refs: Refs) -> tuple[pa.Array, pa.Array]:
        orders, ids = [pa.array([], pa.large_binary())], [pa.array([], pa.binary(16))]
        for shard in np.unique(shards_of(refs)).tolist():
            path = self.plan.file("shingles", shard, "shingles.parquet")
            table = pq.read_table(path, columns=["ref", "id", "order"])
            mine = table.filter(pc.is_in(table.column("ref"), pa.array(refs[shards_of(refs) == shard])))
            orders.extend(mine.column("order").chunks)
            ids.extend(mine.column("id").chunks)
        return pa.concat_arrays(orders), pa.concat_arrays(ids)


def near_drops(plan: Plan, shards: Refs) -> pa.Table:
    """Return the rows of `NEAR` of the documents of `shards`, sorted by document."""
    path = plan.file("decide", 0, "near.exchange")
    partitions = np.unique(shards % plan.shard_partitions).tolist()
    tables = [read_partition([path], partition, NEAR) for partition in partitions]
    table = pa.concat_tables([NEAR.empty_table(), *tables])
    wanted = np.isin(shards_of(table.column("ref").to_numpy()), shards)
    return table.filter(pa.array(wanted)).sort_by("ref")
