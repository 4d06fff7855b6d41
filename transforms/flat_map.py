"""A map: each vector gets a place in a square, near to the places of what resembles it, in integers.

Rows are centred and laid along their two main directions (power iteration on the integer matrix of products). Then, for
a fixed number of rounds, each moves two thirds of the way to the mean place of its nearest rows, and both coordinates
are spread evenly by rank, along the sides and along the diagonals in turn, so that crowds get the room that they need.
It is a picture: that two are near says that some chain of neighbours joins them; that two are far says nothing.

Invariants: places depend on the rows in their order alone; all arithmetic is of integers, or of floats that hold the
integers exactly (see `transforms.spherical_kmeans`), so they are the same on any machine. Equal rows get equal
neighbours, not equal places. Cost: rows² × dimension products, some 3 s for 4,000 rows; 16 MB a thousand of them.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from transforms.spherical_kmeans import Rows, products

Places = npt.NDArray[np.int64]

SIDE: Final = 1 << 16
"""Length of the square's sides."""

NEIGHBOURS: Final = 8
ROUNDS: Final = 60
PULL: Final = 3
"""A row's own place weighs one in so many, that of its neighbours the rest."""

TURNS: Final = 60
"""Steps of the power iteration."""

FINE: Final = 1 << 20
"""Largest number in a direction."""

AT_ONCE: Final = 512


def flat_map(rows: Rows) -> Places:
    """Return the places of `rows`, from `unit_rows`: (rows, 2), from 0 to below `SIDE`."""
    count = len(rows)
    if count < 2:
        return np.full((count, 2), SIDE // 2, np.int64)
    near = _neighbours(rows, min(NEIGHBOURS, count - 1))
    places = _spread_both(np.stack(_main_axes(rows), axis=1))
    for turn in range(ROUNDS):
        pulled = places + (PULL - 1) * (places[near].sum(axis=1) // near.shape[1])
        places = _turned(_spread_both(_turned(pulled))) if turn % 2 else _spread_both(pulled)
    return _spread_both(places)


def _turned(places: Places) -> Places:
    """Return `places` turned by an eighth and mirrored, at another scale: twice is once again as it was, doubled."""
    return np.stack([places[:, 0] + places[:, 1], places[:, 0] - places[:, 1]], axis=1)


def _spread_both(places: Places) -> Places:
    return np.stack([_spread(places[:, axis]) for axis in range(2)], axis=1)


def _spread(values: Places) -> Places:
    """Return the ranks of `values`, evenly over the side; equal ones stand in their order."""
    ranks = np.empty(len(values), np.int64)
    ranks[np.argsort(values, kind="stable")] = np.arange(len(values))
    return (2 * ranks + 1) * SIDE // (2 * len(values))


def _main_axes(rows: Rows) -> list[Places]:
    """Return the coordinates of `rows` along their two main directions, up to a common factor."""
    centred = rows.astype(np.int64) - rows.astype(np.int64).sum(axis=0) // len(rows)
    spread = np.zeros((rows.shape[1], rows.shape[1]), np.int64)
    for first in range(0, len(rows), AT_ONCE):  # sums below 2^53: exact in floats of 64 bits, whatever their order
        part = centred[first : first + AT_ONCE].astype(np.float64)
        spread += (part.T @ part).astype(np.int64)
    spread //= max(int(np.abs(spread).max()) // FINE, 1)
    found: list[Places] = []
    for start in range(2):
        axis = np.full(rows.shape[1], FINE, np.int64)
        axis[start::2] = -FINE // 2
        for _ in range(TURNS):
            axis = _scaled(_without(spread @ axis, found))
        found.append(axis)
    return [centred @ axis for axis in found]


def _scaled(axis: Places) -> Places:
    largest = int(np.abs(axis).max())
    return axis if not largest else np.array([int(value) * FINE // largest for value in axis.tolist()], np.int64)


def _without(axis: Places, others: list[Places]) -> Places:
    """Return `axis` without what of it lies along `others`."""
    axis = _scaled(axis)
    for other in others:
        length = max(int(other @ other), 1)
        axis = axis - np.array([int(axis @ other) * int(value) // length for value in other.tolist()], np.int64)
    return axis


def _neighbours(rows: Rows, count: int) -> Places:
    """Return for each row the `count` others whose product with it is largest, the first of equal ones."""
    found = np.empty((len(rows), count), np.int64)
    for first in range(0, len(rows), AT_ONCE):
        part = rows[first : first + AT_ONCE]
        keys = products(part, rows) * len(rows) + np.arange(len(rows))[::-1]  # no two are equal
        keys[np.arange(len(part)), first + np.arange(len(part))] = np.iinfo(np.int64).min
        nearest = np.argpartition(-keys, count - 1, axis=1)[:, :count]
        order = np.argsort(-np.take_along_axis(keys, nearest, axis=1), axis=1, kind="stable")
        found[first : first + AT_ONCE] = np.take_along_axis(nearest, order, axis=1)
    return found
