"""The one Parquet writer: the same rows give the same bytes, however they were batched.

Rows are re-cut to row groups of 64 MiB of logical bytes, and these to chunks of 1 MiB, on which bytes depend too; no
dictionary, declared column order, no foreign metadata; zstd level 1, but for texts as they were read, which are read
again and again and published nowhere: LZ4. Level 3 costs 1.6 times as much as level 1 of all that writing takes, for
files that are a tenth smaller; LZ4 three quarters of writing and of reading, for files 45 % larger. Memory: one row
group and one batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from curate.content_digests import ContentDigest, logical_type

ROW_GROUP_BYTES: Final = 64 << 20
CHUNK_BYTES: Final = 1 << 20

Codec = Literal["zstd", "lz4"]
LEVELS: Final[dict[Codec, int | None]] = {"zstd": 1, "lz4": None}


@dataclass(frozen=True, slots=True)
class Written:
    """What a Parquet file holds: `rows`, logical `bytes`, and the `content` digest."""

    rows: int
    bytes: int
    content: str


def row_bytes(batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """Return the logical bytes of each row: widths of fixed columns plus lengths of variable ones."""
    total = np.full(batch.num_rows, sum(map(_width, batch.schema.types)), np.int64)
    for array in batch.columns:
        if not _width(array.type):
            total += _value_bytes(array)
    return total


def string_lengths(array: pa.Array) -> npt.NDArray[np.int64]:
    """Return the bytes of each string or binary value, 0 for nulls."""
    lengths = pc.binary_length(array)
    return np.asarray((pc.fill_null(lengths, 0) if array.null_count else lengths).to_numpy(), np.int64)


def _value_bytes(array: pa.Array) -> npt.NDArray[np.int64]:
    kind = array.type
    if width := _width(kind):
        return np.full(len(array), width, np.int64)
    if pa.types.is_struct(kind):
        children = [_value_bytes(child) for child in array.flatten()]
        return np.asarray(np.sum(children, axis=0), np.int64)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy().astype(np.int64)
        if width := _width(kind.value_type):
            return np.asarray(lengths * width + 8, np.int64)
        ends = np.cumsum(lengths)
        sums = np.concatenate([[0], np.cumsum(_value_bytes(array.flatten()))])
        return np.asarray(sums[ends] - sums[ends - lengths] + 8, np.int64)
    return string_lengths(array) + np.int64(8)


@cache
def _width(kind: pa.DataType) -> int:
    """Return the bytes of each value of `kind`, 0 where they differ."""
    if pa.types.is_nested(kind):
        return 0
    if pa.types.is_fixed_size_binary(kind):
        return int(kind.byte_width)
    return 0 if logical_type(kind) in ("string", "binary") else max(1, int(kind.bit_width) // 8)


Sized = tuple[pa.RecordBatch, npt.NDArray[np.int64]]
"""Rows, and the logical bytes of each."""


class RowCutter:
    """Cuts rows that come in batches into groups that close as soon as they hold `limit` logical bytes."""

    def __init__(self, limit: int) -> None:
        """Start with no rows; `bytes` counts the logical bytes of all rows that came."""
        self.limit, self.bytes = limit, 0
        self._pending: list[Sized] = []
        self._held = 0

    def add(self, batch: pa.RecordBatch, sizes: npt.NDArray[np.int64]) -> Iterator[list[Sized]]:
        """Yield the groups that close with the rows of `batch`, each in pieces; to be read to its end."""
        ends = np.cumsum(sizes)
        start = 0
        while start < batch.num_rows:
            before = int(ends[start - 1]) if start else 0
            stop = int(np.searchsorted(ends, before + self.limit - self._held)) + 1
            self._pending.append((batch.slice(start, stop - start), sizes[start:stop]))
            if stop > batch.num_rows:
                self._held += int(ends[-1]) - before
                break
            yield from self.rest()
            start = stop
        self.bytes += int(ends[-1]) if len(ends) else 0

    def rest(self) -> Iterator[list[Sized]]:
        """Yield the group that is not full, if it has rows."""
        if self._pending:
            group, self._pending, self._held = self._pending, [], 0
            yield group


def _as_one(group: list[Sized]) -> pa.RecordBatch:
    return group[0][0] if len(group) == 1 else pa.concat_batches([batch for batch, _ in group])


def cut_rows(batches: Iterable[pa.RecordBatch], limit: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `batches` in batches that close as soon as they hold `limit` logical bytes."""
    return _cut(((batch, row_bytes(batch)) for batch in batches), limit)


def _cut(rows: Iterable[Sized], limit: int) -> Iterator[pa.RecordBatch]:
    cutter = RowCutter(limit)
    for batch, sizes in rows:
        yield from map(_as_one, cutter.add(batch, sizes))
    yield from map(_as_one, cutter.rest())


class TableWriter:
    """Writes one Parquet file from batches that come one by one.

    The file is complete only when `close` returns: on an exception the caller throws the spool file away.
    """

    def __init__(
        self, path: Path, schema: pa.Schema, group_bytes: int = ROW_GROUP_BYTES, codec: Codec = "zstd"
    ) -> None:
        """Create the file `path` for rows of `schema`, whose metadata is left out.

        `group_bytes` are the logical bytes of a row group, and `codec` how pages are packed: one for each kind of file.
        """
        self.schema = schema.remove_metadata()
        self._digest = ContentDigest(self.schema)
        self._cutter = RowCutter(group_bytes)
        self._rows = 0
        self._file = pq.ParquetWriter(
            path, self.schema, compression=codec, compression_level=LEVELS[codec], use_dictionary=False
        )

    def write(self, batch: pa.RecordBatch) -> None:
        """Add the rows of `batch`."""
        for group in self._cutter.add(batch, row_bytes(batch)):
            self._write(group)

    def _write(self, group: list[Sized]) -> None:
        table = pa.Table.from_batches(list(_cut(group, CHUNK_BYTES)), self.schema)
        for batch, _ in group:
            self._digest.update(batch)
        self._rows += table.num_rows
        self._file.write_table(table, row_group_size=max(1, table.num_rows))

    def close(self) -> Written:
        """Write what is left, close the file, and return what was written."""
        for group in self._cutter.rest():
            self._write(group)
        self.abandon()
        return Written(self._rows, self._cutter.bytes, self._digest.hexdigest())

    def abandon(self) -> None:
        """Close the file as it is; nothing where it is closed."""
        self._file.close()


def write_parquet(
    path: Path,
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    group_bytes: int = ROW_GROUP_BYTES,
    codec: Codec = "zstd",
) -> Written:
    """Write `batches` of `schema` to `path` and return what was written; see `TableWriter`."""
    writer = TableWriter(path, schema, group_bytes, codec)
    try:
        for batch in batches:
            writer.write(batch)
        return writer.close()
    finally:
        writer.abandon()
