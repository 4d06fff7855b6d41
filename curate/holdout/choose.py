"""Which documents are held out: each shard names those that may be, one task chooses among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from curate.deduplication.plan import SHARD_BITS
from curate.documents import read_shard
from curate.holdout.plan import CHOICES, SIZES, Plan
from curate.jobs import Item, publish_files
from curate.stages import fit_to
from curate.store import Store
from curate.writer import write_parquet
from transforms.duplicates import text_digests
from transforms.hold_out import choose, contenders, draw_keys
from transforms.order_key import encode_column


@dataclass(frozen=True, slots=True)
class ChoicesJob:
    """Per input shard: the documents that decide what is held out, by stratum, and how large its strata are."""

    plan: Plan
    name: str = "hold out: choices"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    def run(self, item: Item) -> int:
        """Publish the choices and sizes of shard `item.unit`, and return its rows."""
        described = [self._described(chunk.rows, item.unit, chunk.ordinals) for chunk in self._chunks(item.unit)]
        table = pa.Table.from_batches(described, CHOICES)
        limit = self.plan.limit
        choices = [part.take(pa.array(contenders(*columns_of(part), limit))) for part in strata_of(table)]
        sizes = [size_of(part) for part in strata_of(table)]
        found = pa.concat_tables([CHOICES.empty_table(), *choices]).combine_chunks()
        with self.store.spool() as first, self.store.spool() as second:
            write_parquet(first, found.to_batches(), CHOICES)
            write_parquet(second, [pa.RecordBatch.from_pylist(sizes, schema=SIZES)], SIZES)
            files = {"choices.parquet": (first, found.num_rows), "sizes.parquet": (second, len(sizes))}
            publish_files(self.store, item, self.name, files, {})
        return int(table.num_rows)

    def _chunks(self, shard: int) -> Any:
        return read_shard(self.store, self.plan.shards[shard])

    def _described(self, batch: pa.RecordBatch, shard: int, ordinals: Any) -> pa.RecordBatch:
        """Return the rows of `CHOICES` of a batch; empty texts are never held out."""
        per, digests = self.plan.per, text_digests(batch.column("text"))
        stratum = pa.nulls(len(batch), pa.large_binary())
        if per is not None:
            values = fit_to(batch, self.plan.schema).column(per)
            stratum = pa.array(encode_column(values, name=per).to_pylist(), pa.large_binary())
        columns = [
            stratum,
            pa.array(draw_keys(digests)),
            digests,
            batch.column("id"),
            pc.utf8_length(batch.column("text")).cast(pa.int64()),
            pa.array(ordinals + (shard << SHARD_BITS)),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=CHOICES).filter(pc.greater(columns[4], 0))


def strata_of(table: pa.Table) -> list[pa.Table]:
    """Return the rows of each stratum, in the order of their values; null is one, the last."""
    values = sorted(set(table.column("stratum").to_pylist()), key=lambda value: (value is None, value or b""))
    column = table.column("stratum")
    return [
        table.filter(pc.is_null(column) if value is None else pc.fill_null(pc.equal(column, value), False))
        for value in values
    ]


def columns_of(stratum: pa.Table) -> tuple[Any, Any, Any, Any]:
    """Return keys, digests, ids and sizes of the documents of one stratum."""
    digests, ids = (np.array(stratum.column(name).to_pylist(), "S16") for name in ("digest", "id"))
    return stratum.column("key").to_numpy(), digests, ids, stratum.column("characters").to_numpy()


def size_of(stratum: pa.Table) -> dict[str, Any]:
    """Return the row of `SIZES` of one stratum of a shard."""
    value = stratum.column("stratum")[0].as_py()
    return {
        "stratum": value,
        "documents": stratum.num_rows,
        "characters": pc.sum(stratum.column("characters")).as_py(),
    }


@dataclass(frozen=True, slots=True)
class ChooseJob:
    """Once: what is held out of each stratum."""

    plan: Plan
    name: str = "hold out: choose"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    def run(self, item: Item) -> int:
        """Publish the documents held out, in the order of the shards, and return how many there were to choose from."""
        table, sizes = self._read("choices.parquet", CHOICES), self._read("sizes.parquet", SIZES)
        totals: dict[bytes | None, list[int]] = {}
        for row in sizes.to_pylist():
            total = totals.setdefault(row["stratum"], [0, 0])
            total[0] += row["characters"]
            total[1] += row["documents"]
        chosen = [CHOICES.empty_table()]
        for stratum in strata_of(table):
            limit = self.plan.limit.within(*totals[stratum.column("stratum")[0].as_py()])
            if limit is not None:
                chosen.append(stratum.take(pa.array(choose(*columns_of(stratum), limit))))
        found = pa.concat_tables(chosen).sort_by("ref").combine_chunks()
        with self.store.spool() as path:
            write_parquet(path, found.to_batches(), CHOICES)
            counts = {"held_out": {"documents": found.num_rows, "strata": len(totals)}}
            publish_files(self.store, item, self.name, {"chosen.parquet": (path, found.num_rows)}, counts)
        return int(table.num_rows)

    def _read(self, name: str, schema: pa.Schema) -> pa.Table:
        paths = [self.plan.file("choices", shard, name) for shard in range(len(self.plan.shards))]
        return pa.concat_tables([schema.empty_table(), *(pq.read_table(path, schema=schema) for path in paths)])
