"""Shingles: a text as the set of 64-bit hashes of its runs of words or characters. What MinHash and verification see.

Words are those of `find_words`, folded as `transforms.word_hashes` says (lower case, one apostrophe). Characters are
code points, folded in the same way, marks and all; a run of White_Space counts as one space, at the ends of a text as
nothing. `ngram` consecutive units make a shingle: a polynomial in their hashes, mixed. Fewer units than `ngram` make
one shingle of all of them; a text without units ("!!!" has no words) is one shingle of its bytes; a text of no bytes
has no shingle and must be dropped before.

Shingles may be left out (`left_out`, sorted: licence headers, navigation, see `transforms.templates`). A text all of
whose shingles are left out keeps them all, so that it is compared as it is instead of with every other such text.

Invariants: a set depends on its text and the arguments alone; short texts never share a shingle with longer ones.
Cost: linear in the units; 8 bytes per shingle. 24 bytes per word or 8 per character of half a megabyte of text, or of
the longest one, while it works. Shingles of characters are six times as many: a third of the speed, six times the
memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transforms.kernels import kernel
from transforms.segmentation import Bytes, Flags, decode, find_words, text_buffers
from transforms.unicode_tables import WHITESPACE
from transforms.word_hashes import FOLDING, Hashes, Mapping, hash_words, mix

Offsets = npt.NDArray[np.int64]
Unit = Literal["word", "character"]

NOTHING: Final[Hashes] = np.zeros(0, np.uint64)
"""No shingles."""

PORTION: Final = 1 << 19  # bytes of text at a time, or one document: their words stay in the second-level cache

_BASE: Final = np.uint64(0x9E3779B97F4A7C15)  # odd: the rolling polynomial loses no bit
_FNV_START: Final = np.uint64(0xCBF29CE484222325)
_FNV_PRIME: Final = np.uint64(0x100000001B3)
_SHORT: Final = np.uint64(0xFF51AFD7ED558CCD)  # sets texts shorter than a shingle apart, by their number of units
_WORDLESS: Final = np.uint64(0x5851F42D4C957F2D)  # keeps shingles of bytes apart from shingles of units
_CHARACTER: Final = np.uint64(0xC2B2AE3D27D4EB4F)  # keeps hashes of characters apart from those of words
_SPACE: Final = 0x20
_BUCKET_BITS: Final = 16


@dataclass(frozen=True, slots=True)
class Sets:
    """Shingle sets of documents: document d owns values[offsets[d]:offsets[d + 1]], sorted, each value once."""

    offsets: Offsets
    values: Hashes

    def __len__(self) -> int:
        """Return the number of sets."""
        return len(self.offsets) - 1


def shingle_sets(text: pa.LargeStringArray, ngram: int, unit: Unit = "word", left_out: Hashes = NOTHING) -> Sets:
    """Return the shingle set of each text: what verification compares. 8 bytes per shingle."""
    table = membership(left_out)
    sets = [_shingle_sets(text.slice(i, j - i), ngram, unit, table) for i, j in portions(text, PORTION)]
    if len(sets) == 1:
        return sets[0]
    sizes = [np.zeros(1, np.int64), *(np.diff(part.offsets) for part in sets)]
    values = [np.zeros(0, np.uint64), *(part.values for part in sets)]
    return Sets(np.cumsum(np.concatenate(sizes)), np.concatenate(values))


def unit_hashes(text: pa.LargeStringArray, unit: Unit) -> tuple[Offsets, Hashes]:
    """Return a hash for each unit of each text: document d owns hashes[offsets[d]:offsets[d + 1]]."""
    if unit == "word":
        words = find_words(text)
        return words.documents, hash_words(words)
    offsets, hashes = _hash_characters(*text_buffers(text), FOLDING, WHITESPACE)
    return offsets, hashes


def membership(shingles: Hashes) -> Hashes:
    """Return a table in which `leave_out` finds `shingles`: a quarter full at most, empty for none, never with 0."""
    table = np.zeros(1 << (4 * len(shingles) - 1).bit_length() if len(shingles) else 0, np.uint64)
    _fill_table(np.ascontiguousarray(shingles), table)
    return table


def sort_runs(offsets: Offsets, values: Hashes) -> None:
    """Sort each values[offsets[r]:offsets[r + 1]] of evenly spread hashes in place, three times as fast as others."""
    for run in _sort_runs(offsets, values, np.empty(np.diff(offsets).max(initial=0), np.uint64)).tolist():
        values[offsets[run] : offsets[run + 1]].sort()


def _shingle_sets(text: pa.LargeStringArray, ngram: int, unit: Unit, table: Hashes) -> Sets:
    units, hashes = unit_hashes(text, unit)
    offsets, values = _shingles(hashes, units, *text_buffers(text), np.int64(ngram))
    del hashes  # as much as what is sorted now
    sort_runs(offsets, values)
    sets = np.zeros(len(text) + 1, np.int64)
    count = _distinct(offsets, values, table, sets)
    return Sets(sets, values[:count] if 8 * count >= 7 * len(values) else values[:count].copy())


def portions(text: pa.LargeStringArray, size: int) -> Iterator[tuple[int, int]]:
    """Yield ranges (first, end) of texts that hold `size` bytes or little more, or one text that is longer."""
    _, places = text_buffers(text)
    first = 0
    while first < len(text):
        last = int(np.searchsorted(places, places[first] + size))
        last = min(max(last, first + 1), len(text))
        yield first, last
        first = last


@kernel
def _hash_characters(data: Bytes, bounds: Offsets, folding: Mapping, whitespace: Flags) -> tuple[Offsets, Hashes]:
    offsets = np.zeros(len(bounds), np.int64)
    hashes = np.empty(bounds[-1] - bounds[0], np.uint64)  # untouched pages cost nothing
    count = 0
    for document in range(len(bounds) - 1):
        position, end = bounds[document], bounds[document + 1]
        first, space = count, False
        while position < end:
            code_point, position = decode(data, position, end)
            if whitespace[code_point]:
                space = True
                continue
            if space and count > first:
                hashes[count] = mix(np.uint64(_SPACE) ^ _CHARACTER)
                count += 1
            space = False
            hashes[count] = mix(np.uint64(folding[code_point]) ^ _CHARACTER)
            count += 1
        offsets[document + 1] = count
    return offsets, hashes[:count]


@kernel
def _fill_table(shingles: Hashes, table: Hashes) -> None:
    last = np.uint64(len(table)) - np.uint64(1)
    for shingle in shingles:
        place = shingle & last
        while table[place] != 0 and table[place] != shingle:
            place = (place + np.uint64(1)) & last
        table[place] = shingle


@kernel
def _is_in(shingle: np.uint64, table: Hashes) -> bool:
    last = np.uint64(len(table)) - np.uint64(1)
    place = shingle & last
    while table[place] != 0:
        if table[place] == shingle:
            return True
        place = (place + np.uint64(1)) & last
    return False


@kernel
def leave_out(shingles: Hashes, count: np.int64, table: Hashes) -> np.int64:
    """Move the first `count` shingles that are not in `table` (of `membership`) to the front; return their number."""
    if len(table) == 0:
        return count
    kept = np.int64(0)
    for i in range(count):
        shingles[kept] = shingles[i]
        kept += np.int64(not _is_in(shingles[i], table))
    return kept


@kernel
def shingle_count(words: np.int64, size: np.int64, ngram: np.int64) -> np.int64:
    """Return the number of shingles (with repeats) of a text of `words` words and `size` bytes."""
    if words >= ngram:
        return words - ngram + 1
    return np.int64(1) if size > 0 else np.int64(0)


@kernel
def _wordless(data: npt.NDArray[np.uint8], first: np.int64, last: np.int64) -> np.uint64:
    value = _FNV_START
    for i in range(first, last):
        value = (value ^ np.uint64(data[i])) * _FNV_PRIME
    return mix(value ^ _WORDLESS)


@kernel
def _fill(hashes: Hashes, first: np.int64, count: np.int64, width: np.int64, short: np.uint64, out: Hashes) -> None:
    """Write the shingles of `width` words that begin at words first … first + count - 1 to `out`.

    A polynomial in the words' hashes, then a bijective mix. `short` is the width of a text shorter than a shingle, else
    0, so that no short text equals a part of a longer one.
    """
    for i in range(count):
        out[i] = 0
    for j in range(width):
        words = hashes[first + j : first + j + count]  # a slice and no offset below: only then vector code comes of it
        for i in range(count):
            out[i] = out[i] * _BASE + words[i]
    for i in range(count):
        out[i] = mix(out[i] + short * _SHORT)


@kernel
def shingle_block(
    hashes: Hashes,
    words: npt.NDArray[np.int64],
    data: npt.NDArray[np.uint8],
    place: npt.NDArray[np.int64],
    ngram: np.int64,
    start: np.int64,
    count: np.int64,
    out: Hashes,
) -> None:
    """Write shingles start … start + count - 1 of the document of words[0]:words[1] and data[place[0]:place[1]]."""
    total = words[1] - words[0]
    if total >= ngram:
        _fill(hashes, words[0] + start, count, ngram, np.uint64(0), out)
    elif total > 0:
        _fill(hashes, words[0], np.int64(1), total, np.uint64(total), out)
    else:
        out[0] = _wordless(data, place[0], place[1])


@kernel
def _shingles(
    hashes: Hashes, documents: Offsets, data: npt.NDArray[np.uint8], places: Offsets, ngram: np.int64
) -> tuple[Offsets, Hashes]:
    offsets = np.zeros(documents.shape[0], np.int64)
    for d in range(documents.shape[0] - 1):
        count = shingle_count(documents[d + 1] - documents[d], places[d + 1] - places[d], ngram)
        offsets[d + 1] = offsets[d] + count
    values = np.empty(offsets[-1], np.uint64)
    for d in range(documents.shape[0] - 1):
        count = offsets[d + 1] - offsets[d]
        if count > 0:
            out = values[offsets[d] : offsets[d + 1]]
            shingle_block(hashes, documents[d : d + 2], data, places[d : d + 2], ngram, np.int64(0), count, out)
    return offsets, values


@kernel
def _sort_runs(offsets: Offsets, values: Hashes, room: Hashes) -> Offsets:
    """Sort each run of `values`; return those left half-sorted, of which more than chance has equal highest bits.

    Shingles are evenly spread, so distributing them by their highest bits leaves little to insert: a third of the time
    of a comparing sort. `room` has as many places as the longest run.
    """
    left, unsorted = np.empty(len(offsets), np.int64), np.int64(0)
    counts = np.empty((1 << _BUCKET_BITS) + 1, np.int64)
    for run in range(len(offsets) - 1):
        first, last = offsets[run], offsets[run + 1]
        size, bits = last - first, np.uint64(1)
        while np.int64(1) << np.int64(bits) < size and bits < np.uint64(_BUCKET_BITS):
            bits += np.uint64(1)
        shift, buckets = np.uint64(64) - bits, np.int64(1) << np.int64(bits)
        counts[: buckets + 1] = 0
        for i in range(first, last):
            counts[(values[i] >> shift) + np.uint64(1)] += 1
        for bucket in range(buckets):
            counts[bucket + 1] += counts[bucket]
        for i in range(first, last):
            bucket = values[i] >> shift
            room[counts[bucket]] = values[i]
            counts[bucket] += 1
        values[first:last] = room[:size]
        if not _insert(values[first:last]):
            left[unsorted] = run
            unsorted += 1
    return left[:unsorted]


@kernel
def _insert(values: Hashes) -> bool:
    """Sort `values`, nearly sorted, by insertion; return whether that was done before it became too much."""
    moves = np.int64(0)
    for i in range(1, len(values)):
        value, j = values[i], i
        while j > 0 and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value
        moves += i - j
        if moves > 8 * len(values) + 64:
            return False
    return True


@kernel
def _distinct_run(values: Hashes, start: np.int64, end: np.int64, table: Hashes, kept: np.int64) -> np.int64:
    """Move the distinct ones of values[start:end], sorted, that are not in `table` to `kept` on; return their end."""
    previous = np.uint64(0)
    for i in range(start, end):
        value = values[i]
        if (i == start or value != previous) and (len(table) == 0 or not _is_in(value, table)):
            values[kept] = value
            kept += 1
        previous = value
    return kept


@kernel
def _distinct(offsets: Offsets, values: Hashes, table: Hashes, sets: Offsets) -> np.int64:
    """Move the set of each run to the front of `values`, write their offsets to `sets`, return their number."""
    kept = np.int64(0)
    for d in range(offsets.shape[0] - 1):
        sets[d + 1] = _distinct_run(values, offsets[d], offsets[d + 1], table, kept)
        if sets[d + 1] == kept:  # all are left out: then none is
            sets[d + 1] = _distinct_run(values, offsets[d], offsets[d + 1], table[:0], kept)
        kept = sets[d + 1]
    return kept
