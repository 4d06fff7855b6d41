"""What the tasks of one tokenization share: input shards, cells, partitions, and the files between tasks.

A partition is a range of the order of one cell. Its number follows from the cell's logical bytes, as estimated from
rows and the size of the text column: it decides how much a task holds, and no byte of a cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from curate.caches.layout import Layout
from curate.digests import digest_json, short
from curate.exchange import FORMAT, Codec, Limits
from curate.parts import checked_file
from curate.receipts import shard_folder
from curate.regroup import Exchange
from curate.store import Store, StoredFile
from transforms.schema import ID
from transforms.tokens import Tokenizer

Value = str | None
Values = tuple[Value, ...]

ALL: Final = "all"
"""Name of the one cell of a tokenization that is not told to make several."""

NULL: Final = "null"
"""What stands for a null in the name of a cell."""

MOST_CELLS: Final = 4096

DOCUMENTS: Final = pa.schema(
    [
        pa.field("order", ID, nullable=False),
        pa.field("id", ID, nullable=False),
        pa.field("text", ID, nullable=False),  # text digest
        pa.field("shard", pa.uint64(), nullable=False),
        pa.field("row", pa.uint64(), nullable=False),
        pa.field("tokens", pa.int64(), nullable=False),  # how many
    ]
)
"""Rows about documents, regrouped by partition."""


UNTRAINED_RANGES: Final = pa.field(
    "untrained", pa.large_list(pa.field("item", pa.int64(), nullable=False)), nullable=False
)
"""Of each document the tokens that are no targets: first, one after the last, first, … ascending."""


def tokens_schema(dtype: np.dtype[Any], masked: bool) -> pa.Schema:
    """Return the schema of rows of tokens, regrouped by partition; `masked` documents have ranges of tokens, too."""
    ids = pa.large_list(pa.field("item", pa.from_numpy_dtype(dtype), nullable=False))
    fields = [pa.field(name, kind, nullable=False) for name, kind in (("order", ID), ("id", ID), ("tokens", ids))]
    return pa.schema([*fields, UNTRAINED_RANGES] if masked else fields)


@dataclass(frozen=True, slots=True)
class SourceShard:
    """A shard of the dataset: its ordinal there, its key, and how many documents it keeps."""

    ordinal: int
    key: str
    rows: int


@dataclass(frozen=True, slots=True)
class Cell:
    """The documents with one combination of values: `documents` of them, in the partitions from `first` on."""

    name: str
    values: Values
    documents: int
    first: int
    partitions: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What every task of one tokenization knows.

    Attributes:
        key: of the stage.
        shards: those of the dataset that keep documents, in order.
        by: columns whose combinations of values are cells.
        tokenizer: its file lies in the store.
        dtype: of tokens.
        canary: the ids that its canary has.
        cells: ordered by their values; empty while they are being counted.
        masked: whether the documents have the column `not_trained`.
        counted: columns by whose values tokens are counted; they reach statistics and no byte of an array.
    """

    store: Store
    key: str
    shards: tuple[SourceShard, ...]
    by: tuple[str, ...]
    tokenizer: Tokenizer
    dtype: np.dtype[Any]
    canary: tuple[int, ...]
    layout: Layout
    limits: Limits
    cells: tuple[Cell, ...] = ()
    masked: bool = False
    counted: tuple[str, ...] = ()

    @property
    def partitions(self) -> int:
        """How many partitions all cells have."""
        return sum(cell.partitions for cell in self.cells)

    def task_key(self, task: str, unit: object) -> str:
        """Return the shard key of one task."""
        return digest_json({"operation": f"tokenize {task}", "stage": self.key, "unit": unit})

    def inner_key(self, task: str, unit: object) -> str:
        """Return the shard key of a task that writes or reads exchange files."""
        return digest_json({"operation": f"tokenize {task}", "stage": self.key, "unit": unit, "exchange": FORMAT})

    def exchange(self, what: str, schema: pa.Schema, codec: Codec = "zstd") -> Exchange:
        """Return the regrouping of rows `what` by cell and order, in the order of caches."""
        key, name, order = self.inner_key("exchange", what), f"tokenize: {what}", ("order", "id")
        return Exchange(self.store, key, name, f"{what}.exchange", schema, order, self.partitions, self.limits, codec)

    @property
    def documents(self) -> Exchange:
        """The regrouping of what is known about documents."""
        return self.exchange("documents", DOCUMENTS)

    @property
    def tokens(self) -> Exchange:
        """The regrouping of tokens: not compressed, which would take longer than encoding and spare a quarter."""
        return self.exchange("tokens", tokens_schema(self.dtype, self.masked), "none")

    def file(self, task: str, unit: object, name: str) -> StoredFile:
        """Return a file that a task published."""
        return self.store.file(f"{shard_folder(self.task_key(task, unit))}/{name}")

    def lengths_file(self, partition: int, name: str) -> Path:
        """Return the path of a file that a task of lengths published, checked.

        Raises:
            StoreError: it is missing or damaged.
        """
        return checked_file(self.store, self.inner_key("lengths", partition), name)

    def part(self, index: int) -> Path:
        """Return the documents of an input shard.

        Raises:
            StoreError: they are missing or damaged.
        """
        return checked_file(self.store, self.shards[index].key, "part.parquet")

    def batches(self, index: int, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        """Yield `columns` of an input shard, at most `rows` at a time."""
        with pq.ParquetFile(self.part(index)) as file:
            yield from file.iter_batches(batch_size=rows, columns=list(columns))

    def values(self, batch: pa.RecordBatch) -> list[Values]:
        """Return the combination of values of each row."""
        if not self.by:
            return [()] * batch.num_rows
        columns = [pc.cast(batch.column(name), pa.large_string()).to_pylist() for name in self.by]
        return list(zip(*columns, strict=True))

    def cell_key(self, cell: int) -> str:
        """Return the key of the cache of a cell."""
        return digest_json({"operation": "cache", "stage": self.key, "cell": self.cells[cell].name})

    def cell_folder(self, cell: int) -> str:
        """Return the folder of the cache of a cell within the store: other characters become "-"."""
        return cache_folder(self.cells[cell].name, self.cell_key(cell))


def cache_folder(name: str, key: str) -> str:
    """Return the folder of the cache `name` with `key` within a store."""
    allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._="
    return f"caches/{''.join(c if c in allowed else '-' for c in name)[:80]}-{short(key)}"


def cell_name(by: Sequence[str], values: Values) -> str:
    """Return the name of a cell: its value, or "column=value/column=value" for several columns."""
    texts = [NULL if value is None else value for value in values]
    if len(texts) == 1:
        return texts[0]
    return "/".join(f"{column}={text}" for column, text in zip(by, texts, strict=True)) if texts else ALL


def digest_rows(column: pa.ChunkedArray | pa.Array) -> npt.NDArray[np.uint8]:
    """Return a column of 16-byte values as rows of bytes."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    parts = [
        np.frombuffer(chunk.buffers()[1], np.uint8)[chunk.offset * 16 : (chunk.offset + len(chunk)) * 16]
        for chunk in chunks
        if len(chunk)
    ]
    return np.concatenate([np.zeros(0, np.uint8), *parts]).reshape(-1, 16)
