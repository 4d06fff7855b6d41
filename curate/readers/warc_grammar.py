"""What WARC records look like (ISO 28500, section 4): a version line, named fields, a blank line, block, CRLF CRLF.

A header is looked for up to `MAX_HEADER` bytes or the next version line, so a search is linear whatever the bytes.
"""

from __future__ import annotations

import re
from typing import Final

from curate.readers.framing import MAX_HEADER, MAX_NEWLINES, GapReason, Header
from curate.readers.window import Window

_VERSION: Final = re.compile(rb"WARC/[0-9]\.[0-9]{1,3}\r?\n")
_MARK: Final = b"WARC/"


class WarcGrammar:
    """Records of WARC 0.17 to 1.1."""

    peek = 4 + len(_MARK)
    before = b"\r\n\r\n"

    def begins(self, begin: bytes) -> bool:
        """See `Grammar`."""
        return begin.lstrip(b"\r\n").startswith(_MARK)

    def begins_exactly(self, begin: bytes) -> bool:
        """See `Grammar`."""
        return begin.startswith(_MARK)

    def header(self, stream: Window, at: int) -> Header | GapReason:
        """See `Grammar`."""
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
        return Header(end, int(length), fields)

    def candidate(self, stream: Window, begin: int, end: int) -> tuple[int, int]:
        """See `Grammar`."""
        found = stream.find(_MARK, begin, end)
        return found, found + 1 if found >= 0 else end - len(_MARK) + 1

    def record_end(self, stream: Window, block_end: int) -> int | None:
        """See `Grammar`."""
        reach = block_end + MAX_NEWLINES + len(_MARK)
        after = stream.copy(block_end, min(stream.fill(reach), reach))
        newlines = len(after[:MAX_NEWLINES]) - len(after[:MAX_NEWLINES].lstrip(b"\r\n"))
        rest = after[newlines:]
        if after.startswith(b"\r\n\r\n") or not rest or rest.startswith(_MARK):
            return block_end + newlines
        return None


WARC: Final = WarcGrammar()


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
