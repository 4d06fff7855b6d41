"""JSON lines, plain or compressed as one stream (.gz, .zst, .bz2, .xz, .lz4): one damaged line loses that line only.

Places: bytes of the file for plain files, bytes of the decompressed stream otherwise. Where decompression stops on
damage, what was readable is kept and the rest of the file is a gap in stored bytes. Memory: one line, at most
`max_record_bytes`, and one block.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from curate.readers.compression import Stored
from curate.readers.events import End, Event, Refused, Structural, stored_ends
from curate.readers.lines import cut_at
from curate.readers.parts import Border, Part
from curate.readers.reader import Reader
from curate.readers.rows import Number, row_event

DEEPEST: Final = 200  # levels: a count, because how deep Python itself goes differs between its versions

_BRACKETS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[][{}]', re.DOTALL)


def read_jsonl_events(file: BinaryIO, name: str, reader: Reader, part: Part | None = None) -> Iterator[Event]:
    """Yield the events of a JSON-lines file, or of a part where `file` stands; `name` tells the compression."""
    begin = Border(0) if part is None else part.begin
    stored = Stored(file, name, at=begin.at)
    offset = begin.at if stored.place == "stored" else begin.first
    first, skip, stop = offset, begin.skip, None
    if part is not None and part.end is not None:
        stop = part.stop if stored.place == "stored" else part.end.first
    for line, length in cut_at(_from(stored.blocks(), skip), b"\n", reader.max_record_bytes):
        event = _event(line, length, offset, stored.place, reader)
        offset += length
        del line  # it may be long, and what reads the event may take its time
        yield event
        del event
        if offset == stop:
            yield End(stored.place, offset - first)
            return
    yield from stored_ends(stored, offset - first)


def _from(blocks: Iterator[bytes], skip: int) -> Iterator[bytes]:
    for block in blocks:
        yield block[skip:] if skip else block
        skip = max(skip - len(block), 0)


def _event(line: bytes | None, length: int, offset: int, place: str, reader: Reader) -> Event:
    def refused(reason: str, detail: str | None = None) -> Refused:
        return Refused(place, offset, length, reason, detail, None)

    if line is None:
        return refused("record too large", f"{length} bytes")
    if not line.strip():
        return Structural(place, offset, length, "blank line")
    if depth_exceeds(line):
        return refused("nested too deep", f"more than {DEEPEST} levels")
    try:
        text = line.decode("utf-8-sig" if offset == 0 else "utf-8")
        value = parse_json(text)
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


def depth_exceeds(line: bytes) -> bool:
    """Return whether JSON is nested deeper than `DEEPEST` levels."""
    return _depth(line) > DEEPEST


def parse_json(text: str) -> Any:
    """Return the value of JSON, fractions as `Number`.

    Raises:
        ValueError: it is none.
    """
    return _JSON.decode(text)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_JSON: Final = json.JSONDecoder(parse_float=Number, parse_constant=_refuse_constant)
