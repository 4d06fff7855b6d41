"""Bytes to characters as browsers have them, on every Python."""

from __future__ import annotations

import hashlib

import pytest

from transforms.encoding_labels import CODECS
from transforms.web_codecs import decode_as


@pytest.mark.parametrize(
    ("encoding", "payload", "text"),
    [
        ("windows-1252", b"\x80\x81\x9d", "\u20ac\x81\x9d"),
        ("windows-1255", b"\xca\xd9", "\u05ba\ufffd"),
        ("koi8-u", b"\xae\xbe\xa6", "\u045e\u040e\u0456"),
        ("windows-874", b"\x81\xa1\xdb", "\x81\u0e01\ufffd"),
        ("gb18030", b"\x80 \xb0\xa1\x80", "\u20ac \u554a\u20ac"),
        ("gbk", b"\xa2\xe3\x81\x30\x81\x30", "\u20ac\x80"),
        ("euc-jp", b"\xa1\xc1\x8e\xb1\xa4\xa2", "\uff5e\uff71\u3042"),
        ("euc-jp", b"\xad\xa1\x8e\xb1\x8f\xa2\xaf\xff", "\u2460\uff71\u02d8\ufffd"),
        ("iso-2022-jp", b"a\x1b$B$\"-!\x1b(Ja\\\x1b(I1\x1b(B~", "a\u3042\u2460a\u00a5\uff71~"),
        ("iso-2022-jp", b"\x1b$B$\"\n$", "\u3042\n\ufffd"),
        ("shift_jis", b"\x81\x60\x87\x40\xb1", "\uff5e\u2460\uff71"),
        ("utf-32le", b"a\0\0\0\0\xd8\0\0", "a\ufffd"),
    ],
)  # fmt: skip
def test_bytes_mean_what_the_standard_says(encoding: str, payload: bytes, text: str) -> None:
    assert decode_as(encoding, payload) == text


def test_decoders_of_every_python_are_alike() -> None:
    """Digest of what each makes of all pairs, of many longer sequences and of escapes.

    Made beside Chromium 156: its TextDecoder has the same text for every byte and pair that it has a text for, but for
    207 pairs of Big5 (HKSCS-2008), 20 of gb18030 (upright forms that were private use) and one sign of JIS X 0212.
    """
    high = range(128, 256)
    every = [
        b"".join(bytes([a, b, 32, 32]) for a in high for b in range(256)),
        b"".join(
            bytes([a, b, c, d])
            for a in (0x81, 0x82, 0x83, 0x84, 0x90, 0xE3)
            for b in range(0x30, 0x3A)
            for c in range(0x81, 0xFF)
            for d in range(0x30, 0x3A)
        ),
        b"".join(bytes([0x8F, a, b, 32, 32]) for a in high for b in high),
        b"\x1b$B" + bytes(x for a in range(33, 127) for b in range(33, 127) for x in (a, b)) + b"\x1b(B",
        b"~{" + bytes(x for a in range(33, 127) for b in range(33, 127) for x in (a, b)),
    ]
    digest = hashlib.blake2b(digest_size=16)
    for encoding in sorted(CODECS):
        for sequences in every:
            digest.update(encoding.encode() + decode_as(encoding, sequences).encode())
    assert digest.hexdigest() == "7ccf25ea4d6e503e994903a2a2bf9262"
