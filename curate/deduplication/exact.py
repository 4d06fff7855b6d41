"""Equal texts: digests and keep order per shard, then of each group of equal texts the first in keep order stays.

A partition comes in the order of (digest, group, keep order), so its groups are found while it streams by: a text that
all documents share costs no more memory than any other.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curate.deduplication.plan import BECAUSE, DIGESTS, GONE, KEEPERS, SPAN, TEXTS, VERDICTS, Plan
from curate.exchange import partition_of
from curate.regroup import Collector, Exchange, Regrouped
from curate.running.jobs import Item, Resources, Spooled, publish_files
from curate.store import Store
from curate.writer import write_parquet
from transforms.duplicates import EqualTexts, leading_bits


def digests_exchange(plan: Plan) -> Exchange:
    """Return the regrouping of all texts by digest."""
    return plan.exchange("digests", DIGESTS, ("digest", "group", "order"), plan.digest_partitions)


def span_exchange(plan: Plan) -> Exchange:
    """Return the first and last keep order of each shard: one partition."""
    return plan.exchange("span", SPAN, ("lowest",), 1)


def gone_exchange(plan: Plan) -> Exchange:
    """Return the regrouping of what equals another text, by shard."""
    return plan.exchange("gone", GONE, ("ref",), plan.shard_partitions)


def keepers_exchange(plan: Plan) -> Exchange:
    """Return the regrouping of the same by the shard of the text that stays."""
    return plan.exchange("keepers", KEEPERS, ("keeper", "ref"), plan.shard_partitions)


def verdicts_exchange(plan: Plan) -> Exchange:
    """Return the regrouping of all that goes, by shard."""
    return plan.exchange("verdicts", VERDICTS, ("ref",), plan.shard_partitions)


def because_exchange(plan: Plan) -> Exchange:
    """Return the regrouping of survivors by shard, a row for each document that goes because of them."""
    return plan.exchange("because", BECAUSE, ("because",), plan.shard_partitions)


def verdict_exchanges(plan: Plan) -> list[Exchange]:
    """Return what verdicts go to: the shard of the document that goes and, where that is counted, of the survivor."""
    return [verdicts_exchange(plan)] + ([because_exchange(plan)] if plan.count else [])


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
        exchange, spans, texts, span = digests_exchange(self.plan), span_exchange(self.plan), [], Span()
        with exchange.collect(2) as found, spans.collect(2) as ends, self.store.spool() as path:
            for batch, refs, measures in self.plan.measured(item.unit):
                digests, there = measures.digests, measures.characters > 0
                texts.append(pa.record_batch([digests], schema=TEXTS))
                orders = self.plan.orders(item.unit, batch, digests)
                sided = self.plan.sided(item.unit, orders)
                columns = [digests, self.plan.groups(batch), sided, pa.array(refs)]
                rows = pa.RecordBatch.from_arrays(columns, schema=DIGESTS).filter(pa.array(there))
                found.add(rows, partition_of(leading_bits(digests)[there], exchange.partitions))
                if self.plan.are_documents(refs[:1]).all():
                    orders = orders.filter(pa.array(there))
                    span.add(orders, orders)
            ends.add(span.rows(), np.zeros(span.rows().num_rows, np.int64))
            written = write_parquet(path, texts, TEXTS)
            files: dict[str, Spooled] = {made.exchange.file: made.finish() for made in (found, ends)}
            publish_files(self.store, item, self.name, {**files, "texts.parquet": (path, written.rows)}, {})
        return written.rows


class Span:
    """The first and the last of keep orders."""

    def __init__(self) -> None:
        self._ends: tuple[bytes, bytes] | None = None

    def add(self, lowest: pa.Array, highest: pa.Array) -> None:
        """Take these into account."""
        if not len(lowest):
            return
        first, last = pc.min(lowest).as_py(), pc.max(highest).as_py()
        if self._ends is not None:
            first, last = min(first, self._ends[0]), max(last, self._ends[1])
        self._ends = first, last

    def rows(self) -> pa.RecordBatch:
        """Return a row of `SPAN`, or none."""
        ends = [] if self._ends is None else [dict(zip(SPAN.names, self._ends, strict=True))]
        return pa.RecordBatch.from_pylist(ends, SPAN)


@dataclass(frozen=True, slots=True)
class SpanJob:
    """Once: the first and the last keep order of all documents that are in no reference."""

    plan: Plan
    spans: Regrouped
    name: str = "deduplicate: keep order"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return self.plan.resources

    def run(self, item: Item) -> int:
        """Publish both, and return how many shards there are."""
        span, count = Span(), 0
        for batch in self.spans.batches(0):
            span.add(batch.column("lowest"), batch.column("highest"))
            count += batch.num_rows
        with self.store.spool() as path:
            written = write_parquet(path, [span.rows()], SPAN)
            publish_files(self.store, item, self.name, {"span.parquet": (path, written.rows)}, {})
        return count


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
        wanted = verdict_exchanges(self.plan)
        if self.plan.method is not None:
            wanted = [gone_exchange(self.plan), keepers_exchange(self.plan)]
        texts, rows = EqualTexts(), 0
        with ExitStack() as stack:
            collectors = [stack.enter_context(exchange.collect(len(wanted))) for exchange in wanted]
            for batch in self.digests.batches(item.unit):
                rows += batch.num_rows
                found = _gone(texts, batch)
                goes = found.filter(pa.array(self.plan.are_documents(found.column("ref").to_numpy())))
                for collector in collectors:  # what need not be compared may be frozen, what goes is not
                    self._collect(collector, found if collector.exchange.schema == GONE else goes)
            files = {collector.exchange.file: collector.finish() for collector in collectors}
            publish_files(self.store, item, self.name, files, {})
        return rows

    def _collect(self, collector: Collector, found: pa.RecordBatch) -> None:
        schema = collector.exchange.schema
        refs = found.column("ref" if schema in (VERDICTS, GONE) else "keeper")
        if schema == VERDICTS:
            nulls = [pa.nulls(found.num_rows, schema.field(name).type) for name in schema.names[3:]]
            columns = [found.column("ref"), found.column("keeper"), found.column("keeper_id"), *nulls]
        else:
            columns = [refs] if schema == BECAUSE else [found.column(name) for name in schema.names]
        collector.add(pa.RecordBatch.from_arrays(columns, schema=schema), self.plan.by_shard(refs.to_numpy()))


def _gone(texts: EqualTexts, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return, as rows of `KEEPERS`, the documents of the next `batch` whose text stays elsewhere."""
    digests, groups, orders, refs = (batch.column(name) for name in DIGESTS.names)
    equal = texts.find(digests, groups, orders, refs.to_numpy())
    columns = [pa.array(equal.keepers), refs.take(pa.array(equal.rows)), equal.ids]
    return pa.RecordBatch.from_arrays(columns, schema=KEEPERS)
