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
from curate.readers.lines import cut_at
from curate.readers.reader import Reader
from curate.readers.rows import row_event

_WHOLE: Final = re.compile(r"-?[0-9]{1,19}")
_TRUTH: Final = {"true": True, "false": False, "1": True, "0": False}
_TABS: Final = (".tsv", ".tab")
_MARK: Final = b"\xef\xbb\xbf"
_LOOKS: Final = 16  # a record is looked at so often at most, but for the first megabyte
_LOOKED: Final = 1 << 20

Line = tuple[bytes | None, int]


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
        inside = rb"[^" + q + e + rb"]" if quote else rb"[^\s\S]"
        pairs = (rb"|" + e + rb"[\s\S]" if escape else b"") + (rb"|" + q + q if quote else b"")
        return cls(
            delimiter,
            quote,
            escape,
            re.compile(
                rb"(?:[^" + d + e + rb"\r\n]" + (rb"|" + e + rb"[\s\S]" if escape else b"") + rb"|\r(?!\n|$))*+"
            ),
            re.compile(rb"(?:" + inside + pairs + rb")*+"),
            re.compile(rb"(" + d + rb")|(?:\r?\n)?\Z"),
        )

    def fields(self, record: bytes) -> list[bytes] | None:
        """Return the fields of `record`, None where a quote is open at its end.

        Raises:
            ValueError: it is no row of this dialect.
        """
        if not (self.quote and self.quote in record) and not (self.escape and self.escape in record):
            return _without_break(record).split(self.delimiter)
        found: list[bytes] = []
        at = 0
        while True:
            if self.quote and record.startswith(self.quote, at):
                inner = self._match(self.quoted, record, at + 1)
                if inner == len(record):
                    return None
                content, at = record[at + 1 : inner], inner + 1
                content = self._unquoted(content)
            else:
                stop = self._match(self.plain, record, at)
                content, at = self._unescaped(record[at:stop]), stop
            found.append(content)
            end = self.ends.match(record, at)
            if end is None:
                raise ValueError(f"field {len(found)} does not end where it should")
            if end[1] is None:
                return found
            at = end.end()

    def quotes(self, line: bytes) -> int:
        """Return how many quotes of `line` may close a field."""
        if not self.escape or self.escape not in line:
            return line.count(self.quote)
        return len(re.sub(re.escape(self.escape) + rb"[\s\S]", b"", line).split(self.quote)) - 1

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


class _Lines:
    """Lines of a file, of which some may be put back."""

    def __init__(self, lines: Iterator[Line]) -> None:
        self._lines = lines
        self._back: list[Line] = []

    def next(self) -> Line | None:
        """Return the next line, None at the end."""
        return self._back.pop() if self._back else next(self._lines, None)

    def put_back(self, lines: list[Line]) -> None:
        """Give `lines` out once more."""
        self._back.extend(reversed(lines))


def read_csv_events(file: BinaryIO, name: str, reader: Reader) -> Iterator[Event]:
    """Yield the events of a file of separated values; `name` tells the compression, and tabs from commas."""
    form = reader.form if isinstance(reader.form, CsvForm) else CsvForm()
    stored = Stored(file, name)
    rows = _Rows(_Dialect.of(form, name), form, reader, stored.place)
    yield from rows.events(_Lines(cut_at(stored.blocks(), b"\n", reader.max_record_bytes)))
    yield from stored_ends(stored, rows.offset)


class _Rows:
    def __init__(self, dialect: _Dialect, form: CsvForm, reader: Reader, place: str) -> None:
        self.dialect, self.form, self.reader, self.place = dialect, form, reader, place
        self.names = form.names
        self.offset = 0

    def events(self, lines: _Lines) -> Iterator[Event]:
        while (line := lines.next()) is not None:
            content, length = line
            if content is None:
                yield self._refused(length, "record too large", f"{length} bytes")
            elif not content.strip(b"\r\n"):
                yield Structural(*self._where(length), "blank line")
            else:
                yield self._row(content, length, lines)

    def _where(self, length: int) -> tuple[str, int, int]:
        where = (self.place, self.offset, length)
        self.offset += length
        return where

    def _refused(self, length: int, reason: str, detail: str | None) -> Refused:
        return Refused(*self._where(length), reason, detail, None)

    def _row(self, first: bytes, length: int, lines: _Lines) -> Event:
        """Return the event of the record that begins with the line `first`, or of that line where it is no row."""
        further: list[Line] = []
        try:
            fields = self._fields(first.removeprefix(_MARK) if self.offset == 0 else first, lines, further)
        except ValueError as error:
            lines.put_back(further)
            return self._refused(length, "bad row", str(error))
        event = self._event(fields, length + sum(size for _, size in further))
        if event is None:
            lines.put_back(further)
            assert self.names is not None
            return self._refused(length, "bad row", f"{len(fields)} fields, the header has {len(self.names)}")
        return event

    def _fields(self, first: bytes, lines: _Lines, further: list[Line]) -> list[bytes]:
        """Return the fields of the record that begins with `first`; lines taken for it are appended to `further`.

        Quotes that were opened are closed by an odd number of them, so only then the record is looked at again.

        Raises:
            ValueError: it is no row, or a quote does not end.
        """
        parts, size, looked, quotes = [first], len(first), 0, 0
        fields = self.dialect.fields(first)
        while fields is None:
            line = lines.next()
            if line is not None:
                further.append(line)
            if line is None or line[0] is None or size + line[1] > self.reader.max_record_bytes:
                raise ValueError("a quote is not closed")
            parts.append(line[0])
            size += line[1]
            quotes += self.dialect.quotes(line[0])
            if quotes % 2:
                looked += size
                if looked > _LOOKS * size + _LOOKED:
                    raise ValueError("quotes inside of fields are not doubled")
                fields, quotes = self.dialect.fields(b"".join(parts)), 0
        return fields

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
