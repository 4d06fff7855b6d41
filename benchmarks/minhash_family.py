"""Whether the hash family of MinHash is the one it claims: bias, variance, independence, and pairs found by bands.

All on pairs of texts whose sets of words have an exactly known Jaccard similarity, so nothing is estimated but what is
tested. Bounds are of four standard errors and more, so that a right family fails once in thousands of runs; everything
is drawn from fixed names, so it does not fail at times.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transforms.minhash import MinHash, band_keys, signatures

Check = list[Any]

SIZE: Final = 200
"""Words in the union of a pair."""
PAIRS: Final = {"small": 1000, "full": 4000}
POINTS: Final = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9)
"""Similarities at which the share of candidates is held against the curve."""


def pairs_at(jaccard: float, pairs: int) -> tuple[float, pa.LargeStringArray, pa.LargeStringArray]:
    """Return the exact similarity of pairs of texts of words, and their two columns."""
    both = round(jaccard * SIZE)
    half = both + (SIZE - both) // 2
    left = [" ".join(f"w{i}x{j}" for j in range(half)) for i in range(pairs)]
    right = [" ".join(f"w{i}x{j}" for j in (*range(both), *range(half, SIZE))) for i in range(pairs)]
    return both / SIZE, pa.array(left, pa.large_string()), pa.array(right, pa.large_string())


def agreement(jaccard: float, pairs: int, minhash: MinHash) -> tuple[float, npt.NDArray[np.bool_]]:
    """Return the exact similarity, and pairs × functions: where both texts of a pair have the same value."""
    exact, left, right = pairs_at(jaccard, pairs)
    return exact, signatures(left, minhash) == signatures(right, minhash)


def bias_and_spread(jaccard: float, pairs: int) -> tuple[float, float]:
    """Return bias of the estimates, in standard errors, and their root mean square error over what theory says."""
    exact, agree = agreement(jaccard, pairs, MinHash(ngram=1))
    errors = agree.mean(axis=1) - exact
    theory = (exact * (1 - exact) / agree.shape[1]) ** 0.5
    return float(errors.mean() / theory * pairs**0.5), float(np.sqrt((errors**2).mean()) / theory)


def correlations(jaccard: float, pairs: int) -> tuple[float, float]:
    """Return how the functions hang together over pairs of texts: mean square and largest correlation of two.

    Both in units of what independent functions give: the mean square over 1 / pairs, the largest over 1 / √pairs.
    """
    _, agree = agreement(jaccard, pairs, MinHash(ngram=1))
    found = np.asarray(np.corrcoef(agree.astype(np.float64), rowvar=False))
    above = found[np.triu_indices(len(found), 1)]
    return float((above**2).mean() * pairs), float(np.abs(above).max() * pairs**0.5)


def share_of_candidates(jaccard: float, pairs: int, minhash: MinHash) -> tuple[float, float, float]:
    """Return the exact similarity, the share of pairs that agree in a band, and how far off the curve in errors."""
    exact, left, right = pairs_at(jaccard, pairs)
    found = float((band_keys(left, minhash) == band_keys(right, minhash)).any(axis=1).mean())
    curve = minhash.recall(exact)
    error = max((curve * (1 - curve) / pairs) ** 0.5, 1 / pairs)
    return exact, found, (found - curve) / error


def checks_of(size: str) -> dict[str, Check]:
    """Return what must hold; print the measured curve beside the exact one."""
    pairs, checks = PAIRS[size], dict[str, Check]()
    for jaccard in (0.2, 0.5, 0.8):
        bias, spread = bias_and_spread(jaccard, pairs)
        checks[f"bias at {jaccard}, standard errors"] = [round(bias, 2), "≤ 4 in size", abs(bias) <= 4]
        checks[f"rms error at {jaccard} / theory"] = [round(spread, 3), ".9 to 1.1", 0.9 <= spread <= 1.1]
    square, largest = correlations(0.5, pairs)
    checks["mean square correlation of two functions / independent"] = [
        round(square, 3),
        ".93 to 1.07",
        0.93 <= square <= 1.07,
    ]
    checks["largest correlation of 7,140, standard errors"] = [round(largest, 2), "≤ 5.5", largest <= 5.5]
    minhash = MinHash(ngram=1)
    print("similarity   candidates      curve")
    for point in POINTS:
        exact, found, errors = share_of_candidates(point, pairs, minhash)
        print(f"{exact:10.3f} {found:12.4f} {minhash.recall(exact):10.4f}")
        checks[f"candidates at {exact:g}, errors from the curve"] = [round(errors, 2), "≤ 4 in size", abs(errors) <= 4]
    return checks
