"""Marks that end sentences and what may close behind them: pinned lists, as sets and as tables by code point.

`SENTENCE_ENDS` are the characters of Unicode's property Sentence_Terminal (UAX #29, Unicode 18), and the three Khmer
signs U+17D6, U+17D9, U+17DA, which end sentences there. Python has no such property, and no rule here follows the
Unicode version of anything installed. Cost: 1 MB per table, once per process or list.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import numpy as np

from transforms.segmentation import Flags
from transforms.unicode_tables import ALPHABETIC, CODE_POINTS, LOWER

_RANGES: Final = (
    "21 2E 3F 589 61D-61F 6D4 700-702 7F9 837 839 83D-83E 964-965 104A-104B 1362 1367-1368 166E 1735-1736 17D4-17D6 "
    "17D9-17DA 1803 1809 1944-1945 1AA8-1AAB 1B4E-1B4F 1B5A-1B5B 1B5E-1B5F 1B7D-1B7F 1C3B-1C3C 1C7E-1C7F 2024 "
    "203C-203D 2047-2049 2CF9-2CFB 2E2E 2E3C 2E53-2E54 2E60-2E61 3002 A4FF A60E-A60F A6F3 A6F7 A876-A877 A8CE-A8CF "
    "A92F A9C8-A9C9 AA5D-AA5F AAF0-AAF1 ABEB FE12 FE15-FE16 FE52 FE56-FE57 FF01 FF0E FF1F FF61 10A56-10A57 "
    "10F55-10F59 10F86-10F89 11047-11048 110BE-110C1 11141-11143 111C5-111C6 111CD 111DE-111DF 11238-11239 "
    "1123B-1123C 112A9 113D4-113D5 1144B-1144C 115C2-115C3 115C9-115D7 11641-11642 1173C-1173E 11944 11946 "
    "11A42-11A43 11A9B-11A9C 11C41-11C42 11EF7-11EF8 11F43-11F44 16A6E-16A6F 16AF5 16B37-16B38 16B44 16D6E-16D6F "
    "16E98 1BC9F 1DA88"
)


def _spread(ranges: str) -> tuple[str, ...]:
    found: list[str] = []
    for part in ranges.split():
        first, _, last = part.partition("-")
        found.extend(map(chr, range(int(first, 16), int(last or first, 16) + 1)))
    return tuple(found)


SENTENCE_ENDS: Final = _spread(_RANGES)
"""Characters that end a sentence, in all scripts."""

CLOSERS: Final = tuple("\"')]}»’”›」』】〉》）］＂＇")
"""Quotation marks and brackets that may stand between the mark that ends a sentence and the space behind it."""

WIDE_ENDS: Final = tuple("。！？｡︒︕︖")
"""Marks that end a sentence without a space behind them."""

STOPS: Final = tuple(".․﹒．")
"""Full stops, which also end abbreviations and initials (UAX #29: ATerm)."""


@lru_cache(maxsize=32)
def table(characters: tuple[str, ...]) -> Flags:
    """Return, per code point, whether it is one of `characters`, read-only.

    Raises:
        ValueError: one of them is not a single character.
    """
    flags = np.zeros(CODE_POINTS, np.bool_)
    flags[_points(characters)] = True
    flags.flags.writeable = False
    return flags


def _points(characters: Iterable[str]) -> list[int]:
    for character in characters:
        if len(character) != 1:
            raise ValueError(f"a mark is one character, got {character!r}")
    return [ord(character) for character in characters]


def _cases() -> tuple[Flags, Flags]:
    upper = (np.arange(CODE_POINTS) != LOWER) & ALPHABETIC
    lower = np.zeros(CODE_POINTS, np.bool_)
    lower[LOWER[upper]] = True
    lower[ord("ß")] = True
    upper.flags.writeable = lower.flags.writeable = False
    return upper, lower


UPPER_CASE, LOWER_CASE = _cases()
"""Per code point: is it a letter with a lower-case mapping; is it one that such a letter maps to (or ß)?"""
