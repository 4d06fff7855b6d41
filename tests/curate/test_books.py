"""MediaWiki dumps, EPUB books and PDF files as records."""

from __future__ import annotations

import bz2
import io
import random
import zipfile

from curate.readers.events import Read
from curate.readers.forms import WikiForm
from tests.curate.reading import kinds, lost, mutated, read_as, values

HEAD = "<mediawiki><siteinfo><base>https://an.example.org/wiki/Main</base></siteinfo>\n"


def wiki(title: str, text: str, more: str = "", namespace: int = 0, model: str = "wikitext") -> str:
    revision = f"<timestamp>2020-01-01T00:00:00Z</timestamp><model>{model}</model><text>{text}</text>"
    return f"<page><title>{title}</title><ns>{namespace}</ns><id>7</id>{more}<revision>{revision}</revision></page>\n"


def test_dump_gives_its_articles_with_their_columns() -> None:
    redirect = '<redirect title="A b" />'
    pages = [
        wiki("A b", "'''x''' &lt;ref&gt;"),
        wiki("R", "#REDIRECT [[A b]]", redirect),
        wiki("T:x", "t", namespace=10),
        wiki("css", "x", model="css"),
        wiki("empty", " "),
        "<page><title>a & b</title></page>",
        "<page><title>cut off ",
        wiki("C", "last"),
    ]
    data = bz2.compress((HEAD + "".join(pages) + "</mediawiki>").encode())
    events = read_as("mediawiki", data, "d.xml.bz2")
    assert values(events, "title", "payload", "url", "page", "namespace", "revised") == [
        ("A b", b"'''x''' <ref>", "https://an.example.org/wiki/A_b", 7, 0, "2020-01-01T00:00:00Z"),
        ("C", b"last", "https://an.example.org/wiki/C", 7, 0, "2020-01-01T00:00:00Z"),
    ]
    assert lost(events) == ["redirect", "content model", "empty payload", "not XML", "truncated page"]
    assert "page of another namespace" in kinds(events) and "siteinfo" in kinds(events)
    kept = read_as("mediawiki", data, "d.xml.bz2", WikiForm(None, "keep"))
    assert values(kept, "title", "redirect")[:3] == [("A b", None), ("R", "A b"), ("T:x", None)]


def test_page_above_the_limit_is_refused_and_the_next_is_read() -> None:
    data = (HEAD + wiki("big", "x" * 5000) + wiki("small", "y")).encode()
    events = read_as("mediawiki", data, max_record_bytes=1000)
    assert values(events, "title") == ["small"] and lost(events) == ["record too large"]


PACKAGE = """<package xmlns="o" xmlns:dc="d"><metadata><dc:title> Book </dc:title></metadata><manifest>
<item id="a" href="a.xhtml" media-type="application/xhtml+xml"/><item id="b" href="b%20c.xhtml" media-type=
"application/xhtml+xml"/><item id="c" href="gone.xhtml" media-type="application/xhtml+xml"/><item id="p" href="p.png"
media-type="image/png"/></manifest><spine><itemref idref="b"/><itemref idref="c"/><itemref idref="p"/><itemref
idref="a"/></spine></package>"""


def epub(package: str = PACKAGE) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "META-INF/container.xml",
            '<container xmlns="u"><rootfiles><rootfile full-path="O/p.opf"/></rootfiles></container>',
        )
        for name, content in {"O/p.opf": package, "O/a.xhtml": "<p>A", "O/b c.xhtml": "<p>B" * 300}.items():
            archive.writestr(name, content)
    return held.getvalue()


def test_book_gives_its_chapters_in_reading_order() -> None:
    events = read_as("epub", epub(), "b.epub")
    assert values(events, "book", "chapter", "path") == [("Book", 0, "O/b c.xhtml"), ("Book", 2, "O/a.xhtml")]
    assert [event.part for event in events if isinstance(event, Read)] == [0, 1]
    assert lost(events) == ["damaged chapter"]


def test_book_that_is_none_is_refused() -> None:
    bomb = '<!DOCTYPE p [<!ENTITY a "aaaa">]>' + PACKAGE
    for data in (b"", epub()[:-30], epub(bomb), epub("<package/>"), epub("<package")):
        assert lost(read_as("epub", data, "b.epub")) in (["not EPUB"], ["no chapters"])
    assert lost(read_as("epub", epub(), max_record_bytes=300)) == ["record too large"]


def test_chapter_that_inflates_too_far_is_lost_alone() -> None:
    limit = len(epub()) + 1
    events = read_as("epub", epub(), max_record_bytes=limit)
    assert values(events, "chapter") == [2] and lost(events) == ["damaged chapter"] * 2


def test_mutated_books_end_in_events_of_all_bytes() -> None:
    chance, data = random.Random(0), epub()
    for _ in range(200):
        read_as("epub", mutated(data, chance), "b.epub")


def test_pdf_is_a_record_of_its_bytes() -> None:
    events = read_as("pdf", b"%PDF-1.4 x")
    assert values(events, "content_type") == ["application/pdf"]
    assert lost(read_as("pdf", b"<html>")) == ["not PDF"]
