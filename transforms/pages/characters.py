"""Bytes and characters: classes, hashes, tables of words by hash, character references, UTF-8.

Input is valid UTF-8 throughout (the engine encodes it from `str`), so a lead byte tells the length of its sequence.
Hashes are FNV-1a of 64 bits; a table of words holds hashes only: two words in 2^64 meet.
"""

from __future__ import annotations

import html.entities
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from transforms.eight_bytes import BYTE as EIGHT
from transforms.eight_bytes import first_flag, flag_equal, load
from transforms.pages.compiled import Bool, Int, inner
from transforms.pages.elements import CODES, HINT_WORDS

Bytes = npt.NDArray[np.uint8]
Table = npt.NDArray[np.uint64]
"""Open addressing: rows of hash (0: free) and value, a power of two of them."""

OFFSET: Final = np.uint64(0xCBF29CE484222325)
PRIME: Final = np.uint64(0x100000001B3)
GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
"""2^64 / golden ratio: multiplying by it spreads a hash (Knuth, TAOCP 3, 6.4)."""

BLANK, LETTER, DIGIT, UPPER = 1, 2, 4, 8


def _classes() -> npt.NDArray[np.uint8]:
    found = np.zeros(256, np.uint8)
    found[list(b" \n\t\r\f")] = BLANK
    found[ord("A") : ord("Z") + 1] = LETTER | UPPER
    found[ord("a") : ord("z") + 1] = LETTER
    found[ord("0") : ord("9") + 1] = DIGIT
    return found


CLASSES: Final = _classes()
"""Per byte what it is in ASCII; 0 for all above."""

_MASK: Final = (1 << 64) - 1


def hash_of(word: bytes) -> int:
    """Return the hash of a word, as kernels make it byte by byte."""
    value = int(OFFSET)
    for byte in word:
        value = ((value ^ byte) * int(PRIME)) & _MASK
    return value


def _table(*kinds: tuple[int, dict[int, int]]) -> Table:
    """Return one table for words of several kinds, each told apart by a seed that goes into its hashes."""
    found = np.zeros((16384, 2), np.uint64)
    for seed, values in kinds:
        for word, value in values.items():
            key = word ^ seed
            at = (key ^ (key >> 32)) & (len(found) - 1)
            while found[at, 0]:
                at = (at + 1) & (len(found) - 1)
            found[at] = key, value
    return found


def _elements() -> dict[int, int]:
    return {hash_of(name.encode()): code for name, code in CODES.items() if code}


def _hint_words() -> dict[int, int]:
    found: dict[int, int] = {}
    for hint, words in HINT_WORDS.items():
        for word in words.split():
            key = hash_of(word.encode())
            found[key] = found.get(key, 0) | hint
    return found


def _references() -> dict[int, int]:
    """Return name → code point, the second of two from bit 21 on."""
    return {
        hash_of(name.encode()): sum(ord(point) << 21 * place for place, point in enumerate(points))
        for name, points in html.entities.html5.items()
    }


ELEMENTS, HINTS, REFERENCES = np.uint64(0), np.uint64(0x5851F42D4C957F2D), np.uint64(0x14057B7EF767814F)
"""Seeds of element names, hint words and names of character references."""

WORDS: Final = _table((int(ELEMENTS), _elements()), (int(HINTS), _hint_words()), (int(REFERENCES), _references()))
"""What a pass looks up. Values: an element's code, a word's hints, a reference's code points."""
C1: Final = np.array([ord(bytes([byte]).decode("cp1252", "replace")) for byte in range(256)], np.int64)
"""What numeric references from 128 to 159 mean (WHATWG HTML, 13.2.5.80); U+FFFD where nothing."""

REPLACEMENT: Final = 0xFFFD


@inner
def slot(table: Table, key: np.uint64) -> Int:
    """Return where `key` stands in a table, or the free place where it belongs."""
    mask = np.uint64(table.shape[0] - 1)
    at = (key ^ (key >> np.uint64(32))) & mask
    while table[at, 0] != 0 and table[at, 0] != key:
        at = (at + np.uint64(1)) & mask
    return np.int64(at)


@inner
def find(table: Table, key: np.uint64, seed: np.uint64) -> Int:
    """Return the value of a word of the kind `seed`, 0 where it has none."""
    at = slot(table, key ^ seed)
    return np.int64(table[at, 1]) if table[at, 0] == key ^ seed else np.int64(0)


@inner
def hash_bytes(data: Bytes, start: Int, end: Int) -> np.uint64:
    """Return the hash of data[start:end]."""
    value = OFFSET
    for at in range(start, end):
        value = (value ^ np.uint64(data[at])) * PRIME
    return value


@inner
def lower(byte: np.uint8) -> np.uint8:
    """Return an ASCII letter in lower case, other bytes as they are."""
    return byte | np.uint8(32) if CLASSES[byte] & UPPER else byte


@inner
def find_byte(data: Bytes, at: Int, byte: Int) -> Int:
    """Return the place of the first `byte` from `at` on, or the end of `data`; eight bytes are looked at at a time."""
    wanted, place, size = np.uint64(byte), np.uint64(at), np.uint64(data.size)
    while place + EIGHT <= size:
        flags = flag_equal(load(data, place), wanted)
        if flags:
            return np.int64(place) + first_flag(flags)
        place += EIGHT
    at = np.int64(place)
    while at < data.size and data[at] != byte:
        at += 1
    return at


@inner
def is_equal(data: Bytes, start: Int, end: Int, word: Bytes) -> Bool:
    """Return whether data[start:end] is `word` (lower case) but for the case of letters."""
    if end - start != word.size:
        return False
    for at in range(word.size):  # noqa: SIM110
        if lower(data[start + at]) != word[at]:
            return False
    return True


@inner
def contains(data: Bytes, start: Int, end: Int, word: Bytes) -> Bool:
    """Return whether `word` (lower case) stands in data[start:end] but for the case of letters."""
    for first in range(start, end - word.size + 1):
        if lower(data[first]) == word[0] and is_equal(data, first, first + word.size, word):
            return True
    return False


@inner
def _numeric(data: Bytes, at: Int) -> tuple[Int, Int]:
    """Return the code point of the numeric reference whose digits or "x" begin at `at`, and its end; 0, `at`: none."""
    value: Int = np.int64(0)
    base, first = np.int64(10), at
    if at < data.size and (data[at] | 32) == 120:
        base, first = np.int64(16), at + 1
    end = first
    while end < data.size:
        digit = np.int64(data[end]) - 48
        if base == 16 and 49 <= digit | 32 <= 54:
            digit = (digit | 32) - 39
        elif digit > 9:
            break
        if digit < 0:
            break
        value = min(value * base + digit, np.int64(0x200000))
        end += 1
    if end == first:
        return np.int64(0), at
    if end < data.size and data[end] == 59:
        end += 1
    if value == 0 or value > 0x10FFFF or 0xD800 <= value <= 0xDFFF:
        value = np.int64(REPLACEMENT)
    elif 128 <= value < 160:
        value = C1[value]
    return value, end


@inner
def reference_at(data: Bytes, at: Int, table: Table) -> tuple[Int, Int, Int]:
    """Return the code points (second 0: one only) of the reference at `at`, an ampersand, and its length; 0: none."""
    start = at + 1
    if start < data.size and data[start] == 35:
        point, end = _numeric(data, start + 1)
        return point, np.int64(0), end - at if point else np.int64(0)
    key, end = OFFSET, start
    found: Int = np.int64(0)
    length: Int = np.int64(0)
    while end < data.size and end - start < 32 and CLASSES[data[end]] & (LETTER | DIGIT):
        key = (key ^ np.uint64(data[end])) * PRIME
        end += 1
        if 2 <= end - start <= 6:  # the lengths of names that need no semicolon
            value = find(table, key, REFERENCES)
            if value:
                found, length = value, end - at
    if end < data.size and data[end] == 59:
        value = find(table, (key ^ np.uint64(59)) * PRIME, REFERENCES)
        if value:
            found, length = value, end + 1 - at
    return found & 0x1FFFFF, found >> 21, length


@inner
def point_at(data: Bytes, at: Int) -> tuple[Int, Int]:
    """Return the code point that begins at `at`, and the length of its sequence."""
    byte = np.int64(data[at])
    if byte < 0xC0:
        return byte, np.int64(1)
    length = np.int64(2) if byte < 0xE0 else np.int64(3) if byte < 0xF0 else np.int64(4)
    point = byte & (0xFF >> (length + 1))
    for place in range(1, min(length, data.size - at)):
        point = (point << 6) | np.int64(data[at + place] & 63)
    return point, min(length, data.size - at)


@inner
def write_point(text: Bytes, at: Int, point: Int) -> Int:
    """Write `point` as UTF-8; return the position after it."""
    if point < 0x80:
        text[at] = point
        return at + 1
    if point < 0x800:
        text[at], text[at + 1] = 0xC0 | point >> 6, 0x80 | point & 63
        return at + 2
    if point < 0x10000:
        text[at], text[at + 1], text[at + 2] = 0xE0 | point >> 12, 0x80 | point >> 6 & 63, 0x80 | point & 63
        return at + 3
    text[at], text[at + 1] = 0xF0 | point >> 18, 0x80 | point >> 12 & 63
    text[at + 2], text[at + 3] = 0x80 | point >> 6 & 63, 0x80 | point & 63
    return at + 4


@inner
def word_end(data: Bytes, at: Int, end: Int, allowed: Int) -> tuple[Int, Int, np.uint64]:
    """Return start, end and lower-cased hash of the next run of `allowed` ASCII classes and bytes above; or `end`."""
    while at < end and not (CLASSES[data[at]] & allowed or data[at] & 0x80):
        at += 1
    start, key = at, OFFSET
    while at < end and (CLASSES[data[at]] & allowed or data[at] & 0x80):
        key = (key ^ np.uint64(lower(data[at]))) * PRIME
        at += 1
    return start, at, key


def as_bytes(word: str) -> Any:
    """Return a word as an array, for kernels to compare with."""
    return np.frombuffer(word.encode(), np.uint8)
