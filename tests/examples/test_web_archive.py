"""Pages as WARC records in stored gzip members: readable by others, the same bytes everywhere, real charsets."""

from __future__ import annotations

import gzip
import io

import pytest
from fastwarc.warc import ArchiveIterator as FastIterator
from hypothesis import example, given
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from examples.web_archive import encode_page, gzip_member, information_record, response_record

PAGE = '<html><head><meta http-equiv="Content-Type" content="text/html; charset={}"></head><body>{}</body></html>'


@given(st.binary(max_size=300))
@example(b"")
@example(bytes(0xFFFF))
@example(bytes(0x10000))
@example(b"ab" * 200_000)
def test_gzip_member_any_bytes_come_back(content: bytes) -> None:
    assert gzip.decompress(gzip_member(content)) == content


def test_gzip_member_bytes_are_those_of_the_format() -> None:
    assert gzip_member(b"ab").hex() == "1f8b08000000000000ff" + "010200fdff" + "6162" + "6d48839e" + "02000000"


@pytest.mark.parametrize(
    ("charset", "text", "codec"),
    [
        ("windows-1251", "Привет", "cp1251"),
        ("ISO-8859-1", "déjà “vu”", "cp1252"),
        ("euc-kr", "안녕하세요", "cp949"),
        ("Windows-31J", "こんにちは", "cp932"),
    ],
)
def test_encode_page_declared_charset_is_used_and_not_sent(charset: str, text: str, codec: str) -> None:
    page = PAGE.format(charset, text)
    assert encode_page(page.encode()) == (page.encode(codec), "text/html")


@pytest.mark.parametrize(
    ("charset", "text"), [("iso-8859-1", "東京"), ("utf-8", "é"), ("no-such", "é"), ("utf-16", "é")]
)
def test_encode_page_where_it_would_lose_text_stays_utf_8(charset: str, text: str) -> None:
    page = PAGE.format(charset, text).encode()
    assert encode_page(page) == (page, "text/html; charset=utf-8")


def test_encode_page_declared_too_late_stays_utf_8() -> None:
    page = (" " * 1024 + PAGE.format("windows-1251", "Привет")).encode()
    assert encode_page(page) == (page, "text/html; charset=utf-8")


def test_encode_page_not_utf_8_is_sent_as_it_is() -> None:
    page = PAGE.format("UTF-8", "é").encode("cp1252")
    assert encode_page(page) == (page, "text/html")


def test_records_are_read_by_warcio_and_fastwarc() -> None:
    body = b"<p>body</p>"
    records = [
        information_record("pages.warc.gz", {"software": "a test"}),
        response_record("one.html", "https://example.org/?q=1", "text/html", body),
        response_record("two.html", "https://example.org/?q=1", "text/html", body),
    ]
    file = b"".join(map(gzip_member, records))
    read = [
        (record.rec_type, dict(record.rec_headers.headers), record.content_stream().read())
        for record in ArchiveIterator(io.BytesIO(file))
    ]
    assert [kind for kind, _, _ in read] == ["warcinfo", "response", "response"]
    assert [content for _, _, content in read[1:]] == [body, body]
    assert read[1][1]["WARC-Target-URI"] == "https://example.org/?q=1"
    assert len({headers["WARC-Record-ID"] for _, headers, _ in read}) == 3
    fast = list(FastIterator(io.BytesIO(file)))
    assert [record.http_headers.status_code for record in fast if record.is_http] == [200, 200]


def test_record_id_follows_from_the_name() -> None:
    one, same = (response_record("one.html", "https://example.org/", "text/html", body) for body in (b"x", b"y"))
    line = b"WARC-Record-ID: <urn:uuid:325380b5-1a90-5dc8-b580-7f2f97b6c918>\r\n"
    assert line in one and line in same
