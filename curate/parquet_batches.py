"""Reading Parquet in batches bounded by bytes, whatever the rows and row groups of a file are.

pyarrow decodes pages as a batch needs them; the compressed bytes come through a buffer of `BUFFER`. Memory: a batch,
the pages that it ends in, and the buffers of the columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

BATCH_ROWS: Final = 8192
BATCH_BYTES: Final = 16 << 20
BUFFER: Final = 1 << 20


def open_parquet(path: Path) -> pq.ParquetFile:
    """Open a Parquet file to be read batch by batch.

    Raises:
        ArrowInvalid, OSError: it is none.
    """
    return pq.ParquetFile(path, buffer_size=BUFFER, pre_buffer=False)


def file_batches(file: pq.ParquetFile, most_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
    """Yield all rows in batches of at most `most_rows`, and of `BATCH_BYTES` but for long rows."""
    for group in range(file.num_row_groups):
        yield from group_batches(file, group, None, most_rows)


def group_batches(
    file: pq.ParquetFile, group: int, columns: Sequence[str] | None, most_rows: int = BATCH_ROWS
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one row group in batches; rows much longer than the others of their group make more of them."""
    metadata = file.metadata.row_group(group)
    average = max(1, metadata.total_byte_size // max(1, metadata.num_rows))
    rows = max(1, min(most_rows, BATCH_BYTES // average))
    for batch in file.iter_batches(batch_size=rows, row_groups=[group], columns=columns, use_threads=False):
        yield from _cut(batch)


def _cut(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if batch.nbytes <= 2 * BATCH_BYTES:
        yield batch
        return
    ends, start = np.cumsum(value_bytes(batch)), 0
    while start < batch.num_rows:
        done = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + BATCH_BYTES, side="right")))
        yield batch.slice(start, stop - start)
        start = stop


def value_bytes(batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """Return the bytes of strings and binary values in each row, those inside lists and structs too."""
    total = np.zeros(batch.num_rows, np.int64)
    for array in batch.columns:
        total += _value_bytes(array)
    return total


def _value_bytes(array: pa.Array) -> npt.NDArray[np.int64]:
    kind: Any = array.type
    if pa.types.is_binary(kind) or pa.types.is_string(kind) or _is_large(kind):
        return np.asarray(pc.fill_null(pc.binary_length(array), 0).to_numpy(), np.int64)
    if pa.types.is_struct(kind):
        return np.asarray(sum((_value_bytes(child) for child in array.flatten()), np.zeros(len(array), np.int64)))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy().astype(np.int64)
        ends = np.cumsum(lengths)
        sums = np.concatenate([[0], np.cumsum(_value_bytes(array.flatten()))])
        return np.asarray(sums[ends] - sums[ends - lengths], np.int64)
    return np.zeros(len(array), np.int64)


def _is_large(kind: pa.DataType) -> bool:
    """Return whether `kind` is a string or binary type with 64-bit offsets."""
    return bool(pa.types.is_large_string(kind) or pa.types.is_large_binary(kind))
