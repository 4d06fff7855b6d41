"""The one Parquet writer: the same rows give the same bytes, however they were batched.

Rows are re-cut to row groups of 64 MiB of logical bytes, each combined to one chunk; zstd level 3, no dictionary,
declared column order, no foreign metadata. Memory: one row group and one batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from curate.digests import ContentDigest, logical_type

ROW_GROUP_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class Written:
    """What a Parquet file holds: `rows`, logical `bytes`, and the `content` digest."""

    rows: int
    bytes: int
    content: str


def row_bytes(batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """Return the logical bytes of each row: widths of fixed columns plus lengths of variable ones."""
    total = np.zeros(batch.num_rows, np.int64)
    for array in batch.columns:
        total += _value_bytes(array)
    return total


def _value_bytes(array: pa.Array) -> npt.NDArray[np.int64]:
    kind = array.type
    if pa.types.is_struct(kind):
        children = [_value_bytes(child) for child in array.flatten()]
        return np.asarray(np.sum(children, axis=0), np.int64)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy().astype(np.int64)
        ends = np.cumsum(lengths)
        sums = np.concatenate([[0], np.cumsum(_value_bytes(array.flatten()))])
        return np.asarray(sums[ends] - sums[ends - lengths] + 8, np.int64)
    if pa.types.is_fixed_size_binary(kind):
        return np.full(len(array), kind.byte_width, np.int64)
    if logical_type(kind) in ("string", "binary"):
        return np.asarray(pc.fill_null(pc.binary_length(array), 0).to_numpy(), np.int64) + np.int64(8)
    return np.full(len(array), max(1, int(kind.bit_width) // 8), np.int64)


def cut_rows(batches: Iterable[pa.RecordBatch], limit: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `batches` in batches that close as soon as they hold `limit` logical bytes."""
    pending: list[pa.RecordBatch] = []
    held = 0
    for batch in batches:
        ends = np.cumsum(row_bytes(batch))
        start = 0
        while start < batch.num_rows:
            before = int(ends[start - 1]) if start else 0
            stop = int(np.searchsorted(ends, before + limit - held)) + 1
            pending.append(batch.slice(start, stop - start))
            if stop > batch.num_rows:
                held += int(ends[-1]) - before
                break
            yield pa.concat_batches(pending)
            pending, held, start = [], 0, stop
    if pending:
        yield pa.concat_batches(pending)


def write_parquet(path: Path, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Written:
    """Write `batches` of `schema` to `path` and return what was written.

    The file is complete only when this returns: on an exception the caller throws the spool file away.
    """
    schema = schema.remove_metadata()
    digest = ContentDigest(schema)
    rows = size = 0
    writer = pq.ParquetWriter(path, schema, compression="zstd", compression_level=3, use_dictionary=False)
    try:
        for group in cut_rows(batches, ROW_GROUP_BYTES):
            digest.update(group)
            rows += group.num_rows
            size += int(row_bytes(group).sum())
            writer.write_table(pa.Table.from_batches([group], schema), row_group_size=max(1, group.num_rows))
    finally:
        writer.close()
    return Written(rows, size, digest.hexdigest())
