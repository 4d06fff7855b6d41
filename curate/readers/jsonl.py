"""JSON lines, plain or compressed as one stream (.gz, .zst, .bz2, .xz, .lz4): one damaged line loses that line only.

Places: bytes of the file for plain files, bytes of the decompressed stream otherwise. Where decompression stops on
damage, what was readable is kept, and reading goes on with the next member (or frame, or stream) that inflates, as if
it followed: what lies between, or up to the end of a file of one member, is a gap in stored bytes. Memory: one line, at
most `max_record_bytes`, and one block.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

import orjson

from curate.readers.compression import Stored
from curate.readers.events import End, Event, Gap, Refused, Structural, stored_ends
from curate.readers.lines import cut_at
from curate.readers.parts import Border, Part
from curate.readers.reader import Reader
from curate.readers.rows import Number, row_event

DEEPEST: Final = 200  # levels: a count, because how deep Python itself goes differs between its versions
TOO_DEEP: Final = "nested too deep"

_MARK: Final = b"\xef\xbb\xbf"

_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_BRACKETS: Final = re.compile(rb"[][{}]")


def read_jsonl_events(file: BinaryIO, name: str, reader: Reader, part: Part | None = None) -> Iterator[Event]:
    """Yield the events of a JSON-lines file, or of a part where `file` stands; `name` tells the compression."""
    begin = Border(0) if part is None else part.begin
    stored = Stored(file, name, at=begin.at)
    offset = begin.at if stored.place == "stored" else begin.first
    first, skip, stop = offset, begin.skip, None
    if part is not None and part.end is not None:
        stop = part.stop if stored.place == "stored" else part.end.first
    lost = 0
    for number, run in enumerate(stored.runs()):
        for at, size, reason, detail in stored.gaps[max(number - 1, 0) : number]:
            lost += size
            yield Gap("stored", at, size, reason, detail)
        for line, length in cut_at(run if number else _from(run, skip), b"\n", reader.max_record_bytes):
            event = _event(line, length, offset, stored.place, reader)
            offset += length
            del line  # it may be long, and what reads the event may take its time
            yield event
            del event
            if offset == stop:
                yield End(stored.place, offset - first)
                yield from _lost(lost)
                return
    yield from _lost(lost)
    yield from stored_ends(stored, offset - first)


def _lost(size: int) -> Iterator[Event]:
    """Yield the end of what lay in gaps between runs, where there is any."""
    if size:
        yield End("stored", size)


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
    try:
        value = parse_json(line.removeprefix(_MARK) if offset == 0 else line)
    except UnicodeDecodeError as error:
        return refused("not UTF-8", f"byte {error.start} of the line")
    except ValueError as error:
        return refused(str(error), f"more than {DEEPEST} levels" if str(error) == TOO_DEEP else None)
    if not isinstance(value, dict):
        return refused("not an object", type(value).__name__)
    return row_event(value, reader, place, offset, length)


def parse_json(content: bytes) -> Any:
    """Return the value of JSON, fractions as `Number`.

    Raises:
        UnicodeDecodeError: it is not UTF-8.
        ValueError: "not JSON" (what Python says about it differs between its versions), or "nested too deep".
    """
    value = _quickly(content)
    if value is None:
        text = content.decode("utf-8")
        try:
            value = _JSON.decode(text)
        except (ValueError, RecursionError):
            raise ValueError(TOO_DEEP if _nests_deep(content) else "not JSON") from None
    if _is_deep(value):
        raise ValueError(TOO_DEEP)
    return value


def _quickly(content: bytes) -> Any:
    """Return what orjson makes of `content` where it gives what the standard library gives; else None.

    It refuses some of what that takes (lone surrogates, long integers), and its fractions have lost their digits.
    """
    try:
        value = orjson.loads(content)
    except ValueError:
        return None
    return None if float in _types(value) else value


def _types(value: Any) -> set[type]:
    """Return the types of all values in `value`, itself among them."""
    found, level = {type(value)}, [value]
    while level := [each for each in level if type(each) is dict or type(each) is list]:
        level = [item for each in level for item in (each.values() if type(each) is dict else each)]
        found.update(map(type, level))
    return found


def _is_deep(value: Any) -> bool:
    """Return whether containers are nested deeper than `DEEPEST` levels."""
    level, depth = [value], 0
    while level := [each for each in level if type(each) is dict or type(each) is list]:
        depth += 1
        if depth > DEEPEST:
            return True
        level = [item for each in level for item in (each.values() if type(each) is dict else each)]
    return False


def _nests_deep(content: bytes) -> bool:
    """Return whether brackets are nested deeper than `DEEPEST` levels outside strings, in what is no JSON."""
    depth = 0
    for token in _BRACKETS.finditer(_STRING.sub(b"", content)):
        depth += 1 if token[0] in b"[{" else -1
        if depth > DEEPEST:
            return True
    return False


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_JSON: Final = json.JSONDecoder(parse_float=Number, parse_constant=_refuse_constant)
