"""Words as decontamination compares them: hashes that see neither case nor punctuation, and can be joined.

A word's hash is a polynomial over its letters, digits and marks in lower case (`LOWER`); punctuation and format
characters within a word ("can't", "1,000", "has_close", a soft hyphen) do not count. The hash of two words written
together follows from theirs (`hash(ab) = hash(a) · power(b) + hash(b)`, power(b) = B^length), so that text whose
punctuation was removed ("16-3" → "163") can be compared with text that has it.

Invariants: hash, power and kind depend on the bytes of the word alone; modulo 2^64. A hash is no proof: a verdict
needs many equal hashes in sequence, which no accident gives; who builds collisions gets his own document dropped.
Cost: one pass, 1 to 2 ns per byte; 18 bytes per word.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transforms.kernels import kernel
from transforms.segmentation import Bytes, Int, Positions, Words, decode, find_words
from transforms.unicode_tables import CLASS, COMPLEX, IDEOGRAPH, LETTER, LOWER, MARK, NUMBER

Hashes = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]
Kinds = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]

WORD: Final = 0
"""Kinds of words: carries information …"""
FIGURE: Final = 1
"""… a number, in digits or in English words …"""
SINGLE: Final = 2
"""… or a single letter, as of an alphabet, a variable or a choice."""

BASE: Final = np.uint64(0x9E3779B97F4A7C15)
"""Base of the polynomials; odd, so that no character is lost."""

_COUNTED: Final = 1 << LETTER | 1 << MARK | 1 << NUMBER | 1 << IDEOGRAPH | 1 << COMPLEX

NUMBER_WORDS: Final = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion half "
    "third quarter twice thrice double triple first second once"
)
"""English words that are numbers: "three eggs" and "five eggs" differ in a number."""


def _folding() -> npt.NDArray[np.int32]:
    """Return the code point that each code point counts as, -1 where it does not count."""
    counted = (np.int64(_COUNTED) >> CLASS.astype(np.int64)) & 1 == 1
    folding = np.where(counted, LOWER, -1).astype(np.int32)
    folding.flags.writeable = False
    return folding


FOLDING: Final = _folding()


@dataclass(frozen=True, slots=True)
class Folded:
    """Words as they are compared: of each its hash, power, kind, and whether it begins with a capital."""

    hashes: Hashes
    powers: Hashes
    kinds: Kinds
    capital: Flags


def hash_folded(words: Words) -> tuple[Hashes, Integers]:
    """Return the hashes of the words that seeds are made of, and which words they are: all but single letters.

    Without these, seeds see neither most tags of HTML nor the letters before choices.
    """
    return _hash_folded(words.data, words.starts, words.ends, FOLDING, CLASS)


def fold(words: Words, first: int = 0, last: int | None = None) -> Folded:
    """Return words first:last as they are compared; English number words are numbers, too."""
    starts, ends = words.starts[first:last], words.ends[first:last]
    return Folded(*fold_spans(words.data, starts, ends, FOLDING, CLASS, number_words()))


@cache
def number_words() -> Hashes:
    """Return the hashes of `NUMBER_WORDS`, sorted."""
    return np.sort(hash_folded(find_words(pa.array([NUMBER_WORDS], pa.large_string())))[0])


@kernel
def _hash_folded(
    data: Bytes, starts: Positions, ends: Positions, folding: npt.NDArray[np.int32], classes: Bytes
) -> tuple[Hashes, Integers]:
    hashes, places, count = np.empty(len(starts), np.uint64), np.empty(len(starts), np.int64), 0
    for word in range(len(starts)):
        position, end, value, length = starts[word], ends[word], np.uint64(0), 0
        while position < end:
            code_point: Int = np.int64(data[position])
            if code_point < 0x80:
                position += 1
            else:
                code_point, position = decode(data, position, end)
            folded = folding[code_point]
            if folded >= 0:
                value = value * BASE + np.uint64(folded + 1)
                length += 1
        hashes[count], places[count] = value, word
        count += length > 1 or classes[decode(data, starts[word], end)[0]] != LETTER
    return hashes[:count], places[:count]


@kernel
def fold_spans(
    data: Bytes,
    starts: Positions,
    ends: Positions,
    folding: npt.NDArray[np.int32],
    classes: Bytes,
    numbers: Hashes,
) -> tuple[Hashes, Hashes, Kinds, Flags]:
    """Return the columns of `Folded` for the words data[starts:ends]; the arguments behind are the module's own."""
    count = len(starts)
    hashes, powers = np.empty(count, np.uint64), np.empty(count, np.uint64)
    kinds, capital = np.empty(count, np.uint8), np.empty(count, np.bool_)
    for word in range(count):
        position, end = starts[word], ends[word]
        value, power, length = np.uint64(0), np.uint64(1), 0
        first = np.int64(data[position]) if data[position] < 0x80 else decode(data, position, end)[0]
        while position < end:
            code_point: Int = np.int64(data[position])
            if code_point < 0x80:
                position += 1
            else:
                code_point, position = decode(data, position, end)
            folded = folding[code_point]
            if folded >= 0:
                value = value * BASE + np.uint64(folded + 1)
                power *= BASE
                length += 1
        hashes[word], powers[word] = value, power
        kind = classes[first]
        kinds[word] = FIGURE if kind == NUMBER else SINGLE if length <= 1 and kind == LETTER else WORD
        at = np.searchsorted(numbers, value)
        if at < len(numbers) and numbers[at] == value:
            kinds[word] = FIGURE
        capital[word] = folding[first] >= 0 and folding[first] != first
    return hashes, powers, kinds, capital
