"""Which reader reads a unit: the one place that knows all formats."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from curate.inputs.files import FileUnit
from curate.readers.events import Event
from curate.readers.files import read_file_events
from curate.readers.jsonl import read_jsonl_events
from curate.readers.parquet import read_parquet_events, read_parquet_records
from curate.readers.reader import Reader
from curate.readers.warc import read_warc_events


def read_events(reader: Reader, file: BinaryIO, unit: FileUnit) -> Iterator[Event]:
    """Return the events of one unit, rows of Parquet as columns where that is possible.

    `file` hashes what is read; Parquet, which seeks, opens the path itself.
    """
    if reader.format == "parquet":
        return read_parquet_events(unit.local(), reader)
    return read_records(reader, file, unit)


def read_records(reader: Reader, file: BinaryIO, unit: FileUnit) -> Iterator[Event]:
    """Return the events of one unit, one for each record."""
    if reader.format == "warc":
        return read_warc_events(file, unit.path, reader.max_record_bytes)
    if reader.format == "jsonl":
        return read_jsonl_events(file, unit.path, reader)
    if reader.format == "parquet":
        return read_parquet_records(unit.local(), reader)
    return read_file_events(file, reader)
