"""JSON lines, plain or compressed as one stream (.gz, .zst): one damaged line loses that line only.

Places: bytes of the file for plain files, bytes of the decompressed stream otherwise. Where decompression stops on
damage, what was readable is kept and the rest of the file is a gap in stored bytes. Memory: one line, at most
`max_record_bytes`, and one block.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO, Final

import zstandard

from curate.readers.events import End, Event, Gap, Read, Refused, Structural
from curate.readers.reader import Reader
from transforms.outcome import canonical_json

BLOCK: Final = 1 << 20
GZIP_BLOCK: Final = 64 << 10
ZSTD_BLOCK: Final = 4 << 10
REPLACEMENT: Final = "\ufffd"


class _Stored:
    """Bytes of a file as a stream of blocks; `damage` says why and where it stopped early."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.file, self.name = file, name
        self.place = "stream" if name.endswith((".gz", ".zst")) else "stored"
        self.taken = 0  # stored bytes taken from the file
        self.damage: tuple[int, str, str] | None = None  # stored offset, reason, detail

    def blocks(self) -> Iterator[bytes]:
        if self.name.endswith(".gz"):
            yield from self._members(lambda: _Gzip(), GZIP_BLOCK)
        elif self.name.endswith(".zst"):
            yield from self._members(lambda: _Zstandard(), ZSTD_BLOCK)
        else:
            while block := self._take(BLOCK):
                yield block

    def _take(self, size: int) -> bytes:
        block = self.file.read(size)
        self.taken += len(block)
        return block

    def _members(self, start: Callable[[], _Gzip | _Zstandard], size: int) -> Iterator[bytes]:
        """Yield what the members of the file inflate to, up to the first damage."""
        pending, member = b"", start()
        began = 0
        while pending or (pending := self._take(size)):
            yield from member.feed(pending)
            if member.problem:
                self.damage = (self.taken - len(pending) + member.read, "damaged compression", member.problem)
                while self._take(BLOCK):
                    pass
                return
            pending = member.rest
            if member.ended:
                began, member = self.taken - len(pending), start()
        if member.begun:
            self.damage = (self.taken, "truncated", f"the member that begins at byte {began} does not end")


class _Gzip:
    """One gzip member. On damage, `feed` still yields what lies before the damaged byte."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(wbits=31)
        self.begun = self.ended = False
        self.problem, self.rest, self.read = "", b"", 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        self.begun = True
        pending = data
        while True:
            before = self._inflate.copy()
            try:
                out = self._inflate.decompress(pending, BLOCK)
            except zlib.error as error:
                self.problem = str(error)[:200]
                self.read = len(data) - len(pending)
                yield from self._salvage(before, pending)
                return
            if out:
                yield out
            pending = self._inflate.unconsumed_tail
            if self._inflate.eof or (not pending and len(out) < BLOCK):
                break
        self.ended, self.rest = self._inflate.eof, self._inflate.unused_data

    def _salvage(self, inflate: Any, pending: bytes) -> Iterator[bytes]:
        for at in range(len(pending)):
            try:
                out = inflate.decompress(pending[at : at + 1])
            except zlib.error:
                self.read += at
                return
            if out:
                yield out


class _Zstandard:
    """One zstd frame; fed in blocks so small that what they inflate to fits memory (at most 32,768 : 1)."""

    def __init__(self) -> None:
        self._inflate = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj()
        self.begun = self.ended = False
        self.problem, self.rest, self.read = "", b"", 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        self.begun = True
        try:
            out = self._inflate.decompress(data)
        except zstandard.ZstdError as error:
            self.problem = str(error)[:200]
            return
        if out:
            yield out
        self.ended, self.rest = self._inflate.eof, self._inflate.unused_data


def read_jsonl_events(file: BinaryIO, name: str, reader: Reader) -> Iterator[Event]:
    """Yield the events of a JSON-lines file; `name` tells the compression."""
    stored = _Stored(file, name)
    offset = 0
    for line, length in _lines(stored.blocks(), reader.max_record_bytes):
        yield _event(line, length, offset, stored.place, reader)
        offset += length
    yield End(stored.place, offset)
    if stored.damage is not None:
        start, reason, detail = stored.damage
        yield Gap("stored", start, stored.taken - start, reason, detail)
        yield End("stored", stored.taken - start)


def _lines(blocks: Iterator[bytes], limit: int) -> Iterator[tuple[bytes | None, int]]:
    """Yield (line, its length with the line break); the line is None where it is longer than `limit`."""
    held: list[bytes] = []
    size = 0
    for block in blocks:
        start = 0
        while (end := block.find(b"\n", start)) >= 0:
            size += end + 1 - start
            if size <= limit:
                yield b"".join([*held, block[start : end + 1]]), size
            else:
                yield None, size
            held, size, start = [], 0, end + 1
        if start < len(block):
            size += len(block) - start
            if size <= limit:
                held.append(block[start:])
            else:
                held = []
    if size:
        yield (b"".join(held) if size <= limit else None), size


def _event(line: bytes | None, length: int, offset: int, place: str, reader: Reader) -> Event:
    def refused(reason: str, detail: str | None = None) -> Refused:
        return Refused(place, offset, length, reason, detail, None)

    if line is None:
        return refused("record too large", f"{length} bytes")
    if not line.strip():
        return Structural(place, offset, length, "blank line")
    try:
        value = json.loads(line.decode("utf-8"), parse_float=str, parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        return refused("not UTF-8", f"byte {error.start} of the line")
    except RecursionError:
        return refused("not JSON", "nested too deep")
    except ValueError as error:
        return refused("not JSON", str(error)[:200])
    if not isinstance(value, dict):
        return refused("not an object", type(value).__name__)
    return row_event(value, reader, place, offset, length)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def row_event(value: Mapping[str, Any], reader: Reader, place: str, offset: int, length: int) -> Event:
    """Return the event of one row given as a mapping: declared columns by type, everything else into `extra`."""
    rest = {name: item for name, item in value.items() if name not in reader.ignore}
    values: dict[str, Any] = {}
    key: bytes | None = None
    for ours, column in reader.columns:
        item = rest.get(column.name)
        if not _fits(item, column.type) and not (ours == "key" and isinstance(item, int)):
            continue  # it stays in rest, and so in extra
        rest.pop(column.name, None)
        if ours == "key":
            key = None if item is None else str(item).encode("utf-8", "replace")
        else:
            values[ours] = _mend(item) if isinstance(item, str) else item
    text = values.get("text")
    if text is None:
        return Refused(place, offset, length, "no text", f"no string in {dict(reader.columns)['text'].name!r}", key)
    values["extra"] = _mend(canonical_json(_canonical(rest))) if rest else None
    return Read(place, offset, length, 0, key, values)


def _fits(item: Any, kind: str) -> bool:
    if item is None:
        return True
    if kind == "int64":
        return isinstance(item, int) and not isinstance(item, bool) and -(2**63) <= item < 2**63
    if kind == "timestamp":
        return not isinstance(item, (str, bool))
    return isinstance(item, {"string": str, "bool": bool}[kind])


def _mend(text: str) -> str:
    """Return `text` with lone surrogates, which no UTF-8 can hold, replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join(REPLACEMENT if "\ud800" <= character <= "\udfff" else character for character in text)
    return text


def _canonical(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _canonical(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_canonical(item) for item in value]
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, bytes):
        return value.hex()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return str(value)
