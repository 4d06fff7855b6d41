"""Hashed features of texts for linear models: words, pairs of words, and how words, punctuation and lines follow.

Words are those of `transforms.segmentation`, folded (`transforms.word_hashes`). Two views of a text:

- content: each word, and each pair of neighbours within a line;
- form: words by class, where a common word is a class of its own and any other counts as its shape (case, digits or
  other letters, and length), and the gaps between words by what stands in them (line breaks, first and last
  punctuation): pairs and triples of classes with their gaps, pairs and triples of gaps, and the lengths of lines.

Form is what a small sample of pages teaches about any topic: a shuffled text, a menu or a list of links differs in it
from prose about the same things. Common words come from the corpus (`common_words`), so languages need no lists.

A feature falls into one of 2^bits buckets by its hash; two in one bucket count as one. A bucket with count c has the
value 16 · (1 + ⌊16·log2 c⌋ / 16), c capped at `MOST_COUNTED`, and a text is scaled to the Euclidean length 1 by whoever
uses the values (`squares` are the sums of their squares), so long and short texts are alike in size.

Invariants: integers only; the features of a text depend on it, the common words and the number of buckets alone.
Cost: one pass; some 6 features per word.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transforms.kernels import kernel
from transforms.segmentation import Bytes, Int, Positions, Words, decode, find_words
from transforms.unicode_tables import CLASS, LETTER, LOWER, PUNCTUATION
from transforms.word_hashes import FACTOR, Hashes, hash_words, mix

Buckets = npt.NDArray[np.uint32]
Values = npt.NDArray[np.int16]

SIXTEENTHS: Final = 16
MOST_COUNTED: Final = 255

# Kinds of features; their numbers are part of the hash.
WORD: Final = 1
PAIR: Final = 2
FORM_PAIR: Final = 3
FORM_TRIPLE: Final = 4
GAP_PAIR: Final = 5
GAP_TRIPLE: Final = 6
LINE: Final = 7
LINE_GAP: Final = 1 << 17
"""From this value on a gap ends a line (see `_gap`)."""

KINDS: Final = ("", "word", "pair", "form", "form", "gaps", "gaps", "line")

_MOST_PER_WORD: Final = 7


@dataclass(frozen=True, slots=True)
class Features:
    """The features of n texts: text t has the distinct `buckets[offsets[t]:offsets[t + 1]]` with `values`."""

    offsets: Positions
    buckets: Buckets
    values: Values
    squares: Positions

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self.squares)


@dataclass(frozen=True, slots=True)
class Occurrences:
    """Every feature of texts where it stands: bucket, kind, and the last of the words that it is about."""

    words: Words
    offsets: Positions
    buckets: Buckets
    kinds: npt.NDArray[np.uint8]
    last: Positions


def features_of(texts: pa.LargeStringArray, common: Hashes, bits: int) -> Features:
    """Return the features of `texts` in 2^bits buckets; `common` are sorted hashes of common words."""
    found = occurrences_of(texts, common, bits)
    counts = np.zeros(1 << bits, np.int32)
    return Features(*_counted(found.offsets, found.buckets, counts, _values()))


def occurrences_of(texts: pa.LargeStringArray, common: Hashes, bits: int) -> Occurrences:
    """Return the features of `texts` in the order in which they stand there."""
    words = find_words(texts)
    hashes = hash_words(words)
    spans = (words.data, words.documents, words.starts, words.ends)
    return Occurrences(words, *_occurrences(*spans, hashes, common, np.int64(bits), CLASS, LOWER))


def common_words(texts: pa.LargeStringArray) -> tuple[Hashes, Positions]:
    """Return the distinct words of `texts`, as hashes, and in how many of them each stands."""
    words = find_words(texts)
    owner = np.repeat(np.arange(len(texts)), np.diff(words.documents))
    hashes = hash_words(words)
    order = np.lexsort((owner, hashes))
    hashes, owner = hashes[order], owner[order]
    first = np.ones(len(hashes), np.bool_)
    first[1:] = (hashes[1:] != hashes[:-1]) | (owner[1:] != owner[:-1])
    found, counts = np.unique(hashes[first], return_counts=True)
    return found, counts.astype(np.int64)


@lru_cache(maxsize=1)
def _values() -> Values:
    """Return 16 + ⌊16·log2 c⌋ for each count c: exact, as 2^⌊16·log2 c⌋ ≤ c^16."""
    logs = [(count**SIXTEENTHS).bit_length() - 1 for count in range(1, MOST_COUNTED + 1)]
    values = np.array([0, *(SIXTEENTHS + log for log in logs)], np.int16)
    values.flags.writeable = False
    return values


@kernel
def _is_common(value: np.uint64, common: Hashes) -> bool:
    first, end = np.int64(0), np.int64(len(common))
    while first < end:
        middle = (first + end) >> 1
        if common[middle] < value:
            first = middle + 1
        else:
            end = middle
    return bool(first < len(common) and common[first] == value)


@kernel
def _shape(data: Bytes, start: Int, end: Int, classes: Bytes, lower: Any) -> np.uint64:
    """Return the shape of a word: first character, whether others are capitals, digits or beyond ASCII, its length."""
    code_point, position = decode(data, start, end)
    first = np.int64(classes[code_point]) * 2 + np.int64(lower[code_point] != code_point)
    capitals, others = False, False
    while position < end:
        code_point, position = decode(data, position, end)
        capitals |= lower[code_point] != code_point
        others |= classes[code_point] != LETTER
    length, size = end - start, np.int64(0)
    for least in (1, 2, 3, 4, 6, 9, 14):
        size += np.int64(length >= least)
    return np.uint64(((first * 2 + np.int64(capitals)) * 2 + np.int64(others)) * 16 + size)


@kernel
def _gap(data: Bytes, start: Int, end: Int, classes: Bytes) -> np.int64:
    """Return what lies between two words: lines that end (0, 1, more), first and last character that is no space."""
    lines, position = np.int64(0), start
    first: Int = np.int64(0)
    last: Int = np.int64(0)
    while position < end:
        code_point, position = decode(data, position, end)
        if code_point == 0x0A:
            lines += 1
            continue
        kind: Int = np.int64(classes[code_point])
        if kind < PUNCTUATION - 1 or kind > PUNCTUATION + 1:
            continue
        sign = code_point if code_point < 0x80 else np.int64(0x80) + kind
        first = first if first else sign
        last = sign
    space = np.int64(end > start)
    return ((min(lines, np.int64(2)) * 256 + first) * 256 + last) * 2 + space


@kernel
def _bucket(kind: Int, a: np.uint64, b: np.uint64, c: np.uint64, bits: np.int64) -> np.uint32:
    value = (np.uint64(kind) * FACTOR ^ a) * FACTOR
    value = (value ^ value >> np.uint64(32) ^ b) * FACTOR
    value = (value ^ value >> np.uint64(32) ^ c) * FACTOR
    return np.uint32(mix(value) >> np.uint64(64 - bits))


@kernel
def _occurrences(
    data: Bytes,
    documents: Positions,
    starts: Positions,
    ends: Positions,
    hashes: Hashes,
    common: Hashes,
    bits: np.int64,
    classes: Bytes,
    lower: Any,
) -> tuple[Positions, Buckets, npt.NDArray[np.uint8], Positions]:
    most = _MOST_PER_WORD * len(starts)
    buckets, kinds, last = np.empty(most, np.uint32), np.empty(most, np.uint8), np.empty(most, np.int64)
    offsets = np.zeros(len(documents), np.int64)
    nothing, count = np.uint64(0), np.int64(0)
    for d in range(len(documents) - 1):
        begin = documents[d]
        c1, c2, g1, g2, line = nothing, nothing, nothing, nothing, np.int64(0)  # one and two words before
        for w in range(begin, documents[d + 1]):
            h = hashes[w]
            c = h if _is_common(h, common) else _shape(data, starts[w], ends[w], classes, lower)
            gap = np.int64(LINE_GAP) if w == begin else _gap(data, ends[w - 1], starts[w], classes)
            g = np.uint64(1) if w == begin else np.uint64(gap + 2)
            breaks = gap >= LINE_GAP
            made = np.int64(0)
            for kind in range(WORD, LINE + 1):
                if kind == WORD:
                    bucket = _bucket(kind, h, nothing, nothing, bits)
                elif kind == PAIR:
                    if breaks:
                        continue
                    bucket = _bucket(kind, hashes[w - 1], h, nothing, bits)
                elif kind == FORM_PAIR:
                    bucket = _bucket(kind, c1, g, c, bits)
                elif kind == FORM_TRIPLE:
                    bucket = _bucket(kind, c2 * FACTOR ^ g1, c1 * FACTOR ^ g, c, bits)
                elif kind == GAP_PAIR:
                    bucket = _bucket(kind, g1, g, nothing, bits)
                elif kind == GAP_TRIPLE:
                    bucket = _bucket(kind, g2, g1, g, bits)
                else:
                    if not breaks or w == begin:
                        continue
                    bucket = _bucket(kind, np.uint64(min(line, np.int64(31))), g, nothing, bits)
                buckets[count + made], kinds[count + made], last[count + made] = bucket, kind, w
                made += 1
            count += made
            line = np.int64(1) if breaks else line + 1
            c2, c1, g2, g1 = c1, c, g1, g
        offsets[d + 1] = count
    return offsets, buckets[:count].copy(), kinds[:count].copy(), last[:count].copy()


@kernel
def _counted(
    offsets: Positions, buckets: Buckets, counts: npt.NDArray[np.int32], weights: Values
) -> tuple[Positions, Buckets, Values, Positions]:
    made, values = np.empty(len(buckets), np.uint32), np.empty(len(buckets), np.int16)
    borders, squares = np.zeros(len(offsets), np.int64), np.zeros(len(offsets) - 1, np.int64)
    count = np.int64(0)
    for t in range(len(offsets) - 1):
        first = count
        for at in range(offsets[t], offsets[t + 1]):
            bucket = buckets[at]
            if counts[bucket] == 0:
                made[count] = bucket
                count += 1
            counts[bucket] += 1
        total = np.int64(0)
        for at in range(first, count):
            value = weights[min(counts[made[at]], np.int32(MOST_COUNTED))]
            counts[made[at]] = 0
            values[at] = value
            total += np.int64(value) * np.int64(value)
        borders[t + 1], squares[t] = count, total
    return borders, made[:count].copy(), values[:count].copy(), squares
