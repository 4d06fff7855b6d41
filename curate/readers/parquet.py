"""Parquet: rows as documents. A damaged row group is a gap of its rows, a row that has no Python value is refused.

Place is the row number. Columns that nobody declared go to `extra` row by row; dates and times among them as Arrow
writes them. Rows stay columns where every value fits (`parquet_columns`), else each is looked at. A row of more than
`max_record_bytes` in strings and binary values is refused.

Memory: pages are decoded batch by batch, `BATCH_BYTES` or one row at a time; a row that is too long costs its page, but
nothing where it is a row group of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from curate.configuration import ConfigurationError
from curate.parquet_batches import group_batches, open_parquet, value_bytes
from curate.readers.events import End, Event, Gap, Refused, Rows
from curate.readers.parquet_columns import columns_of
from curate.readers.parts import Border, Part
from curate.readers.reader import Reader
from curate.readers.rows import row_event
from transforms.schema import CRAWLED_AT

TOO_LARGE: Final = "record too large"
STORED_TIMES: Final = 4  # a value may stand in the dictionary, and in a page's header as its least and greatest
HEADERS: Final = 1 << 10

_Way = Callable[[pa.RecordBatch, int, Reader], Iterable[Event]]


def read_parquet_events(path: Path, reader: Reader, part: Part | None = None) -> Iterator[Event]:
    """Yield the events of a Parquet file or some of its row groups, rows as columns where that is possible."""
    return _events(path, reader, _as_columns, part)


def read_parquet_records(path: Path, reader: Reader, part: Part | None = None) -> Iterator[Event]:
    """Yield the events of a Parquet file or some of its row groups, one for each row."""
    return _events(path, reader, _row_events, part)


def _events(path: Path, reader: Reader, events_of: _Way, part: Part | None) -> Iterator[Event]:
    try:
        file = open_parquet(path)
    except (pa.ArrowException, OSError):
        size = path.stat().st_size
        yield Gap("stored", 0, size, "not Parquet", None)
        yield End("stored", size)
        return
    with file:
        begin, end = (Border(0), None) if part is None else (part.begin, part.end)
        first = begin.base
        for group in range(begin.group, file.num_row_groups if end is None else end.group):
            rows = file.metadata.row_group(group).num_rows
            yield from _group_events(file, group, first, first + rows, reader, events_of)
            first += rows
        yield End("row", first - begin.base)


def _group_events(
    file: pq.ParquetFile, group: int, first: int, last: int, reader: Reader, events_of: _Way
) -> Iterator[Event]:
    names = [name for name in file.schema_arrow.names if name not in reader.ignore]
    limit = reader.max_record_bytes
    if last - first == 1 and _least_bytes(file, group, names) > limit:  # then its page need not be decoded
        yield _too_large(first, limit)
        return
    row = first
    try:
        for batch in group_batches(file, group, names):
            for part in _parts(batch.slice(0, last - row), limit):
                if part is None:
                    yield _too_large(row, limit)
                    row += 1
                    continue
                for event in events_of(part, row, reader):
                    yield event
                    row += event.length if isinstance(event, Rows) else 1
    except (pa.ArrowException, OSError):
        pass  # what is missing of the group is the gap below
    if row < last:
        yield Gap("row", row, last - row, "damaged row group", None)


def _least_bytes(file: pq.ParquetFile, group: int, names: Sequence[str]) -> int:
    """Return how many bytes the values of the only row of a group have at least, by what is stored of them."""
    metadata = file.metadata.row_group(group)
    columns = [metadata.column(index) for index in range(metadata.num_columns)]
    stored = sum(int(c.total_uncompressed_size) for c in columns if c.path_in_schema in names)
    return stored // STORED_TIMES - HEADERS * len(columns)


def _parts(batch: pa.RecordBatch, limit: int) -> Iterator[pa.RecordBatch | None]:
    """Yield the rows of `batch` in order, None in place of each that is too large."""
    start = 0
    for row in np.flatnonzero(value_bytes(batch) > limit).tolist():
        if row > start:
            yield batch.slice(start, row - start)
        yield None
        start = row + 1
    if start < batch.num_rows:
        yield batch.slice(start)


def _too_large(row: int, limit: int) -> Refused:
    return Refused("row", row, 1, TOO_LARGE, f"more than {limit} bytes", None)


def _as_columns(batch: pa.RecordBatch, first: int, reader: Reader) -> Iterable[Event]:
    rows = columns_of(_plain(batch, _times(reader)), first, reader)
    return _row_events(batch, first, reader) if rows is None else [rows]


def _times(reader: Reader) -> set[str]:
    return {column.name for _, column in reader.columns if column.type == "timestamp"}


def _row_events(batch: pa.RecordBatch, first: int, reader: Reader) -> Iterator[Event]:
    plain = _plain(batch, _times(reader))
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
