"""Second pass: each task owns one zarr shard of `tokens`, or of the arrays by document, and writes it once.

Where its rows come from is known from the lengths of partitions, which stream by. A task's memory: a shard, its
compressed form, and the buffers of exchange files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from curate.accounting.statistics import Statistics, text_sum
from curate.caches.arrays import block_digests, shard_bytes
from curate.caches.counting import longest_documents, used_ids
from curate.caches.errors import CacheError
from curate.caches.layout import UNTRAINED, ArraySpec
from curate.caches.lengths import Lengths
from curate.caches.plan import DOCUMENTS, Plan, digest_rows
from curate.regroup import Regrouped, memory_of
from curate.running.jobs import Item, Resources, publish_files
from curate.store import Store, json_line

BY_DOCUMENT = ("offsets", "ids", "origin", "texts")

SHARD_BYTES = 128 << 20
"""Bytes of the values of a zarr shard, at most."""


@dataclass(frozen=True, slots=True)
class WriteTokensJob:
    """Per (cell, zarr shard): the tokens in it."""

    plan: Plan
    lengths: tuple[Lengths, ...]
    regrouped: Regrouped
    name: str = "tokenize: write tokens"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs: three shards, as values, compressed and on their way."""
        return Resources(memory=memory_of(self.plan.limits).memory + 3 * SHARD_BYTES)

    def run(self, item: Item) -> int:
        """Publish one zarr shard of `tokens`; nothing is read by document, so 0 is returned."""
        cell, shard = item.unit
        spec = cell_array(self.plan, self.lengths, cell, "tokens")
        start, stop = spec.rows_of(shard)
        values = {spec: np.empty(stop - start, self.plan.dtype)}
        if self.plan.masked:
            values[cell_array(self.plan, self.lengths, cell, UNTRAINED)] = np.empty(stop - start, np.uint8)
        sums = self.lengths[cell].tokens
        for number in self.lengths[cell].overlapping(sums, start, stop):
            first, last = int(sums[number]), int(sums[number + 1])
            for parts in self._tokens(self.plan.cells[cell].first + number, last - first):
                begin, end = max(start, first), min(stop, first + len(parts[0]))
                for mine, part in zip(values.values(), parts, strict=True):
                    if begin < end:
                        mine[begin - start : end - start] = part[begin - first : end - first]
                first += len(parts[0])
        used = {"cells": {self.plan.cells[cell].name: {"used": used_ids(values[spec])}}}
        publish_shards(self.plan, item, self.name, values, used)
        return 0

    def _tokens(self, partition: int, expected: int) -> Iterator[list[npt.NDArray[Any]]]:
        """Yield the tokens of a partition, in order; of masked documents also which of them are no targets, as 1."""
        found = 0
        for batch in self.regrouped.batches(partition):
            tokens = batch.column("tokens").flatten().to_numpy()
            found += len(tokens)
            yield [tokens, untrained_of(batch)] if self.plan.masked else [tokens]
        if found != expected:
            raise CacheError(f"partition {partition} has {found:,} tokens, {expected:,} were counted")


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

    @property
    def resources(self) -> Resources:
        """What a task needs: three shards, as values, compressed and on their way."""
        return Resources(memory=memory_of(self.plan.limits).memory + 3 * SHARD_BYTES)

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
        longest = longest_documents(values[specs["ids"]], table.column("tokens").to_numpy())
        statistics = {"cells": {self.plan.cells[cell].name: {"multiset": multiset, "longest": longest}}}
        publish_shards(self.plan, item, self.name, {k: v for k, v in values.items() if len(v)}, statistics)
        return int(table.num_rows)

    def _documents(self, cell: int, start: int, stop: int) -> tuple[pa.Table, int]:
        """Return the rows of documents `start` to `stop` of a cell, and how many tokens lie before them."""
        lengths = self.lengths[cell]
        sums = lengths.documents
        numbers = lengths.overlapping(sums, start, stop) if start < stop else range(0)
        if not numbers:
            return DOCUMENTS.empty_table(), int(lengths.tokens[-1])
        kept, at, before = [], int(sums[numbers[0]]), int(lengths.tokens[numbers[0]])
        for batch in self._rows(cell, numbers):
            skipped = min(batch.num_rows, max(0, start - at))
            before += int(batch.column("tokens").slice(0, skipped).to_numpy().sum())
            kept.append(batch.slice(skipped, max(0, stop - max(at, start))))
            at += batch.num_rows
        return pa.Table.from_batches(kept, DOCUMENTS).combine_chunks(), before

    def _rows(self, cell: int, numbers: range) -> Iterator[pa.RecordBatch]:
        """Yield the rows of `DOCUMENTS` of these partitions of a cell, in order."""
        for number in numbers:
            path = self.plan.lengths_file(self.plan.cells[cell].first + number, "documents.parquet")
            with pq.ParquetFile(path) as file:
                yield from file.iter_batches()


def untrained_of(batch: pa.RecordBatch) -> npt.NDArray[np.uint8]:
    """Return for each token of `batch` (columns tokens, untrained) 1 if it is no target, else 0."""
    lengths, ranges = batch.column("tokens").value_lengths().to_numpy(), batch.column(UNTRAINED)
    begins = np.repeat(np.cumsum(lengths) - lengths, ranges.value_lengths().to_numpy())
    edges = ranges.flatten().to_numpy() + begins
    steps = np.zeros(int(lengths.sum()) + 1, np.int8)
    steps[edges[::2]] += 1  # ranges of a document neither touch nor overlap; those of two documents may touch
    steps[edges[1::2]] -= 1
    return np.cumsum(steps[:-1], dtype=np.int8).view(np.uint8)


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
        if spec.name in ("tokens", "offsets", UNTRAINED):
            blocks[spec.name] = block_digests(rows, plan.layout.block(spec.name))
    with plan.store.spool() as path:
        path.write_bytes(json_line({"files": files, "blocks": blocks}))
        publish_files(plan.store, item, task, {"written.json": (path, 1)}, statistics)
