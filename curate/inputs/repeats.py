"""Records that two files of one source hold: found by id over all shards of a keyed source.

Tasks over groups of shards regroup the `keys.parquet` of these by id; a task per partition sees equal ids one after the
other. Equal id and equal bytes: the record of the later file is a repeat. Equal id and other bytes: an error. Memory:
the buffers of exchange files, and in the driver the ids that repeat.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from curate import exchange
from curate.committing.gathered import Receipts
from curate.digests import digest_json
from curate.exchange import FORMAT, partition_of
from curate.parts import checked_file
from curate.readers.chunks import InputError
from curate.receipts import read_receipt
from curate.regroup import Exchange, Regrouped, memory_of, regroup
from curate.running.jobs import Item, Resources, RunsJobs, publish_files
from curate.store import Store
from curate.writer import write_parquet
from transforms.duplicates import leading_bits
from transforms.schema import ID

KEYS: Final = pa.schema([pa.field(name, kind, nullable=False) for name, kind in (("id", ID), ("shard", pa.int64()))])
RECORDS: Final = KEYS.append(pa.field("record", ID, nullable=False))
"""Records by id: the ordinal of the shard, and the digest of the record."""

REPEATS: Final = KEYS
"""Schema of `repeats.parquet`: the record `id` of the shard with this ordinal is a repeat."""

RECORD_BYTES: Final = 40


@dataclass(frozen=True, slots=True)
class Repeats:
    """Finding repeats among the records of `source`; `paths` name the files of `shards` in errors."""

    engine: RunsJobs
    name: str
    source: str
    shards: tuple[str, ...]
    paths: tuple[str, ...]

    def find(self, records: int) -> tuple[dict[int, frozenset[bytes]], list[Receipts]]:
        """Return the ids that repeat by the ordinal of their shard, and receipts; there are this many records.

        Raises:
            TaskError: two records share a natural key and differ.
        """
        limits, key = exchange.LIMITS, digest_json({"operation": "repeats", "shards": list(self.shards)})
        size = limits.partitions(records * RECORD_BYTES)
        by_id = Exchange(self.engine.store, key, self.name, "records.exchange", RECORDS, ("id", "shard"), size, limits)
        groups = limits.groups(len(self.shards)) or [range(len(self.shards))]
        items = [self._item(group, size) for group in groups]
        mapped = self.engine.receipts(RecordsJob(by_id, self.shards), items)
        regrouped, merges = regroup(self.engine, by_id, [item.key for item in items])
        units = [Item(self._key("find", partition), f"partition {partition}", partition) for partition in range(size)]
        found = self.engine.receipts(RepeatsJob(regrouped, self.name, self.source, self.paths), units)
        return repeats_by_shard(self.engine.store, [item.key for item in units]), [mapped, *merges, found]

    def _key(self, what: str, partition: int) -> str:
        described = {"operation": f"repeats {what}", "shards": list(self.shards), "partition": partition}
        return digest_json({**described, "exchange": FORMAT})

    def _item(self, group: range, partitions: int) -> Item:
        """Return the task of a group: the same wherever the same shards stand at these ordinals."""
        shards = list(self.shards[group.start : group.stop])
        described = {"operation": "repeats records", "first": group.start, "shards": shards, "partitions": partitions}
        key = digest_json({**described, "exchange": FORMAT})
        return Item(key, f"files from {group.start}", [group.start, group.stop])


@dataclass(frozen=True, slots=True)
class RecordsJob:
    """Per group of shards: their records, by id."""

    exchange: Exchange
    shards: tuple[str, ...]

    @property
    def store(self) -> Store:
        """Where shards lie."""
        return self.exchange.store

    @property
    def name(self) -> str:
        """What the tasks do."""
        return self.exchange.name

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return memory_of(self.exchange.limits)

    def run(self, item: Item) -> int:
        """Publish the records of the shards of `item.unit` (first, end), and return how many there are."""
        count = 0
        with self.exchange.collect() as records:
            for batch in self._batches(*item.unit):
                partition = partition_of(leading_bits(batch.column("id")), self.exchange.partitions)
                records.add(batch, partition)
                count += batch.num_rows
            publish_files(self.store, item, self.name, {self.exchange.file: records.finish()}, {})
        return count

    def _batches(self, first: int, end: int) -> Iterator[pa.RecordBatch]:
        for ordinal in range(first, end):
            receipt = read_receipt(self.store, self.shards[ordinal])
            if receipt is None or "keys.parquet" not in receipt.files:
                continue  # it read no record with a natural key
            with pq.ParquetFile(checked_file(self.store, self.shards[ordinal], "keys.parquet")) as file:
                for batch in file.iter_batches(columns=["id", "record"]):
                    shard = pa.repeat(pa.scalar(ordinal, pa.int64()), batch.num_rows)
                    yield pa.RecordBatch.from_arrays(
                        [batch.column("id"), shard, batch.column("record")], schema=RECORDS
                    )


@dataclass(frozen=True, slots=True)
class RepeatsJob:
    """Per partition of ids: the records that an earlier shard has too."""

    regrouped: Regrouped
    name: str
    source: str
    paths: tuple[str, ...]

    @property
    def store(self) -> Store:
        """Where shards lie."""
        return self.regrouped.exchange.store

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return memory_of(self.regrouped.exchange.limits)

    def run(self, item: Item) -> int:
        """Publish the repeats of partition `item.unit`, and return how many records were looked at.

        Raises:
            InputError: two records share a natural key and differ.
        """
        last, count = RECORDS.empty_table().to_batches(), 0
        found: list[pa.RecordBatch] = []
        for batch in self.regrouped.batches(item.unit):
            count += batch.num_rows
            rows = pa.concat_batches([*last, batch])
            found.append(self._repeats(rows))
            last = [rows.slice(rows.num_rows - 1)]
        with self.store.spool() as path:
            written = write_parquet(path, found, REPEATS)
            files = {"repeats.parquet": (path, written.rows, written.content)}
            publish_files(self.store, item, self.name, files, {})
        return count

    def _repeats(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows whose id is that of the row before."""
        ids, records = rows.column("id"), rows.column("record")
        same = pc.equal(ids[1:], ids[:-1])
        clash = np.flatnonzero(pc.and_(same, pc.not_equal(records[1:], records[:-1])))
        if len(clash):
            first, second = rows.slice(int(clash[0]), 2).to_pylist()
            raise InputError(
                f"source {self.source!r}: {self.paths[first['shard']]} and {self.paths[second['shard']]} hold "
                f"different records with one natural key (id {first['id'].hex()}). "
                'Choose another key column, or on_clash="place"'
            )
        return rows.slice(1).filter(same).select(REPEATS.names)


def repeats_by_shard(store: Store, keys: Sequence[str]) -> dict[int, frozenset[bytes]]:
    """Return the repeats that the tasks `keys` published: shard ordinal → ids."""
    tables = [pq.read_table(checked_file(store, key, "repeats.parquet"), schema=REPEATS) for key in keys]
    found: dict[int, set[bytes]] = {}
    for row in chain.from_iterable(table.to_pylist() for table in tables):
        found.setdefault(row["shard"], set()).add(row["id"])
    return {shard: frozenset(ids) for shard, ids in sorted(found.items())}
