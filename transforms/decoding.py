"""From bytes to text: which encoding, and what could not be decoded.

Evidence is asked in a fixed order (ARCHITECTURE, section 7): byte order mark; strictly valid UTF-8 with at least three
multi-byte sequences; HTTP header; `<meta>` or XML declaration; UTF-8 with a small budget of replacements; detector.
A declared encoding that fails on more than half of the bytes it should explain is passed over. Statistical detection
comes last because it takes UTF-8 with one bad byte, and gb18030, for Cyrillic.

The text is valid Unicode: no lone surrogates; what does not decode is U+FFFD, counted. Depends on Python's codecs
(tests pin their tables) and, in the last step, on resiliparse. Cost: one to three passes over the bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from resiliparse.parse.encoding import detect_encoding

from transforms.encoding_labels import CODECS, ENCODINGS

META_BYTES: Final = 8192
"""How far `<meta>` is looked for. The standard says 1,024; browsers look further, and pages rely on it."""

_LEAST_SEQUENCES: Final = 3
_REPLACEMENT: Final = "\ufffd"
_COMMENT: Final = re.compile(rb"<!--.*?-->", re.DOTALL)
_META: Final = re.compile(
    rb"<meta\s[^>]{0,512}?charset\s{0,16}=\s{0,16}[\"']?\s{0,16}([a-z0-9_.:+-]{1,40})"
    rb"|^\s{0,64}<\?xml\s[^>]{0,256}?encoding\s{0,16}=\s{0,16}[\"']([a-z0-9_.:+-]{1,40})",
    re.IGNORECASE,
)
_BOMS: Final = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16le"), (b"\xfe\xff", "utf-16be"))


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
    """

    text: str
    encoding: str
    how: Evidence
    replaced: int


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
        return Decoded(payload.decode("ascii"), "us-ascii", Evidence.ASCII, 0)
    utf8 = _decoded(payload, "utf-8", Evidence.VALID)
    sequences = _non_ascii(utf8) - utf8.replaced
    if utf8.replaced == 0 and sequences >= _LEAST_SEQUENCES:
        return utf8
    refused: Decoded | None = None
    for encoding, how in _declared(payload, http_charset):
        declared = _decoded(payload, encoding, how)
        if 2 * declared.replaced <= _non_ascii(declared):
            return declared
        refused = refused or declared
    if (utf8.replaced == 0 and sequences) or (sequences >= _LEAST_SEQUENCES and 8 * utf8.replaced <= sequences):
        return Decoded(utf8.text, "utf-8", Evidence.TOLERANT, utf8.replaced)
    name = ENCODINGS.get((detect_encoding(payload) or "").replace("_", "-").lower(), "windows-1252")
    detected = _decoded(payload, name, Evidence.DETECTOR)
    if refused is not None and refused.replaced <= detected.replaced:
        return refused
    return detected


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


def _decoded(payload: bytes, encoding: str, how: Evidence) -> Decoded:
    """Decode with the codec of `encoding` that leaves the fewest replacements."""
    texts = [payload.decode(CODECS[encoding][0], "replace")]
    counts = [_replaced(texts[0], payload, encoding)]
    for codec in CODECS[encoding][1:]:
        if min(counts):
            texts.append(payload.decode(codec, "replace"))
            counts.append(_replaced(texts[-1], payload, encoding))
    best = counts.index(min(counts))
    return Decoded(texts[best], encoding, how, counts[best])


def _replaced(text: str, payload: bytes, encoding: str) -> int:
    """Count replacement characters that were not in the payload as such."""
    count = text.count(_REPLACEMENT)
    return count - payload.count(b"\xef\xbf\xbd") if count and encoding == "utf-8" else count


def _non_ascii(decoded: Decoded) -> int:
    return len(decoded.text) - len(decoded.text.encode("ascii", "ignore"))
