"""Which reader reads a unit: the one place that knows all formats."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO, Final

from curate.inputs.files import FileUnit
from curate.readers.delimited import read_csv_events
from curate.readers.epub import read_epub_events
from curate.readers.events import Event
from curate.readers.files import read_file_events
from curate.readers.forms import PAGES, WarcForm
from curate.readers.jsonl import read_jsonl_events
from curate.readers.mediawiki import read_mediawiki_events
from curate.readers.parquet import read_parquet_events, read_parquet_records
from curate.readers.pdf import read_pdf_events
from curate.readers.reader import Reader
from curate.readers.tar import read_tar_events
from curate.readers.texts import read_code_events, read_html_events, read_text_events
from curate.readers.warc import read_warc_events
from curate.readers.wet import read_wat_events, read_wet_events

Reading = Callable[[BinaryIO, str, Reader], Iterator[Event]]
"""Reads an open file of this name."""


def read_events(reader: Reader, file: BinaryIO, unit: FileUnit) -> Iterator[Event]:
    """Return the events of one unit, rows of Parquet as columns where that is possible.

    `file` hashes what is read; Parquet, which seeks, opens the path itself.
    """
    if reader.format == "parquet":
        return read_parquet_events(unit.local(), reader, unit.part)
    return read_records(reader, file, unit)


def read_records(reader: Reader, file: BinaryIO, unit: FileUnit) -> Iterator[Event]:
    """Return the events of one unit, one for each record."""
    if reader.format == "parquet":
        return read_parquet_records(unit.local(), reader, unit.part)
    if reader.format == "warc":
        return read_warc_events(file, unit.path, reader.max_record_bytes, _warc_form(reader), unit.open, unit.part)
    if reader.format in ("wet", "wat"):
        read = read_wet_events if reader.format == "wet" else read_wat_events
        return read(file, unit.path, reader, unit.open, unit.part)
    if reader.format == "jsonl":
        return read_jsonl_events(file, unit.path, reader, unit.part)
    return read_stream(reader, file, unit.path)


def read_stream(reader: Reader, file: BinaryIO, name: str) -> Iterator[Event]:
    """Return the events of an open file of this name, which is read once, forwards."""
    return _READING[reader.format](file, name, reader)


def _warc_form(reader: Reader) -> WarcForm:
    return reader.form if isinstance(reader.form, WarcForm) else PAGES


def _warc(file: BinaryIO, name: str, reader: Reader) -> Iterator[Event]:
    return read_warc_events(file, name, reader.max_record_bytes, _warc_form(reader))


_READING: Final[dict[str, Reading]] = {
    "warc": _warc,
    "wet": read_wet_events,
    "wat": read_wat_events,
    "jsonl": read_jsonl_events,
    "csv": read_csv_events,
    "files": lambda file, name, reader: read_file_events(file, reader),
    "text": read_text_events,
    "code": read_code_events,
    "html": read_html_events,
    "mediawiki": read_mediawiki_events,
    "epub": read_epub_events,
    "pdf": read_pdf_events,
    "tar": lambda file, name, reader: read_tar_events(file, name, reader, read_stream),
}
