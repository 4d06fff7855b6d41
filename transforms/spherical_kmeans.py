"""Spherical k-means in integers: directions grouped by cosine, the same groups on any machine.

Rows are scaled to length `ONE` (2^11), so a product of two rows is their cosine in units of 2^-22. Products are made by
the machine's matrix multiplication of float32: by the inequality of Cauchy and Schwarz all sums in it are integers
below 2^24, which float32 holds exactly, so neither the order of additions nor fused ones nor threads change a bit.
Centres start by k-means++ (Arthur & Vassilvitskii 2007) with several draws at each step, of which the best stays, and
move for a fixed number of rounds (Lloyd; Dhillon & Modha 2001, "Concept Decompositions for Large Sparse Text Data", for
the sphere). A group below the least size is dissolved and the largest one divided; where that does not help, there is
one group less.

Invariants: groups depend on the rows in their order, and the arguments. Ties go to the first centre.
Cost: rows × centres × dimension products per round, some 10^9 a second on one core; 2 bytes per row and dimension.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Final

import numpy as np
import numpy.typing as npt
from blake3 import blake3

from transforms.embedding import Vectors
from transforms.kernels import kernel

Rows = npt.NDArray[np.int16]
Numbers = npt.NDArray[np.int64]

ONE: Final = 1 << 11
"""Length of a row and of a centre; ONE * ONE is the product of two equal ones."""

ROUNDS: Final = 25
AFTER_DIVISION: Final = 5
"""Rounds of all centres, and after each division of a group."""

_AT_ONCE: Final = 4096
_NORM: Final = 16  # lengths are known to a sixteenth of a unit


@dataclass(frozen=True, slots=True)
class Nearest:
    """For each row the nearest centre, its similarity, and by how much the second nearest is less similar (2^-22).

    With one centre the margin is the similarity.
    """

    labels: Numbers
    similarities: Numbers
    margins: Numbers


@dataclass(frozen=True, slots=True)
class Groups:
    """Centres (groups, dimension), and the group of each row."""

    centres: Rows
    labels: Numbers

    @property
    def sizes(self) -> Numbers:
        """Rows of each group."""
        return np.bincount(self.labels, minlength=len(self.centres))


def unit_rows(vectors: Vectors) -> Rows:
    """Return `vectors` scaled to length `ONE`; a row of zeros stays one."""
    rows = np.empty(vectors.shape, np.int16)
    _scale(np.ascontiguousarray(vectors), rows)
    return rows


@kernel
def _scale(vectors: Vectors, rows: Rows) -> None:
    """Scale each row: of numbers from -128 to 127, so that a table of 256 spares most divisions."""
    scaled = np.empty(256, np.int16)
    for row in range(len(vectors)):
        squares = np.int64(0)
        for place in range(vectors.shape[1]):
            squares += np.int64(vectors[row, place]) * np.int64(vectors[row, place])
        length = max(np.int64(np.sqrt(np.float64(squares * _NORM * _NORM))), np.int64(1))
        for value in range(256):
            scaled[value] = (2 * ONE * _NORM * (value - 128) + length) // (2 * length) if squares else 0
        for place in range(vectors.shape[1]):
            rows[row, place] = scaled[np.int64(vectors[row, place]) + 128]


def products(rows: Rows, centres: Rows) -> Numbers:
    """Return the product of each row with each centre, exactly."""
    turned = centres.astype(np.float32).T
    found = np.empty((len(rows), len(centres)), np.int64)
    for first in range(0, len(rows), _AT_ONCE):
        found[first : first + _AT_ONCE] = rows[first : first + _AT_ONCE].astype(np.float32) @ turned
    return found


def nearest(rows: Rows, centres: Rows) -> Nearest:
    """Return the nearest of `centres` for each of `rows`."""
    labels, best, margins = (np.zeros(len(rows), np.int64) for _ in range(3))
    for first in range(0, len(rows), _AT_ONCE):
        part = slice(first, first + _AT_ONCE)
        found = products(rows[part], centres)
        labels[part] = mine = found.argmax(axis=1)
        best[part] = margins[part] = found[np.arange(len(found)), mine]
        if len(centres) > 1:
            margins[part] -= np.partition(found, -2, axis=1)[:, -2]
    return Nearest(labels, best, margins)


def group_rows(rows: Rows, count: int, *, seed: int = 0, least: int = 1, rounds: int = ROUNDS) -> Groups:
    """Return `rows` in at most `count` groups of at least `least` rows each.

    Args:
        rows: of length `ONE`, none of zeros.
        count: how many groups are asked for; fewer where there are fewer rows, or none that can be divided.
        seed: of the first centres.
        least: rows of a group.
        rounds: how often all centres move; fewer where nothing changes.

    Raises:
        ValueError: no rows, or no groups asked for.
    """
    if not len(rows) or count < 1:
        raise ValueError(f"{len(rows):,} rows in {count:,} groups: there is nothing to group")
    groups = _settled(rows, rows[_first_centres(rows, min(count, len(rows)), seed)], rounds)
    for attempt in range(len(groups.centres)):
        sizes = groups.sizes
        small, large = int(sizes.argmin()), int(sizes.argmax())
        if sizes[small] >= least or sizes[large] < 2 * least:
            break
        groups.centres[small] = rows[_far_member(rows, groups, large, seed, attempt)]
        groups = _settled(rows, groups.centres, AFTER_DIVISION)
    while len(groups.centres) > 1 and groups.sizes.min() < least:
        centres = np.delete(groups.centres, int(groups.sizes.argmin()), axis=0)
        groups = _settled(rows, centres, AFTER_DIVISION)
    return groups


def _settled(rows: Rows, centres: Rows, rounds: int) -> Groups:
    """Return the groups after `rounds` moves of `centres`, each of which is the direction of its rows' sum."""
    labels = nearest(rows, centres).labels
    for _ in range(rounds):
        centres = _moved(rows, labels, centres)
        before, labels = labels, nearest(rows, centres).labels
        if np.array_equal(before, labels):
            break
    return Groups(centres, labels)


def _moved(rows: Rows, labels: Numbers, centres: Rows) -> Rows:
    sums = np.zeros(centres.shape, np.int64)
    _add_rows(rows, labels, sums)
    return np.stack([_direction(total) if total.any() else old for total, old in zip(sums, centres, strict=True)])


@kernel
def _add_rows(rows: Rows, labels: Numbers, sums: Numbers) -> None:
    for row in range(len(rows)):
        label = labels[row]
        for place in range(rows.shape[1]):
            sums[label, place] += rows[row, place]


def _direction(total: Numbers) -> Rows:
    """Return `total` scaled to length `ONE`."""
    length = isqrt(sum(value * value for value in total.tolist())) or 1
    return ((2 * ONE * total + length) // (2 * length)).astype(np.int16)


def _first_centres(rows: Rows, count: int, seed: int) -> list[int]:
    """Return rows to start from: each is drawn by its distance from those before it, the best of several draws."""
    chosen = [_draw(len(rows), seed, 0, 0)]
    best = products(rows, rows[chosen])[:, 0]
    draws = 2 + count.bit_length()
    for step in range(1, count):
        drawn = _drawn_by_distance(best, draws, seed, step)
        reached = np.maximum(best[:, None], products(rows, rows[drawn]))
        taken = int(reached.sum(axis=0).argmax())
        best = reached[:, taken]
        chosen.append(int(drawn[taken]))
    return chosen


def _far_member(rows: Rows, groups: Groups, group: int, seed: int, attempt: int) -> int:
    """Return a row of `group` that is drawn by its distance from the centre."""
    members = np.flatnonzero(groups.labels == group)
    found = products(rows[members], groups.centres[group : group + 1])[:, 0]
    return int(members[_drawn_by_distance(found, 1, seed, -1 - attempt)[0]])


def _drawn_by_distance(similarities: Numbers, draws: int, seed: int, step: int) -> Numbers:
    """Draw rows with a probability in proportion to their squared distance, 2 - 2 * cosine."""
    sums = np.cumsum(np.maximum(ONE * ONE - similarities, 0) + 1)  # one more: also where all rows are equal
    places = [_draw(int(sums[-1]), seed, step, draw) for draw in range(draws)]
    return np.searchsorted(sums, np.array(places, np.int64), side="right")


def _draw(end: int, *names: int) -> int:
    """Return a number from 0 to below `end`, by BLAKE3 of `names`."""
    digest = blake3(" ".join(map(str, names)).encode()).digest(16)
    return int.from_bytes(digest, "big") * end >> 128


def adjusted_rand(first: Numbers, second: Numbers) -> Fraction:
    """Return the adjusted Rand index of two groupings of the same rows: 1 for equal ones, about 0 for unrelated ones.

    Source: Hubert & Arabie 1985, "Comparing partitions". Exact. Two groupings that both put all in one, or each row
    in its own, are equal.
    """
    table = np.unique(np.stack([first, second]), axis=1, return_counts=True)[1]
    both, ours, theirs = (_pairs(counts) for counts in (table, np.bincount(first), np.bincount(second)))
    pairs = _pairs(np.array([len(first)]))
    expected = Fraction(ours * theirs, pairs) if pairs else Fraction(0)
    spread = Fraction(ours + theirs, 2) - expected
    return (both - expected) / spread if spread else Fraction(1)


def _pairs(counts: npt.NDArray[np.integer]) -> int:
    return sum(count * (count - 1) // 2 for count in counts.tolist())
