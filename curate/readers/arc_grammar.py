"""What ARC records look like, versions 1 and 2: a line of blank-separated fields, then the block, then a line end.

Version 1 has URL, IP address, date, media type and length; version 2 URL, IP address, date, media type, result code,
checksum, location, offset, file name and length (Internet Archive, "Arc File Format", 1996). URLs of some crawlers hold
blanks, so fields are counted from the end. A date is 14 digits, fewer or more where a writer knew less or more.

The first record, `filedesc:`, describes the file. A search looks for a date between blanks and then at its line: each
line is looked at once, so it is linear.
"""

from __future__ import annotations

import re
from typing import Final

from curate.readers.framing import MAX_NEWLINES, GapReason, Header
from curate.readers.window import Window

LONGEST_LINE: Final = 1 << 12
"""Longest header line, in bytes."""

_V1: Final = re.compile(
    rb"([A-Za-z][A-Za-z0-9+.-]{0,31}:[^\r\n]*) ([0-9A-Fa-f.:]{2,45}|-) ([0-9]{4,20}) ([^ \r\n]{1,255}) ([0-9]{1,18})"
)
_V2: Final = re.compile(
    rb"([A-Za-z][A-Za-z0-9+.-]{0,31}:[^\r\n]*) ([0-9A-Fa-f.:]{2,45}|-) ([0-9]{4,20}) ([^ \r\n]{1,255}) "
    rb"([0-9]{1,3}|-) ([^ \r\n]{1,255}) ([^ \r\n]{1,2048}) ([0-9]{1,18}|-) ([^ \r\n]{1,255}) ([0-9]{1,18})"
)
_DATE: Final = re.compile(rb" [0-9]{8,20} ")
_BEGIN: Final = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]{0,31}:")
_NAMES: Final = (b"url", b"ip", b"date", b"content-type", b"result", b"checksum", b"location", b"offset", b"file")


def parse_line(line: bytes) -> dict[bytes, bytes] | None:
    """Return the fields of a header line without its line end, `length` among them; None where it is none."""
    if _BEGIN.match(line) is None:
        return None
    found = _V2.fullmatch(line)
    if found is not None:
        return dict(zip((*_NAMES, b"length"), found.groups(), strict=True))
    found = _V1.fullmatch(line)
    return None if found is None else dict(zip((*_NAMES[:4], b"length"), found.groups(), strict=True))


class ArcGrammar:
    """Records of ARC 1 and 2."""

    peek = LONGEST_LINE
    before = b"\n"

    def begins(self, begin: bytes) -> bool:
        """See `Grammar`."""
        return self.begins_exactly(begin.lstrip(b"\r\n"))

    def begins_exactly(self, begin: bytes) -> bool:
        """See `Grammar`."""
        line, newline, _ = begin[:LONGEST_LINE].partition(b"\n")
        return bool(newline) and parse_line(line.removesuffix(b"\r")) is not None

    def header(self, stream: Window, at: int) -> Header | GapReason:
        """See `Grammar`."""
        begin = stream.copy(at, min(stream.fill(at + LONGEST_LINE), at + LONGEST_LINE))
        line, newline, _ = begin.partition(b"\n")
        if _BEGIN.match(line) is None:
            return GapReason.GARBAGE
        if not newline:
            return GapReason.BAD_HEADER if len(begin) == LONGEST_LINE else GapReason.TRUNCATED
        fields = parse_line(line.removesuffix(b"\r"))
        if fields is None:
            return GapReason.BAD_HEADER if _DATE.search(line) else GapReason.GARBAGE
        return Header(at + len(line) + 1, int(fields[b"length"]), fields)

    def candidate(self, stream: Window, begin: int, end: int) -> tuple[int, int]:
        """See `Grammar`."""
        found = stream.search(_DATE, begin, end)
        if found < 0:
            return -1, end - 22
        start = stream.rfind(b"\n", max(begin - LONGEST_LINE, found - LONGEST_LINE), found) + 1
        stop = stream.find(b"\n", found, min(stream.fill(found + LONGEST_LINE), found + LONGEST_LINE))
        return max(start, stream.start), max(found + 1, stop)

    def record_end(self, stream: Window, block_end: int) -> int | None:
        """See `Grammar`."""
        reach = block_end + MAX_NEWLINES + LONGEST_LINE
        after = stream.copy(block_end, min(stream.fill(reach), reach))
        newlines = len(after[:MAX_NEWLINES]) - len(after[:MAX_NEWLINES].lstrip(b"\r\n"))
        rest = after[newlines:]
        return block_end + newlines if not rest or _looks_like_header(rest) else None


ARC: Final = ArcGrammar()


def _looks_like_header(begin: bytes) -> bool:
    """Return whether a header line begins here, be it a damaged one: the record before it is whole all the same."""
    line = begin.partition(b"\n")[0]
    return _BEGIN.match(line) is not None and _DATE.search(line) is not None
