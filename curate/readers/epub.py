"""EPUB books: each document of the spine a record of XHTML, in reading order; apply `ExtractText`.

A book is a zip archive: `META-INF/container.xml` names the package, whose manifest and spine name the documents (EPUB
3.3, sections 4 and 5). Chapters are parts 0, 1, … of the one record that the file is; `Dataset.group("book",
"chapter")` joins them. A chapter that does not unpack is a gap of no length behind the record, and the others stay.

Bounds: a file and each chapter `max_record_bytes`, all chapters of a book `TIMES` times that. Memory: a file and a
chapter.
"""

from __future__ import annotations

import io
import posixpath
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final
from urllib.parse import unquote
from xml.etree import ElementTree

from curate.readers.compression import Stored
from curate.readers.events import Event, Gap, Read, Refused, stored_ends
from curate.readers.reader import Reader
from curate.readers.texts import page_values

XHTML: Final = frozenset({"application/xhtml+xml", "text/html"})
LONGEST_PACKAGE: Final = 16 << 20
TIMES: Final = 4

_CONTAINER: Final = "META-INF/container.xml"
_ERRORS: Final = (
    zipfile.BadZipFile,
    ElementTree.ParseError,
    zlib.error,
    OSError,
    EOFError,
    ValueError,
    LookupError,
    RuntimeError,
)
"""What a hostile archive makes the libraries raise."""


@dataclass(frozen=True, slots=True)
class _Book:
    title: str | None
    chapters: tuple[str, ...]


def read_epub_events(file: BinaryIO, name: str, reader: Reader) -> Iterator[Event]:
    """Yield the chapters of a book."""
    stored = Stored(file, "")
    held = io.BytesIO()
    for block in stored.blocks():
        if held.tell() <= reader.max_record_bytes:
            held.write(block)
    where = ("stored", 0, stored.taken)
    if stored.taken > reader.max_record_bytes:
        yield Refused(*where, "record too large", f"{stored.taken} bytes", None)
    else:
        yield from _chapters(held, where, reader.max_record_bytes)
    yield from stored_ends(stored, stored.taken)


def _chapters(held: BinaryIO, where: tuple[str, int, int], limit: int) -> Iterator[Event]:
    try:
        archive = zipfile.ZipFile(held)
        book = _package(archive)
    except _ERRORS as error:
        yield Refused(*where, "not EPUB", type(error).__name__, None)
        return
    lost: list[Event] = []
    part, left = 0, TIMES * limit
    for number, path in enumerate(book.chapters):
        content = _member(archive, path, min(limit, left))
        if content is None:
            lost.append(Gap("stored", where[2], 0, "damaged chapter", f"chapter {number}"))
            continue
        values = {**page_values(content, "application/xhtml+xml", None), "book": book.title, "path": path}
        yield Read(*where, part, None, {**values, "chapter": number})
        part, left = part + 1, left - len(content)
    if not part:
        yield Refused(*where, "no chapters", None, None)
    yield from lost


def _member(archive: zipfile.ZipFile, path: str, limit: int) -> bytes | None:
    """Return the content of a member, None where it is damaged, missing or longer than `limit`."""
    try:
        with archive.open(path) as member:
            content = member.read(limit + 1)
    except _ERRORS:
        return None
    return content if len(content) <= limit else None


def _package(archive: zipfile.ZipFile) -> _Book:
    """Return title and chapters of a book.

    Raises:
        ValueError, LookupError, …: it is no book.
    """
    container = _xml(archive, _CONTAINER)
    root = next(each for each in container.iter() if _local(each) == "rootfile").attrib["full-path"]
    package = _xml(archive, root)
    items = {each.get("id"): each for each in package.iter() if _local(each) == "item"}
    wanted = [items.get(each.get("idref")) for each in package.iter() if _local(each) == "itemref"]
    folder = posixpath.dirname(root)
    chapters = [
        posixpath.normpath(posixpath.join(folder, unquote(item.attrib["href"].partition("#")[0])))
        for item in wanted
        if item is not None and item.get("media-type", "") in XHTML and "href" in item.attrib
    ]
    titles = [each.text for each in package.iter() if _local(each) == "title" and each.text]
    return _Book(titles[0].strip() if titles else None, tuple(chapters))


def _xml(archive: zipfile.ZipFile, path: str) -> ElementTree.Element:
    content = _member(archive, path, LONGEST_PACKAGE)
    if content is None or b"<!ENTITY" in content:
        raise ValueError(path)
    return ElementTree.fromstring(content)


def _local(element: ElementTree.Element) -> str:
    return str(element.tag).rpartition("}")[2]
