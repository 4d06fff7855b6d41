"""The statistics of a comparison: intervals for paired differences over seeds, and the verdict that follows.

The n differences of a domain (same seed, two mixtures) are taken as normal and independent, so their mean lies within
t(n - 1) standard errors (Student 1908). With m domains each interval has level α / m (Bonferroni), so that under no
difference at all a wrong "different" in any domain has at most probability α. Pure arithmetic on numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from scipy.special import stdtrit

Verdict = Literal["different", "not told apart"]


@dataclass(frozen=True, slots=True)
class Interval:
    """The mean of paired differences (second minus first) and the interval around it; the verdict says if 0 is out."""

    mean: float
    low: float
    high: float
    verdict: Verdict


def paired_interval(first: Sequence[float], second: Sequence[float], level: float, comparisons: int = 1) -> Interval:
    """Return the interval of second - first at `level`, shared by `comparisons` (Bonferroni).

    Raises:
        ValueError: fewer than two pairs, unequal lengths, values that are not finite, or a level outside (0, 1).
    """
    if not 0 < level < 1 or comparisons < 1:
        raise ValueError(f"a level lies between 0 and 1 and is shared by at least 1, got {level} and {comparisons}")
    differences = [b - a for a, b in zip(first, second, strict=True)]
    count = len(differences)
    if count < 2:
        raise ValueError(f"an interval over seeds needs at least 2 seeds, got {count}")
    if not all(map(math.isfinite, differences)):
        raise ValueError(f"losses must be finite, got {list(first)} and {list(second)}")
    mean = math.fsum(differences) / count
    variance = math.fsum((value - mean) ** 2 for value in differences) / (count - 1)
    quantile = float(stdtrit(count - 1, 1 - level / comparisons / 2))
    half = quantile * math.sqrt(variance / count)
    low, high = mean - half, mean + half
    return Interval(mean, low, high, "not told apart" if low <= 0 <= high else "different")


def paired_intervals(
    first: Mapping[str, Sequence[float]], second: Mapping[str, Sequence[float]], level: float
) -> dict[str, Interval]:
    """Return the interval of each domain, `level` shared by all of them.

    Raises:
        ValueError: the domains differ, or as `paired_interval`.
    """
    if set(first) != set(second):
        raise ValueError(f"the two sides have other domains: {sorted(set(first) ^ set(second))}")
    return {name: paired_interval(first[name], second[name], level, len(first)) for name in sorted(first)}
