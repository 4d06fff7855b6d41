"""MediaWiki XML dumps, plain or compressed (.bz2, .gz, .xz, .zst, …): a page is a record, its wikitext not yet text.

Dumps hold pages one after the other, `<page>` to `</page>`, with everything inside them escaped; so pages are found
without parsing what lies between, and damage costs the page that it hits. Of a page the last revision counts. Apply
`ExtractWikitext` to make text of it.

Cost: one pass, about 100 MB/s of XML. Memory: one page, at most `max_record_bytes`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, BinaryIO, Final
from urllib.parse import quote
from xml.etree import ElementTree

from curate.readers.compression import Stored
from curate.readers.events import Event, Gap, Read, Refused, Structural, stored_ends
from curate.readers.forms import WikiForm
from curate.readers.lines import cut_at
from curate.readers.reader import Reader

WIKITEXT: Final = "text/x-wiki"
"""Media type of wikitext."""

_BEGIN: Final = b"<page>"
_END: Final = b"</page>"
_BASE: Final = re.compile(rb"<base>([^<>\s]{1,512})/[^/<>\s]*</base>")
_NUMBER: Final = re.compile(r"-?[0-9]{1,18}")


def read_mediawiki_events(file: BinaryIO, name: str, reader: Reader) -> Iterator[Event]:
    """Yield the events of a dump; `name` tells the compression."""
    form = reader.form if isinstance(reader.form, WikiForm) else WikiForm()
    stored = Stored(file, name)
    offset, base = 0, ""
    for content, length in cut_at(stored.blocks(), _END, reader.max_record_bytes):
        if content is None:
            yield Refused(stored.place, offset, length, "record too large", f"{length} bytes", None)
        elif (begin := content.rfind(_BEGIN)) < 0 or not content.endswith(_END):
            yield _between(stored.place, offset, content)
        else:
            if begin:
                yield _between(stored.place, offset, content[:begin])
                found = _BASE.search(content, 0, begin)
                base = found[1].decode("utf-8", "replace") if found else base
            yield _page((stored.place, offset + begin, length - begin), content[begin:], base, form)
        offset += length
    yield from stored_ends(stored, offset)


def _between(place: str, offset: int, content: bytes) -> Event:
    if _BEGIN in content:
        return Gap(place, offset, len(content), "truncated page", None)
    return Structural(place, offset, len(content), "siteinfo" if b"<siteinfo" in content else "between pages")


def _page(where: tuple[str, int, int], content: bytes, base: str, form: WikiForm) -> Event:
    try:
        page = ElementTree.fromstring(content)
    except (ElementTree.ParseError, ValueError, LookupError):
        return Refused(*where, "not XML", None, None)
    title, namespace = page.findtext("title") or "", page.findtext("ns") or "0"
    number, revision = page.findtext("id") or "", (page.findall("revision") or [page])[-1]
    if not title or not (_NUMBER.fullmatch(namespace) and _NUMBER.fullmatch(number)):
        return Refused(*where, "not a page", None, None)
    if form.namespaces is not None and int(namespace) not in form.namespaces:
        return Structural(*where, "page of another namespace")
    redirect = page.find("redirect")
    if redirect is not None and form.redirects == "refuse":
        return Refused(*where, "redirect", None, None)
    model = revision.findtext("model") or "wikitext"
    if model != "wikitext":
        return Refused(*where, "content model", model[:64], None)
    text = revision.findtext("text")
    if not text or not text.strip():
        return Refused(*where, "empty payload", None, None)
    values: dict[str, Any] = {
        "payload": text.encode("utf-8"),
        "content_type": WIKITEXT,
        "http_charset": "utf-8",
        "url": f"{base}/{quote(title.replace(' ', '_'), safe=':/(),')}" if base else None,
        "title": title,
        "redirect": None if redirect is None else redirect.get("title"),
        "revised": revision.findtext("timestamp"),
        "page": int(number),
        "namespace": int(namespace),
    }
    return Read(*where, 0, None, values)
