"""How alike two sets of shingles are, exactly: Jaccard similarity and containment, and pairs refused on proof.

Jaccard similarity is |A ∩ B| / |A ∪ B|, containment |A ∩ B| / min(|A|, |B|). Either reaches a threshold exactly if the
intersection has a certain size, an integer that follows from the sizes of the two sets (`needed`). A merge of both
sorted sets stops as soon as more shingles lack a partner than that size allows, which proves that the pair is below the
threshold; a pair that reaches it is merged to the end, so its similarity is exact.

What bands over Jaccard promise for containment: a pair with containment c and sizes m ≤ M has Jaccard similarity
c / (1 + M / m - c) (`jaccard_of_containment`): .67 for c = .8 and equal sizes, .36 where one is twice as large, .15 at
five times. So banding finds what one text adds to another only where that is little; `MinHash.recall` of that value is
the probability.

Invariants: results depend on the two sets alone; every comparison with a threshold is one of integers.
Cost: four merges at once, from both ends of both halves, so that no step waits for the one before: about .4 µs for two
sets of 500 shingles in the cache, half of that for a pair at .5 refused at .8; twice that and more where sets come from
memory, so compare sorted pairs. Sets that differ in size more than sixteenfold are compared by galloping: the smaller
one's size times the logarithm of the ratio.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from transforms.kernels import inlined, kernel, prefetch
from transforms.shingles import Sets
from transforms.word_hashes import Hashes

Indices = npt.NDArray[np.int64]
Measure = Literal["jaccard", "containment"]

REFUSED: Final = -1
"""In an array of intersections: proven to be smaller than needed."""

_ONE: Final = np.uint64(1)
_MIDDLE: Final = np.uint64(1 << 63)
_GALLOP: Final = 16  # ratio of sizes from which on searching beats merging
_AHEAD: Final = 2  # pairs between asking for the sets of one and comparing them
_ROUND: Final = 16  # steps of each of the four merges between two looks at the bound


@dataclass(frozen=True, slots=True)
class Edges:
    """Pairs at or above a threshold: `pair` is their place among those compared; similarity = shared / whole, exact.

    `whole` is the size of the union (Jaccard) or of the smaller set (containment).
    """

    pair: Indices
    shared: Indices
    whole: Indices

    def __len__(self) -> int:
        """Return the number of edges."""
        return len(self.pair)


def edges(sets: Sets, a: Indices, b: Indices, threshold: Fraction, measure: Measure = "jaccard") -> Edges:
    """Return those of the pairs (a[i], b[i]) of `sets` whose similarity is at least `threshold`, exactly.

    Fastest where pairs are sorted: the sets of neighbours are then in the cache.
    """
    sizes = np.diff(sets.offsets)
    left, right = sizes[a], sizes[b]
    shared = intersections(sets, a, b, needed(left, right, threshold, measure))
    pair = np.flatnonzero(shared != REFUSED)
    shared, left, right = shared[pair], left[pair], right[pair]
    return Edges(pair, shared, left + right - shared if measure == "jaccard" else np.minimum(left, right))


def needed(left: Indices, right: Indices, threshold: Fraction, measure: Measure = "jaccard") -> Indices:
    """Return the least intersections with which sets of sizes left[i] and right[i] reach `threshold`.

    Sizes below 10^12, as the threshold's terms are at most 10^6. It may exceed a set's size: no pair of these sizes
    reaches the threshold.
    """
    numerator, denominator = threshold.numerator, threshold.denominator
    if measure == "containment":
        return -(-np.minimum(left, right) * numerator // denominator)
    return -(-(left + right) * numerator // (numerator + denominator))


def intersections(sets: Sets, a: Indices, b: Indices, least: Indices) -> Indices:
    """Return the sizes of the intersections of sets a[i] and b[i], `REFUSED` where one is below least[i]."""
    shared = np.empty(len(a), np.int64)
    _intersections(sets.offsets, sets.values, a, b, least, shared)
    return shared


def jaccard_of_containment(containment: float, ratio: float) -> float:
    """Return the Jaccard similarity of two sets of that containment, the larger `ratio` ≥ 1 times the smaller."""
    return containment / (1.0 + ratio - containment)


@kernel
def _first_at_least(values: Hashes, first: np.uint64, end: np.uint64, key: np.uint64) -> np.uint64:
    """Return the place in values[first:end], sorted, of the first value ≥ `key`."""
    while first < end:
        middle = (first + end) >> _ONE
        if values[middle] < key:
            first = middle + _ONE
        else:
            end = middle
    return first


@kernel
def _merge(values: Hashes, i: np.uint64, end_i: np.uint64, j: np.uint64, end_j: np.uint64) -> np.int64:
    """Return the number of values that values[i:end_i] and values[j:end_j] share."""
    shared = np.int64(0)
    while i < end_i and j < end_j:
        x, y = values[i], values[j]
        shared += np.int64(x == y)
        i += np.uint64(x <= y)
        j += np.uint64(y <= x)
    return shared


@kernel
def _gallop(
    values: Hashes, i: np.uint64, end_i: np.uint64, j: np.uint64, end_j: np.uint64, misses: np.int64
) -> np.int64:
    """Return what `_merge` does by looking up each of the few values[i:end_i]; -1 once more than `misses` lack."""
    shared = np.int64(0)
    while i < end_i and j < end_j:
        key, step = values[i], _ONE
        while j + step < end_j and values[j + step] < key:
            step <<= _ONE
        j = _first_at_least(values, j, min(j + step + _ONE, end_j), key)
        if j < end_j and values[j] == key:
            shared += 1
        else:
            misses -= 1
            if misses < 0:
                return np.int64(-1)
        i += _ONE
    return shared


@kernel
def _merge_four(
    values: Hashes, i: np.uint64, end_i: np.uint64, j: np.uint64, end_j: np.uint64, needed: np.int64
) -> np.int64:
    """Return what `_merge` does, or -1 once the sets have more values without a partner than `needed` allows.

    Four merges in turn: up and down from both ends of the values below 2^63 and of those above. Each step consumes one
    value, or two that are equal; so steps and consumed values give the matches.
    """
    total = np.int64((end_i - i) + (end_j - j))
    allowed, steps = total - 2 * needed, np.int64(0)
    i2, j2 = _first_at_least(values, i, end_i, _MIDDLE), _first_at_least(values, j, end_j, _MIDDLE)
    e, f, e2, f2 = i2 - _ONE, j2 - _ONE, end_i - _ONE, end_j - _ONE  # last ones; unsigned, so no negative indices
    shared = np.int64(0)
    while True:
        left = min(min(np.int64(e - i), np.int64(f - j)), min(np.int64(e2 - i2), np.int64(f2 - j2))) + 1
        consumed = total - np.int64((e - i) + (f - j) + (e2 - i2) + (f2 - j2) + np.uint64(4))
        shared = consumed - steps
        if consumed - 2 * shared > allowed:
            return np.int64(-1)
        if left < 2:
            break
        count = min(left >> 1, np.int64(_ROUND))
        for _ in range(count):
            x, y = values[i], values[j]
            i += np.uint64(x <= y)
            j += np.uint64(y <= x)
            x, y = values[e], values[f]
            e -= np.uint64(x >= y)
            f -= np.uint64(y >= x)
            x, y = values[i2], values[j2]
            i2 += np.uint64(x <= y)
            j2 += np.uint64(y <= x)
            x, y = values[e2], values[f2]
            e2 -= np.uint64(x >= y)
            f2 -= np.uint64(y >= x)
        steps += 4 * count
    shared += _merge(values, i, e + _ONE, j, f + _ONE)
    return shared + _merge(values, i2, e2 + _ONE, j2, f2 + _ONE)


@inlined
def _ask_for(values: Hashes, first: np.int64, end: np.int64) -> None:
    """Have where four merges begin in a set brought into the cache."""
    middle = (first + end) >> 1
    for place in (first, first + 8, middle - 8, middle, middle + 8, end - 16, end - 8):
        prefetch(values, np.uint64(place if place > 0 else 0))


@kernel
def _intersections(offsets: Indices, values: Hashes, a: Indices, b: Indices, least: Indices, shared: Indices) -> None:
    for p in range(a.shape[0]):
        following = min(p + _AHEAD, a.shape[0] - 1)
        _ask_for(values, offsets[a[following]], offsets[a[following] + 1])
        _ask_for(values, offsets[b[following]], offsets[b[following] + 1])
        i, end_i = np.uint64(offsets[a[p]]), np.uint64(offsets[a[p] + 1])
        j, end_j = np.uint64(offsets[b[p]]), np.uint64(offsets[b[p] + 1])
        left, right, enough = np.int64(end_i - i), np.int64(end_j - j), least[p]
        if min(left, right) < enough:
            shared[p] = REFUSED
            continue
        if left * _GALLOP < right:
            found = _gallop(values, i, end_i, j, end_j, left - enough)
        elif right * _GALLOP < left:
            found = _gallop(values, j, end_j, i, end_i, right - enough)
        else:
            found = _merge_four(values, i, end_i, j, end_j, enough)
        shared[p] = found if found >= enough else REFUSED
