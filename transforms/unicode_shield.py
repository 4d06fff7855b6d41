"""Keeps characters that Python versions disagree about from libraries that ask Python what they are.

trafilatura drops what `str.isprintable` denies. Python 3.11 has Unicode 14.0, 3.12 has 15.0, 3.13 has 15.1, so one
page would give other texts under each: U+1FAE8, an emoji of 2022, stays under 3.13 and goes under 3.11. Here each of
the 5,116 characters that came with 15.0 and 15.1 is replaced by a letter or a symbol of Unicode 14.0 that the page
does not have, and put back afterwards. Characters that came later are unassigned in all three and treated alike.
(Fifteen older characters changed `islower` or `isnumeric`, which no extractor asks about.)

Cost: one pass over the code points of pages that are not ASCII.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import numpy as np

_LETTERS: Final = (
    "1123F-11240 11F02 11F04-11F10 11F12-11F33 1342F 13441-13446 1B132 1B155 1DF25-1DF2A 1E030-1E06D 1E4D0-1E4EB 2B739 "
    "2EBF0-2EE5D 31350-323AF"
)
_OTHERS: Final = (
    "CF3 ECE 2FFC-2FFF 31EF 10EFD-10EFF 11241 11B00-11B09 11F00-11F01 11F03 11F34-11F3A 11F3E-11F59 13439-13440 "
    "13447-13455 1D2C0-1D2D3 1E08F 1E4EC-1E4F9 1F6DC 1F774-1F776 1F77B-1F77F 1F7D9 1FA75-1FA77 1FA87-1FA88 1FAAD-1FAAF "
    "1FABB-1FABD 1FABF 1FACE-1FACF 1FADA-1FADB 1FAE8 1FAF7-1FAF8"
)
_LETTER_STANDINS: Final = range(0x30000, 0x3134B)  # CJK extension G, Unicode 13.0
_OTHER_STANDINS: Final = range(0x1D800, 0x1DA00)  # Sutton SignWriting, Unicode 8.0
_NUMBER: Final = re.compile(r"(?:[xX]([0-9a-fA-F]{1,6})|([0-9]{1,7}));?")
_REFERENCE: Final = re.compile(rf"&#{_NUMBER.pattern}")


def _points(ranges: str) -> Iterator[int]:
    for span in ranges.split():
        first, _, last = span.partition("-")
        yield from range(int(first, 16), int(last or first, 16) + 1)


_NEW_LETTERS: Final = frozenset(_points(_LETTERS))
_NEW: Final = _NEW_LETTERS | frozenset(_points(_OTHERS))
_IS_NEW: Final = np.zeros(0x110000, np.bool_)
_IS_NEW[sorted(_NEW)] = True
_FIRST: Final = min(_NEW)
_MAY_BE_NEW: Final = _IS_NEW[:0x10000].copy()  # by unit of UTF-16
_MAY_BE_NEW[0xD800:0xDC00] = True


def shield(page: str) -> tuple[str, dict[int, str]]:
    """Return `page` with new characters, and references to them, replaced, and what puts them back.

    The second part is for `str.translate`. A page with more kinds of them than there are stand-ins (512 symbols, 4,939
    letters) has the rest replaced by U+FFFD.
    """
    if page.isascii() and "&#" not in page:
        return page, {}
    behind = filter(None, map(_NUMBER.match, page.split("&#")[1:]))  # quicker than to search for both
    referred = {int(found[1], 16) if found[1] else int(found[2]) for found in behind}
    new_ones = sorted((referred & _NEW) | (set() if page.isascii() else _new_in(page)))
    if not new_ones:
        return page, {}
    taken = {ord(character) for character in page} | referred
    letters = (point for point in _LETTER_STANDINS if point not in taken)
    others = (point for point in _OTHER_STANDINS if point not in taken)
    standins = {new: next(letters if new in _NEW_LETTERS else others, 0xFFFD) for new in new_ones}
    shielded = _REFERENCE.sub(lambda reference: _replaced(reference, standins), page).translate(standins)
    return shielded, {standin: chr(new) for new, standin in standins.items() if standin != 0xFFFD}


def _new_in(page: str) -> set[int]:
    """Return the new characters of a page; a regex of this set is 100 × slower."""
    units = np.frombuffer(page.encode("utf-16-le", "surrogatepass"), np.uint16)
    if not _MAY_BE_NEW[units[units >= _FIRST]].any():
        return set()
    points = np.frombuffer(page.encode("utf-32-le", "surrogatepass"), np.uint32)
    return set(points[_IS_NEW[points]].tolist())


def _replaced(reference: re.Match[str], standins: dict[int, int]) -> str:
    point = int(reference[1], 16) if reference[1] else int(reference[2])
    return chr(standins[point]) if point in standins else reference[0]
