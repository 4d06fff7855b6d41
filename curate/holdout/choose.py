"""Which documents are held out: each shard names those that may be, one task chooses among them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from curate.deduplication.plan import SHARD_BITS
from curate.holdout.plan import CHOICES, SIZES, Plan
from curate.parts import part_batches
from curate.running.jobs import Item, Resources, publish_files
from curate.store import Store
from curate.writer import write_parquet
from transforms.duplicates import text_digests
from transforms.hold_out import Limit, choose, contenders, draw_keys
from transforms.order_key import encode_column

HELD_ROWS: Final = 1 << 17
"""Rows of documents that may be held out, held until it is seen which of them decide; changes no output."""


@dataclass(frozen=True, slots=True)
class ChoicesJob:
    """Per input shard: the documents that decide what is held out, by stratum, and how large its strata are."""

    plan: Plan
    name: str = "hold out: choices"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return self.plan.resources

    def run(self, item: Item) -> int:
        """Publish the choices and sizes of shard `item.unit`, and return its rows."""
        plan, sizes, rows = self.plan, Sizes(), 0
        choices = Contenders(plan.limit)
        columns = ["id", "text", *([] if plan.per is None else [plan.per])]
        for batch in part_batches(self.store, plan.shards[item.unit], columns, plan.schema):
            described = self._described(batch, item.unit, rows)
            sizes.add(described)
            choices.add(described)
            rows += batch.num_rows
        found, table = choices.table(), sizes.table()
        with self.store.spool() as first, self.store.spool() as second:
            write_parquet(first, found.to_batches(), CHOICES)
            write_parquet(second, [table], SIZES)
            files = {"choices.parquet": (first, found.num_rows), "sizes.parquet": (second, table.num_rows)}
            publish_files(self.store, item, self.name, files, {})
        return rows

    def _described(self, batch: pa.RecordBatch, shard: int, first: int) -> pa.RecordBatch:
        """Return the rows of `CHOICES` of a batch; empty texts are never held out."""
        per, digests = self.plan.per, text_digests(batch.column("text"))
        stratum = pa.nulls(len(batch), pa.large_binary())
        if per is not None:
            stratum = encode_column(batch.column(per), name=per).cast(pa.large_binary())
        ordinals = np.arange(first, first + batch.num_rows, dtype=np.int64)
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


class Contenders:
    """The documents that decide what is held out, of all that were added; about `HELD_ROWS` are held besides."""

    def __init__(self, limit: Limit) -> None:
        self.limit = limit
        self._batches: list[pa.RecordBatch] = []
        self._rows = self._least = 0

    def add(self, rows: pa.RecordBatch) -> None:
        """Add rows of `CHOICES`."""
        self._batches.append(rows)
        self._rows += rows.num_rows
        if self._rows >= HELD_ROWS + 2 * self._least:
            self._batches = self.table().to_batches()
            self._rows = self._least = sum(batch.num_rows for batch in self._batches)

    def table(self) -> pa.Table:
        """Return those that decide, by stratum and in the order of the choice."""
        strata = strata_of(pa.Table.from_batches(self._batches, CHOICES))
        decide = [part.take(pa.array(contenders(*columns_of(part), self.limit))) for part in strata]
        return pa.concat_tables([CHOICES.empty_table(), *decide]).combine_chunks()


class Sizes:
    """Characters and documents of each stratum."""

    def __init__(self) -> None:
        self.totals: dict[bytes | None, tuple[int, int]] = {}

    def add(self, rows: pa.RecordBatch) -> None:
        """Count rows of `CHOICES`."""
        sums = pa.Table.from_batches([rows]).group_by("stratum").aggregate([("characters", "sum"), ([], "count_all")])
        self._count(sums.column("stratum"), sums.column("characters_sum"), sums.column("count_all"))

    def merge(self, rows: pa.RecordBatch) -> None:
        """Count rows of `SIZES`."""
        self._count(*(rows.column(name) for name in ("stratum", "characters", "documents")))

    def _count(self, strata: Any, characters: Any, documents: Any) -> None:
        for stratum, *sizes in zip(*(column.to_pylist() for column in (strata, characters, documents)), strict=True):
            had = self.totals.get(stratum, (0, 0))
            self.totals[stratum] = (had[0] + sizes[0], had[1] + sizes[1])

    def table(self) -> pa.RecordBatch:
        """Return rows of `SIZES`, by stratum, null last."""
        order = sorted(self.totals, key=lambda value: (value is None, value or b""))
        rows = [{"stratum": s, "characters": self.totals[s][0], "documents": self.totals[s][1]} for s in order]
        return pa.RecordBatch.from_pylist(rows, schema=SIZES)


@dataclass(frozen=True, slots=True)
class ChooseJob:
    """Once: what is held out of each stratum."""

    plan: Plan
    name: str = "hold out: choose"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return self.plan.resources

    def run(self, item: Item) -> int:
        """Publish the documents held out, in the order of the shards, and return how many there were to choose from."""
        table, totals, looked_at = self._read()
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
        return looked_at

    def _read(self) -> tuple[pa.Table, Mapping[bytes | None, tuple[int, int]], int]:
        """Return the contenders of all shards, the characters and documents of each stratum, and how many were read."""
        choices, sizes, rows = Contenders(self.plan.limit), Sizes(), 0
        for shard in range(len(self.plan.shards)):
            for batch in pq.read_table(self.plan.file("choices", shard, "sizes.parquet"), schema=SIZES).to_batches():
                sizes.merge(batch)
            with pq.ParquetFile(self.plan.file("choices", shard, "choices.parquet")) as file:
                for batch in file.iter_batches():
                    choices.add(pa.RecordBatch.from_arrays(batch.columns, schema=CHOICES))
                    rows += batch.num_rows
        return choices.table(), sizes.totals, rows
