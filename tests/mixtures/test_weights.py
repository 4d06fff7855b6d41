from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from curate.configuration import ConfigurationError
from mixtures.weights import exact, integer_ratio, whole


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, Fraction(3)),
        (0.1, Fraction(1, 10)),
        (1e-9, Fraction(1, 10**9)),
        (np.float64(0.3), Fraction(3, 10)),
        ("2/7", Fraction(2, 7)),
        (Decimal("0.25"), Fraction(1, 4)),
        (Fraction(1, 3), Fraction(1, 3)),
    ],
)
def test_exact_number_is_taken_as_written(value, expected):
    assert exact(value, "x") == expected


@pytest.mark.parametrize("value", [-1, -0.5, float("nan"), float("inf"), True, "", "1/0", None, [1]])
def test_exact_something_else_is_refused_by_name(value):
    with pytest.raises(ConfigurationError, match="the weight of 'web' must"):
        exact(value, "the weight of 'web'")


def test_whole_number_may_be_a_float_but_not_a_fraction():
    assert whole(8e6, "tokens") == 8_000_000
    for value in (0, 0.5, "1/3", -1):
        with pytest.raises(ConfigurationError, match="tokens must"):
            whole(value, "tokens")


def test_integer_ratio_is_in_lowest_terms():
    assert integer_ratio([Fraction(3, 10), Fraction(0), Fraction(1, 5)]) == [3, 0, 2]
    assert integer_ratio([Fraction(6), Fraction(2)]) == [3, 1]
