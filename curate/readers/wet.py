"""WET and WAT: what Common Crawl derives of its WARC files, text and metadata, in WARC records.

A WET file holds `conversion` records of plain text: documents as they are. A WAT file holds `metadata` records of JSON,
one for each record of the WARC file; those of responses become rows that are named as the response is (WARC-Refers-To
is its record id), so that `Dataset.join` puts them beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO

from curate.readers.archives import Kind
from curate.readers.events import Event, Read, Refused, Structural
from curate.readers.forms import WatForm
from curate.readers.framing import Frame
from curate.readers.http import RefusalReason
from curate.readers.jsonl import TOO_DEEP, parse_json
from curate.readers.parts import Part
from curate.readers.reader import Reader
from curate.readers.rows import canonical_value, mend
from curate.readers.warc import archive_events, milliseconds, type_of, url_of
from transforms.canonical import canonical_json

Open = Callable[[], BinaryIO] | None


def read_wet_events(
    file: BinaryIO, name: str, reader: Reader, again: Open = None, part: Part | None = None
) -> Iterator[Event]:
    """Yield the events of a WET file, or of a part of it; see `read_warc_events`."""
    return archive_events(file, name, reader.max_record_bytes, _wet_event, again, part)


def _wet_event(place: str, offset: int, length: int, record: Frame, kind: Kind) -> Event:
    where, fields, name = (place, offset, length), record.fields, type_of(record)
    key = fields.get(b"warc-record-id") or None
    if name != "conversion":
        return Structural(*where, name or "other type")
    if record.block is None:
        return Refused(*where, RefusalReason.TOO_LARGE, str(record.size), key)
    try:
        text = record.block.decode("utf-8")
    except UnicodeDecodeError as error:
        return Refused(*where, "not UTF-8", f"byte {error.start} of the block", key)
    languages = fields.get(b"warc-identified-content-language", b"").decode("ascii", "replace") or None
    return Read(*where, 0, key, {"text": text, "identified_languages": languages, **_named(fields)})


def _named(fields: Mapping[bytes, bytes]) -> dict[str, Any]:
    at = milliseconds(fields.get(b"warc-date", b"").decode("ascii", "replace"))
    return {"url": url_of(fields.get(b"warc-target-uri", b"")), "crawled_at": at}


def read_wat_events(
    file: BinaryIO, name: str, reader: Reader, again: Open = None, part: Part | None = None
) -> Iterator[Event]:
    """Yield the events of a WAT file, or of a part of it; see `read_warc_events`."""
    form = reader.form if isinstance(reader.form, WatForm) else WatForm()

    def event(place: str, offset: int, length: int, record: Frame, kind: Kind) -> Event:
        return _wat_event((place, offset, length), record, form)

    return archive_events(file, name, reader.max_record_bytes, event, again, part)


def _wat_event(where: tuple[str, int, int], record: Frame, form: WatForm) -> Event:
    fields, name = record.fields, type_of(record)
    if name != "metadata":
        return Structural(*where, name or "other type")
    key = fields.get(b"warc-refers-to") or None
    if record.block is None:
        return Refused(*where, RefusalReason.TOO_LARGE, str(record.size), key)
    try:
        envelope = parse_json(record.block)["Envelope"]
        described = str(envelope["WARC-Header-Metadata"]["WARC-Type"])
    except (ValueError, KeyError, TypeError) as error:
        return Refused(*where, TOO_DEEP if str(error) == TOO_DEEP else "not JSON", None, key)
    if described != "response":
        return Structural(*where, f"metadata of {described[:32]}")
    values = {ours: _found(envelope, path) for ours, path in form.columns}
    return Read(*where, 0, key, {"text": values.get("title") or "", **values, **_named(fields)})


def _found(envelope: Any, path: str) -> str | None:
    """Return what stands at `path`, anything but a string as canonical JSON, None where nothing does."""
    for part in path.split("/"):
        if not isinstance(envelope, dict) or part not in envelope:
            return None
        envelope = envelope[part]
    if envelope is None:
        return None
    return mend(envelope if isinstance(envelope, str) else canonical_json(canonical_value(envelope)))[0]
