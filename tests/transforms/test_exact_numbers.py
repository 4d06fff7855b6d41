from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.exact_numbers import decimal_text, exact, product


@pytest.mark.parametrize(
    ("value", "text"), [(2, "2"), (0.1, "0.1"), (0.65, "0.65"), (1e-05, "0.00001"), (-2.5, "-2.5"), (100_000, "100000")]
)
def test_exact_number_is_what_was_written(value: float, text: str) -> None:
    assert exact(value) == Fraction(text)
    assert decimal_text(exact(value)) == text


def test_decimal_text_without_end_is_a_ratio() -> None:
    assert decimal_text(Fraction(1, 3)) == "1/3"


@given(st.fractions(max_denominator=10**6))
def test_decimal_text_any_ratio_reads_back(value: Fraction) -> None:
    assert Fraction(decimal_text(value)) == value


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True])
def test_exact_no_finite_number_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="number"):
        exact(value)


@given(st.lists(st.integers(-(2**62), 2**62), max_size=5), st.integers(0, 10**12))
def test_product_of_any_size_is_exact(values: list[int], factor: int) -> None:
    assert product(np.array(values, np.int64), factor).tolist() == [value * factor for value in values]


def test_product_just_beyond_64_bits_is_exact() -> None:
    assert product(np.array([2**40, -(2**40)], np.int64), 2**23).tolist() == [2**63, -(2**63)]
