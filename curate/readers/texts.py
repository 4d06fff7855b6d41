"""Files of text: each one document or cut at a separator, plain or compressed; source code and pages of HTML.

Bytes become text as `transforms.decoding` decides, for each document by itself. HTML stays bytes for `ExtractText`.
Of a file that is cut short, what is readable is a document, and the rest a gap. Memory: one document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, BinaryIO, Final
from urllib.parse import quote

from curate.readers.code_languages import language_of
from curate.readers.compression import Stored
from curate.readers.events import Event, Read, Refused, Structural, stored_ends
from curate.readers.forms import CodeForm, HtmlForm, TextForm
from curate.readers.lines import cut_at
from curate.readers.reader import Reader
from transforms.decoding import decode

BINARY: Final = 1 << 13
"""Bytes at the beginning of a file in which a NUL tells that it is no source code, as git does."""

VERSION_CONTROL: Final = frozenset({".git", ".hg", ".svn"})

Values = dict[str, Any]
_Made = Callable[[bytes], "Values | tuple[str, str | None]"]
"""Makes the values of a document, or says why there is none: reason, detail."""


def read_text_events(file: BinaryIO, name: str, reader: Reader) -> Iterator[Event]:
    """Yield the events of a text file."""
    form = reader.form if isinstance(reader.form, TextForm) else TextForm()
    if form.separator is None:
        yield from whole_file(file, name, reader, text_values)
        return
    stored, offset, separator = Stored(file, name), 0, form.separator.encode()
    for content, length in cut_at(stored.blocks(), separator, reader.max_record_bytes):
        where = (stored.place, offset, length)
        offset += length
        if content is None:
            yield Refused(*where, "record too large", f"{length} bytes", None)
        elif content := content.removesuffix(separator).strip(b" \t\r\n"):
            yield Read(*where, 0, None, text_values(content))
        else:
            yield Structural(*where, "blank document")
    yield from stored_ends(stored, offset)


def read_code_events(file: BinaryIO, name: str, reader: Reader) -> Iterator[Event]:
    """Yield the events of a source file: its text, its path, and by it language and repository."""
    form = reader.form if isinstance(reader.form, CodeForm) else CodeForm()
    *folders, _ = parts = name.split("/")
    repository = "/".join(folders[: form.repository_parts]) or None

    def code(content: bytes) -> Values | tuple[str, str | None]:
        if not VERSION_CONTROL.isdisjoint(folders):
            return "version control", None
        if b"\0" in content[:BINARY] and not content.startswith((b"\xff\xfe", b"\xfe\xff")):
            return "binary file", None
        language = language_of(parts[-1], content)
        return {**text_values(content), "path": name, "language": language, "repository": repository}

    yield from whole_file(file, name, reader, code)


def read_html_events(file: BinaryIO, name: str, reader: Reader) -> Iterator[Event]:
    """Yield the page in a file."""
    base = reader.form.url if isinstance(reader.form, HtmlForm) else None
    url = None if base is None else f"{base.rstrip('/')}/{quote(name)}"
    yield from whole_file(file, name, reader, lambda content: page_values(content, "text/html", url))


def page_values(payload: bytes, content_type: str, url: str | None) -> Values:
    """Return the values of a record whose bytes are not yet text."""
    return {"payload": payload, "content_type": content_type, "url": url}


def text_values(content: bytes) -> Values:
    """Return the text of bytes, and how it was read."""
    decoded = decode(content, None)
    confidence = Decimal(decoded.confidence).scaleb(-4)
    return {"text": decoded.text, "encoding": decoded.encoding, "decode_confidence": confidence}


def whole_file(file: BinaryIO, name: str, reader: Reader, made: _Made) -> Iterator[Event]:
    """Yield the one record of a file, or its refusal."""
    stored = Stored(file, name)
    parts: list[bytes] | None = []
    size = 0
    for block in stored.blocks():
        size += len(block)
        if size > reader.max_record_bytes:
            parts = None
        elif parts is not None:
            parts.append(block)
    where = (stored.place, 0, size)
    if parts is None:
        yield Refused(*where, "record too large", f"{size} bytes", None)
    elif size or stored.damage is None:
        values = made(b"".join(parts))
        yield Refused(*where, *values, None) if isinstance(values, tuple) else Read(*where, 0, None, values)
    yield from stored_ends(stored, size)
