"""First pass, per input shard: which cells it has, then its tokens, regrouped by cell and order."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from curate.accounting.statistics import Statistics, add, length_bin
from curate.caches.backend import REFERENCE, Backend, fast_encoder
from curate.caches.errors import CacheError, OtherTokenizerError
from curate.caches.plan import DOCUMENTS, MOST_CELLS, UNTRAINED_RANGES, Plan, Values, digest_rows, tokens_schema
from curate.caches.values import Values as ByValue
from curate.exchange import partition_of
from curate.regroup import Collector, memory_of
from curate.running.jobs import Item, Resources, publish_files
from curate.store import Store, json_line
from curate.writer import cut_rows
from transforms.duplicates import text_digests
from transforms.fast_tokens import FastEncoder, is_sampled
from transforms.not_trained import NOT_TRAINED, untrained_tokens
from transforms.token_order import leading_number, orders_of
from transforms.tokens import Encoded, Encoder

ROWS: Final = 128
"""Documents read at a time; changes no output."""

ENCODE_BYTES: Final = 4 << 20
"""Text encoded at a time, as the library takes about 100 bytes per token meanwhile; changes no output."""

COUNTING_ROWS: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class CellsJob:
    """Per input shard: the combinations of values that it has, with documents and estimated bytes of text."""

    plan: Plan
    name: str = "tokenize: cells"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    def run(self, item: Item) -> int:
        """Publish the cells of input shard `item.unit` and return its rows.

        Raises:
            CacheError: there are too many.
        """
        counts: dict[Values, int] = {}
        rows, size = self._size(item.unit)
        columns = self.plan.by or ("id",)
        for batch in self.plan.batches(item.unit, columns, COUNTING_ROWS):
            for values in self.plan.values(batch):
                counts[values] = counts.get(values, 0) + 1
            check_cells(self.plan.by, len(counts))
        cells = [[list(values), n, -(-n * size // max(1, rows))] for values, n in counts.items()]
        cells.sort(key=lambda cell: json.dumps(cell[0]))
        with self.store.spool() as path:
            path.write_bytes(json_line({"cells": cells}))
            publish_files(self.store, item, self.name, {"cells.json": (path, len(cells))}, {})
        return rows

    def _size(self, index: int) -> tuple[int, int]:
        metadata = pq.read_metadata(self.plan.part(index))
        place = [metadata.schema.column(i).path for i in range(metadata.num_columns)].index("text")
        groups = [metadata.row_group(i).column(place) for i in range(metadata.num_row_groups)]
        return metadata.num_rows, sum(group.total_uncompressed_size for group in groups)


def check_cells(by: Sequence[str], count: int) -> None:
    """Raise where a cell per combination of values would make too many caches.

    Raises:
        CacheError: the message names the columns.
    """
    if count > MOST_CELLS:
        raise CacheError(
            f"by={list(by)} has more than {MOST_CELLS:,} combinations of values, and each would be a cache: take a "
            "column with fewer values"
        )


@dataclass(frozen=True, slots=True)
class TokensJob:
    """Per input shard: the tokens of its documents, by partition, and what is known about each.

    Which ids are right does not depend on `backend`; differences that its sample shows are counted, or stop the task.
    """

    plan: Plan
    backend: Backend = REFERENCE
    name: str = "tokenize: tokens"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs: the encoder takes about 100 bytes per token of what it encodes at a time."""
        return Resources(memory=memory_of(self.plan.limits).memory + 100 * ENCODE_BYTES)

    def run(self, item: Item) -> int:
        """Publish the tokens of input shard `item.unit` and return its rows.

        Raises:
            OtherTokenizerError: this worker's tokenizer gives the canary other ids than the driver's.
            CacheError: the fast backend gives other ids, and is to stop then.
        """
        encoder = self.plan.tokenizer.encoder()
        if tuple(encoder.canary()) != self.plan.canary:
            raise OtherTokenizerError(
                f"{self.plan.tokenizer} gives the canary other ids on this worker than on the driver: they have "
                "different versions of the tokenizers library"
            )
        masks = [NOT_TRAINED.name] if self.plan.masked else []
        columns = list(dict.fromkeys(["id", "text", *self.plan.by, *self.plan.counted, *masks]))
        with self.plan.documents.collect(2) as documents, self.plan.tokens.collect(2) as tokens:
            shard = _Shard(self.plan, item.unit, encoder, fast_encoder(self.plan, self.backend), documents, tokens)
            for batch in cut_rows(self.plan.batches(item.unit, columns, ROWS), ENCODE_BYTES):
                shard.add(batch)
            self.backend.check(shard.compared["differing"], self.plan.shards[item.unit].key)
            files = {collector.exchange.file: collector.finish() for collector in (documents, tokens)}
            counts: Statistics = {"cells": shard.told()} | ({"compared": shard.compared} if shard.fast else {})
            publish_files(self.store, item, self.name, files, counts)
        return shard.rows


@dataclass(slots=True)
class _Shard:
    """The tokens of one input shard while they are made."""

    plan: Plan
    index: int
    encoder: Encoder
    fast: FastEncoder | None
    documents: Collector
    tokens: Collector
    rows: int = 0
    statistics: Statistics = field(default_factory=dict)
    compared: dict[str, int] = field(default_factory=lambda: {"documents": 0, "differing": 0})
    by_value: ByValue = field(init=False)

    def __post_init__(self) -> None:
        """Make room for the counts by value."""
        self.by_value = ByValue(self.plan.counted)

    def told(self) -> Statistics:
        """Return what is counted, by cell."""
        for cell, counts in self.by_value.statistics().items():
            self.statistics[self.plan.cells[cell].name]["by"] = counts
        return self.statistics

    def add(self, batch: pa.RecordBatch) -> None:
        """Encode the documents of `batch`."""
        texts = batch.column("text")
        encoded = (self.fast or self.encoder).encode_column(texts)
        digests = text_digests(texts)
        if self.fast is not None:
            self._compare(self.fast, texts, digests, encoded)
        orders = orders_of(digests)
        ordinals = {cell.values: number for number, cell in enumerate(self.plan.cells)}
        cells = np.array([ordinals[values] for values in self.plan.values(batch)], np.int64)
        rows = np.arange(self.rows, self.rows + batch.num_rows, dtype=np.uint64)
        shard = np.full(batch.num_rows, self.plan.shards[self.index].ordinal, np.uint64)
        columns = [orders, batch.column("id"), digests, shard, rows, np.diff(encoded.offsets)]
        arrays = [pa.array(column) if isinstance(column, np.ndarray) else column for column in columns]
        partition = _partitions(self.plan, cells, leading_number(orders))
        self.documents.add(pa.RecordBatch.from_arrays(arrays, schema=DOCUMENTS), partition)
        schema = tokens_schema(self.encoder.dtype, self.plan.masked)
        offsets = pa.array(encoded.offsets.astype(np.int64))
        flat = pa.array(encoded.ids.astype(self.encoder.dtype))
        lists = pa.LargeListArray.from_arrays(offsets, flat, type=schema.field("tokens").type)
        ranges = self._untrained(batch, digests, encoded, cells) if self.plan.masked else []
        columns = [orders, batch.column("id"), lists, *ranges]
        self.tokens.add(pa.RecordBatch.from_arrays(columns, schema=schema), partition)
        self._count(cells, texts, encoded)
        self.by_value.add(batch, cells, np.diff(encoded.offsets))
        self.rows += batch.num_rows

    def _untrained(
        self, batch: pa.RecordBatch, digests: pa.Array, encoded: Encoded, cells: npt.NDArray[np.int64]
    ) -> list[pa.Array]:
        """Return the column of the tokens that are no targets."""
        places = [
            untrained_tokens(self.encoder, text.as_py(), mask.as_py(), digest.as_py(), encoded.document(row))
            if mask.is_valid
            else []
            for row, (text, mask, digest) in enumerate(
                zip(batch.column("text"), batch.column(NOT_TRAINED.name), digests, strict=True)
            )
        ]
        for cell, ranges in zip(cells.tolist(), places, strict=True):
            if ranges:
                add(self.statistics, (self.plan.cells[cell].name, "untrained"), sum(ranges[1::2]) - sum(ranges[::2]))
        return [pa.array(places, UNTRAINED_RANGES.type)]

    def _compare(self, fast: FastEncoder, texts: pa.Array, digests: pa.Array, encoded: Encoded) -> None:
        """Compare the first document of the shard, and those that their digest chooses, with the reference."""
        rows = np.flatnonzero(is_sampled(digest_rows(digests)) | (np.arange(len(texts)) + self.rows == 0)).tolist()
        self.compared["documents"] += len(rows)
        self.compared["differing"] += fast.differing([texts[row].as_py() for row in rows], map(encoded.document, rows))

    def _count(self, cells: npt.NDArray[np.int64], texts: pa.Array, encoded: Encoded) -> None:
        sizes, characters = pc.binary_length(texts).to_numpy(), pc.utf8_length(texts).to_numpy()
        lengths = np.diff(encoded.offsets)
        unknown = np.zeros(len(lengths), np.int64)
        if self.encoder.unknown is not None:
            places = np.flatnonzero(encoded.ids == self.encoder.unknown)
            unknown += np.diff(np.searchsorted(places, encoded.offsets))
        for cell in np.unique(cells).tolist():
            mine = np.flatnonzero(cells == cell)
            name = self.plan.cells[cell].name
            sums = {"bytes": sizes, "characters": characters, "tokens": lengths, "unknown": unknown}
            add(self.statistics, (name, "documents"), len(mine))
            for what, values in sums.items():
                add(self.statistics, (name, what), int(values[mine].sum()))
            for length in lengths[mine].tolist():
                add(self.statistics, (name, "lengths", length_bin(length)), 1)
            for row in mine.tolist():
                for text, hits in encoded.special_text[row].items():
                    add(self.statistics, (name, "special_text", text, "documents"), 1)
                    add(self.statistics, (name, "special_text", text, "hits"), hits)


def _partitions(plan: Plan, cells: npt.NDArray[np.int64], orders: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    result = np.zeros(len(cells), np.int64)
    for number in np.unique(cells).tolist():
        mine = cells == number
        result[mine] = plan.cells[number].first + partition_of(orders[mine], plan.cells[number].partitions)
    return result


def read_cells(plan: Plan) -> Iterator[tuple[Values, int, int]]:
    """Yield (values, documents, bytes) of every input shard."""
    for index in range(len(plan.shards)):
        for values, documents, size in json.loads(plan.file("cells", index, "cells.json").read_bytes())["cells"]:
            yield tuple(values), documents, size
