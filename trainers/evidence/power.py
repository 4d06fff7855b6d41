"""What a comparison can see: noise between seeds from a pilot, the detectable difference, and power, before any run.

A pilot trains one mixture against itself in other orders; its paired differences have a true mean of 0, so the root of
their mean square is the noise σ of one pair, with as many degrees of freedom as pairs. With n pairs the t test of
`statistics` then finds a true difference δ with the probability that a noncentral t of n - 1 degrees of
freedom and centre δ √n / σ lies beyond the quantile (Cohen, "Statistical power analysis", 1988, §2; Owen 1968).
Pure arithmetic on numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from scipy.special import gammaincinv, nctdtr, stdtrit

POWER: Final = 0.8
"""The probability with which the detectable difference is found."""


@dataclass(frozen=True, slots=True)
class Noise:
    """The deviation of a paired difference between two seeds, and the 80 % interval of it that `pairs` leave."""

    deviation: float
    low: float
    high: float
    pairs: int


def noise_of(differences: Sequence[float]) -> Noise:
    """Return the noise of paired differences whose true mean is 0, as those of a mixture against itself.

    Raises:
        ValueError: none, or one that is not finite.
    """
    count = len(differences)
    if not count or not all(map(math.isfinite, differences)):
        raise ValueError(f"noise is measured on finite differences, got {list(differences)}")
    deviation = math.sqrt(math.fsum(value * value for value in differences) / count)
    ends = [deviation * math.sqrt(count / (2 * float(gammaincinv(count / 2, share)))) for share in (0.9, 0.1)]
    return Noise(deviation, ends[0], ends[1], count)


def power(difference: float, noise: float, seeds: int, level: float, comparisons: int = 1) -> float:
    """Return the probability that a true `difference` is called different.

    `level` is shared by `comparisons` (Bonferroni), as in `paired_interval`.

    Raises:
        ValueError: fewer than two seeds, or a noise that is not positive.
    """
    if seeds < 2 or not noise > 0:
        raise ValueError(f"power is that of at least 2 seeds and some noise, got {seeds} and {noise}")
    edge = float(stdtrit(seeds - 1, 1 - level / comparisons / 2))
    centre = abs(difference) * math.sqrt(seeds) / noise
    beyond = 1 - float(nctdtr(seeds - 1, centre, edge))
    below = float(nctdtr(seeds - 1, centre, -edge))
    return min(1.0, beyond + (below if math.isfinite(below) else 0.0)) if math.isfinite(beyond) else 1.0


def detectable(noise: float, seeds: int, level: float, comparisons: int = 1, wanted: float = POWER) -> float:
    """Return the least true difference that is found with probability `wanted`, to a thousandth of it.

    Raises:
        ValueError: as `power`.
    """
    low, high = 0.0, noise
    while power(high, noise, seeds, level, comparisons) < wanted:
        low, high = high, 2 * high
    while high - low > high / 1000:
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle, noise, seeds, level, comparisons) >= wanted else (middle, high)
    return high
