"""Second pass: each task owns one zarr shard of `tokens`, or of the arrays by document, and writes it once.

Where its rows come from is known from the lengths of partitions. A task's memory: a shard, its compressed form, and one
partition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from curate.caches.arrays import block_digests, shard_bytes
from curate.caches.errors import CacheError
from curate.caches.layout import ArraySpec
from curate.caches.lengths import Lengths
from curate.caches.plan import DOCUMENTS, Plan, digest_rows, gather, sort_order, tokens_schema
from curate.exchange import read_partition
from curate.jobs import Item, publish_files
from curate.statistics import Statistics, text_sum
from curate.store import Store, json_line

BY_DOCUMENT = ("offsets", "ids", "origin", "texts")


@dataclass(frozen=True, slots=True)
class WriteTokensJob:
    """Per (cell, zarr shard): the tokens in it."""

    plan: Plan
    lengths: tuple[Lengths, ...]
    name: str = "tokenize: write tokens"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    def run(self, item: Item) -> int:
        """Publish one zarr shard of `tokens`; nothing is read by document, so 0 is returned."""
        cell, shard = item.unit
        spec = cell_array(self.plan, self.lengths, cell, "tokens")
        start, stop = spec.rows_of(shard)
        values = np.empty(stop - start, self.plan.dtype)
        sums = self.lengths[cell].tokens
        for number in self.lengths[cell].overlapping(sums, start, stop):
            first, last = int(sums[number]), int(sums[number + 1])
            tokens = self._partition(self.plan.cells[cell].first + number, last - first)
            begin, end = max(start, first), min(stop, last)
            values[begin - start : end - start] = tokens[begin - first : end - first]
        publish_shards(self.plan, item, self.name, {spec: values}, {})
        return 0

    def _partition(self, partition: int, expected: int) -> npt.NDArray[Any]:
        table = read_partition(self.plan.exchanges("tokens.exchange"), partition, tokens_schema(self.plan.dtype))
        chunks = table.column("tokens").chunks
        flat = np.concatenate([np.zeros(0, self.plan.dtype), *(chunk.flatten().to_numpy() for chunk in chunks)])
        lengths = pc.list_value_length(table.column("tokens")).to_numpy()
        tokens = gather(flat, np.concatenate([[0], np.cumsum(lengths)]), sort_order(table))
        if len(tokens) != expected:
            raise CacheError(f"partition {partition} has {len(tokens):,} tokens, {expected:,} were counted")
        return tokens


@dataclass(frozen=True, slots=True)
class WriteDocumentsJob:
    """Per (cell, zarr shard): offsets, ids, origins and text digests of the documents in it."""

    plan: Plan
    lengths: tuple[Lengths, ...]
    name: str = "tokenize: write documents"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    def run(self, item: Item) -> int:
        """Publish one zarr shard of each array by document, and return its documents."""
        cell, shard = item.unit
        lengths = self.lengths[cell]
        specs = {name: cell_array(self.plan, self.lengths, cell, name) for name in BY_DOCUMENT}
        length = specs["offsets"].shard
        start, stop = shard * length, min((shard + 1) * length, int(lengths.documents[-1]))
        table, before = self._documents(cell, start, stop)
        lasts = before + np.cumsum(table.column("tokens").to_numpy())
        first, last = specs["offsets"].rows_of(shard)
        texts = digest_rows(table.column("text"))
        values: dict[ArraySpec, npt.NDArray[Any]] = {
            specs["offsets"]: np.concatenate([[before], lasts])[: last - first].astype(np.uint64),
            specs["ids"]: digest_rows(table.column("id")),
            specs["origin"]: np.stack([table.column(name).to_numpy() for name in ("shard", "row")], axis=1),
            specs["texts"]: texts,
        }
        multiset = text_sum(row.tobytes() for row in texts)
        statistics = {"cells": {self.plan.cells[cell].name: {"multiset": multiset}}}
        publish_shards(self.plan, item, self.name, {k: v for k, v in values.items() if len(v)}, statistics)
        return int(table.num_rows)

    def _documents(self, cell: int, start: int, stop: int) -> tuple[pa.Table, int]:
        """Return the rows of documents `start` to `stop` of a cell, and how many tokens lie before them."""
        lengths = self.lengths[cell]
        sums = lengths.documents
        numbers = lengths.overlapping(sums, start, stop) if start < stop else range(0)
        if not numbers:
            return DOCUMENTS.empty_table(), int(lengths.tokens[-1])
        paths = [
            self.plan.file("lengths", self.plan.cells[cell].first + number, "documents.parquet") for number in numbers
        ]
        table = pa.concat_tables([pq.read_table(path, schema=DOCUMENTS) for path in paths])
        skipped = start - int(sums[numbers[0]])
        before = int(lengths.tokens[numbers[0]]) + int(table.column("tokens").slice(0, skipped).to_numpy().sum())
        return table.slice(skipped, stop - start), before


def cell_array(plan: Plan, lengths: Sequence[Lengths], cell: int, name: str) -> ArraySpec:
    """Return an array of the cache of a cell."""
    mine = lengths[cell]
    return plan.layout.array(name, plan.dtype.name, int(mine.tokens[-1]), int(mine.documents[-1]))


def publish_shards(
    plan: Plan, item: Item, task: str, values: Mapping[ArraySpec, npt.NDArray[Any]], statistics: Statistics
) -> None:
    """Publish one zarr shard of each array into the cache's folder, then `written.json`, which lists them."""
    cell, shard = item.unit
    files, blocks = {}, {}
    for spec, rows in values.items():
        content = shard_bytes(spec, shard, rows)
        name = f"{spec.name}/{spec.file(shard)}"
        files[name] = {
            "bytes": len(content),
            "digest": plan.store.publish_bytes(content, f"{plan.cell_folder(cell)}/{name}"),
        }
        if spec.name in ("tokens", "offsets"):
            blocks[spec.name] = block_digests(rows, plan.layout.block(spec.name))
    with plan.store.spool() as path:
        path.write_bytes(json_line({"files": files, "blocks": blocks}))
        publish_files(plan.store, item, task, {"written.json": (path, 1)}, statistics)
