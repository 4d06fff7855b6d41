"""Bytes to characters as browsers do it: the decoders of the WHATWG Encoding Standard on top of Python's codecs.

Encodings of one byte are tables of 256 characters: those of Python's codecs, with C1 controls for bytes that it leaves
undefined where the standard does, and the three characters in which they differ. Japanese ones read JIS X 0208 with the
extensions of NEC and IBM, and its ambiguous signs as Windows does. What does not decode is U+FFFD.

Invariants: the same text on every Python (a test pins the digest of all pairs); equal to Chromium's `TextDecoder` on
every byte and pair that it decodes, but for 207 pairs of Big5 (HKSCS-2008), 20 of gb18030 and a sign of JIS X 0212.
UTF-32, HZ and ISO-2022-KR, which browsers refuse, are read. Cost: that of a codec, one more look-up in Japanese text.
"""

from __future__ import annotations

import codecs
import re
from functools import cache
from typing import Final

from transforms.encoding_labels import CODECS

_UNDEFINED: Final = "\ufffd"
_C1: Final = frozenset({"windows-874", *(f"windows-{number}" for number in range(1250, 1259))})
"""Encodings whose undefined bytes below A0 are C1 controls."""
_OTHERWISE: Final = {"koi8-u": {0xAE: "\u045e", 0xBE: "\u040e"}, "windows-1255": {0xCA: "\u05ba"}}
_WIDE: Final = frozenset(
    {"utf-8", "gbk", "gb18030", "hz-gb-2312", "big5", "euc-jp", "iso-2022-jp", "shift_jis", "euc-kr", "iso-2022-kr"}
    | {"utf-16be", "utf-16le", "utf-32be", "utf-32le"}
)
_WINDOWS_SIGNS: Final = dict(
    zip("\u301c\u2016\u2212\u00a2\u00a3\u00ac", "\uff5e\u2225\uff0d\uffe0\uffe1\uffe2", strict=True)
)
_EUC_JP: Final = re.compile(rb"\x8f[\xa1-\xfe]{2}|\x8e[\xa1-\xdf]|((?:[\xa1-\xfe]{2})+)")
_PRIVATE: Final = dict.fromkeys("\uf8f0\uf8f1\uf8f2\uf8f3", _UNDEFINED)
"""Bytes that Windows gives private characters to and the standard none."""
_ESCAPE: Final = re.compile(rb"\x1b(\$[@B]|\([BJI])")
_PAIRS: Final = re.compile(rb"((?:[\x21-\x7e]{2})+)")
_ROMAN: Final = str.maketrans("\\~", "\u00a5\u203e")
_GB18030: Final = re.compile(rb"[\x81-\xfe](?:[\x40-\x7e\x80-\xfe]|[0-9][\x81-\xfe][0-9])|(\x80)")
_EURO: Final = "\u20ac".encode("gb18030")


def decode_as(encoding: str, payload: bytes) -> str:
    """Return the text of `payload` in `encoding`, a name of the standard; never fails."""
    if encoding not in _WIDE:
        return codecs.charmap_decode(payload, "replace", table(encoding))[0]
    if (decoder := _DECODERS.get(encoding)) is not None:
        return decoder(payload)
    return payload.decode(CODECS[encoding], "replace")


@cache
def table(encoding: str) -> str:
    """Return the 256 characters of an encoding of one byte; U+FFFD where it has none."""
    characters = list(bytes(range(256)).decode(CODECS[encoding], "replace"))
    for byte in range(0x80, 0xA0):
        if encoding in _C1 and characters[byte] == _UNDEFINED:
            characters[byte] = chr(byte)
    for byte, character in _OTHERWISE.get(encoding, {}).items():
        characters[byte] = character
    return "".join(characters)


def _euc_jp(payload: bytes) -> str:
    text = payload.decode("euc_jp", "replace")
    if _UNDEFINED not in text:
        return _exchanged(text, _WINDOWS_SIGNS)
    parts, end = [], 0
    for match in _EUC_JP.finditer(payload):
        if match[1]:
            parts.append(payload[end : match.start()].decode("euc_jp", "replace"))
            parts.append(_shift_jis(_shifted(match[1])))
            end = match.end()
    return "".join([*parts, payload[end:].decode("euc_jp", "replace")])


def _shift_jis(payload: bytes) -> str:
    return _exchanged(payload.decode("cp932", "replace"), _PRIVATE)


def _exchanged(text: str, signs: dict[str, str]) -> str:
    """Return `text` with a few rare signs put for others: `str.translate` asks for each character, and takes longer."""
    for sign, other in signs.items():
        text = text.replace(sign, other)
    return text


def _iso_2022_jp(payload: bytes) -> str:
    parts = _ESCAPE.split(payload)
    return "".join(map(_escaped, [b"(B", *parts[1::2]], parts[::2]))


def _escaped(escape: bytes, content: bytes) -> str:
    """Return the text of `content`, in the set of characters that `escape` names."""
    if escape == b"(I":
        return "".join(chr(byte + 0xFF40) if 0x21 <= byte <= 0x5F else chr(byte) for byte in content)
    if escape in (b"(B", b"(J"):
        text = content.decode("ascii", "replace")
        return text.translate(_ROMAN) if escape == b"(J" else text
    pieces = _PAIRS.split(content)
    for place, piece in enumerate(pieces):
        pieces[place] = _shifted(piece) if place % 2 else bytes(0xFF if byte > 0x20 else byte for byte in piece)
    return _shift_jis(b"".join(pieces))


def _shifted(pairs: bytes) -> bytes:
    """Return pairs of JIS X 0208, with or without their high bits, in Shift_JIS."""
    result = bytearray(len(pairs))
    for at in range(0, len(pairs), 2):
        row, cell = (pairs[at] | 0x80) - 0xA1, (pairs[at + 1] | 0x80) - 0xA1
        lead, trail = row // 2, cell + 94 * (row % 2)
        result[at] = lead + (0x81 if lead < 0x1F else 0xC1)
        result[at + 1] = trail + (0x40 if trail < 0x3F else 0x41)
    return bytes(result)


def _gb18030(payload: bytes) -> str:
    text = payload.decode("gb18030", "replace")
    if _UNDEFINED in text and b"\x80" in payload:
        return _GB18030.sub(lambda found: _EURO if found[1] else found[0], payload).decode("gb18030", "replace")
    return text


_DECODERS: Final = {
    "euc-jp": _euc_jp,
    "iso-2022-jp": _iso_2022_jp,
    "shift_jis": _shift_jis,
    "gbk": _gb18030,
    "gb18030": _gb18030,
}
