"""Web archives (WARC, WET and ARC; plain, gzip, lz4, Zstandard) to records, refusals, structural records and gaps.

Every byte of the file belongs to one of these (`events`): stored bytes for plain archives and members of one record,
bytes of the decompressed stream for members that hold several (`members`). Damage costs the record that it hits;
nothing a file holds raises. What becomes a document: `response` records of a status that is wanted and `resource`
records of a readable media type, `conversion` records of plain text, and of ARC what was fetched by HTTP.

A `revisit` record says that the same bytes came again. It is counted, or with `revisits="resolve"` becomes a document
with the bytes of the record that it refers to, where that stands earlier in the same file (`revisits`).

Cost: one sequential pass. Memory: a few times `max_record_bytes` at worst, under 2 MiB for ordinary pages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import BinaryIO, Final

from curate.readers.arc_grammar import ARC
from curate.readers.archives import READ, Kind, kind_of, records_of
from curate.readers.events import End, Event, Gap, Read, Refused, Structural
from curate.readers.forms import PAGES, WarcForm
from curate.readers.framing import Frame, Hole
from curate.readers.http import Page, Refusal, RefusalReason, media_type, read_payload, read_response
from curate.readers.members import Placed
from curate.readers.parts import Border, Part
from curate.readers.revisits import Originals
from curate.readers.window import Window
from transforms.optout import write_signals

MAX_RECORD_BYTES: Final = 64 << 20
"""Default bound of a record's block, and of its decoded payload."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DOCUMENTS: Final = frozenset({"response", "resource", "conversion", "continuation"})
_STRUCTURAL: Final = frozenset({"warcinfo", "request", "metadata", "revisit"})
_DATE: Final = re.compile(  # W3C date and time in UTC, reduced precision allowed (WARC 1.1, section 5.4)
    r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2})(?:T([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?Z)?)?)?"
)
_ARC_DATE: Final = re.compile(r"([0-9]{4})([0-9]{2})?([0-9]{2})?([0-9]{2})?([0-9]{2})?([0-9]{2})?([0-9]{1,6})?")


def read_warc_events(
    file: BinaryIO,
    name: str,
    max_record_bytes: int = MAX_RECORD_BYTES,
    form: WarcForm = PAGES,
    again: Callable[[], BinaryIO] | None = None,
    part: Part | None = None,
) -> Iterator[Event]:
    """Read the archive `file`, or a part of it, strictly forward.

    Args:
        file: a binary file; only `read` is called.
        name: its name, which tells formats apart that content does not.
        max_record_bytes: longest block that is read, and longest decoded payload.
        form: what becomes documents.
        again: opens the file once more, to seek in; revisits are resolved with it, and the kind of a part told.
        part: which part; `file` stands where it begins. None: all of it.

    Yields:
        Events that tile the file, then an `End` for each unit used.
    """
    originals = Originals(again, name, max_record_bytes) if form.revisits == "resolve" and again else None
    pages = _Pages(max_record_bytes, form, originals)
    yield from archive_events(file, name, max_record_bytes, pages.event, again, part)


Record = Callable[[str, int, int, Frame, Kind], Event]
"""What becomes of a record, given its place, its header and block, and the kind of archive."""


def archive_events(
    file: BinaryIO,
    name: str,
    max_record_bytes: int,
    event: Record,
    again: Callable[[], BinaryIO] | None = None,
    part: Part | None = None,
) -> Iterator[Event]:
    """Yield the events of an archive or a part of it, records as `event` says; see `read_warc_events`."""
    whole = Part(Border(0), None, 0, "") if part is None else part
    begin = whole.begin
    stored = Window(lambda: file.read(READ), begin.at)
    kind = kind_of(stored, name) if again is None or not begin.at else _kind_at_begin(again, name)
    covered, in_stream, stream_total, last = begin.at, 0, 0, "stored"
    if kind.grammar is not None and kind.start and not begin.at:
        yield Structural("stored", 0, kind.start, "dictionary")
        covered = kind.start
    for placed in (
        records_of(stored, kind, max_record_bytes, begin.base) if stored.fill(begin.at + 1) > begin.at else ()
    ):
        if placed.place == "stored":
            if whole.end is not None and placed.length and placed.offset >= whole.stop:
                break
            in_stream += placed.offset - covered if last == "stream" else 0
            covered = placed.offset + placed.length
        else:
            stream_total += placed.length
        last = placed.place
        yield _event(placed, kind, event)
    end = stored.end if whole.end is None else whole.stop
    in_stream += end - covered if last == "stream" else 0
    yield End("stored", end - begin.at - in_stream)
    if stream_total:
        yield End("stream", stream_total)


def _kind_at_begin(again: Callable[[], BinaryIO], name: str) -> Kind:
    with again() as file:
        return kind_of(Window(lambda: file.read(READ)), name)


def _event(placed: Placed, kind: Kind, event: Record) -> Event:
    where = (placed.place, placed.offset, placed.length)
    if placed.item is None:
        return Structural(*where, "empty member")
    if isinstance(placed.item, Hole):
        return Gap(*where, kind.words(placed.item.reason), None)
    return event(*where, placed.item, kind)


@dataclass(frozen=True, slots=True)
class _Pages:
    max_payload: int
    form: WarcForm
    originals: Originals | None

    def event(self, place: str, offset: int, length: int, record: Frame, kind: Kind) -> Event:
        where = (place, offset, length)
        if kind.grammar is ARC:
            return self._arc(where, record)
        fields = record.fields
        name = type_of(record)
        key = fields.get(b"warc-record-id") or None
        if name == "revisit" and self.originals is not None:
            return self._revisit(where, record, key)
        if name not in _DOCUMENTS:
            return Structural(*where, name if name in _STRUCTURAL else "other type")
        if self.originals is not None:
            self.originals.add(*where, record)
        page = self._page(name, record)
        if isinstance(page, Refusal):
            return Refused(*where, page.reason, page.detail, key)
        return Read(*where, 0, key, _values(page, fields))

    def _revisit(self, where: tuple[str, int, int], record: Frame, key: bytes | None) -> Event:
        """Return a revisit with the page of the record that it refers to."""
        original = self.originals.of(record) if self.originals is not None else None
        if original is None:
            refers = record.fields.get(b"warc-refers-to") or record.fields.get(b"warc-refers-to-target-uri") or b""
            return Refused(*where, "revisit of another file", refers.decode("utf-8", "replace")[:200] or None, key)
        page = self._page(type_of(original), original)
        if isinstance(page, Refusal):
            return Refused(*where, page.reason, page.detail, key)
        return Read(*where, 0, key, _values(page, record.fields))

    def _page(self, name: str, record: Frame) -> Page | Refusal:
        """Return the page that a record of a document type holds."""
        if name == "continuation" or b"warc-segment-number" in record.fields:
            return Refusal(RefusalReason.SEGMENTED, None)
        if record.block is None:
            return Refusal(RefusalReason.TOO_LARGE, str(record.size))
        if name == "response":
            return read_response(record.block, self.max_payload, self.form.statuses)
        content_type, charset = media_type([record.fields.get(b"content-type", b"")])
        return read_payload(record.block, content_type, charset)

    def _arc(self, where: tuple[str, int, int], record: Frame) -> Event:
        url = record.fields[b"url"]
        if url.startswith(b"filedesc:"):
            return Structural(*where, "version block")
        if record.block is None:
            return Refused(*where, RefusalReason.TOO_LARGE, str(record.size), None)
        if url[:5].lower() in (b"http:", b"https"):
            page = read_response(record.block, self.max_payload, self.form.statuses)
        else:
            page = read_payload(record.block, *media_type([record.fields[b"content-type"]]))
        if isinstance(page, Refusal):
            return Refused(*where, page.reason, page.detail, None)
        at = arc_milliseconds(record.fields[b"date"].decode("ascii"))
        return Read(*where, 0, None, _page_values(page, url, at))


def type_of(record: Frame) -> str:
    """Return the type of a WARC record, in lower case."""
    return record.fields.get(b"warc-type", b"").lower().decode("ascii", "replace")


def _values(page: Page, fields: dict[bytes, bytes]) -> dict[str, object]:
    at = milliseconds(fields.get(b"warc-date", b"").decode("ascii", "replace"))
    return _page_values(page, fields.get(b"warc-target-uri", b""), at)


def url_of(field: bytes) -> str | None:
    """Return a target URI as a string, without the angle brackets that some writers put around it."""
    return field.decode("utf-8", "replace").strip("<> \t") or None


def _page_values(page: Page, url: bytes, crawled_at: int | None) -> dict[str, object]:
    return {
        "payload": page.payload,
        "content_type": page.content_type,
        "http_charset": page.charset,
        "url": url_of(url),
        "optout_headers": None if page.signals is None else write_signals(page.signals),
        "crawled_at": crawled_at,
    }


def milliseconds(date: str) -> int | None:
    """Return a WARC-Date as milliseconds since 1970 in UTC, the earliest it can mean; None where it is no date."""
    return _milliseconds(_DATE.fullmatch(date))


def arc_milliseconds(date: str) -> int | None:
    """Return the date of an ARC record, YYYYMMDDhhmmss or less or more, as `milliseconds`."""
    return _milliseconds(_ARC_DATE.fullmatch(date))


def _milliseconds(found: re.Match[str] | None) -> int | None:
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(found[i] or least) for i, least in enumerate((1, 1, 1, 0, 0, 0), 1))
    try:
        at = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    return int((at - _EPOCH).total_seconds()) * 1000 + int((found[7] or "").ljust(3, "0")[:3])
