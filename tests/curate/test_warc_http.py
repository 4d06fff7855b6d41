"""HTTP responses in archives: header, encodings, refusals."""

from __future__ import annotations

import gzip
import zlib

import brotli
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.readers.http import Page, Refusal, decode_chunked, media_type, read_response


def gzipped(content: bytes, level: int = 9) -> bytes:
    """Compress without the clock: test names and inputs are the same in every process."""
    return gzip.compress(content, level, mtime=0)


HTML = b"<!doctype html><p>Grass grows.</p>" * 9
BARE = zlib.compressobj(wbits=-15)
DEFLATED = BARE.compress(HTML) + BARE.flush()


def response(body: bytes, *fields: str, status: str = "HTTP/1.1 200 OK", line: str = "\r\n") -> bytes:
    return line.join([status, *fields, "", ""]).encode() + body


def respond(body: bytes, *fields: str, status: str = "HTTP/1.1 200 OK", line: str = "\r\n") -> Page | Refusal:
    return read_response(response(body, "Content-Type: text/html", *fields, status=status, line=line), 1 << 20)


@pytest.mark.parametrize("line", ["\r\n", "\n"])
@pytest.mark.parametrize("status", ["HTTP/1.1 200 OK", "HTTP/1.0 200", "HTTP/2 200 ", "HTTP/1.1  200 Très bien"])
def test_page_of_status_200_is_read_whatever_the_line_ends(line: str, status: str) -> None:
    assert respond(HTML, status=status, line=line) == Page(HTML, "text/html", None, ())


@pytest.mark.parametrize(
    ("block", "reason", "detail"),
    [
        (response(HTML, status="HTTP/1.1 404 Not Found"), "http status", "404"),
        (response(HTML, status="HTTP/1.1 2000 OK"), "no http header", None),
        (HTML, "no http header", None),
        (b"", "no http header", None),
        (response(b""), "empty payload", None),
        (response(b" \r\n\t "), "empty payload", None),
        (response(b"0\r\n\r\n", "Transfer-Encoding: chunked"), "empty payload", None),
        (response(b"\x89PNG", "Content-Type: image/png"), "media type", "image/png"),
        (response(b"neither markup nor declared"), "media type", "none"),
        (
            response(b"\x1f\x8b\x08oops", "Content-Type: text/html", "Content-Encoding: gzip"),
            "content encoding",
            "gzip",
        ),
        (response(b"\0\1\2", "Content-Type: text/html", "Content-Encoding: sdch"), "content encoding", "sdch"),
        (response(HTML, "Content-Type: text/html", "Content-Encoding: a,b,c,d,e"), "content encoding", "5 codings"),
    ],
)
def test_what_is_no_page_is_refused_with_a_reason(block: bytes, reason: str, detail: str | None) -> None:
    found = read_response(block, 1 << 20)
    assert isinstance(found, Refusal)
    assert (found.reason, found.detail) == (reason, detail)


@pytest.mark.parametrize(
    ("body", "coding"),
    [
        (gzipped(HTML), "gzip"),
        (gzipped(HTML), "X-GZip"),
        (gzipped(HTML) + b"trailing", "gzip"),
        (zlib.compress(HTML), "deflate"),
        (DEFLATED, "deflate"),
        (brotli.compress(HTML), "br"),
        (zstandard.compress(HTML), "zstd"),
        (zlib.compress(gzipped(HTML)), "gzip, deflate"),
        (HTML, "gzip"),  # undone already by the crawler
        (HTML, "br"),
        (HTML, "identity"),
        (HTML, "unheard-of"),
    ],
)
def test_content_encodings_are_undone(body: bytes, coding: str) -> None:
    assert respond(body, f"Content-Encoding: {coding}") == Page(HTML, "text/html", None, ())


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_body_cut_off_by_the_crawler_gives_what_can_be_read(coding: str) -> None:
    text = b"<p>" + bytes(str(list(range(9000))), "ascii")
    packed = {
        "gzip": gzip.compress,
        "deflate": zlib.compress,
        "br": brotli.compress,
        "zstd": zstandard.ZstdCompressor(write_content_size=False).compress,
    }[coding](text)
    page = respond(packed[: len(packed) * 3 // 4], f"Content-Encoding: {coding}")
    if coding == "zstd":  # one block, which is all or nothing
        assert page == Refusal("content encoding", "zstd") or isinstance(page, Page)
    else:
        assert isinstance(page, Page)
        assert text.startswith(page.payload)
        assert len(page.payload) > 1000


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_bomb_in_a_body_is_refused(coding: str) -> None:
    pack = {"gzip": gzip.compress, "deflate": zlib.compress, "br": brotli.compress, "zstd": zstandard.compress}[coding]
    page = respond(pack(b"\0" * (5 << 20)), f"Content-Encoding: {coding}")
    assert page == Refusal("payload too large", None)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n", b"hello world"),
        (b"5 \r\nhello\r\n0\r\nTrailer: x\r\n\r\n", b"hello"),
        (b"5\nhello\n0\n\n", b"hello"),
        (b"5\r\nhello\r\n6\r\n wo", b"hello wo"),  # cut off by the crawler's limit
        (b"5\r\nhello\r\n6", b"hello"),
        (b"5\r\nhello\r\n", b"hello"),
        (b"<p>not chunked", b"<p>not chunked"),
        (b"3\r\nhello\r\n0\r\n\r\n", b"3\r\nhello\r\n0\r\n\r\n"),  # sizes do not fit: as it is
        (b"5\r\nhello\r\n<p>and then raw\n", b"5\r\nhello\r\n<p>and then raw\n"),
        (b"fffffffffffffff\r\nhello", b"hello"),
        (b"", b""),
    ],
)
def test_chunks_are_joined_and_bad_ones_left_as_they_are(body: bytes, expected: bytes) -> None:
    assert decode_chunked(body) == expected


@given(st.lists(st.binary(min_size=1, max_size=50), max_size=9))
def test_chunked_bodies_come_back(chunks: list[bytes]) -> None:
    body = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
    assert decode_chunked(body) == b"".join(chunks)


@settings(max_examples=300)
@given(
    st.lists(
        st.sampled_from(
            [
                b"HTTP/1.1 200 OK",
                b"\r\n",
                b"\n\n",
                b"Content-Type:",
                b"text/html",
                b"Content-Encoding: gzip",
                b"chunked",
                b"Transfer-Encoding: ",
                b"5\r\nhello\r\n",
                gzipped(b"x")[:9],
                b"\x1f\x8b",
                b"br",
                b";charset=",
                b"\xff",
            ]
        ),
        max_size=20,
    )
)
def test_any_block_is_a_page_or_refused(parts: list[bytes]) -> None:
    assert isinstance(read_response(b"HTTP/1.1 200 OK\r\n" + b"".join(parts), 1000), (Page, Refusal))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([b"text/html"], ("text/html", None)),
        ([b'Text/HTML; Charset="UTF-8"'], ("text/html", "utf-8")),
        ([b"text/html;charset = iso-8859-1;x=y"], ("text/html", "iso-8859-1")),
        ([b"text/html charset=gbk"], ("text/html", "gbk")),
        ([b"text/plain", b"text/html; charset=a"], ("text/html", "a")),
        ([b"text/html; charset=a", b"text/html"], ("text/html", "a")),
        ([b"text/html, */*"], ("text/html", None)),
        ([b"html"], (None, None)),
        ([b""], (None, None)),
        ([], (None, None)),
        ([b"text/html; charset=\xe9\xff"], ("text/html", None)),
    ],
)
def test_media_type_is_the_last_valid_one(values: list[bytes], expected: tuple[str | None, str | None]) -> None:
    assert media_type(values) == expected


@pytest.mark.parametrize("begin", [b"<!DOCTYPE HTML>", b"\n <html lang=x>", b"\xef\xbb\xbf<HEAD>", b"<!-- x -->"])
def test_type_that_is_not_told_is_seen_in_the_bytes(begin: bytes) -> None:
    assert read_response(response(begin + b"x"), 100) == Page(begin + b"x", "text/html", None, ())
