"""Lines and paragraphs over shards: found per shard, decided per partition of digests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curate.exchange import partition_of
from curate.regroup import Exchange, Regrouped
from curate.repeated.plan import PARTS, PARTS_GONE, ROWS_AT_ONCE, Plan
from curate.running.jobs import Item, Resources, publish_files
from curate.store import Store
from transforms.duplicates import leading_bits
from transforms.parts import Occurrences, RepeatedParts, find_parts


def parts_exchange(plan: Plan) -> Exchange:
    """Return the regrouping of all parts by digest."""
    return plan.exchange("parts", PARTS, ("digest", "order", "place"), plan.partitions)


def parts_gone_exchange(plan: Plan) -> Exchange:
    """Return the regrouping of the parts that go, by shard."""
    return plan.exchange("parts gone", PARTS_GONE, ("ref", "place"), plan.shard_partitions)


@dataclass(frozen=True, slots=True)
class PartsJob:
    """Per shard, of the reference too: the digests of its parts, by digest."""

    plan: Plan
    parts: RepeatedParts
    name: str = "repeats: parts"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return self.plan.resources

    def run(self, item: Item) -> int:
        """Publish the parts of shard `item.unit`, and return how many documents it has."""
        exchange, documents = parts_exchange(self.plan), 0
        with exchange.collect() as collector:
            for batch, refs, orders in self.plan.batches(item.unit):
                documents += batch.num_rows
                found = find_parts(batch.column("text"), self.parts)
                digests, owners = found.digests(), found.documents()
                places = np.arange(len(owners)) - found.offsets[owners]
                for first in range(0, len(owners), ROWS_AT_ONCE):
                    part = slice(first, first + ROWS_AT_ONCE)
                    mine = owners[part]
                    columns = [digests[part], orders.take(pa.array(mine)), pa.array(places[part]), pa.array(refs[mine])]
                    rows = pa.RecordBatch.from_arrays(columns, schema=PARTS)
                    collector.add(rows, partition_of(leading_bits(columns[0]), exchange.partitions))
            publish_files(self.store, item, self.name, {exchange.file: collector.finish()}, {})
        return documents


@dataclass(frozen=True, slots=True)
class RepeatedPartsJob:
    """Per partition of digests: the parts of documents that go, by shard.

    Memory: buffers, and with `more_than` 16 bytes for each digest that is seen more often.
    """

    plan: Plan
    parts: RepeatedParts
    found: Regrouped
    name: str = "repeats: repeated parts"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs: buffers of a stream that is read, and of one that is written."""
        return Resources(memory=2 * self.plan.resources.memory)

    def run(self, item: Item) -> int:
        """Publish what goes of partition `item.unit`, and return how many parts were looked at."""
        plan, exchange, looked_at = self.plan, parts_gone_exchange(self.plan), 0
        with exchange.collect() as collector:
            for batch, goes in self._decided(item.unit):
                looked_at += batch.num_rows
                refs = batch.column("ref").to_numpy()
                rows = batch.select(PARTS_GONE.names).filter(pa.array(goes & plan.are_documents(refs)))
                collector.add(rows, plan.by_shard(rows.column("ref").to_numpy()))
            publish_files(self.store, item, self.name, {exchange.file: collector.finish()}, {})
        return looked_at

    def _decided(self, partition: int) -> Iterator[tuple[pa.RecordBatch, npt.NDArray[np.bool_]]]:
        if self.parts.more_than is not None:
            frequent = _frequent(self.found.batches(partition), self.parts.more_than)
            for batch in self.found.batches(partition):
                yield batch, np.isin(_bytes(batch.column("digest")), frequent)
            return
        occurrences = Occurrences()
        for batch in self.found.batches(partition):
            digests, orders, places, _ = batch.columns
            yield batch, occurrences.later(digests, orders, places.to_numpy())


def _frequent(batches: Iterator[pa.RecordBatch], more_than: int) -> npt.NDArray[np.bytes_]:
    """Return the digests that stand more than `more_than` times in a stream that is ordered by digest."""
    found, last, seen = [np.empty(0, "S16")], b"", 0
    for batch in batches:
        digests = _bytes(batch.column("digest"))
        starts = np.flatnonzero(np.concatenate([[True], digests[1:] != digests[:-1]]))
        counts = np.diff(np.append(starts, len(digests)))
        if digests[0] == last:
            counts[0] += seen
        found.append(digests[starts[counts > more_than]])
        last, seen = digests[-1], int(counts[-1])
    return np.unique(np.concatenate(found))


def _bytes(digests: pa.Array) -> npt.NDArray[np.bytes_]:
    """Return digests as strings of bytes: all have 16, so zeros at their ends tell nothing apart wrongly."""
    return np.frombuffer(digests.buffers()[1], "S16", len(digests), digests.offset * 16)
