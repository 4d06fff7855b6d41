import math

import numpy as np
import pytest
from scipy import stats

from trainers.evidence.statistics import paired_interval, paired_intervals


def rng(*key):
    return np.random.Generator(np.random.Philox(key=list(key)))


def test_interval_equals_the_paired_t_test_of_scipy():
    first, second = rng(1, 1).normal(size=7), rng(1, 2).normal(0.4, size=7)
    interval = paired_interval(first, second, 0.05)
    expected = stats.ttest_rel(second, first).confidence_interval(0.95)
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), rel=1e-12)
    assert interval.mean == pytest.approx(np.mean(second - first))


def test_verdict_flips_where_the_p_value_crosses_the_level():
    first = rng(2, 1).normal(size=5)
    second = first + 0.3 + rng(2, 2).normal(0, 0.1, size=5)
    p = stats.ttest_rel(second, first).pvalue
    assert paired_interval(first, second, p * 1.01).verdict == "different"
    assert paired_interval(first, second, p * 0.99).verdict == "not told apart"
    assert paired_interval(first, second, p * 2.02, comparisons=2).verdict == "different"
    assert paired_interval(first, second, p * 1.98, comparisons=2).verdict == "not told apart"


def test_a_mixture_against_itself_is_called_different_at_most_once_in_twenty_seed_sets():
    verdicts = []
    for seeds in range(20):
        losses = rng(3, seeds).normal(3.0, 0.05, size=(2, 4, 5))
        sides = [{f"domain {d}": losses[side, d] for d in range(4)} for side in range(2)]
        verdicts.append(any(i.verdict == "different" for i in paired_intervals(*sides, 0.01).values()))
    assert sum(verdicts) <= 1


def test_false_alarms_over_many_sets_come_at_the_level():
    alarms = 0
    for seeds in range(4000):
        losses = rng(4, seeds).normal(size=(2, 3, 4))
        sides = [dict(enumerate(side)) for side in losses]
        alarms += any(i.verdict == "different" for i in paired_intervals(*sides, 0.05).values())
    assert 0.035 < alarms / 4000 < 0.06  # Bonferroni over three independent domains: .0493


def test_a_difference_of_many_deviations_is_told_apart():
    base = rng(5, 1).normal(3.0, 0.2, size=4)
    better = base - 0.1 + rng(5, 2).normal(0, 0.002, size=4)
    interval = paired_interval(base, better, 0.01, comparisons=10)
    assert interval.verdict == "different"
    assert interval.high < 0


def test_equal_losses_are_not_told_apart():
    assert paired_interval([1.0, 2.0], [1.0, 2.0], 0.01).verdict == "not told apart"


@pytest.mark.parametrize(
    ("first", "second", "level"),
    [([1.0], [2.0], 0.05), ([1.0, 2.0], [1.0], 0.05), ([1.0, math.nan], [1.0, 1.0], 0.05), ([1.0, 2.0], [1, 2], 1.0)],
)
def test_intervals_of_what_has_none_are_refused(first, second, level):
    with pytest.raises(ValueError):
        paired_interval(first, second, level)


def test_domains_of_one_side_only_are_refused():
    with pytest.raises(ValueError, match="books"):
        paired_intervals({"books": [1.0, 2.0]}, {}, 0.05)
