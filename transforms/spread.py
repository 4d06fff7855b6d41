"""How the values of a measure lie around its threshold: documents by quarters of the threshold, counted exactly.

A bin is a quarter of the threshold wide, and the threshold is an edge: of "≥ t" bin i holds the values from i/4 · t to
below (i + 1)/4 · t, of "≤ t" those above i/4 · t up to (i + 1)/4 · t, the first with 0. So bins below `EDGE` are one
side of the threshold, the others the other. The last bin is open: twice the threshold and more. Of a threshold of 0 or
less the first bin has all on the lower side, the last one all others. Documents without evidence (0/0) are counted
apart.

Invariants: integers that add, so counts do not depend on the cut into batches. Cost: a few operations a document.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from transforms.exact_numbers import Integers, product

QUARTERS: Final = 4
EDGE: Final = 4
"""The first bin beyond the threshold."""

BINS: Final = 9
NO_EVIDENCE: Final = BINS
"""The place of documents without evidence, behind the bins."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Of one rule of a transform how many documents have which distance from its `bound`, as "≥ 2".

    `counts` are those of the bins, and of documents without evidence.
    """

    transform: str
    reason: str
    measure: str
    bound: str
    counts: tuple[int, ...]

    @property
    def rule(self) -> tuple[str, str, str, str]:
        """What tells rules apart."""
        return self.transform, self.reason, self.measure, self.bound


def counts_of(numerator: Integers, denominator: Integers, sense: str, threshold: Fraction) -> tuple[int, ...]:
    """Return how many of the values numerator / denominator lie in each bin, and how many are 0/0."""
    told = denominator > 0
    value = product(product(numerator[told], threshold.denominator), QUARTERS)
    unit = product(denominator[told], threshold.numerator)
    if threshold <= 0:
        is_above = value >= product(unit, QUARTERS) if sense == "≥" else value > product(unit, QUARTERS)
        bins = np.where(is_above, BINS - 1, 0)
    elif sense == "≥":
        bins = value // unit
    else:
        bins = -(-value // unit) - 1
    places: npt.NDArray[Any] = np.clip(bins, 0, BINS - 1).astype(np.int64)
    counted = np.bincount(places, minlength=BINS).tolist()
    return (*counted, int(len(told) - told.sum()))


def added(spreads: Iterable[Spread]) -> tuple[Spread, ...]:
    """Return `spreads` with those of one rule added up, in the order in which rules come first."""
    found: dict[tuple[str, str, str, str], Spread] = {}
    for spread in spreads:
        before = found.get(spread.rule)
        sums = spread.counts if before is None else tuple(map(sum, zip(before.counts, spread.counts, strict=True)))
        found[spread.rule] = replace(spread, counts=sums)
    return tuple(found.values())


def renamed(spreads: Sequence[Spread], before: str, after: str) -> tuple[Spread, ...]:
    """Return `spreads` with `before` at the start of their transform's name replaced by `after`."""
    return tuple(
        replace(spread, transform=after + spread.transform[len(before) :])
        if spread.transform.startswith(before)
        else spread
        for spread in spreads
    )
