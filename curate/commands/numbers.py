"""Numbers of options that have a lower bound, as types of argparse: what is below it is a wrong command."""

from __future__ import annotations

import argparse
import math


def positive(text: str) -> int:
    """Return the whole number of an option that is at least 1."""
    return _at_least(1, text)


def not_negative(text: str) -> int:
    """Return the whole number of an option that is at least 0."""
    return _at_least(0, text)


def above_zero(text: str) -> float:
    """Return the finite number of an option that is above 0."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise argparse.ArgumentTypeError(f"a number above 0, got {text!r}")
    return number


def _at_least(least: int, text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise argparse.ArgumentTypeError(f"a whole number from {least}, got {text!r}")
    return number
