"""Equal texts: digests and keep order per shard, then of each group of equal texts the first in keep order stays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curate.deduplication.plan import DIGESTS, EXACT, SHARD_BITS, Plan, shards_of
from curate.exchange import partition_of, read_partition, write_exchange
from curate.jobs import Item, publish_files
from curate.store import Store
from transforms.duplicates import STAYS, exact_survivors, leading_bits, text_digests
from transforms.order_key import order_keys


@dataclass(frozen=True, slots=True)
class DigestsJob:
    """Per input shard: the digest, group and keep order of every text that is not empty, by digest."""

    plan: Plan
    name: str = "deduplicate: digests"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    def run(self, item: Item) -> int:
        """Publish the digests of shard `item.unit` and return its rows."""
        batch = self.plan.batch(item.unit)
        digests = text_digests(batch.column("text"))
        groups = self.plan.groups(batch)
        table = pa.Table.from_arrays(
            [
                digests,
                pa.nulls(len(batch), pa.large_binary()) if groups is None else groups,
                order_keys(batch, self.plan.prefer, self.plan.sources, digests),
                pa.array(np.arange(len(batch), dtype=np.int64) + (item.unit << SHARD_BITS)),
            ],
            schema=DIGESTS,
        )
        table = table.filter(pc.greater(pc.binary_length(batch.column("text")), 0))
        table = table.combine_chunks()
        partitions = self.plan.digest_partitions
        with self.store.spool() as path:
            by_digest = partition_of(leading_bits(_whole(table.column("digest"))), partitions)
            rows = write_exchange(path, table, by_digest, partitions)
            publish_files(self.store, item, self.name, {"digests.exchange": (path, rows)}, {})
        return int(batch.num_rows)


@dataclass(frozen=True, slots=True)
class ExactJob:
    """Per partition of digests: which documents have a text that stays elsewhere, by their shard."""

    plan: Plan
    name: str = "deduplicate: equal texts"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    def run(self, item: Item) -> int:
        """Publish the equal texts of partition `item.unit`, and return how many rows were looked at."""
        paths = [self.plan.file("digests", shard, "digests.exchange") for shard in range(len(self.plan.shards))]
        table = read_partition(paths, item.unit, DIGESTS)
        digests, orders, groups = (_whole(table.column(name)) for name in ("digest", "order", "group"))
        keeper = exact_survivors(digests, orders, None if self.plan.within is None else groups)
        goes = np.flatnonzero(keeper != STAYS)
        refs = table.column("ref").to_numpy()
        found = pa.table(
            [
                pa.array(refs[goes]),
                pa.array(refs[keeper[goes]]),
                pa.array([orders[int(row)].as_py()[-16:] for row in keeper[goes]], pa.binary(16)),
            ],
            schema=EXACT,
        )
        found = found.sort_by("ref").combine_chunks()
        partitions = self.plan.shard_partitions
        with self.store.spool() as path:
            rows = write_exchange(path, found, shards_of(found.column("ref").to_numpy()) % partitions, partitions)
            publish_files(self.store, item, self.name, {"exact.exchange": (path, rows)}, {})
        return int(table.num_rows)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return pa.concat_arrays(combined.chunks) if isinstance(combined, pa.ChunkedArray) else combined


def exact_drops(plan: Plan, shard: int) -> pa.Table:
    """Return the rows of `EXACT` of the documents of `shard`."""
    paths = [plan.file("exact", partition, "exact.exchange") for partition in range(plan.digest_partitions)]
    table = read_partition(paths, shard % plan.shard_partitions, EXACT)
    return table.filter(pa.array(shards_of(table.column("ref").to_numpy()) == shard))
