"""Numbers that a user writes, taken exactly: 0.1 is one tenth, not the nearest binary fraction.

Invariant: the value is the one that is printed, `Fraction(str(value))`. Cost: nothing to speak of.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from math import gcd, lcm

from curate.configuration import ConfigurationError

Number = int | float | Decimal | Fraction | str
"""What stands for a number: 3, 0.3, "0.3", "3/10", Decimal("0.3"), Fraction(3, 10)."""


def exact(value: Number, what: str) -> Fraction:
    """Return `value` as written: a float as the shortest decimal that names it.

    Args:
        value: a number that is not negative.
        what: how an error calls it, as "phase 'main': the weight of 'web'".

    Raises:
        ConfigurationError: `value` is negative, infinite, not a number, or a truth value.
    """
    try:
        if isinstance(value, bool):
            raise ValueError
        fraction = value if isinstance(value, Fraction) else Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        raise ConfigurationError(f"{what} must be a number, got {value!r}") from None
    if fraction < 0:
        raise ConfigurationError(f"{what} must not be negative, got {value!r}")
    return fraction


def whole(value: Number, what: str) -> int:
    """Return `value` as an integer of at least 1, so that 8e6 may be written for eight million.

    Raises:
        ConfigurationError: `value` is not a positive whole number.
    """
    fraction = exact(value, what)
    if fraction.denominator != 1 or fraction < 1:
        raise ConfigurationError(f"{what} must be a whole number of at least 1, got {value!r}")
    return fraction.numerator


def integer_ratio(weights: Sequence[Fraction]) -> list[int]:
    """Return the smallest integers that stand to each other as `weights` do."""
    denominator = lcm(*(weight.denominator for weight in weights))
    scaled = [weight.numerator * (denominator // weight.denominator) for weight in weights]
    divisor = gcd(*scaled) or 1
    return [weight // divisor for weight in scaled]
