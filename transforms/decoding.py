"""From bytes to text: which encoding, and what could not be decoded.

Evidence is asked in a fixed order (ARCHITECTURE, section 7): byte order mark; strictly valid UTF-8 with at least three
multi-byte sequences; HTTP header; `<meta>` or XML declaration; UTF-8 with a small budget of replacements; detector.
A declared encoding that fails on more than half of the bytes it should explain is passed over. Where header and page
contradict each other the header is right (browsers' rule) unless the page's word makes text that is 16 bits more
probable: servers send one header for all they have. Detection (`transforms.encoding_detection`) comes last.

The text is valid Unicode: no lone surrogates; what does not decode is U+FFFD, counted. The same on every Python
(`transforms.web_codecs`). Cost: one to three passes over the bytes; detection 1 ms.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from transforms.encoding_detection import compare, detect
from transforms.encoding_labels import ENCODINGS
from transforms.web_codecs import decode_as

META_BYTES: Final = 8192
"""How far `<meta>` is looked for. The standard says 1,024; browsers look further, and pages rely on it."""

CERTAIN: Final = 10_000
"""The greatest confidence."""

_LEAST_SEQUENCES: Final = 3
_CONTINUED: Final = 3  # bytes of a sequence after its first, at most
_FAR: Final = 16  # bits
_HALVED: Final = 8  # bits that halve the doubt
_REPLACEMENT: Final = "\ufffd"
_COMMENT: Final = re.compile(rb"<!--.*?-->", re.DOTALL)
_META: Final = re.compile(
    rb"<meta\s[^>]{0,512}?charset\s{0,16}=\s{0,16}[\"']?\s{0,16}([a-z0-9_.:+-]{1,40})"
    rb"|^\s{0,64}<\?xml\s[^>]{0,256}?encoding\s{0,16}=\s{0,16}[\"']([a-z0-9_.:+-]{1,40})",
    re.IGNORECASE,
)
_BOMS: Final = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\0\0", "utf-32le"),
    (b"\0\0\xfe\xff", "utf-32be"),
    (b"\xff\xfe", "utf-16le"),
    (b"\xfe\xff", "utf-16be"),
)


class Evidence(StrEnum):
    """What an encoding was chosen by."""

    BOM = "byte order mark"
    ASCII = "all ascii"
    VALID = "valid utf-8"
    HEADER = "http header"
    META = "meta"
    TOLERANT = "nearly valid utf-8"
    DETECTOR = "detector"


@dataclass(frozen=True, slots=True)
class Decoded:
    """Text made of bytes.

    Attributes:
        text: valid Unicode, without byte order mark.
        encoding: name of the encoding in the WHATWG standard, "us-ascii" where any would have done.
        how: what it was chosen by.
        replaced: number of U+FFFD that stand for bytes which did not decode.
        confidence: ten-thousandths: the share of characters beyond ASCII that decoded; where a detector chose, or
            between declarations that contradict each other, times 1 - 2^(-1 - bits / 8), by how many bits the text is
            more probable than the next.
    """

    text: str
    encoding: str
    how: Evidence
    replaced: int
    confidence: int

    @property
    def is_payload(self) -> bool:
        """Whether the bytes are the text in UTF-8 already."""
        return self.replaced == 0 and self.how in (Evidence.ASCII, Evidence.VALID)


def decode(payload: bytes, http_charset: str | None) -> Decoded:
    """Return the text of `payload`; never fails.

    Args:
        payload: bytes of a page or a plain text.
        http_charset: charset parameter of the HTTP header, if any; unknown names are passed over.
    """
    for mark, encoding in _BOMS:
        if payload.startswith(mark):
            return _decoded(payload[len(mark) :], encoding, Evidence.BOM)
    if payload.isascii() and not any(escape in payload for escape in (b"\x1b", b"~{", b"\0")):
        return Decoded(payload.decode("ascii"), "us-ascii", Evidence.ASCII, 0, CERTAIN)
    if (text := _strict(payload)) is not None and len(payload) - len(text) >= _CONTINUED * _LEAST_SEQUENCES:
        return Decoded(text, "utf-8", Evidence.VALID, 0, CERTAIN)  # as most pages; what follows would say the same
    utf8 = _decoded(payload, "utf-8", Evidence.VALID)
    sequences = _non_ascii(utf8.text) - utf8.replaced
    if utf8.replaced == 0 and sequences >= _LEAST_SEQUENCES:
        return utf8
    declared = [_decoded(payload, encoding, how) for encoding, how in _declared(payload, http_charset)]
    possible = [reading for reading in declared if 2 * reading.replaced <= _non_ascii(reading.text)]
    if len(possible) == 2:
        return _of_two(payload, *possible)
    if possible:
        return possible[0]
    if (utf8.replaced == 0 and sequences) or (sequences >= _LEAST_SEQUENCES and 8 * utf8.replaced <= sequences):
        return replace(utf8, how=Evidence.TOLERANT)
    found = detect(payload)
    detected = _decoded(payload, found.encoding, Evidence.DETECTOR, found.margin)
    return declared[0] if declared and declared[0].replaced <= detected.replaced else detected


def _strict(payload: bytes) -> str | None:
    """Return the text of valid UTF-8, else None."""
    try:
        return payload.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _of_two(payload: bytes, header: Decoded, meta: Decoded) -> Decoded:
    """Return what the header says of a page that says otherwise, unless the page's own word is far more probable."""
    if header.text == meta.text:
        return header
    for reading in (header, meta):
        if reading.encoding == "utf-8" and reading.replaced == 0:
            return reading
    margin = compare(payload, meta.encoding, header.encoding)
    chosen = meta if margin >= _FAR else header
    return replace(chosen, confidence=min(chosen.confidence, _confidence(abs(margin))))


def declared_encoding(payload: bytes) -> str | None:
    """Return the encoding that a page's `<meta>` or XML declaration names, None where none is named or known."""
    found = _META.search(_COMMENT.sub(b"", payload[:META_BYTES]))
    if found is None:
        return None
    encoding = ENCODINGS.get((found[1] or found[2]).decode("ascii").lower())
    return "utf-8" if encoding in ("utf-16le", "utf-16be") else encoding  # it could not have been read otherwise


def _declared(payload: bytes, http_charset: str | None) -> Iterator[tuple[str, Evidence]]:
    header = ENCODINGS.get((http_charset or "").strip("\"' \t").lower())
    if header is not None and (header not in ("utf-16le", "utf-16be") or b"\0" in payload):
        yield header, Evidence.HEADER
    meta = declared_encoding(payload)
    if meta is not None and meta != header:
        yield meta, Evidence.META


def _decoded(payload: bytes, encoding: str, how: Evidence, margin: int | None = None) -> Decoded:
    text = decode_as(encoding, payload)
    replaced = _replaced(text, payload, encoding)
    confidence = CERTAIN if margin is None else _confidence(margin)
    if replaced:
        confidence = confidence * max(0, _non_ascii(text) - replaced) // _non_ascii(text)
    return Decoded(text, encoding, how, replaced, confidence)


def _confidence(margin: int) -> int:
    """Return what a text is worth that is `margin` bits more probable than the next: a half at 0, 3 / 4 at 8."""
    return CERTAIN - (CERTAIN >> 1 + margin // _HALVED)


def _replaced(text: str, payload: bytes, encoding: str) -> int:
    """Count replacement characters that were not in the payload as such."""
    count = text.count(_REPLACEMENT)
    return count - payload.count(b"\xef\xbf\xbd") if count and encoding == "utf-8" else count


def _non_ascii(text: str) -> int:
    return len(text) - len(text.encode("ascii", "ignore"))
