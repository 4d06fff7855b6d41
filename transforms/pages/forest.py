"""Gradient-boosted trees over integer features, evaluated in integers: the same score on every machine.

A tree goes left where feature ≤ threshold; features are whole numbers, so the trainer's thresholds are cut down to
whole numbers without another outcome. Leaves are in 1/2^20, and so is their sum, from which a table gives the
probability in 1/65536, within 1/30,000 of the logistic function. Cost: some 2 ns a node.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Final

import numpy as np
import numpy.typing as npt

from transforms.kernels import kernel

SCORE: Final = 1 << 20
"""A score of 1, in log odds."""
CERTAIN: Final = 1 << 16
"""A probability of 1."""

_STEPS: Final = 64  # entries of the table in log odds of 1
_RANGE: Final = 16  # it goes from -16 to 16

Int32s = npt.NDArray[np.int32]


def _logistic_table() -> Int32s:
    """Return 65536 / (1 + exp(-x)) for x from -16 to 16 in steps of 1/64, rounded; exact on every machine."""
    with localcontext() as context:
        context.prec = 30
        values = [
            round(CERTAIN / (1 + (-Decimal(step) / _STEPS).exp()))
            for step in range(-_RANGE * _STEPS, _RANGE * _STEPS + 1)
        ]
    return np.array(values, np.int32)


LOGISTIC: Final = _logistic_table()


@dataclass(frozen=True, slots=True)
class Forest:
    """Trees as arrays: inner nodes in one sequence, leaves in another; a child below 0 is leaf ~child.

    Attributes:
        roots: node at which each tree begins.
        features: per node the column that is asked.
        thresholds: per node the greatest value that goes left.
        children: per node the left and the right child.
        leaves: values in 1/2^20.
    """

    roots: Int32s
    features: npt.NDArray[np.int16]
    thresholds: Int32s
    children: npt.NDArray[np.int16]
    leaves: Int32s


@kernel
def _grow(
    rows: Int32s,
    roots: Int32s,
    features: npt.NDArray[np.int16],
    thresholds: Int32s,
    children: npt.NDArray[np.int16],
    leaves: Int32s,
    table: Int32s,
    found: Int32s,
) -> None:
    sums, count = np.zeros(rows.shape[0], np.int64), rows.shape[0]
    for number in range(roots.size):
        root, row = np.int64(roots[number]), 0
        while row + 4 <= count:  # four ways down at a time: none waits for another's node to come from memory
            a, b, c, d = root, root, root, root
            while a >= 0 or b >= 0 or c >= 0 or d >= 0:
                if a >= 0:
                    a = np.int64(children[a, np.int64(rows[row, features[a]] > thresholds[a])])
                if b >= 0:
                    b = np.int64(children[b, np.int64(rows[row + 1, features[b]] > thresholds[b])])
                if c >= 0:
                    c = np.int64(children[c, np.int64(rows[row + 2, features[c]] > thresholds[c])])
                if d >= 0:
                    d = np.int64(children[d, np.int64(rows[row + 3, features[d]] > thresholds[d])])
            sums[row] += leaves[~a]
            sums[row + 1] += leaves[~b]
            sums[row + 2] += leaves[~c]
            sums[row + 3] += leaves[~d]
            row += 4
        while row < count:
            a = root
            while a >= 0:
                a = np.int64(children[a, np.int64(rows[row, features[a]] > thresholds[a])])
            sums[row] += leaves[~a]
            row += 1
    width = np.int64(SCORE // _STEPS)
    for row in range(rows.shape[0]):
        score = max(np.int64(0), min(np.int64(2 * _RANGE * SCORE), sums[row] + _RANGE * SCORE))
        step = min(score // width, np.int64(table.size - 2))
        rest = score - step * width
        found[row] = table[step] + (np.int64(table[step + 1] - table[step]) * rest + width // 2) // width


def probabilities(forest: Forest, rows: Int32s) -> Int32s:
    """Return per row of features the probability in 1/65536."""
    found = np.empty(len(rows), np.int32)
    arrays = (forest.roots, forest.features, forest.thresholds, forest.children, forest.leaves)
    _grow(rows, *arrays, LOGISTIC, found)
    return found
