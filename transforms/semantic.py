"""Documents that mean the same: of a cluster of vectors in keep order, those go that resemble one that stays.

Source: Abbas et al. 2023, "SemDeDup: Data-efficient learning at web-scale through semantic deduplication", §3: clusters
by k-means on embeddings, in a cluster cosine similarity of all pairs, and of those above a threshold one stays.
Ambiguity settled: who stays (the paper: the one least like the centre of its cluster) is here the keep order of every
other deduplication, and a document goes for a direct resemblance alone, never for a chain of others.

`keep_unlike` applies the sequential rule: in keep order a document stays unless its cosine with one that stays reaches
the threshold. `divided` cuts a cluster that is too large for that: by k-means again (`transforms.spherical_kmeans`),
and where that divides nothing, into runs in keep order, each of which is compared with the first document of all.

Invariants: vectors are int8, so products, squares and comparisons are exact: multiplied as float32 while every sum is
below 2^24, else as float64; the same on any CPU. No row depends on batches.
Cost: rows × those that stay × dimension products, some 10^10 a second on one core; 4 bytes per row and dimension.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isqrt
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from transforms.embedding import LARGEST, Vectors
from transforms.spherical_kmeans import group_rows, nearest, unit_rows

Indices = npt.NDArray[np.int64]
Floats = npt.NDArray[np.floating[Any]]

STAYS: Final = -1
"""In an array of keepers: this row stays."""

SCALE: Final = 10_000
"""Cosines are told in whole ten-thousandths, rounded down."""

_AT_ONCE: Final = 256  # rows compared at a time
_SLACK: Final = 1e-4  # a cosine this far below the threshold is surely below it, whatever float32 rounds
_SURE: Final = 1e-9  # a squared cosine this far from the threshold is on its side, whatever float64 rounds
_SAMPLED: Final = 32  # rows per group that a division is fitted to
_MOST_GROUPS: Final = 64  # of one division


@dataclass(frozen=True, slots=True)
class Kept:
    """Per row the row that it goes for, or `STAYS`, and their cosine in 1 / `SCALE`; how many pairs were compared."""

    keeper: Indices
    cosine: Indices
    compared: int


def keep_unlike(vectors: Vectors, threshold: Fraction, frozen: npt.NDArray[np.bool_] | None = None) -> Kept:
    """Return which of `vectors`, in keep order, go: those whose cosine with an earlier one that stays is ≥ `threshold`.

    The keeper is the most similar one that stays, of equals the first. `frozen` rows stay whatever they resemble. Rows
    of zeros resemble nothing.
    """
    rows = vectors.astype(exact_type(vectors.shape[1]))
    squares = np.einsum("ij,ij->i", vectors, vectors, dtype=np.int64)
    found = Kept(np.full(len(rows), STAYS, np.int64), np.zeros(len(rows), np.int64), 0)
    always = np.zeros(len(rows), np.bool_) if frozen is None else frozen
    staying, stays, compared = np.empty_like(rows), np.empty(len(rows), np.int64), 0
    count = 0  # of those that stay so far: their rows are staying[:count], their numbers stays[:count]
    for first in range(0, len(rows), _AT_ONCE):
        block = slice(first, min(first + _AT_ONCE, len(rows)))
        numbers = np.concatenate([stays[:count], np.arange(block.start, block.stop)])
        near = _Near.of(
            rows[block], np.concatenate([staying[:count], rows[block]]), squares[block], squares[numbers], threshold
        )
        goes = np.zeros(len(numbers), np.bool_)
        for row in range(block.start, block.stop):
            place = count + row - first
            if always[row]:
                continue
            compared += place - int(goes[:place].sum())
            columns, products = near.before(row - first, place)
            columns, products = columns[~goes[columns]], products[~goes[columns]]
            best = _most_similar(products, squares[row], squares[numbers[columns]], threshold)
            if best != STAYS:
                keeper, goes[place] = int(numbers[columns[best]]), True
                found.keeper[row] = keeper
                found.cosine[row] = cosine_of(int(products[best]), int(squares[row]), int(squares[keeper]))
        mine = numbers[count:][~goes[count:]]
        staying[count : count + len(mine)], stays[count : count + len(mine)] = rows[mine], mine
        count += len(mine)
    return replace(found, compared=compared)


@dataclass(frozen=True, slots=True)
class _Near:
    """The pairs of a block of rows and earlier ones that may reach the threshold: by row, then column."""

    starts: Indices
    columns: Indices
    products: Indices

    @classmethod
    def of(cls, block: Floats, others: Floats, squares: Indices, their_squares: Indices, threshold: Fraction) -> _Near:
        """Return the pairs whose cosine is not surely below the threshold."""
        products = block @ others.T
        lengths, theirs = (
            np.sqrt(values.astype(np.float64)).astype(block.dtype) for values in (squares, their_squares)
        )
        least = lengths[:, None] * (theirs * block.dtype.type(float(threshold) * (1 - _SLACK)))
        rows, columns = np.nonzero((products >= least) & (products > 0))
        starts = np.searchsorted(rows, np.arange(len(block) + 1))
        return cls(starts, columns, products[rows, columns].astype(np.int64))

    def before(self, row: int, place: int) -> tuple[Indices, Indices]:
        """Return the columns below `place` that `row` of the block may resemble, and the products with them."""
        first, last = self.starts[row], self.starts[row + 1]
        last = first + np.searchsorted(self.columns[first:last], place)
        return self.columns[first:last], self.products[first:last]


def cosine_of(product: int, square: int, other: int) -> int:
    """Return the cosine of two vectors in 1 / `SCALE`, rounded down: of their product and their squared lengths."""
    return isqrt(product * product * SCALE * SCALE // (square * other)) if product > 0 else 0


def reaches(product: int, square: int, other: int, threshold: Fraction) -> bool:
    """Return whether product / sqrt(square · other) ≥ `threshold`, exactly."""
    left = product * product * threshold.denominator**2
    return product > 0 and left >= threshold.numerator**2 * square * other


def divided(vectors: Vectors, cap: int) -> Iterator[tuple[Indices, int]]:
    """Yield the rows of `vectors`, in keep order, in parts of at most `cap` rows, each sorted; and pairs given up.

    A part may begin with a row of another one: the first of all that no division could tell apart. Rows of zeros and
    ties go as `nearest` says. The pairs given up are those of this cluster that are in no part together.
    """
    pending = [np.arange(len(vectors), dtype=np.int64)]
    while pending:
        rows = pending.pop()
        if len(rows) <= cap:
            yield rows, 0
            continue
        labels = _labels(vectors[rows], cap)
        sizes = np.bincount(labels)
        if (sizes > 0).sum() == 1:
            yield from _runs(rows, cap)
            continue
        parts = [rows[labels == label] for label in np.flatnonzero(sizes).tolist()]
        yield np.empty(0, np.int64), (_pairs(len(rows)) - sum(_pairs(len(part)) for part in parts))
        pending.extend(parts[::-1])


def _labels(vectors: Vectors, cap: int) -> Indices:
    rows = unit_rows(vectors)
    count = min(_MOST_GROUPS, -(-2 * len(rows) // cap))
    step = max(1, len(rows) // (_SAMPLED * count))
    groups = group_rows(rows[::step], count)
    return nearest(rows, groups.centres).labels


def _runs(rows: Indices, cap: int) -> Iterator[tuple[Indices, int]]:
    """Yield `rows` in runs, each led by the first of all; the last has the pairs that are in none."""
    yield rows[:cap], 0
    left, together = rows[cap:], _pairs(min(cap, len(rows)))
    for first in range(0, len(left), cap - 1):
        part = np.concatenate([rows[:1], left[first : first + cap - 1]])
        together += _pairs(len(part))
        yield part, 0
    yield np.empty(0, np.int64), _pairs(len(rows)) - together


def _pairs(rows: int) -> int:
    return rows * (rows - 1) // 2


def exact_type(dimension: int) -> type[np.floating[Any]]:
    """Return the type in which the product of two vectors is exact: every sum is below 2^24, or below 2^53."""
    return np.float32 if dimension * (LARGEST + 1) ** 2 < 1 << 24 else np.float64


def _most_similar(products: Indices, square: np.int64, squares: Indices, threshold: Fraction) -> int:
    """Return the place of the most similar one at or above the threshold, of equals the first; `STAYS` for none."""
    there = np.flatnonzero((products > 0) & (squares > 0))
    if not len(there) or not square:
        return STAYS
    scores = products[there].astype(np.float64) ** 2 / squares[there].astype(np.float64)
    best = int(there[scores.argmax()])
    share = float(scores.max()) / float(square)
    if abs(share - float(threshold**2)) > _SURE:
        return best if share > float(threshold**2) else STAYS
    return best if reaches(int(products[best]), int(square), int(squares[best]), threshold) else STAYS
