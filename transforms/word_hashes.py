"""64-bit hashes of words, equal for one word in two cases and for both apostrophes.

The hash is a function of the *folded* word: each code point in lower case (`LOWER`, simple mapping), and the
typographic apostrophe U+2019 as U+0027, so that "Don’t" and "don't" are one word. A folded word of ASCII is taken eight
bytes at a time as little-endian numbers, its rest of 0 to 7 bytes filled up with zeros; any other word one code point
at a time:

    value = 0xCBF29CE484222325
    for each number:   value = (value ^ number) * 0x9E3779B97F4A7C15;  value ^= value >> 32
    ASCII:             mix((value ^ rest) * 0x9E3779B97F4A7C15 ^ number of bytes in the rest)
    any other:         mix(value)

All modulo 2^64. Two ASCII words of at most seven bytes and equal length never collide: each step is a bijection. Not
cryptographic: where a collision would decide about a document, verify.

Invariants: a hash depends on the bytes of its word alone, on no machine's byte order; nothing outside `data` is read
(where the buffer goes on, up to seven bytes behind a word are read and masked off).
Cost: one pass; 8 bytes per word. 5 to 10 ns for a word of ASCII, 2 ns for a character of any other.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from transforms.eight_bytes import BYTE, FLAGS, load, lower_ascii
from transforms.kernels import kernel
from transforms.segmentation import Bytes, Int, Positions, Words, decode
from transforms.unicode_tables import LOWER

Hashes = npt.NDArray[np.uint64]
Mapping = npt.NDArray[np.int32]

START: Final = np.uint64(0xCBF29CE484222325)
FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)  # odd: multiplication loses no bit
HALF: Final = np.uint64(32)


def _folding() -> Mapping:
    """Return `LOWER` with the typographic apostrophe as the plain one, read-only."""
    folding = LOWER.copy()
    folding[0x2019] = 0x27
    folding.flags.writeable = False
    return folding


FOLDING: Final = _folding()
"""The code point for which each code point stands in a hash."""


def hash_words(words: Words) -> Hashes:
    """Return a 64-bit hash of each word, over its folded code points: one word in two cases is equal."""
    return hash_spans(words.data, words.starts, words.ends)


def hash_spans(data: Bytes, starts: Positions, ends: Positions) -> Hashes:
    """Return the hash of `hash_words` for each data[start:end]."""
    return _hash_spans(data, starts, ends, FOLDING)


@kernel
def mix(value: np.uint64) -> np.uint64:
    """Return the 64 bits of `value` well mixed (finaliser of MurmurHash3, a bijection)."""
    value ^= value >> np.uint64(33)
    value *= np.uint64(0xFF51AFD7ED558CCD)
    value ^= value >> np.uint64(33)
    value *= np.uint64(0xC4CEB9FE1A85EC53)
    return value ^ value >> np.uint64(33)


@kernel
def _hash_ascii(data: Bytes, start: np.int64, end: np.int64) -> tuple[np.uint64, bool]:
    """Return the hash of data[start:end], and whether that is right: all is ASCII, 8 bytes before the buffer's end."""
    if end + 8 > len(data) or (end > start and data[start] >= 0x80):  # most other words show it at once
        return START, False
    position, last = np.uint64(start), np.uint64(end)  # unsigned: no test for negative indices
    value, seen = START, np.uint64(0)
    while last - position >= BYTE:
        chunk = load(data, position)
        seen |= chunk
        value = (value ^ lower_ascii(chunk)) * FACTOR
        value ^= value >> HALF
        position += BYTE
    filled = last - position
    chunk = load(data, position) & (np.uint64(1) << filled * BYTE) - np.uint64(1)
    value = mix((value ^ lower_ascii(chunk)) * FACTOR ^ filled)
    return value, (seen | chunk) & FLAGS == 0


@kernel
def _hash_folded_to_ascii(data: Bytes, start: Int, end: Int, folding: Mapping) -> np.uint64:
    """Return the hash of data[start:end], of which every character folds to ASCII."""
    value, chunk, filled, position = START, np.uint64(0), np.uint64(0), start
    while position < end:
        code_point, position = decode(data, position, end)
        chunk |= np.uint64(folding[code_point]) << filled * BYTE
        filled += np.uint64(1)
        if filled == BYTE:
            value = (value ^ chunk) * FACTOR
            value ^= value >> HALF
            chunk, filled = np.uint64(0), np.uint64(0)
    return mix((value ^ chunk) * FACTOR ^ filled)


@kernel
def _hash_spans(data: Bytes, starts: Positions, ends: Positions, folding: Mapping) -> Hashes:
    hashes = np.empty(len(starts), np.uint64)
    for span in range(len(starts)):
        hashes[span], is_ascii = _hash_ascii(data, starts[span], ends[span])
        if is_ascii:
            continue
        position, end = starts[span], ends[span]
        value, others = START, np.int64(0)
        while position < end:  # in this place: a call per word would cost as much as the word
            code_point, position = decode(data, position, end)
            folded = np.int64(folding[code_point])
            others |= folded >> 7
            value = (value ^ np.uint64(folded)) * FACTOR
            value ^= value >> HALF
        hashes[span] = mix(value) if others else _hash_folded_to_ascii(data, starts[span], end, folding)
    return hashes
