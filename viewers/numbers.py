"""Numbers as a reader wants them, from integers alone: grouping, shares and decimals of exact ratios.

Invariants: no float, no locale. A share is 0 % or 100 % only if it is exactly that; a decimal says whether it is the
ratio ("=") or near it ("≈"); rounding is half to even.
"""

from __future__ import annotations

from typing import Final

THIN: Final = "\u202f"
"""Narrow no-break space: groups digits, stands before "%"."""

MINUS: Final = "−"
PLACES: Final = 4


def grouped(number: int) -> str:
    """Return `number` with its digits grouped by three."""
    digits = f"{abs(number):,}".replace(",", THIN)
    return digits if number >= 0 else MINUS + digits


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """Return `number` with its noun: "1 shard", "52 shards"."""
    return f"{grouped(number)} {singular if number == 1 else plural or singular + 's'}"


def rounded(numerator: int, denominator: int, places: int) -> int:
    """Return numerator / denominator in units of 10^-places, rounded half to even; `denominator` is positive."""
    scale: int = 10**places
    quotient, rest = divmod(numerator * scale, denominator)
    return quotient + (2 * rest > denominator or (2 * rest == denominator and quotient % 2 == 1))


def fixed(units: int, places: int) -> str:
    """Return `units` of 10^-places as a decimal: 125 in hundredths is "1.25"."""
    whole, rest = divmod(abs(units), 10**places)
    decimals = f".{rest:0{places}d}" if places else ""
    return (MINUS if units < 0 else "") + grouped(whole) + decimals


def share(part: int, whole: int) -> str:
    """Return part / whole as a percentage: "12.3 %", "< 0.1 %", "> 99.9 %"; "–" of nothing."""
    if whole <= 0:
        return "–"
    tenths = rounded(part, whole, 3)
    if part in (0, whole):
        return f"{0 if part == 0 else 100}{THIN}%"
    if tenths == 0:
        return f"<{THIN}0.1{THIN}%"
    if tenths == 1000:
        return f">{THIN}99.9{THIN}%"
    return f"{fixed(tenths, 1)}{THIN}%"


def ratio(numerator: int, denominator: int) -> str:
    """Return an exact ratio with its decimal: "21/62 ≈ 0.3387", "3/4 = 0.75", "29" (of 29/1)."""
    if denominator == 1:
        return grouped(numerator)
    fraction = f"{grouped(numerator)}/{grouped(denominator)}"
    if denominator <= 0:
        return fraction
    units = rounded(numerator, denominator, PLACES)
    is_exact = units * denominator == numerator * 10**PLACES
    decimal = fixed(units, PLACES)
    return f"{fraction} = {decimal.rstrip('0').rstrip('.')}" if is_exact else f"{fraction} ≈ {decimal}"
