"""JSON lines, plain or compressed as one stream (.gz, .zst): one damaged line loses that line only.

Places: bytes of the file for plain files, bytes of the decompressed stream otherwise. Where decompression stops on
damage, what was readable is kept and the rest of the file is a gap in stored bytes. Memory: one line, at most
`max_record_bytes`, and one block.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Final

import zstandard

from curate.readers.events import End, Event, Gap, Refused, Structural
from curate.readers.reader import Reader
from curate.readers.rows import Number, row_event

BLOCK: Final = 1 << 20
GZIP_BLOCK: Final = 64 << 10
ZSTD_BLOCK: Final = 4 << 10
DEEPEST: Final = 200  # levels: a count, because how deep Python itself goes differs between its versions

_BRACKETS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[][{}]', re.DOTALL)


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
        began, empty = 0, True
        while pending or (pending := self._take(size)):
            for out in member.feed(pending):
                empty = False
                yield out
            if member.problem:
                place = began if empty else self.taken - len(pending) + member.read
                self.damage = (place, "damaged compression", member.problem)
                while self._take(BLOCK):
                    pass
                return
            pending = member.rest
            if member.ended:
                began, empty, member = self.taken - len(pending), True, start()
        if member.begun or not self.taken:  # a compressed file of no bytes is cut short too
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
            except zlib.error:
                self.problem = "gzip"
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
        except zstandard.ZstdError:
            self.problem = "zstd"
            return
        if out:
            yield out
        self.ended, self.rest = self._inflate.eof, self._inflate.unused_data


def read_jsonl_events(file: BinaryIO, name: str, reader: Reader) -> Iterator[Event]:
    """Yield the events of a JSON-lines file; `name` tells the compression."""
    stored = _Stored(file, name)
    offset = 0
    for line, length in _lines(stored.blocks(), reader.max_record_bytes):
        event = _event(line, length, offset, stored.place, reader)
        offset += length
        del line  # it may be long, and what reads the event may take its time
        yield event
        del event
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
                held.append(block[start : end + 1])
                yield _emptied(held), size
            else:
                held.clear()
                yield None, size
            size, start = 0, end + 1
        if start < len(block):
            size += len(block) - start
            if size <= limit:
                held.append(block[start:])
            else:
                held.clear()
    if size:
        yield (_emptied(held) if size <= limit else None), size


def _emptied(parts: list[bytes]) -> bytes:
    """Return `parts` as one, and keep none of them: a line may be long."""
    line = parts[0] if len(parts) == 1 else b"".join(parts)
    parts.clear()
    return line


def _event(line: bytes | None, length: int, offset: int, place: str, reader: Reader) -> Event:
    def refused(reason: str, detail: str | None = None) -> Refused:
        return Refused(place, offset, length, reason, detail, None)

    if line is None:
        return refused("record too large", f"{length} bytes")
    if not line.strip():
        return Structural(place, offset, length, "blank line")
    if _depth(line) > DEEPEST:
        return refused("nested too deep", f"more than {DEEPEST} levels")
    try:
        text = line.decode("utf-8-sig" if offset == 0 else "utf-8")
        value = _JSON.decode(text)
    except UnicodeDecodeError as error:
        return refused("not UTF-8", f"byte {error.start} of the line")
    except ValueError:
        return refused("not JSON")  # what Python says about it differs between its versions
    if not isinstance(value, dict):
        return refused("not an object", type(value).__name__)
    return row_event(value, reader, place, offset, length)


def _depth(line: bytes) -> int:
    """Return how deep brackets are nested outside strings, counted up to just above `DEEPEST`."""
    if line.count(b"[") + line.count(b"{") <= DEEPEST:
        return 0
    depth = deepest = 0
    for token in _BRACKETS.finditer(line):
        depth += {b"[": 1, b"{": 1, b"]": -1, b"}": -1}.get(token[0], 0)
        deepest = max(deepest, depth)
        if deepest > DEEPEST:
            break
    return deepest


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_JSON: Final = json.JSONDecoder(parse_float=Number, parse_constant=_refuse_constant)
