"""Parquet: rows as documents. A damaged row group is a gap of its rows, a row that has no Python value is refused.

Place is the row number. Columns that nobody declared go to `extra` row by row; dates and times among them as Arrow
writes them. Memory: one batch of `BATCH_ROWS` rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from curate.configuration import ConfigurationError
from curate.readers.events import End, Event, Gap, Refused
from curate.readers.reader import Reader
from curate.readers.rows import row_event
from transforms.schema import CRAWLED_AT

BATCH_ROWS: Final = 1024


def read_parquet_events(path: Path, reader: Reader) -> Iterator[Event]:
    """Yield the events of a Parquet file."""
    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowException, OSError):
        size = path.stat().st_size
        yield Gap("stored", 0, size, "not Parquet", None)
        yield End("stored", size)
        return
    with file:
        first = 0
        for group in range(file.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            yield from _group_events(file, group, first, first + rows, reader)
            first += rows
        yield End("row", first)


def _group_events(file: pq.ParquetFile, group: int, first: int, last: int, reader: Reader) -> Iterator[Event]:
    names = [name for name in file.schema_arrow.names if name not in reader.ignore]
    row = first
    try:
        for batch in file.iter_batches(batch_size=BATCH_ROWS, row_groups=[group], columns=names):
            for event in _row_events(batch.slice(0, last - row), row, reader):
                yield event
                row += 1
    except (pa.ArrowException, OSError):
        pass  # what is missing of the group is the gap below
    if row < last:
        yield Gap("row", row, last - row, "damaged row group", None)


def _row_events(batch: pa.RecordBatch, first: int, reader: Reader) -> Iterator[Event]:
    plain = _plain(batch, {column.name for _, column in reader.columns if column.type == "timestamp"})
    try:
        values = plain.to_pylist()
    except (ValueError, OverflowError, RecursionError, pa.ArrowException):
        for row in range(plain.num_rows):
            yield _row_event(plain.slice(row, 1), first + row, reader)
        return
    for row, value in enumerate(values, first):
        yield row_event(value, reader, "row", row, 1)


def _row_event(row: pa.RecordBatch, number: int, reader: Reader) -> Event:
    try:
        (value,) = row.to_pylist()
    except UnicodeDecodeError:
        return Refused("row", number, 1, "not UTF-8", None, None)
    except (ValueError, OverflowError, RecursionError, pa.ArrowException):
        return Refused("row", number, 1, "no value", None, None)
    return row_event(value, reader, "row", number, 1)


def _plain(batch: pa.RecordBatch, times: set[str]) -> pa.RecordBatch:
    """Return `batch` with dates and times as milliseconds where they are declared, else as strings.

    Python's own dates end with the year 9999, and have no nanoseconds.
    """
    arrays = [
        _plain_column(array, name in times) for name, array in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _plain_column(array: pa.Array, declared: bool) -> pa.Array:
    kind = array.type
    if not pa.types.is_temporal(kind):
        return array
    if declared and (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        return pc.cast(array, CRAWLED_AT, safe=False).cast(pa.int64())
    if pa.types.is_duration(kind):
        return array.cast(pa.int64())
    if pa.types.is_timestamp(kind) and kind.tz is not None:  # other zones are written by the machine's own rules
        array = array.cast(pa.timestamp(kind.unit, "UTC"))
    return array if pa.types.is_interval(kind) else array.cast(pa.string())


def check_columns(file: BinaryIO, place: str, reader: Reader) -> None:
    """Raise before any work where a declared column is not in the file, which lies at `place`.

    Raises:
        ConfigurationError: it is missing, or is there twice; the message lists what is there.
    """
    try:
        names = pq.read_schema(file).names
    except (pa.ArrowException, OSError):
        return  # the reading task records the damage
    missing = [column.name for _, column in reader.columns if names.count(column.name) != 1]
    if missing:
        raise ConfigurationError(f"{place} has no one column {', '.join(missing)}; its columns are {', '.join(names)}")
