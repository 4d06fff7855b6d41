"""Documents that are equal in what names them, over shards: the normal form of their URL, or their text."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from curate.exchange import partition_of
from curate.recipes.graph import DropEqual
from curate.regroup import Exchange, Regrouped
from curate.repeated.plan import EQUAL, KEYED, Plan
from curate.running.jobs import Item, Resources, publish_files
from curate.store import Store
from transforms.duplicates import EqualTexts, leading_bits, text_digests


def keyed_exchange(plan: Plan) -> Exchange:
    """Return the regrouping of all documents by what they are compared by."""
    return plan.exchange("keyed", KEYED, ("digest", "order"), plan.partitions)


def equal_exchange(plan: Plan) -> Exchange:
    """Return the regrouping of documents that go, by shard."""
    return plan.exchange("equal", EQUAL, ("ref",), plan.shard_partitions)


@dataclass(frozen=True, slots=True)
class KeysJob:
    """Per shard, of the reference too: what each document is compared by, where it has that."""

    plan: Plan
    operation: DropEqual
    name: str = "repeats: keys"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return self.plan.resources

    def run(self, item: Item) -> int:
        """Publish the keys of shard `item.unit`, and return how many documents it has."""
        exchange, documents, column = keyed_exchange(self.plan), 0, self.operation.column
        with exchange.collect() as collector:
            for batch, refs, orders in self.plan.batches(item.unit, [column]):
                documents += batch.num_rows
                digests = self._digests(batch.column(column))
                rows = pa.record_batch([digests, orders, pa.array(refs)], names=KEYED.names)
                there = rows.filter(digests.is_valid())
                rows = pa.RecordBatch.from_arrays(there.columns, schema=KEYED)
                collector.add(rows, partition_of(leading_bits(rows.column("digest")), exchange.partitions))
            publish_files(self.store, item, self.name, {exchange.file: collector.finish()}, {})
        return documents

    def _digests(self, values: pa.Array) -> pa.Array:
        """Return a digest of each value, null where there is none."""
        if self.operation.form is not None:
            return self.operation.form.digests(values)
        filled = pc.fill_null(pc.greater(pc.binary_length(values), 0), False)
        return pc.if_else(filled, text_digests(pc.fill_null(values, "")), None)


@dataclass(frozen=True, slots=True)
class EqualJob:
    """Per partition of digests: the documents that equal one that stays, by shard."""

    plan: Plan
    found: Regrouped
    name: str = "repeats: equal documents"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs: buffers of a stream that is read, and of one that is written."""
        return Resources(memory=2 * self.plan.resources.memory)

    def run(self, item: Item) -> int:
        """Publish what goes of partition `item.unit`, and return how many documents were looked at."""
        plan, exchange, looked_at, texts = self.plan, equal_exchange(self.plan), 0, EqualTexts()
        with exchange.collect() as collector:
            for batch in self.found.batches(item.unit):
                looked_at += batch.num_rows
                digests, orders, refs = batch.columns
                nothing = pa.repeat(pa.scalar(b"", pa.large_binary()), batch.num_rows)
                equal = texts.find(digests, nothing, orders, refs.to_numpy())
                goes = refs.to_numpy()[equal.rows]
                columns = [pa.array(goes), equal.ids, plan.references_of(equal.keepers)]
                rows = pa.RecordBatch.from_arrays(columns, schema=EQUAL).filter(pa.array(plan.are_documents(goes)))
                collector.add(rows, plan.by_shard(rows.column("ref").to_numpy()))
            publish_files(self.store, item, self.name, {exchange.file: collector.finish()}, {})
        return looked_at
