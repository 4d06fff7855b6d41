"""PDF files as records whose bytes are not yet text: apply `ExtractPdf`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from curate.readers.events import Event
from curate.readers.reader import Reader
from curate.readers.texts import page_values, whole_file

PDF: Final = "application/pdf"
HEADER: Final = 1024
"""Bytes in which the mark of a PDF stands, as readers of PDF take it."""


def read_pdf_events(file: BinaryIO, name: str, reader: Reader) -> Iterator[Event]:
    """Yield the one record of a file, or its refusal."""
    return whole_file(file, name, reader, _values)


def _values(content: bytes) -> dict[str, Any] | tuple[str, str | None]:
    if b"%PDF-" not in content[:HEADER]:
        return "not PDF", None
    return page_values(content, PDF, None)
