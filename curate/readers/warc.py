"""WARC archives: `.warc` and `.warc.gz`, WET among them, to records, refusals, structural records and gaps.

Every byte of the file belongs to one of these (`events`): stored bytes for plain archives and gzip members of one
record, bytes of the decompressed stream for gzip members that hold several (`gzip_members`). Damage costs the record
that it hits; nothing a file holds raises. What becomes a document: `response` records of status 200 and `resource`
records of a readable media type, and `conversion` records of plain text. Other formats (ARC, WAT, lz4, zstd …) are one
gap over the whole file.

Cost: one sequential pass. Memory: a few times `max_record_bytes` at worst, under 2 MiB for ordinary pages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import BinaryIO, Final

from curate.readers.events import End, Event, Gap, Read, Refused, Structural
from curate.readers.gzip_members import Placed, begins_member, read_members
from curate.readers.http import Page, Refusal, RefusalReason, media_type, read_payload, read_response
from curate.readers.warc_framing import Frame, GapReason, Hole, begins_record, frame
from curate.readers.window import Window
from transforms.optout import write_signals

MAX_RECORD_BYTES: Final = 64 << 20
"""Default bound of a record's block, and of its decoded payload."""

_READ: Final = 1 << 18
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DOCUMENTS: Final = frozenset({"response", "resource", "conversion", "continuation"})
_STRUCTURAL: Final = frozenset({"warcinfo", "request", "metadata", "revisit"})
_OTHER_NAMES: Final = (".arc", ".arc.gz", ".wat", ".wat.gz", ".zst", ".lz4")
_OTHER_CONTENT: Final = (b"filedesc:", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18")  # ARC, zstd, lz4
_WARC_NAMES: Final = (".warc", ".wet")
_DATE: Final = re.compile(  # W3C date and time in UTC, reduced precision allowed (WARC 1.1, section 5.4)
    r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2})(?:T([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?Z)?)?)?"
)


def read_warc_events(file: BinaryIO, name: str, max_record_bytes: int = MAX_RECORD_BYTES) -> Iterator[Event]:
    """Read the archive `file` from where it stands to its end, strictly forward.

    Args:
        file: a binary file; only `read` is called.
        name: its name, which tells formats apart that content does not.
        max_record_bytes: longest block that is read, and longest decoded payload.

    Yields:
        Events that tile the file, then an `End` for each unit used.
    """
    stored = Window(lambda: file.read(_READ))
    covered = in_stream = stream_total = 0
    last = "stored"
    for placed in _cut(stored, name, max_record_bytes):
        if placed.place == "stored":
            in_stream += placed.offset - covered if last == "stream" else 0
            covered = placed.offset + placed.length
        else:
            stream_total += placed.length
        last = placed.place
        yield _event(placed, max_record_bytes)
    in_stream += stored.end - covered if last == "stream" else 0
    yield End("stored", stored.end - in_stream)
    if stream_total:
        yield End("stream", stream_total)


def _cut(stored: Window, name: str, max_block: int) -> Iterator[Placed]:
    """Choose how to read the archive: by its first record, else by its name, else by its first bytes."""
    stored.fill(16)
    begin = stored.copy(0, 16)
    lower = name.lower()
    if not begin:
        return
    if _is_other_format(begin, lower):
        yield _unsupported(stored)
    elif begins_member(stored, 0) or (not begins_record(stored, 0) and lower.endswith(".gz")):
        yield from read_members(stored, max_block)
    elif begin.startswith(b"WARC/") or lower.endswith(_WARC_NAMES):
        for item in frame(stored, max_block, lambda passed: True):
            yield Placed("stored", item.start, item.end - item.start, item)
    else:
        yield _unsupported(stored)


def _is_other_format(begin: bytes, lower: str) -> bool:
    return lower.endswith(_OTHER_NAMES) or begin.startswith(_OTHER_CONTENT)


def _unsupported(stored: Window) -> Placed:
    """Read the rest of the file, so that whoever hashes it sees all of it, and return it as one gap."""
    while stored.fill(stored.end + _READ) > stored.start:
        stored.drop(stored.end)
    return Placed("stored", 0, stored.end, Hole(0, stored.end, GapReason.UNSUPPORTED, begun=False))


def _event(placed: Placed, max_payload: int) -> Event:
    where = (placed.place, placed.offset, placed.length)
    if placed.item is None:
        return Structural(*where, "empty member")
    if isinstance(placed.item, Hole):
        return Gap(*where, placed.item.reason, None)
    fields = placed.item.fields
    kind = fields[b"warc-type"].lower().decode("ascii", "replace")
    if kind not in _DOCUMENTS:
        return Structural(*where, kind if kind in _STRUCTURAL else "other type")
    key = fields.get(b"warc-record-id") or None
    page = _page(kind, placed.item, max_payload)
    if isinstance(page, Refusal):
        return Refused(*where, page.reason, page.detail, key)
    return Read(*where, 0, key, _values(page, fields))


def _page(kind: str, record: Frame, max_payload: int) -> Page | Refusal:
    """Return the page that a record of a document type holds."""
    if kind == "continuation" or b"warc-segment-number" in record.fields:
        return Refusal(RefusalReason.SEGMENTED, None)
    if record.block is None:
        return Refusal(RefusalReason.TOO_LARGE, str(record.size))
    if kind == "response":
        return read_response(record.block, max_payload)
    content_type, charset = media_type([record.fields.get(b"content-type", b"")])
    return read_payload(record.block, content_type, charset)


def _values(page: Page, fields: dict[bytes, bytes]) -> dict[str, object]:
    url = fields.get(b"warc-target-uri", b"").decode("utf-8", "replace").strip("<> \t")
    return {
        "payload": page.payload,
        "content_type": page.content_type,
        "http_charset": page.charset,
        "url": url or None,
        "optout_headers": None if page.signals is None else write_signals(page.signals),
        "crawled_at": milliseconds(fields.get(b"warc-date", b"").decode("ascii", "replace")),
    }


def milliseconds(date: str) -> int | None:
    """Return a WARC-Date as milliseconds since 1970 in UTC, the earliest it can mean; None where it is no date."""
    found = _DATE.fullmatch(date)
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(found[i] or least) for i, least in enumerate((1, 1, 1, 0, 0, 0), 1))
    try:
        at = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    return int((at - _EPOCH).total_seconds()) * 1000 + int((found[7] or "").ljust(3, "0")[:3])
