"""What a banding finds: the probability that two texts become candidates, and the share that did, pair by pair.

Two texts of Jaccard similarity s agree in all rows of a band with probability s^rows, so in any of the bands with
1 - (1 - s^rows)^bands (Broder 1997; Leskovec, Rajaraman, Ullman, *Mining of Massive Datasets*, §3.4). `measured_points`
holds this against documents: it compares all pairs exactly and looks which of them share a band. `paired_points` does
so for pairs that are given, as `transforms.banding_sample` draws them from a corpus of any size.

Invariants: points depend on the texts and the method, not on their order. Buckets that are too large to be compared
(`MinHash.cap`) are not looked at: the curve speaks of the banding alone.
Cost: all pairs, some .2 µs each: 3,000 texts take two seconds. Memory: the shingle sets and one row of pairs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

import numpy as np
import pyarrow as pa

from transforms.minhash import MinHash, band_keys, sets_of
from transforms.similarity import Indices, edges

PAIRS = 1 << 20
"""Pairs that are compared at a time."""


@dataclass(frozen=True, slots=True)
class Point:
    """Pairs of similarity from `low` to below `high` (the last bucket: to 1, included).

    `expected` is the mean probability of these very pairs by the curve, so that it can be held against the share.
    """

    low: Fraction
    high: Fraction
    pairs: int
    candidates: int
    expected: float

    @property
    def share(self) -> float:
        """The share of the pairs that became candidates."""
        return self.candidates / self.pairs

    @property
    def standard_error(self) -> float:
        """Of `share`, if each pair became a candidate with the expected probability, independently."""
        return sqrt(self.expected * (1 - self.expected) / self.pairs)


def measured_points(
    text: pa.LargeStringArray, method: MinHash, least: Fraction = Fraction(1, 5), width: Fraction = Fraction(1, 20)
) -> list[Point]:
    """Return a point for each bucket of `width` from `least` on that has pairs of `text`; similarity is Jaccard.

    Raises:
        ValueError: `least` or `width` is not above 0 and at most 1.
    """
    return _points(text, _blocks(len(text)), method, least, width)


def paired_points(
    one: pa.LargeStringArray,
    other: pa.LargeStringArray,
    method: MinHash,
    least: Fraction = Fraction(1, 5),
    width: Fraction = Fraction(1, 20),
) -> list[Point]:
    """Return a point for each bucket of the pairs one[i], other[i], as `measured_points` does for all pairs.

    Raises:
        ValueError: `least` or `width` is not above 0 and at most 1.
    """
    index = np.arange(len(one))
    return _points(pa.concat_arrays([one, other]), [(index, index + len(one))], method, least, width)


def _points(
    text: pa.LargeStringArray,
    pairs: Iterable[tuple[Indices, Indices]],
    method: MinHash,
    least: Fraction,
    width: Fraction,
) -> list[Point]:
    if not 0 < least <= 1 or not 0 < width <= 1:
        raise ValueError(f"least and width are above 0 and at most 1: got {least} and {width}")
    sets, keys = sets_of(text, method), band_keys(text, method)
    found: list[tuple[Indices, Indices, Indices]] = []
    for a, b in pairs:
        near = edges(sets, a, b, least)
        agree = (keys[a[near.pair]] == keys[b[near.pair]]).any(axis=1)
        found.append((near.shared, near.whole, agree.astype(np.int64)))
    if not found:
        return []
    shared, whole, agree = (np.concatenate(column) for column in zip(*found, strict=True))
    step = (shared * least.denominator - whole * least.numerator) * width.denominator
    last = int((1 - least) / width) - int((1 - least) % width == 0)
    bucket = np.minimum(step // (whole * least.denominator * width.numerator), max(last, 0))
    chance = 1.0 - (1.0 - (shared / whole) ** method.rows) ** method.bands
    points = []
    for number in np.unique(bucket).tolist():
        mine = bucket == number
        low = least + number * width
        high = min(low + width, Fraction(1))
        points.append(Point(low, high, int(mine.sum()), int(agree[mine].sum()), float(chance[mine].mean())))
    return points


def _blocks(texts: int) -> list[tuple[Indices, Indices]]:
    """Return all pairs a < b of so many texts, `PAIRS` or little more at a time."""
    blocks, first = [], 0
    while first < texts - 1:
        last = min(texts - 1, first + max(1, PAIRS // texts))
        a, b = np.triu_indices(last - first, 1, texts - first)
        blocks.append((a + first, b + first))
        first = last
    return blocks
