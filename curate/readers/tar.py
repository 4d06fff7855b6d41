"""Tar archives, plain or compressed: members are streamed and read in their own format; nothing is written to disk.

Each byte of the archive (of the tar itself, where it is compressed) belongs to a header, a member, padding or a gap
(POSIX ustar and pax, GNU long names). Events of a member that is not compressed stand at their place in the archive.
What a compressed member holds has no place there: its documents are parts 1, 2, … of the member, and what is refused of
it is a gap of no length that says where.

Names are data: they are never used as paths; "..", leading "/" and control characters are taken out of the column
`member`. Links, devices and folders are counted. A damaged header costs its member: the next header is looked for.

Cost: one pass. Memory: that of the inner format; a member that is one document at most `max_record_bytes`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from typing import BinaryIO, Final, cast

from curate.readers.compression import Stored
from curate.readers.events import End, Event, Gap, Read, Refused, Rows, Structural, stored_ends
from curate.readers.forms import TarForm
from curate.readers.reader import Reader
from curate.readers.window import Window
from curate.storage.patterns import matcher

BLOCK: Final = 512
LONGEST_META: Final = 1 << 20
"""Longest pax header or long name, in bytes."""

LONGEST_NAME: Final = 1 << 12
WHOLE: Final = frozenset({"text", "code", "html", "epub", "pdf"})
"""Formats whose files are one document: a member that is cut short is none."""

_FILES: Final = b"0\0007"
_KINDS: Final = {b"1": "tar link", b"2": "tar link", b"5": "tar folder"}
_META: Final = {b"x": "pax", b"g": "global", b"L": "name", b"K": "link"}
_HUGE: Final = 1 << 60

Stream = Callable[[Reader, BinaryIO, str], Iterator[Event]]
"""Reads a member of this name."""


@dataclass(frozen=True, slots=True)
class _Header:
    name: str
    size: int
    kind: bytes


@dataclass(slots=True)
class _Told:
    """What headers before that of a member say of it."""

    name: str | None = None
    size: int | None = None
    sparse: bool = False


class _Content:
    """The bytes of a member as a file that can be read forwards."""

    def __init__(self, window: Window, begin: int, end: int) -> None:
        self._window, self._at, self._end = window, begin, end

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes, none at the end."""
        end = min(self._at + size, self._end)
        content = self._window.copy(self._at, min(self._window.fill(end), end))
        self._at += len(content)
        self._window.drop(self._at)
        return content


def read_tar_events(file: BinaryIO, name: str, reader: Reader, stream: Stream) -> Iterator[Event]:
    """Yield the events of a tar archive; `name` tells the compression, `stream` reads members."""
    if not isinstance(reader.form, TarForm):
        raise TypeError("a reader of tar archives has a TarForm")
    stored = Stored(file, name)
    blocks = stored.blocks()
    archive = _Archive(Window(lambda: next(blocks, b"")), stored.place, reader, reader.form, stream)
    yield from archive.events()
    yield from stored_ends(stored, archive.window.end)


class _Archive:
    def __init__(self, window: Window, place: str, reader: Reader, form: TarForm, stream: Stream) -> None:
        self.window, self.place, self.stream = window, place, stream
        self.inner, self.wanted = reader.inner(form), matcher(form.members)

    def events(self) -> Iterator[Event]:
        at, told = 0, _Told()
        while self.window.fill(at + BLOCK) > at:
            block = self.window.copy(at, at + BLOCK)
            header = _parse(block)
            if header is None:
                end = self._next(at, block)
                yield self._between(at, end, block)
                at, told = end, _Told()
            elif header.kind in _META:
                end = self._meta(at, header, told)
                yield Structural(self.place, at, end - at, "tar header")
                at = end
            else:
                at = yield from self._member(at, header, told)
                told = _Told()
            self.window.drop(at)

    def _between(self, at: int, end: int, block: bytes) -> Event:
        if not block.strip(b"\0"):
            return Structural(self.place, at, end - at, "tar padding")
        reason = "truncated tar header" if len(block) < BLOCK else "bad tar header"
        return Gap(self.place, at, end - at, reason, None)

    def _next(self, at: int, block: bytes) -> int:
        """Return where to go on behind a block that is no header: behind zeros, else at the next header."""
        if not block.strip(b"\0"):
            while block and not block.strip(b"\0"):
                at += len(block)
                self.window.drop(at)
                block = self.window.copy(at, min(self.window.fill(at + BLOCK), at + BLOCK))
            return at
        begin = at + 1
        while True:
            reach = begin + (1 << 16)
            end = min(self.window.fill(reach + BLOCK), reach + BLOCK)
            found = self.window.find(b"ustar", begin + 257, end)
            if found < 0:
                if end < reach + BLOCK:
                    return end
                begin = end - 262
                self.window.drop(begin)
                continue
            begin = found - 257
            self.window.fill(begin + BLOCK)
            if _parse(self.window.copy(begin, begin + BLOCK)) is not None:
                return begin
            begin += 1

    def _meta(self, at: int, header: _Header, told: _Told) -> int:
        """Note what a pax header or long name says of the member behind it; return where it ends."""
        end = at + BLOCK + header.size
        if header.size <= LONGEST_META:
            content = self.window.copy(at + BLOCK, min(self.window.fill(end), end))
            if header.kind == b"L":
                told.name = _text(content.partition(b"\0")[0])
            elif header.kind == b"x":
                _read_pax(content, told)
        return self._pass(end + -header.size % BLOCK)

    def _pass(self, end: int) -> int:
        """Go over bytes to `end`, or to the end of the archive; return where that is."""
        while (reached := self.window.fill(min(end, self.window.end + BLOCK * 128))) < end:
            before = reached
            self.window.drop(reached)
            if self.window.fill(before + 1) == before:
                return before
        return end

    def _member(self, at: int, header: _Header, told: _Told) -> Generator[Event, None, int]:
        """Yield the events of a member; return where the next header may begin."""
        begin = at + BLOCK
        size = header.size if told.size is None else told.size
        name = _safe(told.name or header.name)
        end, next_at = begin + size, begin + size + -size % BLOCK
        if header.kind not in _FILES:
            if header.kind in _KINDS:
                next_at = begin  # they have no content, whatever their size says
            yield from self._other(at, next_at, _KINDS.get(header.kind, "tar special"))
        elif self.wanted.match(name) is None:
            yield from self._other(at, next_at, "other member")
        else:
            yield Structural(self.place, at, BLOCK, "tar header")
            yield from self._content(begin, end, name, told.sparse)
            if (stop := self._pass(next_at)) > min(end, stop):
                yield Structural(self.place, end, stop - end, "tar padding")
        return min(next_at, self._pass(next_at))

    def _other(self, at: int, end: int, kind: str) -> Iterator[Event]:
        stop = self._pass(end)
        yield Structural(self.place, at, stop - at, kind)

    def _content(self, begin: int, end: int, name: str, sparse: bool) -> Iterator[Event]:
        limit = self.inner.max_record_bytes
        whole = self.inner.format in WHOLE
        if sparse or (whole and end - begin > limit):
            stop = self._pass(end)
            reason = "sparse member" if sparse else "record too large"
            yield Refused(self.place, begin, stop - begin, reason, f"{end - begin} bytes", None)
            return
        if whole and (stop := self.window.fill(end)) < end:
            yield Gap(self.place, begin, stop - begin, "truncated tar member", f"{stop - begin} of {end - begin} bytes")
            return
        yield from self._inner(begin, end, name)
        if (stop := self._pass(end)) < end:
            yield Gap(self.place, stop, 0, "truncated tar member", f"{stop - begin} of {end - begin} bytes")

    def _inner(self, begin: int, end: int, name: str) -> Iterator[Event]:
        """Yield the events of a member where they stand in the archive."""
        content = cast(BinaryIO, _Content(self.window, begin, end))
        covered, parts = begin, 0
        for event in self.stream(self.inner, content, name):
            if isinstance(event, (End, Rows)):
                continue
            if event.place != "stored":
                parts += isinstance(event, Read)
                yield from self._of_compressed(event, begin, end - begin, parts, name)
                continue
            offset = begin + event.offset
            if offset > covered:
                yield Structural(self.place, covered, offset - covered, "compressed member")
            covered = offset + event.length
            yield self._moved(event, offset, name)
        stop = min(self.window.end, end)
        if stop > covered:
            yield Structural(self.place, covered, stop - covered, "compressed member")

    def _moved(self, event: Read | Refused | Structural | Gap, offset: int, name: str) -> Event:
        if isinstance(event, Read):
            return replace(event, place=self.place, offset=offset, values={**event.values, "member": name})
        return replace(event, place=self.place, offset=offset)

    def _of_compressed(
        self, event: Read | Refused | Structural | Gap, begin: int, size: int, part: int, name: str
    ) -> Iterator[Event]:
        if isinstance(event, Read):
            values = {**event.values, "member": name}
            yield replace(event, place=self.place, offset=begin, length=size, part=part, values=values)
        elif not isinstance(event, Structural):
            where = f"{event.length} bytes at byte {event.offset} of what {name[:200]} unpacks to"
            yield Gap(self.place, begin, 0, event.reason, where)


def _parse(block: bytes) -> _Header | None:
    """Return a header whose checksum is right, None where there is none."""
    if len(block) < BLOCK:
        return None
    told = _number(block[148:156])
    if told != sum(block) - sum(block[148:156]) + 8 * 32:
        return None
    size = _number(block[124:136])
    if size is None or size >= _HUGE:
        return None
    name = block[:100].partition(b"\0")[0]
    prefix = block[345:500].partition(b"\0")[0] if block[257:263] == b"ustar\0" else b""
    return _Header(_text(prefix + b"/" + name if prefix else name), size, block[156:157])


def _number(field: bytes) -> int | None:
    if field[:1] == b"\x80":
        return int.from_bytes(field[1:], "big")
    digits = field.strip(b" \0")
    return int(digits or b"0", 8) if all(48 <= digit < 56 for digit in digits) else None


def _read_pax(content: bytes, told: _Told) -> None:
    """Note name and size of a pax header: records "length name=value" and a line feed (POSIX pax, extended header)."""
    while content:
        length, blank, _ = content.partition(b" ")
        if not blank or not length.isdigit() or len(length) > 7 or int(length) <= len(length):
            return
        key, _, value = content[len(length) + 1 : int(length) - 1].partition(b"=")
        content = content[int(length) :]
        if key == b"path":
            told.name = _text(value)
        elif key == b"size" and value.isdigit() and len(value) < 18:
            told.size = int(value)
        elif key.startswith(b"GNU.sparse"):
            told.sparse = True


def _text(name: bytes) -> str:
    return name.decode("utf-8", "replace")


def _safe(name: str) -> str:
    """Return a member's name without what could lead out of a folder or upset a terminal."""
    shown = "".join("\ufffd" if ord(c) < 32 or 127 <= ord(c) < 160 else c for c in name[:LONGEST_NAME])
    return "/".join(part for part in shown.replace("\\", "/").split("/") if part not in ("", ".", ".."))
