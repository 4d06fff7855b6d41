"""From a stored HTTP response to the bytes of the page: status, header, transfer and content encodings.

Crawlers disagree about what they store: many undo the encodings and leave the header fields standing. So an encoding
that the bytes do not show is taken as undone already, a body that is not chunked though it says so is taken as it
is, and a body cut off by the crawler's limit gives what can be read of it (RFC 9112 section 7.1, RFC 9110 section
8.4; Fetch, "extract a MIME type"). Everything that is no readable page of status 200 is refused with a reason.

Cost: linear; what a body inflates to is bounded, so a bomb costs `max_payload` bytes.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import brotli
import zstandard

from transforms.optout import header_signals

MAX_HEADER: Final = 1 << 16
"""Longest HTTP header that is looked for, in bytes."""

_MAX_CODINGS: Final = 4
_STATUS: Final = re.compile(rb"HTTP/[0-9]+(?:\.[0-9]+)?[ \t]+([0-9]{3})(?![0-9])")
_CHUNK: Final = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]{0,4096})?\r?\n")
_CUT_SIZE: Final = re.compile(rb"[0-9A-Fa-f]{0,15}\r?")
_MEDIA_TYPE: Final = re.compile(rb"[a-z0-9!#$&^_.+-]{1,64}/[a-z0-9!#$&^_.+-]{1,64}")
_CHARSET: Final = re.compile(rb"charset\s*=\s*[\"']?\s*([a-z0-9_.:+-]{1,40})", re.ASCII)
_SNIFFED: Final = re.compile(  # WHATWG MIME sniffing, section 7.1: what marks HTML
    rb"(?:\xef\xbb\xbf)?[\t\n\f\r ]*(?:<!--|<(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|"
    rb"b|body|br|p)[\t\n\f\r />])",
    re.IGNORECASE,
)
READABLE: Final = frozenset({"text/html", "application/xhtml+xml", "text/plain"})
"""Media types whose payload becomes a document."""


class RefusalReason(StrEnum):
    """Why a record that is whole becomes no document. The words appear in ledgers and statistics."""

    TOO_LARGE = "record too large"
    SEGMENTED = "segmented record"
    NO_HEADER = "no http header"
    STATUS = "http status"
    MEDIA_TYPE = "media type"
    ENCODING = "content encoding"
    PAYLOAD_TOO_LARGE = "payload too large"
    EMPTY = "empty payload"


@dataclass(frozen=True, slots=True)
class Page:
    """The bytes of a page: `content_type` without parameters and `charset` in lower case, None where not told.

    `signals` are the opt-out signals of the HTTP header (`transforms.optout`), None where there is no header.
    """

    payload: bytes
    content_type: str
    charset: str | None
    signals: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """No page, with the reason and what was found instead."""

    reason: RefusalReason
    detail: str | None


def read_response(block: bytes, max_payload: int, statuses: Collection[int] | None = (200,)) -> Page | Refusal:
    """Return the page in the HTTP response `block`; `max_payload` bounds its decoded bytes, None takes any status."""
    status = _STATUS.match(block)
    if status is None:
        return Refusal(RefusalReason.NO_HEADER, None)
    if statuses is not None and int(status[1]) not in statuses:
        return Refusal(RefusalReason.STATUS, status[1].decode())
    header, body = _split(block)
    fields = _fields(header)
    if b"chunked" in b",".join(fields.get(b"transfer-encoding", [])).lower():
        body = decode_chunked(body)
    if not body:
        return Refusal(RefusalReason.EMPTY, None)
    content_type, charset = media_type(fields.get(b"content-type", []))
    if content_type is not None and content_type not in READABLE:
        return Refusal(RefusalReason.MEDIA_TYPE, content_type)
    decoded = decode_content(body, fields.get(b"content-encoding", []), max_payload)
    page = decoded if isinstance(decoded, Refusal) else read_payload(decoded, content_type, charset)
    return page if isinstance(page, Refusal) else replace(page, signals=header_signals(fields))


def read_payload(payload: bytes, content_type: str | None, charset: str | None) -> Page | Refusal:
    """Return `payload` as a page of `content_type`; where that is None it must look like HTML."""
    if not payload.strip(b"\t\n\f\r "):
        return Refusal(RefusalReason.EMPTY, None)
    if content_type is None and _SNIFFED.match(payload):
        content_type = "text/html"
    if content_type is None or content_type not in READABLE:
        return Refusal(RefusalReason.MEDIA_TYPE, content_type or "none")
    return Page(payload, content_type, charset)


def media_type(values: list[bytes]) -> tuple[str | None, str | None]:
    """Return the media type and the charset that Content-Type fields give; the last valid type holds."""
    found: tuple[str | None, str | None] = (None, None)
    for value in b",".join(values).lower().split(b","):
        kind = _MEDIA_TYPE.match(value.strip())
        if kind is None or kind[0] == b"*/*":
            continue
        charset = _CHARSET.search(value)
        name = charset[1].decode() if charset else None
        essence = kind[0].decode()
        found = (essence, name or (found[1] if found[0] == essence else None))
    return found


def _split(block: bytes) -> tuple[bytes, bytes]:
    """Return header and body; a header without a blank line is all header."""
    ends = [at + len(blank) for blank in (b"\n\r\n", b"\n\n") if (at := block.find(blank, 0, MAX_HEADER)) >= 0]
    end = min(ends, default=len(block))
    return block[:end], block[end:]


def _fields(header: bytes) -> dict[bytes, list[bytes]]:
    fields: dict[bytes, list[bytes]] = {}
    for line in header[:MAX_HEADER].split(b"\n")[1:]:
        name, colon, value = line.partition(b":")
        if colon:
            fields.setdefault(name.strip().lower(), []).append(value.strip())
    return fields


def decode_chunked(body: bytes) -> bytes:
    """Return `body` without its chunk sizes.

    A body whose sizes do not fit its bytes is returned as it is; of one that is cut off, what is there.
    """
    chunks: list[bytes] = []
    at = 0
    while at < len(body):
        size = _CHUNK.match(body, at)
        if size is None:
            return b"".join(chunks) if chunks and _CUT_SIZE.fullmatch(body, at) else body
        begin, end = size.end(), size.end() + int(size[1], 16)
        if begin == end:
            break
        if end < len(body) and body[end : end + 1] not in (b"\r", b"\n"):
            return body
        chunks.append(body[begin:end])
        at = end + 2 if body.startswith(b"\r\n", end) else end + 1
    return b"".join(chunks)


def decode_content(body: bytes, values: list[bytes], limit: int) -> bytes | Refusal:
    """Undo the content codings named in Content-Encoding fields, last first.

    Returns:
        The decoded bytes; a refusal where they do not decode and do not look decoded already, or exceed `limit`.
    """
    codings = [name for value in b",".join(values).lower().split(b",") if (name := value.strip()) not in _NO_CODING]
    if len(codings) > _MAX_CODINGS:
        return Refusal(RefusalReason.ENCODING, f"{len(codings)} codings")
    for name in reversed(codings):
        decoder = _DECODERS.get(name)
        decoded = None if decoder is None else decoder(body, limit + 1)
        if decoded is not None and len(decoded) > limit:
            return Refusal(RefusalReason.PAYLOAD_TOO_LARGE, None)
        if decoded is None and not _looks_decoded(body):
            return Refusal(RefusalReason.ENCODING, name[:32].decode("ascii", "replace"))
        body = body if decoded is None else decoded
    return body


def _looks_decoded(body: bytes) -> bool:
    """Return whether `body` is text already: markup begins it, or no control character is near its beginning."""
    begin = body[:1024].removeprefix(b"\xef\xbb\xbf").lstrip(b"\t\n\f\r ")
    return begin.startswith(b"<") or not any(byte < 9 or 13 < byte < 27 or 27 < byte < 32 for byte in begin)


def _inflated(window_bits: int, body: bytes, limit: int) -> bytes | None:
    """Return what `body` inflates to, at most `limit` bytes, also if it is cut off; None where it is damaged."""
    try:
        return zlib.decompressobj(window_bits).decompress(body, limit) or None
    except zlib.error:
        return None


def _gunzip(body: bytes, limit: int) -> bytes | None:
    return _inflated(31, body, limit)


def _inflate_deflate(body: bytes, limit: int) -> bytes | None:
    """Return the inflated body: zlib as RFC 9110 says, or bare deflate as old servers send it."""
    return _inflated(15, body, limit) or _inflated(-15, body, limit)


def _unbrotli(body: bytes, limit: int) -> bytes | None:
    try:
        return bytes(brotli.Decompressor().process(body, output_buffer_limit=limit)) or None
    except brotli.error:
        return None


def _unzstd(body: bytes, limit: int) -> bytes | None:
    try:
        with zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(body, read_across_frames=True) as reader:
            return bytes(reader.read(limit)) or None
    except zstandard.ZstdError:
        return None


_Decoder = Callable[[bytes, int], bytes | None]
_NO_CODING: Final = frozenset({b"", b"identity", b"none", b"utf-8", b"8bit", b"7bit", b"binary", b"chunked"})
_DECODERS: Final[dict[bytes, _Decoder]] = {
    b"gzip": _gunzip,
    b"x-gzip": _gunzip,
    b"deflate": _inflate_deflate,
    b"br": _unbrotli,
    b"zstd": _unzstd,
}
