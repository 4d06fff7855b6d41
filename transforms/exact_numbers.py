"""Exact ratios: thresholds as fractions, compared with ratios of integers without rounding.

Invariants: what a user writes as .65 is 65/100, not the nearest binary float; no comparison overflows or rounds.
Cost: one multiplication per value in int64, in Python integers only where int64 could overflow.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Number = int | float | Decimal | Fraction
"""What users give as a threshold."""


def exact(value: Number | str) -> Fraction:
    """Return `value` as it is written: .65 is 13/20.

    Raises:
        ValueError: not a finite number.
    """
    if isinstance(value, bool):
        raise ValueError(f"a threshold is a number, got {value!r}")
    if isinstance(value, (int, Fraction)):
        return Fraction(value)
    try:
        return Fraction(str(value))
    except ValueError:
        raise ValueError(f"a threshold is a finite number, got {value!r}") from None


def decimal_text(value: Fraction) -> str:
    """Return `value` as a decimal if it has an end ("0.1"), else as a ratio ("1/3")."""
    twos, fives, rest = 0, 0, value.denominator
    while rest % 2 == 0:
        twos, rest = twos + 1, rest // 2
    while rest % 5 == 0:
        fives, rest = fives + 1, rest // 5
    if rest != 1:
        return f"{value.numerator}/{value.denominator}"
    places = max(twos, fives)
    digits = str(abs(value.numerator) * 10**places // value.denominator).zfill(places + 1)
    sign = "-" if value < 0 else ""
    return sign + (f"{digits[:-places]}.{digits[-places:]}" if places else digits)


def product(values: npt.NDArray[Any], factor: int) -> npt.NDArray[Any]:
    """Return `values` · `factor` exactly: int64, or Python integers where int64 might not hold them."""
    largest = int(np.abs(values).max(initial=0)) * abs(factor)
    return values * factor if largest < 2**61 else values.astype(object) * factor
