"""The documents that are held out, and what training is compared with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from curate.deduplication.plan import SHARD_BITS, shards_of
from curate.documents import read_shard
from curate.holdout.plan import CHOICES, HELD, Plan
from curate.jobs import Item, publish_files
from curate.stages import fit_to
from curate.store import Store
from curate.writer import write_parquet
from transforms.duplicates import text_digests
from transforms.minhash import shingle_sets


@dataclass(frozen=True, slots=True)
class HeldJob:
    """Per input shard: its documents that are held out, and their shingle sets."""

    plan: Plan
    name: str = "hold out: held"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    def run(self, item: Item) -> int:
        """Publish what is held out of shard `item.unit`, and return how many documents that is."""
        batches = list(self._held(item.unit))
        count = sum(int(batch.num_rows) for batch in batches)
        files = {}
        with self.store.spool() as part, self.store.spool() as sets:
            if count:
                write_parquet(part, batches, self.plan.schema)
                write_parquet(sets, [self._compared(batch) for batch in batches], HELD)
                files = {"part.parquet": (part, count), "held.parquet": (sets, count)}
            publish_files(self.store, item, self.name, files, {})
        return count

    def _held(self, shard: int) -> Iterator[pa.RecordBatch]:
        chosen = pq.read_table(self.plan.file("choose", 0, "chosen.parquet"), schema=CHOICES).column("ref").to_numpy()
        rows = chosen[shards_of(chosen) == shard] - (shard << SHARD_BITS)
        if not len(rows):
            return
        for chunk in read_shard(self.store, self.plan.shards[shard]):
            stays = np.isin(chunk.ordinals, rows)
            if stays.any():
                yield fit_to(chunk.rows.filter(pa.array(stays)), self.plan.schema)

    def _compared(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        text = batch.column("text")
        offsets, values = np.zeros(len(batch) + 1, np.int64), np.zeros(0, np.uint64)
        if self.plan.method is not None:
            sets = shingle_sets(text, self.plan.method.ngram)
            offsets, values = sets.offsets, sets.values
        shingles = pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(values))
        return pa.RecordBatch.from_arrays([text_digests(text), batch.column("id"), shingles], schema=HELD)


@dataclass(frozen=True, slots=True)
class IndexJob:
    """Once: all that is held out, in the order of the text digests."""

    plan: Plan
    name: str = "hold out: index"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    def run(self, item: Item) -> int:
        """Publish the index and return how many texts it has."""
        paths = [self.plan.file("held", shard, "held.parquet") for shard in range(len(self.plan.shards))]
        tables = [pq.read_table(path, schema=HELD) for path in paths if path.exists()]
        table = pa.concat_tables([HELD.empty_table(), *tables])
        table = table.take(pc.sort_indices(table, sort_keys=[("digest", "ascending"), ("id", "ascending")]))
        with self.store.spool() as path:
            write_parquet(path, table.combine_chunks().to_batches(), HELD)
            publish_files(self.store, item, self.name, {"index.parquet": (path, table.num_rows)}, {})
        return int(table.num_rows)
