"""Pinned Unicode tables: classes, word-break properties, lower case; the same on every Python and machine.

Python's own `str.is*`, `str.lower`, `re` classes and `unicodedata` follow the Unicode version of the interpreter
(14 on 3.11, 15.1 on 3.13), so no text rule may use them. These arrays come from one packaged file of ranges
(`unicode_tables.npz`, made by `python -m benchmarks.make_unicode_tables` from the `regex` distribution), are indexed
by code point and read-only. Kernels take them as arguments: a global array would be copied into compiled code.

Invariants: every array has `CODE_POINTS` entries; `digest()` is asserted in the tests; surrogates are `OTHER`.
Cost: some 10 ms and 9 MB once per process.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

CODE_POINTS: Final = 0x110000
"""Number of code points, assigned or not."""

OTHER: Final = 0
"""Unassigned, private use, surrogate."""
LETTER: Final = 1
"""Letters (L*) of scripts that put spaces between words, or whose runs make words."""
MARK: Final = 2
"""Marks (M*): combining accents, vowel signs, variation selectors."""
NUMBER: Final = 3
"""Numbers (N*): digits of all scripts, letter numbers, fractions, superscripts."""
IDEOGRAPH: Final = 4
"""Letters and letter numbers of which each is taken for a word: Han, Hiragana, Tangut, Nushu, Khitan. Katakana, whose
runs make words, is `LETTER`."""
COMPLEX: Final = 5
"""Letters of scripts without spaces that need a dictionary to find words (Line_Break SA: Thai, Lao, Khmer, Myanmar, Tai
Le, Ahom …); the unit counted as a word is a letter with the marks that follow it."""
CONNECTOR: Final = 6
"""Connector punctuation (Pc): the underscore and its kind."""
PUNCTUATION: Final = 7
"""All other punctuation (P*)."""
SYMBOL: Final = 8
"""Symbols (S*): mathematical, currency, emoji."""
SPACE: Final = 9
"""White_Space but for line breaks: space, tab, vertical tab, form feed, U+0085, no-break space …"""
LINE_BREAK: Final = 10
"""What ends a line: U+000A, U+000D, U+2028, U+2029."""
CONTROL: Final = 11
"""Control characters (Cc) that are neither `SPACE` nor `LINE_BREAK`."""
FORMAT: Final = 12
"""Format characters (Cf): zero-width joiners, direction marks, byte order mark, soft hyphen."""

CLASS_NAMES: Final = (
    "other",
    "letter",
    "mark",
    "number",
    "ideograph",
    "complex",
    "connector",
    "punctuation",
    "symbol",
    "space",
    "line break",
    "control",
    "format",
)
"""Names of the values of `CLASS`."""

WB_OTHER: Final = 0
"""Word_Break values of UAX #29, table 3, in the order of `WORD_BREAK_NAMES`."""
WB_CR: Final = 1
WB_LF: Final = 2
WB_NEWLINE: Final = 3
WB_EXTEND: Final = 4
WB_ZWJ: Final = 5
WB_FORMAT: Final = 6
WB_REGIONAL_INDICATOR: Final = 7
WB_KATAKANA: Final = 8
WB_HEBREW_LETTER: Final = 9
WB_ALETTER: Final = 10
WB_SINGLE_QUOTE: Final = 11
WB_DOUBLE_QUOTE: Final = 12
WB_MIDNUMLET: Final = 13
WB_MIDLETTER: Final = 14
WB_MIDNUM: Final = 15
WB_NUMERIC: Final = 16
WB_EXTENDNUMLET: Final = 17
WB_WSEGSPACE: Final = 18
WB_UNIT: Final = 19
"""Word_Break Other, but a letter or letter number (L*, Nl): with its marks a word of its own."""
PICTOGRAPHIC: Final = 32
"""Flag of `WORD_BREAK`, added to the value: Extended_Pictographic (for rule WB3c)."""

WORD_BREAK_NAMES: Final = (
    "Other",
    "CR",
    "LF",
    "Newline",
    "Extend",
    "ZWJ",
    "Format",
    "Regional_Indicator",
    "Katakana",
    "Hebrew_Letter",
    "ALetter",
    "Single_Quote",
    "Double_Quote",
    "MidNumLet",
    "MidLetter",
    "MidNum",
    "Numeric",
    "ExtendNumLet",
    "WSegSpace",
    "Unit",
)
"""Names of the values of `WORD_BREAK`; "Unit" is ours and "Other" to UAX #29."""


def _spread(starts: npt.NDArray[Any], values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    spread = np.repeat(values, np.diff(starts, append=CODE_POINTS))
    spread.flags.writeable = False
    return spread


def _lower(sources: npt.NDArray[np.int32], targets: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    lower = np.arange(CODE_POINTS, dtype=np.int32)
    lower[sources] = targets
    lower.flags.writeable = False
    return lower


with np.load(Path(__file__).with_name("unicode_tables.npz")) as _file:
    VERSION: Final = ".".join(str(part) for part in _file["version"].tolist())
    """The Unicode version of all tables, as "18.0.0"."""

    CLASS: Final[npt.NDArray[np.uint8]] = _spread(_file["class_starts"], _file["class_values"])
    """Per code point one of the constants `OTHER` … `FORMAT`."""

    WORD_BREAK: Final[npt.NDArray[np.uint8]] = _spread(_file["break_starts"], _file["break_values"])
    """Per code point a `WB_` constant, plus `PICTOGRAPHIC` where it applies."""

    ALPHABETIC: Final[npt.NDArray[np.bool_]] = _spread(_file["alphabetic_starts"], _file["alphabetic_values"])
    """Per code point: is its general category a letter (L*)? Includes ideographs and letters of complex scripts."""

    LOWER: Final[npt.NDArray[np.int32]] = _lower(_file["lower_sources"], _file["lower_targets"])
    """Per code point its simple lower-case mapping (one code point; U+0130 gives "i"), or itself."""

WHITESPACE: Final[npt.NDArray[np.bool_]] = (CLASS == SPACE) | (CLASS == LINE_BREAK)
"""Per code point: the property White_Space."""
WHITESPACE.flags.writeable = False


def digest() -> str:
    """Return the digest of all tables as kernels see them (BLAKE2b, 16 bytes, hex)."""
    hasher = hashlib.blake2b(VERSION.encode(), digest_size=16)
    for table in (CLASS, WORD_BREAK, ALPHABETIC.astype(np.uint8), WHITESPACE.astype(np.uint8), LOWER.astype("<i4")):
        hasher.update(table.tobytes())
    return hasher.hexdigest()
