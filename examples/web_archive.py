"""Writes web pages as WARC records and gzip members, the same bytes on every machine and Python.

Ids follow from names, the date is fixed, and gzip members hold stored blocks: any zlib writes those alike, but
compressed ones differ between zlib builds. A page is put back into the charset that it declares, so that a reader has
to decode it as it must decode the real web.
"""

from __future__ import annotations

import hashlib
import re
import struct
import uuid
import zlib
from collections.abc import Mapping
from typing import Final

CRAWL_DATE: Final = "2016-01-01T00:00:00Z"
"""WARC-Date of every record."""

META_CHARSET: Final = re.compile(rb"<meta[^>]{1,200}?charset\s{0,5}=\s{0,5}[\"']?([A-Za-z0-9_-]{1,20})", re.IGNORECASE)
META_WITHIN: Final = 1024
"""Bytes at the beginning of a page in which HTML's prescan looks for a declared encoding."""

CODECS: Final = {
    b"euc-kr": "cp949",
    b"gb2312": "gbk",
    b"gbk": "gbk",
    b"iso-8859-1": "cp1252",
    b"iso-8859-2": "iso8859-2",
    b"iso-8859-15": "iso8859-15",
    b"shift_jis": "cp932",
    b"windows-1250": "cp1250",
    b"windows-1251": "cp1251",
    b"windows-1252": "cp1252",
    b"windows-1257": "cp1257",
    b"windows-31j": "cp932",
}
"""Declared labels and Python's name of what the WHATWG Encoding Standard means by them."""


def encode_page(page: bytes) -> tuple[bytes, str]:
    """Return the body and the Content-Type to send a stored page with.

    A page that declares a charset near its beginning is encoded in it where that loses nothing, and sent without a
    charset; other UTF-8 pages are sent with `charset=utf-8`; pages that are not UTF-8 are sent as they are.
    """
    declared = META_CHARSET.search(page, 0, META_WITHIN)
    codec = CODECS.get(declared[1].lower()) if declared else None
    try:
        text = page.decode("utf-8")
    except UnicodeDecodeError:
        return page, "text/html"
    if codec is not None:
        try:
            encoded = text.encode(codec)
        except UnicodeEncodeError:
            pass
        else:
            if encoded.decode(codec) == text:
                return encoded, "text/html"
    return page, "text/html; charset=utf-8"


def response_record(name: str, url: str, content_type: str, body: bytes) -> bytes:
    """Return the WARC record of a response of status 200."""
    http = f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    return _frame(name, "response", "application/http; msgtype=response", http + body, {"WARC-Target-URI": url})


def information_record(file: str, fields: Mapping[str, str]) -> bytes:
    """Return the WARC record that describes the archive `file`."""
    about = "".join(f"{field}: {value}\r\n" for field, value in fields.items())
    return _frame(file, "warcinfo", "application/warc-fields", about.encode(), {"WARC-Filename": file})


def _frame(name: str, kind: str, content_type: str, block: bytes, fields: Mapping[str, str]) -> bytes:
    """Return a WARC/1.0 record (ISO 28500) whose id follows from `name`."""
    identity = uuid.UUID(bytes=hashlib.sha256(name.encode()).digest()[:16], version=5)
    headers = {
        "WARC-Type": kind,
        "WARC-Record-ID": f"<urn:uuid:{identity}>",
        "WARC-Date": CRAWL_DATE,
        **fields,
        "Content-Type": content_type,
        "Content-Length": str(len(block)),
    }
    lines = "".join(f"{field}: {value}\r\n" for field, value in headers.items())
    return b"WARC/1.0\r\n" + lines.encode() + b"\r\n" + block + b"\r\n\r\n"


def gzip_member(content: bytes) -> bytes:
    """Return `content` as one gzip member (RFC 1952) of stored blocks (RFC 1951, section 3.2.4), time 0.

    Any zlib writes the same stored blocks, but compressed ones differ between zlib builds.
    """
    blocks = [content[start : start + 0xFFFF] for start in range(0, len(content), 0xFFFF)] or [b""]
    stored = [
        struct.pack("<BHH", index == len(blocks) - 1, len(block), len(block) ^ 0xFFFF) + block
        for index, block in enumerate(blocks)
    ]
    head = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
    return b"".join([head, *stored, struct.pack("<LL", zlib.crc32(content), len(content) & 0xFFFFFFFF)])
