"""CSV and TSV: quoted fields that span lines, in a dialect of one's own; a bad row costs that row.

A record ends at a line break outside quotes (RFC 4180). A row of another number of fields than the header has, text
behind a closing quote, or a quote that does not end within the file or `max_record_bytes` makes a bad row: its first
line is refused, and reading goes on behind that line. Values are strings; where a column is declared "int64", "bool" or
"timestamp" a value that reads so becomes one, and an empty value is null.

Cost: linear; about 1 µs per field with quotes. Memory: one record, at most `max_record_bytes`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

from curate.readers.compression import Stored
from curate.readers.events import Event, Refused, Structural, stored_ends
from curate.readers.forms import CsvForm
from curate.readers.reader import Reader
from curate.readers.rows import row_event

_WHOLE: Final = re.compile(r"-?[0-9]{1,19}")
_TRUTH: Final = {"true": True, "false": False, "1": True, "0": False}
_TABS: Final = (".tsv", ".tab")
_MARK: Final = b"\xef\xbb\xbf"
OPEN: Final = "a quote is not closed"


class _ShortError(Exception):
    """The buffer ends within a record."""


class _Buffer:
    """A stretch of the stream; the record in hand begins `at`, and nothing follows where it is `final`."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self.content, self.at, self.final = b"", 0, False

    @property
    def left(self) -> int:
        """Bytes from the record in hand on."""
        return len(self.content) - self.at

    def more(self) -> None:
        """Forget what lies before the record in hand, and read at least as much again as is left."""
        parts, left, read = [self.content[self.at :]], self.left, 0
        while read <= left and not self.final:
            block = next(self._blocks, None)
            self.final = block is None
            parts.append(block or b"")
            read += len(block or b"")
        self.content, self.at = b"".join(parts), 0

    def line_end(self) -> int:
        """Return where the line ends that is in hand, behind its line feed; -1 where the buffer lacks its end."""
        found = self.content.find(b"\n", self.at)
        return found + 1 if found >= 0 else len(self.content) if self.final else -1


@dataclass(frozen=True, slots=True)
class _Dialect:
    delimiter: bytes
    quote: bytes
    escape: bytes
    plain: re.Pattern[bytes]  # the rest of a field without quotes
    quoted: re.Pattern[bytes]  # what stands between quotes, up to the closing one
    ends: re.Pattern[bytes]  # what may stand behind a field

    @classmethod
    def of(cls, form: CsvForm, name: str) -> _Dialect:
        """Return the dialect of a file of this name."""
        stem = name.lower()
        while stem.endswith((".gz", ".zst", ".bz2", ".xz", ".lz4")):
            stem = stem.rpartition(".")[0]
        delimiter = (form.delimiter or ("\t" if stem.endswith(_TABS) else ",")).encode()
        quote, escape = (form.quote or "").encode(), (form.escape or "").encode()
        d, q, e = re.escape(delimiter), re.escape(quote), re.escape(escape)
        escaped = rb"|" + e + rb"[\s\S]" if escape else b""
        return cls(
            delimiter,
            quote,
            escape,
            re.compile(rb"(?:[^" + d + e + rb"\r\n]++" + escaped + rb"|\r(?!\n))*+"),
            re.compile(rb"(?:[^" + q + e + rb"]++" + escaped + rb"|" + q + q + rb")*+" if quote else rb"(?!)"),
            re.compile(rb"(" + d + rb")|\r?\n|\r?\Z"),
        )

    def fields(self, buffer: _Buffer, line_end: int) -> tuple[list[bytes], int]:
        """Return the fields of the record in hand, whose first line ends at `line_end`, and where it ends.

        Raises:
            ValueError: it is no row of this dialect.
            _ShortError: it does not end in the buffer.
        """
        line = buffer.content[buffer.at : line_end]
        if not (self.quote and self.quote in line) and not (self.escape and self.escape in line):
            return _without_break(line).split(self.delimiter), line_end
        found: list[bytes] = []
        at = buffer.at
        while True:
            field, at = self._field(buffer, at)
            found.append(field)
            if len(buffer.content) - at < 2 and not buffer.final:
                raise _ShortError
            end = self.ends.match(buffer.content, at)
            if end is None:
                raise ValueError(f"field {len(found)} does not end where it should")
            at = end.end()
            if end[1] is None:
                return found, at

    def _field(self, buffer: _Buffer, at: int) -> tuple[bytes, int]:
        content = buffer.content
        if not self.quote or not content.startswith(self.quote, at):
            stop = self._match(self.plain, content, at)
            return self._unescaped(content[at:stop]), stop
        inner = self._match(self.quoted, content, at + 1)
        if inner + 1 >= len(content) and not buffer.final:
            raise _ShortError
        if inner >= len(content):
            raise ValueError(OPEN)
        return self._unquoted(content[at + 1 : inner]), inner + 1

    def _match(self, pattern: re.Pattern[bytes], record: bytes, at: int) -> int:
        found = pattern.match(record, at)
        return at if found is None else found.end()

    def _unquoted(self, content: bytes) -> bytes:
        """Return what stood between quotes, with doubled quotes and escapes undone."""
        if not self.escape or self.escape not in content:
            return content.replace(self.quote * 2, self.quote)
        pattern = re.escape(self.escape) + rb"([\s\S])|" + re.escape(self.quote) + rb"(" + re.escape(self.quote) + rb")"
        return re.sub(pattern, lambda found: found[1] or found[2], content)

    def _unescaped(self, content: bytes) -> bytes:
        if not self.escape or self.escape not in content:
            return content
        return re.sub(re.escape(self.escape) + rb"([\s\S])", rb"\1", content)


def _without_break(record: bytes) -> bytes:
    return record[:-2] if record.endswith(b"\r\n") else record.removesuffix(b"\n")


def read_csv_events(file: BinaryIO, name: str, reader: Reader) -> Iterator[Event]:
    """Yield the events of a file of separated values; `name` tells the compression, and tabs from commas."""
    form = reader.form if isinstance(reader.form, CsvForm) else CsvForm()
    stored = Stored(file, name)
    rows = _Rows(_Dialect.of(form, name), form, reader, stored.place)
    yield from rows.events(_Buffer(stored.blocks()))
    yield from stored_ends(stored, rows.offset)


class _Rows:
    def __init__(self, dialect: _Dialect, form: CsvForm, reader: Reader, place: str) -> None:
        self.dialect, self.form, self.reader, self.place = dialect, form, reader, place
        self.names = form.names
        self.offset = 0

    def events(self, buffer: _Buffer) -> Iterator[Event]:
        limit = self.reader.max_record_bytes
        while True:
            end = buffer.line_end()
            if end < 0 and buffer.left <= limit:
                buffer.more()
            elif end == buffer.at:
                return  # the end
            elif end < 0 or end - buffer.at > limit:
                length = self._pass_line(buffer)
                yield self._refused(length, "record too large", f"{length} bytes")
            elif (event := self._row(buffer, end)) is not None:
                yield event

    def _pass_line(self, buffer: _Buffer) -> int:
        """Go over the line in hand, however long it is, and return its length."""
        length = 0
        while (end := buffer.line_end()) < 0:
            length += buffer.left
            buffer.at = len(buffer.content)
            buffer.more()
        length += end - buffer.at
        buffer.at = end
        return length

    def _row(self, buffer: _Buffer, line_end: int) -> Event | None:
        """Return the event of the record in hand, or of its first line where it is no row; None: more must be read."""
        begin, limit = buffer.at, self.reader.max_record_bytes
        length = line_end - begin
        if not buffer.content[begin:line_end].strip(b"\r\n"):
            buffer.at = line_end
            return Structural(*self._where(length), "blank line")
        if self.offset == 0 and buffer.content.startswith(_MARK, begin):
            buffer.at += len(_MARK)
        try:
            fields, end = self.dialect.fields(buffer, line_end)
            if end - begin > limit:
                raise ValueError(OPEN)
        except (ValueError, _ShortError) as error:
            buffer.at = begin
            if isinstance(error, _ShortError) and buffer.left <= limit:
                buffer.more()
                return None
            buffer.at += length
            return self._refused(length, "bad row", OPEN if isinstance(error, _ShortError) else str(error))
        buffer.at = end
        event = self._event(fields, end - begin)
        if event is None:
            buffer.at = line_end
            assert self.names is not None
            return self._refused(length, "bad row", f"{len(fields)} fields, the header has {len(self.names)}")
        return event

    def _where(self, length: int) -> tuple[str, int, int]:
        where = (self.place, self.offset, length)
        self.offset += length
        return where

    def _refused(self, length: int, reason: str, detail: str | None) -> Refused:
        return Refused(*self._where(length), reason, detail, None)

    def _event(self, fields: list[bytes], length: int) -> Event | None:
        """Return the event of a row, None where it has not as many fields as the header."""
        try:
            values = [field.decode(self.form.encoding) for field in fields]
        except UnicodeDecodeError:
            return self._refused(length, f"not {self.form.encoding.upper()}", None)
        if self.names is None:
            return self._header(values, length)
        if len(values) != len(self.names):
            return None
        row = dict(zip(self.names, values, strict=True))
        return row_event(self._typed(row), self.reader, *self._where(length))

    def _header(self, values: list[str], length: int) -> Event:
        names = [value.strip().removeprefix("\ufeff") for value in values]
        if len(set(names)) < len(names):
            names = [name if name and names.count(name) == 1 else f"{name}#{i}" for i, name in enumerate(names, 1)]
        self.names = tuple(names)
        return Structural(*self._where(length), "header")

    def _typed(self, row: Mapping[str, str]) -> dict[str, Any]:
        """Return `row` with the values of declared columns as their types where they read so."""
        typed: dict[str, Any] = dict(row)
        for _, column in self.reader.columns:
            if column.type == "string" or column.name not in row:
                continue
            value = row[column.name].strip()
            if not value:
                typed[column.name] = None
            elif column.type == "bool":
                typed[column.name] = _TRUTH.get(value.lower(), row[column.name])
            elif _WHOLE.fullmatch(value):
                typed[column.name] = int(value)
        return typed
