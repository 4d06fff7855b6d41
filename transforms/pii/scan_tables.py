"""What the scan of `transforms.pii.scan` looks up: codes of candidates, and what a byte triggers, is, or ends."""

from __future__ import annotations

from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from transforms.segmentation import Bytes

Flags = npt.NDArray[np.uint16]
Table = TypeVar("Table", Bytes, Flags)

EMAIL: Final = 1
IPV4: Final = 2
IPV6: Final = 3
PHONE: Final = 4
CARD: Final = 5
IBAN: Final = 6
TOKEN: Final = 7
ASSIGNMENT: Final = 8
JWT: Final = 9
PRIVATE_KEY: Final = 10

# What a byte may trigger.
DIGIT: Final = 1
AT: Final = 2
COLON: Final = 3
EQUALS: Final = 4
JOINER: Final = 5
CAPITAL: Final = 6

# Properties of bytes, as bits.
ALNUM: Final = 1
HEX: Final = 2
NUMBER: Final = 4
SEPARATOR: Final = 8
SPACE: Final = 16
QUOTE: Final = 32
TOKENS: Final = 64
UPPER: Final = 128
JOINT: Final = 256
INSIDE: Final = 512


def _triggers() -> Bytes:
    table = np.zeros(256, np.uint8)
    for characters, trigger in (
        (b"0123456789", DIGIT),
        (b"@", AT),
        (b":", COLON),
        (b"=", EQUALS),
        (b"_-", JOINER),
        (b"ABEJS", CAPITAL),
    ):
        table[list(characters)] = trigger
    return _frozen(table)


def _properties() -> Flags:
    table = np.zeros(256, np.uint16)
    digits, hexadecimal, capitals = b"0123456789", b"0123456789ABCDEFabcdef", bytes(range(65, 91))
    letters = capitals + capitals.lower()
    for characters, bit in (
        (letters + digits, ALNUM),
        (hexadecimal, HEX),
        (digits, NUMBER),
        (b" -./()", SEPARATOR),
        (b" \t", SPACE),
        (b"\"'`]", QUOTE),
        (letters + digits + b"_-", TOKENS),
        (capitals, UPPER),
        (capitals.lower() + digits, INSIDE),
        (b" -./()" + "\u00a0\u2010\u2011\u202f".encode(), JOINT),
    ):
        table[list(characters)] |= bit
    return _frozen(table)


def _pairs() -> Bytes:
    """Return which two bytes before ``_`` or ``-`` end the prefix of a published kind of token."""
    table = np.zeros(1 << 16, np.uint8)
    before = {
        "_": ("hp", "ho", "hu", "hs", "hr", "ub", "pm", "hf", "sk", "rk", "ec"),
        "-": ("at", "sk", "pi", "xb", "xa", "xp", "xr", "xs", "xe", "pp", "PX"),
    }
    for bit, pairs in enumerate(before.values()):
        for pair in pairs:
            table[ord(pair[0]) << 8 | ord(pair[1])] |= 1 << bit
    return _frozen(table)


def _frozen(table: Table) -> Table:
    table.flags.writeable = False
    return table


LABEL_ENDS: Final = np.array(
    [int.from_bytes(end.encode(), "big") for end in ("ken", "ret", "ord", "swd", "pwd", "key", "ial", "als", "ass")],
    np.int64,
)
"""The last three letters of what a secret is assigned to: token, secret, password, passwd, pwd, key, credential(s)."""
LABEL_ENDS.flags.writeable = False

TRIGGERS: Final = _triggers()
PROPERTIES: Final = _properties()
PAIRS: Final = _pairs()
