"""Types of options for argparse: numbers within bounds, files to write. What does not fit is a wrong command."""

from __future__ import annotations

import argparse
import math
from pathlib import Path


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


def between_0_and_1(text: str) -> float:
    """Return the number of an option that lies between 0 and 1, neither of which it is."""
    number = above_zero(text)
    if number >= 1:
        raise argparse.ArgumentTypeError(f"a number between 0 and 1, got {text!r}")
    return number


def writable_file(text: str) -> Path:
    """Return the path of a file that is written at the end, whose folder must be there at the beginning."""
    path = Path(text)
    if path.is_dir() or not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"a file in a folder that is there, got {text!r}")
    return path


def _at_least(least: int, text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise argparse.ArgumentTypeError(f"a whole number from {least}, got {text!r}")
    return number
