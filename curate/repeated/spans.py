"""Repeated spans over shards: shared anchors, the windows around them, and which of these come later.

The arithmetic and its proof are in `transforms.substrings`. No text is compared with another; what goes between tasks
is hashes, digests and places.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from curate.exchange import partition_of
from curate.readers.reader import MAX_RECORD_BYTES
from curate.regroup import Exchange, Regrouped
from curate.repeated.plan import ANCHORS, ROWS_AT_ONCE, SHARED, SPANS_GONE, WINDOWS, Plan, of_shard
from curate.running.jobs import Item, Resources, publish_files
from curate.store import Store
from transforms.duplicates import leading_bits
from transforms.parts import Occurrences
from transforms.segmentation import text_buffers
from transforms.substrings import RepeatedSpans, anchors, windows


def anchors_exchange(plan: Plan) -> Exchange:
    """Return the regrouping of all anchors by hash."""
    return plan.exchange("anchors", ANCHORS, ("hash", "ref", "place"), plan.partitions)


def shared_exchange(plan: Plan) -> Exchange:
    """Return the regrouping of anchors that stand in more than one place, by shard."""
    return plan.exchange("shared", SHARED, ("ref", "place"), plan.shard_partitions)


def windows_exchange(plan: Plan) -> Exchange:
    """Return the regrouping of windows around shared anchors, by digest."""
    return plan.exchange("windows", WINDOWS, ("digest", "order", "place"), plan.partitions)


def spans_gone_exchange(plan: Plan) -> Exchange:
    """Return the regrouping of windows that go, by shard."""
    return plan.exchange("spans gone", SPANS_GONE, ("ref", "start"), plan.shard_partitions)


@dataclass(frozen=True, slots=True)
class AnchorsJob:
    """Per shard, of the reference too: the anchors of its texts, by hash."""

    plan: Plan
    spans: RepeatedSpans
    name: str = "repeats: anchors"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return self.plan.resources

    def run(self, item: Item) -> int:
        """Publish the anchors of shard `item.unit`, and return how many documents it has."""
        exchange, documents = anchors_exchange(self.plan), 0
        with exchange.collect() as collector:
            for batch, refs, _ in self.plan.batches(item.unit):
                documents += batch.num_rows
                found = anchors(batch.column("text"), self.spans)
                for first in range(0, len(found.hash), ROWS_AT_ONCE):
                    part = slice(first, first + ROWS_AT_ONCE)
                    hashes = found.hash[part]
                    columns = [hashes, refs[found.document[part]], found.place[part]]
                    rows = pa.RecordBatch.from_arrays([pa.array(column) for column in columns], schema=ANCHORS)
                    collector.add(rows, partition_of(hashes, exchange.partitions))
            publish_files(self.store, item, self.name, {exchange.file: collector.finish()}, {})
        return documents


@dataclass(frozen=True, slots=True)
class SharedJob:
    """Per partition of hashes: the anchors whose hash stands in more than one place, by shard."""

    plan: Plan
    found: Regrouped
    name: str = "repeats: shared anchors"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs: buffers of a stream that is read, and of one that is written."""
        return Resources(memory=2 * self.plan.resources.memory)

    def run(self, item: Item) -> int:
        """Publish the shared anchors of partition `item.unit`, and return how many there are."""
        plan, exchange, count = self.plan, shared_exchange(self.plan), 0
        with exchange.collect() as collector:
            for batch in _shared(self.found.batches(item.unit)):
                count += batch.num_rows
                collector.add(batch.select(SHARED.names), plan.by_shard(batch.column("ref").to_numpy()))
            publish_files(self.store, item, self.name, {exchange.file: collector.finish()}, {})
        return count


def _shared(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a stream ordered by hash that have the hash of another row."""
    held: list[pa.RecordBatch] = []  # the last row, of which the next one has to tell
    like_before = False
    for batch in batches:
        rows = pa.concat_batches([*held, batch])
        hashes = rows.column("hash").to_numpy()
        equal = hashes[1:] == hashes[:-1]
        shared = np.concatenate([[like_before], equal]) | np.concatenate([equal, [False]])
        yield rows.slice(0, len(hashes) - 1).filter(pa.array(shared[:-1]))
        held, like_before = [rows.slice(len(hashes) - 1)], bool(shared[-1])
    if held and like_before:
        yield held[0]


@dataclass(frozen=True, slots=True)
class WindowsJob:
    """Per shard, of the reference too: the windows around its shared anchors, by digest."""

    plan: Plan
    spans: RepeatedSpans
    shared: Regrouped
    name: str = "repeats: windows"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs: buffers of two streams, and the windows of the longest text, one for each of its words."""
        return Resources(memory=2 * self.plan.resources.memory + 8 * MAX_RECORD_BYTES)

    def run(self, item: Item) -> int:
        """Publish the windows of shard `item.unit`, and return how many documents it has."""
        plan, exchange, documents = self.plan, windows_exchange(self.plan), 0
        cursor = of_shard(plan, self.shared, item.unit)
        with exchange.collect() as collector:
            for batch, refs, orders in plan.batches(item.unit):
                documents += batch.num_rows
                places = cursor.below(int(refs[-1]) + 1).column("place").to_numpy()
                if not len(places):
                    continue
                found = windows(batch.column("text"), self.spans, places)
                digests, lengths = found.digests(), found.lengths
                starts = found.starts - text_buffers(batch.column("text"))[1][found.document]
                for first in range(0, len(starts), ROWS_AT_ONCE):
                    part = slice(first, first + ROWS_AT_ONCE)
                    mine = found.document[part]
                    columns = [digests[part], orders.take(pa.array(mine)), starts[part], lengths[part], refs[mine]]
                    arrays = [c if isinstance(c, pa.Array) else pa.array(c) for c in columns]
                    rows = pa.RecordBatch.from_arrays(arrays, schema=WINDOWS)
                    collector.add(rows, partition_of(leading_bits(digests[part]), exchange.partitions))
            publish_files(self.store, item, self.name, {exchange.file: collector.finish()}, {})
        return documents


@dataclass(frozen=True, slots=True)
class RepeatedSpansJob:
    """Per partition of digests: the windows of documents that an equal one comes before, by shard."""

    plan: Plan
    found: Regrouped
    name: str = "repeats: repeated spans"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs: buffers of a stream that is read, and of one that is written."""
        return Resources(memory=2 * self.plan.resources.memory)

    def run(self, item: Item) -> int:
        """Publish what goes of partition `item.unit`, and return how many windows were looked at."""
        plan, exchange, looked_at, occurrences = self.plan, spans_gone_exchange(self.plan), 0, Occurrences()
        with exchange.collect() as collector:
            for batch in self.found.batches(item.unit):
                looked_at += batch.num_rows
                digests, orders = batch.column("digest"), batch.column("order")
                starts, lengths, refs = (batch.column(name).to_numpy() for name in ("place", "length", "ref"))
                goes = occurrences.later(digests, orders, starts, lengths) & plan.are_documents(refs)
                columns = [pa.array(column[goes]) for column in (refs, starts, starts + lengths)]
                collector.add(pa.RecordBatch.from_arrays(columns, schema=SPANS_GONE), plan.by_shard(refs[goes]))
            publish_files(self.store, item, self.name, {exchange.file: collector.finish()}, {})
        return looked_at
