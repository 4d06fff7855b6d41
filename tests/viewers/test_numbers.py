from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewers.numbers import counted, fixed, grouped, ratio, rounded, share

integers = st.integers(-(10**20), 10**20)
positive = st.integers(1, 10**20)


@given(integers)
def test_grouped_any_integer_reads_back(number: int) -> None:
    assert int(grouped(number).replace("\u202f", "").replace("−", "-")) == number


@given(integers, positive, st.integers(0, 6))
def test_rounded_any_ratio_is_the_nearest_with_ties_to_even(numerator: int, denominator: int, places: int) -> None:
    exact = Fraction(numerator, denominator) * 10**places
    found = rounded(numerator, denominator, places)
    assert abs(exact - found) <= Fraction(1, 2)
    if abs(exact - found) == Fraction(1, 2):
        assert found % 2 == 0


def test_fixed_matches_decimal_quantised() -> None:
    for units, places, shown in ((125, 2, "1.25"), (-5, 2, "−0.05"), (7, 0, "7"), (1234567, 3, "1\u202f234.567")):
        assert fixed(units, places) == shown
    assert Decimal("2.5").quantize(Decimal(1), ROUND_HALF_EVEN) == rounded(25, 10, 0)


@given(st.integers(0, 10**9), st.integers(1, 10**9))
def test_share_nought_and_all_only_if_exactly_so(part: int, whole: int) -> None:
    part = min(part, whole)
    shown = share(part, whole).replace("\u202f", "")
    assert (shown == "0%") == (part == 0)
    assert (shown == "100%") == (part == whole)


@pytest.mark.parametrize(
    ("part", "whole", "shown"),
    [(1, 3, "33.3 %"), (1, 100_000, "< 0.1 %"), (99_999, 100_000, "> 99.9 %"), (0, 0, "–"), (1, 8, "12.5 %")],
)
def test_share_reads_as_a_percentage(part: int, whole: int, shown: str) -> None:
    assert share(part, whole).replace("\u202f", " ") == shown


@pytest.mark.parametrize(
    ("numerator", "denominator", "shown"),
    [
        (21, 62, "21/62 ≈ 0.3387"),
        (3, 4, "3/4 = 0.75"),
        (29, 1, "29"),
        (2, 2, "2/2 = 1"),
        (5, 0, "5/0"),
        (-1, 2, "−1/2 = −0.5"),
    ],
)
def test_ratio_shows_fraction_and_decimal(numerator: int, denominator: int, shown: str) -> None:
    assert ratio(numerator, denominator) == shown


def test_counted_one_is_singular() -> None:
    assert [counted(n, "shard") for n in (0, 1, 2)] == ["0 shards", "1 shard", "2 shards"]
    assert counted(2, "branch", "branches") == "2 branches"
