"""Where WARC records begin and end in a stream of bytes, and what lies between them.

`frame` cuts a stream into `Frame`s (whole records) and `Hole`s (everything else) that tile it without overlap. A
record is whole when its header block names a type and a length and its block is followed by what the format
prescribes (ISO 28500, section 4: CRLF CRLF), by another record, or by the end. A length that is wrong shows there;
then the search for the next record starts inside the block, so that no later record is swallowed.

Why not fastwarc: its iterator gives no offsets of what it skips, ends at the first bad length and raises on bad
chunks; tests compare what both find in undamaged archives.

Cost: linear in the bytes, whatever they are: a header is looked for up to `MAX_HEADER` bytes or the next version
line, and a block is copied only once it is known to be whole. Memory: two blocks of at most `max_block` bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from curate.readers.window import Window

MAX_HEADER: Final = 1 << 16
"""Longest header block of a record, in bytes."""

_MAX_NEWLINES: Final = 16  # line ends after a block that still belong to its record
_VERSION: Final = re.compile(rb"WARC/[0-9]\.[0-9]{1,3}\r?\n")
_MARK: Final = b"WARC/"


class GapReason(StrEnum):
    """Why a stretch of an archive holds no record. The words appear in ledgers and statistics."""

    UNSUPPORTED = "unsupported format"
    GARBAGE = "no record begins here"
    BAD_HEADER = "bad record header"
    WRONG_LENGTH = "wrong content length"
    TRUNCATED = "truncated record"
    TOO_LARGE = "record too large"
    NOT_GZIP = "no gzip member begins here"
    DAMAGED = "damaged gzip member"
    CUT_OFF = "truncated gzip member"
    ENDLESS = "gzip member inflates too far"


@dataclass(frozen=True, slots=True)
class Frame:
    """A whole record at [start, end) of its stream.

    Attributes:
        fields: header fields, names in lower case, the first of each name.
        size: length of the block in bytes.
        block: the block, or None where it is longer than the bound.
    """

    start: int
    end: int
    fields: dict[bytes, bytes]
    size: int
    block: bytes | None


@dataclass(frozen=True, slots=True)
class Hole:
    """A stretch [start, end) without a whole record. `begun`: it begins like a record."""

    start: int
    end: int
    reason: GapReason
    begun: bool


@dataclass(frozen=True, slots=True)
class _Header:
    end: int
    size: int
    fields: dict[bytes, bytes]


def frame(stream: Window, max_block: int, patient: Callable[[int], bool]) -> Iterator[Frame | Hole]:
    """Cut `stream` into whole records and holes.

    Args:
        stream: the bytes; those of a yielded item and before are dropped.
        max_block: longest block that is kept, in bytes.
        patient: asked with the number of bytes passed over so far in one stretch; False ends the framing with a hole
            `ENDLESS` (a gzip bomb).
    """
    at = 0
    while stream.fill(at + 1) > at:
        item = _item(stream, at, max_block, patient)
        yield item
        if isinstance(item, Hole) and item.reason is GapReason.ENDLESS:
            return
        at = item.end
        stream.drop(at)


def begins_record(stream: Window, at: int) -> bool:
    """Return whether a sound record header begins at `at`."""
    return isinstance(_parse_header(stream, at), _Header)


def _item(stream: Window, at: int, max_block: int, patient: Callable[[int], bool]) -> Frame | Hole:
    header = _parse_header(stream, at)
    if isinstance(header, GapReason):
        return _hole(stream, at, at + 1, header, patient)
    return _record(stream, at, header, max_block, patient)


def _parse_header(stream: Window, at: int) -> _Header | GapReason:
    """Return the header block that begins at `at`, or why none does."""
    begin = stream.copy(at, min(stream.fill(at + 16), at + 16))
    version = _VERSION.match(begin)
    if version is None:
        if not begin.startswith(_MARK[: len(begin)]):
            return GapReason.GARBAGE
        return GapReason.BAD_HEADER if len(begin) == 16 else GapReason.TRUNCATED
    end = _blank_line(stream, at)
    if isinstance(end, GapReason):
        return end
    fields = _fields(stream.copy(at + version.end(), end))
    length = fields.get(b"content-length", b"")
    if not fields.get(b"warc-type") or not length.isdigit() or len(length) > 18:
        return GapReason.BAD_HEADER
    return _Header(end, int(length), fields)


def _blank_line(stream: Window, at: int) -> int | GapReason:
    """Return where the header block that begins at `at` ends: after its blank line."""
    reach = 1 << 12
    while True:
        end = min(stream.fill(at + reach), at + reach)
        ends = [found + len(blank) for blank in (b"\n\r\n", b"\n\n") if (found := stream.find(blank, at, end)) >= 0]
        if _holds_version(stream, at + 1, min(ends, default=end)):
            return GapReason.BAD_HEADER  # another record begins before this header ends
        if ends:
            return min(ends)
        if end < at + reach:
            return GapReason.TRUNCATED
        if reach >= MAX_HEADER:
            return GapReason.BAD_HEADER
        reach = min(reach * 4, MAX_HEADER)


def _holds_version(stream: Window, begin: int, end: int) -> bool:
    """Return whether a version line lies in [begin, end); that bounds the search behind each of many such lines."""
    while (found := stream.find(_MARK, begin, end)) >= 0:
        if _VERSION.match(stream.copy(found, min(end, found + 16))):
            return True
        begin = found + 1
    return False


def _fields(lines: bytes) -> dict[bytes, bytes]:
    """Return the named fields of a header block; folded lines are joined, lines without a name left out."""
    fields: dict[bytes, bytes] = {}
    name = b""
    for line in lines.split(b"\n"):
        if line[:1] in (b" ", b"\t") and name in fields:
            fields[name] = (fields[name] + b" " + line.strip()).strip()
            continue
        name, colon, value = line.partition(b":")
        name = name.strip().lower()
        if colon:
            fields.setdefault(name, value.strip())
    return fields


def _record(stream: Window, at: int, header: _Header, max_block: int, patient: Callable[[int], bool]) -> Frame | Hole:
    """Return the record whose header stands at `at`, or the hole that its damage leaves."""
    block_end = header.end + header.size
    if header.size > max_block:
        return _pass_over(stream, at, header, patient)
    available = stream.fill(block_end + _MAX_NEWLINES + len(_MARK))
    end = _end_of_record(stream, block_end) if available >= block_end else None
    if end is None:
        reason = GapReason.TRUNCATED if available < block_end else GapReason.WRONG_LENGTH
        return _hole(stream, at, header.end, reason, patient)
    return Frame(at, end, header.fields, header.size, stream.copy(header.end, block_end))


def _end_of_record(stream: Window, block_end: int) -> int | None:
    """Return where the record ends whose block ends at `block_end`, None where something else follows the block."""
    available = stream.fill(block_end + _MAX_NEWLINES + len(_MARK))
    after = stream.copy(block_end, min(available, block_end + _MAX_NEWLINES + len(_MARK)))
    newlines = len(after[:_MAX_NEWLINES]) - len(after[:_MAX_NEWLINES].lstrip(b"\r\n"))
    rest = after[newlines:]
    if after.startswith(b"\r\n\r\n") or not rest or rest.startswith(_MARK):
        return block_end + newlines
    return None


def _pass_over(stream: Window, at: int, header: _Header, patient: Callable[[int], bool]) -> Frame | Hole:
    """Return the record at `at`, which is above the bound, without its block.

    Its bytes are not kept, so a wrong length cannot be found afterwards: a sound record header inside the block that
    stands after the end of another record (CRLF CRLF) ends it. (An archive of more than the bound that is stored
    inside an archive, uncompressed, is thereby read as if its records stood in the outer one.)
    """
    block_end = header.end + header.size
    inner = _next_record(stream, header.end, block_end, patient, after=b"\r\n\r\n")
    if inner is None:
        return Hole(at, stream.end, GapReason.ENDLESS, begun=True)
    if inner < min(block_end, stream.fill(block_end)):
        return Hole(at, inner, GapReason.WRONG_LENGTH, begun=True)
    if stream.end < block_end:
        return Hole(at, stream.end, GapReason.TRUNCATED, begun=True)
    end = _end_of_record(stream, block_end)
    if end is None:
        return _hole(stream, at, block_end, GapReason.WRONG_LENGTH, patient)
    return Frame(at, end, header.fields, header.size, None)


def _hole(stream: Window, at: int, search: int, reason: GapReason, patient: Callable[[int], bool]) -> Hole:
    """Return the hole from `at` to the next record at or after `search`."""
    begun = reason is not GapReason.GARBAGE
    end = _next_record(stream, search, None, patient, after=b"")
    if end is None:
        return Hole(at, stream.end, GapReason.ENDLESS, begun)
    if reason is GapReason.TRUNCATED and end < stream.end:
        reason = GapReason.WRONG_LENGTH  # the block was not cut off by the end of the stream: others follow in it
    return Hole(at, end, reason, begun)


def _next_record(
    stream: Window, search: int, limit: int | None, patient: Callable[[int], bool], *, after: bytes
) -> int | None:
    """Return the offset of the first sound record header in [search, limit) that follows `after`.

    Returns `limit` or the end of the stream where there is none, None where patience ended.
    """
    begin, piece = search, 1 << 16
    while True:
        reach = begin + piece if limit is None else min(begin + piece, limit)
        end = min(stream.fill(reach), reach)
        found = stream.find(_MARK, begin, end)
        if found >= 0:
            preceded = stream.copy(max(found - len(after), search), found).endswith(after)
            if preceded and isinstance(_parse_header(stream, found), _Header):
                return found
            begin = found + 1
        elif end < reach or end == limit:
            return end
        else:
            begin = max(begin, end - len(_MARK) + 1)
            stream.drop(begin - len(after))
            if not patient(end - search):
                return None
