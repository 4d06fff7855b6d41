"""The documents that are held out, and what training is compared with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from curate.deduplication.plan import SHARD_BITS, shards_of
from curate.holdout.plan import HELD, Plan, Refs
from curate.recipes.schemas import fit_to
from curate.regroup import Collector, Exchange, Regrouped
from curate.running.documents import read_shard
from curate.running.jobs import Item, Resources, Spooled, publish_files
from curate.store import Store
from curate.writer import write_parquet
from transforms.duplicates import text_digests
from transforms.minhash import sets_of


def held_exchange(plan: Plan) -> Exchange:
    """Return the regrouping of all that is held out: one partition."""
    return plan.exchange("held", HELD, ("digest", "id"), 1)


@dataclass(frozen=True, slots=True)
class HeldJob:
    """Per input shard: its documents that are held out, and their shingle sets."""

    plan: Plan
    name: str = "hold out: held"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return self.plan.resources

    def run(self, item: Item) -> int:
        """Publish what is held out of shard `item.unit`, and return how many documents that is."""
        exchange, rows = held_exchange(self.plan), self._chosen(item.unit)
        if not len(rows):
            publish_files(self.store, item, self.name, {}, {})
            return 0
        with self.store.spool() as part, exchange.collect() as sets:
            written = write_parquet(part, self._held(item.unit, rows, sets), self.plan.schema)
            files: dict[str, Spooled] = {"part.parquet": (part, written.rows), exchange.file: sets.finish()}
            publish_files(self.store, item, self.name, files, {})
        return written.rows

    def _chosen(self, shard: int) -> Refs:
        """Return the rows of `shard` that are held out."""
        with pq.ParquetFile(self.plan.file("choose", 0, "chosen.parquet")) as file:
            chosen = file.read(columns=["ref"]).column("ref").to_numpy()
        return np.asarray(chosen[shards_of(chosen) == shard] - (shard << SHARD_BITS), np.int64)

    def _held(self, shard: int, rows: Refs, sets: Collector) -> Iterator[pa.RecordBatch]:
        for chunk in read_shard(self.store, self.plan.shards[shard]):
            stays = np.isin(chunk.ordinals, rows)
            if stays.any():
                held = fit_to(chunk.rows.filter(pa.array(stays)), self.plan.schema)
                sets.add(self._compared(held), np.zeros(held.num_rows, np.int64))
                yield held

    def _compared(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        text = batch.column("text")
        offsets, values = np.zeros(len(batch) + 1, np.int64), np.zeros(0, np.uint64)
        if self.plan.method is not None:
            sets = sets_of(text, self.plan.method)
            offsets, values = sets.offsets, sets.values
        shingles = pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(values))
        return pa.RecordBatch.from_arrays([text_digests(text), batch.column("id"), shingles], schema=HELD)


@dataclass(frozen=True, slots=True)
class IndexJob:
    """Once: all that is held out, in the order of the text digests."""

    plan: Plan
    held: Regrouped
    name: str = "hold out: index"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return self.plan.resources

    def run(self, item: Item) -> int:
        """Publish the index and return how many texts it has."""
        with self.store.spool() as path:
            written = write_parquet(path, self.held.batches(0), HELD)
            publish_files(self.store, item, self.name, {"index.parquet": (path, written.rows)}, {})
        return written.rows
