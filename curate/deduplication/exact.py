"""Equal texts: digests and keep order per shard, then of each group of equal texts the first in keep order stays.

A partition comes in the order of (digest, group, keep order), so its groups are found while it streams by: a text that
all documents share costs no more memory than any other.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

import pyarrow as pa

from curate.deduplication.plan import DIGESTS, GONE, KEEPERS, LEADING, VERDICTS, Plan, Refs, not_empty
from curate.exchange import partition_of
from curate.jobs import Item, Resources, Spooled, publish_files
from curate.regroup import Collector, Exchange, Regrouped
from curate.store import Store
from curate.writer import write_parquet
from transforms.duplicates import EqualTexts, leading_bits, text_digests
from transforms.order_key import order_keys


def digests_exchange(plan: Plan) -> Exchange:
    """Return the regrouping of all texts by digest."""
    return plan.exchange("digests", DIGESTS, ("digest", "group", "order"), plan.digest_partitions)


def gone_exchange(plan: Plan) -> Exchange:
    """Return the regrouping of what equals another text, by shard."""
    return plan.exchange("gone", GONE, ("ref",), plan.shard_partitions)


def keepers_exchange(plan: Plan) -> Exchange:
    """Return the regrouping of the same by the shard of the text that stays."""
    return plan.exchange("keepers", KEEPERS, ("keeper", "ref"), plan.shard_partitions)


def verdicts_exchange(plan: Plan) -> Exchange:
    """Return the regrouping of all that goes, by shard."""
    return plan.exchange("verdicts", VERDICTS, ("ref",), plan.shard_partitions)


@dataclass(frozen=True, slots=True)
class DigestsJob:
    """Per input shard: the digest, group and keep order of every text that is not empty, by digest."""

    plan: Plan
    name: str = "deduplicate: digests"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return self.plan.resources

    def run(self, item: Item) -> int:
        """Publish the digests of shard `item.unit` and return its rows."""
        exchange, leading = digests_exchange(self.plan), []
        with exchange.collect() as found, self.store.spool() as path:
            for batch, refs in self.plan.ordered(item.unit):
                digests = text_digests(batch.column("text"))
                numbers = leading_bits(digests)
                leading.append(pa.record_batch([pa.array(numbers)], schema=LEADING))
                there = not_empty(batch.column("text"))
                rows = self._rows(batch, digests, refs).filter(pa.array(there))
                found.add(rows, partition_of(numbers[there], exchange.partitions))
            written = write_parquet(path, leading, LEADING)
            files: dict[str, Spooled] = {exchange.file: found.finish(), "leading.parquet": (path, written.rows)}
            publish_files(self.store, item, self.name, files, {})
        return written.rows

    def _rows(self, batch: pa.RecordBatch, digests: pa.Array, refs: Refs) -> pa.RecordBatch:
        orders = order_keys(batch, self.plan.prefer, self.plan.sources, digests)
        columns = [digests, self.plan.groups(batch), orders, pa.array(refs)]
        return pa.RecordBatch.from_arrays(columns, schema=DIGESTS)


@dataclass(frozen=True, slots=True)
class ExactJob:
    """Per partition of digests: which documents have a text that stays elsewhere.

    Where near duplicates follow, the survivor may go yet: then by shard what is gone, and by the survivor's shard who
    it was; else these are verdicts.
    """

    plan: Plan
    digests: Regrouped
    name: str = "deduplicate: equal texts"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return self.plan.resources

    def run(self, item: Item) -> int:
        """Publish the equal texts of partition `item.unit`, and return how many rows were looked at."""
        wanted = [verdicts_exchange(self.plan)]
        if self.plan.method is not None:
            wanted = [gone_exchange(self.plan), keepers_exchange(self.plan)]
        texts, rows = EqualTexts(), 0
        with ExitStack() as stack:
            collectors = [stack.enter_context(exchange.collect(len(wanted))) for exchange in wanted]
            for batch in self.digests.batches(item.unit):
                rows += batch.num_rows
                found = _gone(texts, batch)
                for collector in collectors:
                    self._collect(collector, found)
            files = {collector.exchange.file: collector.finish() for collector in collectors}
            publish_files(self.store, item, self.name, files, {})
        return rows

    def _collect(self, collector: Collector, found: pa.RecordBatch) -> None:
        schema = collector.exchange.schema
        if schema == VERDICTS:
            nulls = [pa.nulls(found.num_rows, schema.field(name).type) for name in schema.names[2:]]
            columns = [found.column("ref"), found.column("keeper_id"), *nulls]
        else:
            columns = [found.column(name) for name in schema.names]
        refs = found.column("keeper" if schema == KEEPERS else "ref").to_numpy()
        collector.add(pa.RecordBatch.from_arrays(columns, schema=schema), self.plan.by_shard(refs))


def _gone(texts: EqualTexts, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return, as rows of `KEEPERS`, the documents of the next `batch` whose text stays elsewhere."""
    digests, groups, orders, refs = (batch.column(name) for name in DIGESTS.names)
    equal = texts.find(digests, groups, orders, refs.to_numpy())
    columns = [pa.array(equal.keepers), refs.take(pa.array(equal.rows)), equal.ids]
    return pa.RecordBatch.from_arrays(columns, schema=KEEPERS)
