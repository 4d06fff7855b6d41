"""Near duplicates, first half: bands to buckets, buckets to candidate pairs, pairs made unique."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from curate.deduplication.buckets import bucket_pairs
from curate.deduplication.estimate import PAIRS_MEMORY
from curate.deduplication.plan import (
    BANDS,
    INSIDE,
    PAIRS,
    SPAN,
    WANTED,
    Plan,
    Refs,
    cursor_of,
    not_empty,
    shards_of,
)
from curate.deduplication.templates import left_out_of
from curate.exchange import partition_of
from curate.regroup import Exchange, Regrouped
from curate.running.jobs import Item, Resources, publish_files
from curate.store import Store
from transforms.duplicates import common_prefix, order_prefixes
from transforms.minhash import band_keys, scoped_keys, split_keys
from transforms.order_key import group_hashes
from transforms.word_hashes import Hashes

PAIRS_AT_A_TIME: Final = 1 << 19

SIGNED: Final = 7 / 8
"""Share of the texts of a batch that must stay for all of them to be signed; changes no output."""

Flags = npt.NDArray[np.bool_]

_MIX: Final = np.uint64(0x9E3779B97F4A7C15)


def bands_exchange(plan: Plan) -> Exchange:
    """Return the regrouping of band keys by bucket."""
    return replace(plan.exchange("bands", BANDS, ("bucket",), plan.bucket_partitions), codec="none")


def pairs_exchange(plan: Plan) -> Exchange:
    """Return the regrouping of candidate pairs by pair."""
    return plan.exchange("pairs", PAIRS, ("a", "b", "owner"), plan.bucket_partitions)


def inside_exchange(plan: Plan) -> Exchange:
    """Return the regrouping of pairs within a shard, each once, by shard."""
    return plan.exchange("inside", INSIDE, ("a", "b"), plan.shard_partitions)


def owned_exchange(plan: Plan) -> Exchange:
    """Return the regrouping of pairs across shards, each once, by owner."""
    return plan.exchange("owned", PAIRS, ("a", "b"), plan.bucket_partitions)


def wanted_exchange(plan: Plan) -> Exchange:
    """Return the regrouping of documents whose shingle sets are wanted, by shard."""
    return plan.exchange("wanted", WANTED, ("ref", "partition"), plan.shard_partitions)


@dataclass(frozen=True, slots=True)
class BandsJob:
    """Per input shard: the band keys of the documents that equal no other, by bucket."""

    plan: Plan
    gone: Regrouped
    name: str = "deduplicate: bands"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return self.plan.resources

    def run(self, item: Item) -> int:
        """Publish the band keys of shard `item.unit` and return its rows."""
        exchange, gone, rows = bands_exchange(self.plan), cursor_of(self.plan, self.gone, item.unit), 0
        digests, skipped = self.plan.digests(item.unit), self._skipped()
        left_out = left_out_of(self.plan)
        with exchange.collect() as found:
            for batch, refs in self.plan.ordered(item.unit):
                stays = not_empty(batch.column("text"))
                stays[gone.below(int(refs[-1]) + 1).column("ref").to_numpy() - refs[0]] = False
                keys, mine = self._keys(batch.column("text"), stays, left_out), pa.array(stays)
                few = (batch if self.plan.needs_length else batch.drop_columns("text")).filter(mine)
                there = digests[rows : rows + len(refs)].filter(mine)
                bands = self._bands(keys, few, there, refs[stays], skipped)
                found.add(bands, partition_of(bands.column("bucket").to_numpy(), exchange.partitions))
                rows += len(refs)
            publish_files(self.store, item, self.name, {exchange.file: found.finish()}, {})
        return rows

    def _skipped(self) -> int:
        """Return how many bytes all keep orders begin with in common."""
        ends = pq.read_table(self.plan.file("span", 0, "span.parquet"), schema=SPAN).to_pylist()
        return common_prefix(ends[0]["lowest"], ends[0]["highest"]) if ends else 0

    def _keys(self, text: pa.LargeStringArray, stays: Flags, left_out: Hashes) -> Hashes:
        """Return the band keys of texts that stay. Where few go theirs are made too: copying the others is dearer."""
        if np.count_nonzero(stays) < SIGNED * len(stays):
            return band_keys(text.filter(pa.array(stays)), self.plan.minhash, left_out)
        return band_keys(text, self.plan.minhash, left_out)[stays]

    def _bands(
        self, keys: Hashes, batch: pa.RecordBatch, digests: pa.Array, refs: Refs, skipped: int
    ) -> pa.RecordBatch:
        """Return the rows of some documents, of which `skipped` bytes of the keep order are left out."""
        order, splits = self._orders(batch, digests, refs, skipped), split_keys(keys)
        if self.plan.within is not None:
            keys = scoped_keys(keys, group_hashes(batch.column(self.plan.within)))
        bands = self.plan.minhash.bands
        arrays = [keys.reshape(-1), splits.reshape(-1), np.repeat(order, bands), np.repeat(refs, bands)]
        return pa.RecordBatch.from_arrays([pa.array(array) for array in arrays], schema=BANDS)

    def _orders(self, batch: pa.RecordBatch, digests: pa.Array, refs: Refs, skipped: int) -> Hashes:
        """Return eight bytes in keep order; where there are references, theirs come first."""
        is_document = bool(self.plan.are_documents(refs[:1]).all())
        orders = self.plan.orders(0 if is_document else len(self.plan.shards), batch, digests)
        prefixes = order_prefixes(orders, skipped if is_document else 0, digests)
        return prefixes >> np.uint64(1) | np.uint64(is_document << 63) if self.plan.frozen else prefixes


@dataclass(frozen=True, slots=True)
class CandidatesJob:
    """Per partition of buckets: the pairs that share one, by pair.

    Buckets stream by; what is held of one, and of its pairs, is bounded (`curate.deduplication.buckets`).
    """

    plan: Plan
    bands: Regrouped
    name: str = "deduplicate: candidates"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return Resources(memory=self.plan.resources.memory + PAIRS_MEMORY)

    def run(self, item: Item) -> int:
        """Publish the candidate pairs of partition `item.unit`, and return how many rows were looked at."""
        exchange, rows = pairs_exchange(self.plan), 0
        counts = dict.fromkeys(("proposed", "given_up", "split_buckets"), 0)
        with exchange.collect() as found:
            for pairs in bucket_pairs(self.store, self.bands.batches(item.unit), self.plan.minhash.cap):
                rows += pairs.rows
                one = self.plan.are_documents(pairs.a)  # a < b, and the frozen ones come last: not both are frozen
                a, b = pairs.a[one], pairs.b[one]
                owned = owners(a, b)
                for some in _slices(len(a)):
                    columns = [pa.array(column[some]) for column in (a, b, owned)]
                    by_pair = partition_of(_pair_hash(a[some], b[some]), exchange.partitions)
                    found.add(pa.RecordBatch.from_arrays(columns, schema=PAIRS), by_pair)
                for name, count in zip(counts, (len(a), pairs.given_up, pairs.buckets), strict=True):
                    counts[name] += count
            publish_files(self.store, item, self.name, {exchange.file: found.finish()}, {"duplicates": counts})
        return rows


def owners(a: Refs, b: Refs) -> Refs:
    """Return an owner of each pair: the least document that is paired with its `a` here.

    All pairs of a bucket have one owner, its least document, unless one of them is paired with a lesser one too.
    """
    names, owned = np.union1d(np.unique(a), np.unique(b)), np.empty(len(a), np.int64)
    least = np.arange(len(names))
    for some in _slices(len(a)):
        np.minimum.at(least, np.searchsorted(names, b[some]), np.searchsorted(names, a[some]))
    for some in _slices(len(a)):
        owned[some] = names[least[np.searchsorted(names, a[some])]]
    return owned


def _slices(count: int) -> Iterator[slice]:
    """Yield what `count` pairs are looked at in, so that working memory does not grow with them."""
    yield from (slice(first, first + PAIRS_AT_A_TIME) for first in range(0, count, PAIRS_AT_A_TIME))


def by_node(refs: Refs, partitions: int) -> Refs:
    """Return the partition of each document among `partitions` of like size."""
    return partition_of(_pair_hash(refs, refs), partitions)


def _pair_hash(a: Refs, b: Refs) -> npt.NDArray[np.uint64]:
    mixed = (a.astype(np.uint64) * _MIX) ^ (b.astype(np.uint64) + _MIX)
    mixed ^= mixed >> np.uint64(29)
    return mixed * np.uint64(0xBF58476D1CE4E5B9)


@dataclass(frozen=True, slots=True)
class PairsJob:
    """Per partition of pairs: each pair once, those within a shard by shard, all others by owner.

    And by shard the documents whose shingle sets these need.
    """

    plan: Plan
    pairs: Regrouped
    name: str = "deduplicate: pairs"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return self.plan.resources

    def run(self, item: Item) -> int:
        """Publish the pairs of partition `item.unit`, and return how many there are."""
        plan, count = self.plan, 0
        owned, wanted, inside = owned_exchange(plan), wanted_exchange(plan), inside_exchange(plan)
        with owned.collect(3) as pairs, wanted.collect(3) as documents, inside.collect(3) as local:
            for batch in distinct_pairs(self.pairs.batches(item.unit)):
                count += batch.num_rows
                a, b, owner = (batch.column(name).to_numpy() for name in PAIRS.names)
                within = shards_of(a) == shards_of(b)
                here = batch.select(["a", "b"]).filter(pa.array(within))
                local.add(here, plan.by_shard(a[within]))
                across, partition = ~within, by_node(owner[~within], owned.partitions)
                pairs.add(batch.filter(pa.array(across)), partition)
                for refs in (a[across], b[across]):
                    needed = pa.RecordBatch.from_arrays([pa.array(refs), pa.array(partition)], schema=WANTED)
                    documents.add(needed, plan.by_shard(refs))
            files = {made.exchange.file: made.finish() for made in (pairs, documents, local)}
            publish_files(self.store, item, self.name, files, {})
        return count


def distinct_pairs(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the first row of each pair; the rows of `batches` are ordered by pair."""
    last = (-1, -1)
    for batch in batches:
        a, b = batch.column("a").to_numpy(), batch.column("b").to_numpy()
        new = np.ones(len(a), np.bool_)
        new[1:] = (a[1:] != a[:-1]) | (b[1:] != b[:-1])
        new[0] = (int(a[0]), int(b[0])) != last
        last = (int(a[-1]), int(b[-1]))
        yield batch.filter(pa.array(new))
