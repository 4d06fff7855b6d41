"""Intervals of rates, and places on a scale of ratios, in integers: the same on any machine.

The interval of a rate is that of Wilson (1927), "Probable inference, the law of succession, and statistical inference",
at 95 % (z = 1.96): for k of n it is (k + z²/2 ± z √(k (n - k) / n + z²/4)) / (n + z²).
"""

from __future__ import annotations

from math import isqrt
from typing import Final

MILLION: Final = 1_000_000
_BITS: Final = 12


def wilson(part: int, whole: int) -> tuple[int, int]:
    """Return the ends of the interval of the rate part / whole, in millionths; 0 and 1,000,000 of nothing."""
    if not whole:
        return 0, MILLION
    scale = 10**8
    root = isqrt(38_416 * part * (whole - part) * 10**12 // whole + 38_416 * 9_604 * scale)
    middle, below = part * scale + 192_080_000, whole * scale + 384_160_000
    low, high = (middle - root) * MILLION // below, -(-(middle + root) * MILLION // below)
    return max(low, 0) if part else 0, min(high, MILLION) if part < whole else MILLION


def logarithm(numerator: int, denominator: int) -> int:
    """Return log2(numerator / denominator) in 4,096ths, rounded down; both are positive."""
    scaled = (numerator << 64) // denominator or 1
    whole = scaled.bit_length() - 1
    mantissa = scaled << 64 >> whole  # in [1, 2), 64 bits after the point
    units = (whole - 64) << _BITS
    for bit in range(_BITS - 1, -1, -1):
        mantissa = mantissa * mantissa >> 64
        if mantissa >> 65:
            units += 1 << bit
            mantissa >>= 1
    return units
