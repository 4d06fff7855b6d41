import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixtures.schedule import DRIFT, LONGEST, Schedule


def fibonacci(n):
    counts = [1, 1]
    while len(counts) < n:
        counts.append(counts[-1] + counts[-2])
    return counts


def worst_drift(counts, components):
    """The largest |draws among the first m - m·count/length|, exact."""
    length, worst = len(components), 0
    for component, count in enumerate(counts):
        drawn = np.concatenate([[0], np.cumsum(components == component)])
        worst = max(worst, int(np.abs(drawn * length - np.arange(length + 1) * count).max()))
    return Fraction(worst, length)


counts_of = st.one_of(
    st.lists(st.integers(1, 60), min_size=1, max_size=40),
    st.lists(st.integers(0, 11).map(lambda n: 1 << n), min_size=1, max_size=12),
    st.integers(1, 16).map(fibonacci),
    st.lists(st.just(1), min_size=1, max_size=300),
)


@settings(max_examples=150)
@given(counts_of, st.randoms(use_true_random=False))
def test_schedule_draws_exact_counts_in_order_within_the_bound(counts, rnd):
    rnd.shuffle(counts)
    schedule = Schedule(tuple(counts))
    components, numbers = schedule.draw(np.arange(len(schedule)))
    assert np.bincount(components, minlength=len(counts)).tolist() == counts
    for component, count in enumerate(counts):
        assert numbers[components == component].tolist() == list(range(count))
    assert worst_drift(counts, components) < Fraction(str(DRIFT))


@given(counts_of, st.data())
def test_schedule_alone_counted_and_inverted_agrees_with_the_whole(counts, data):
    schedule = Schedule(tuple(counts))
    components, numbers = schedule.draw(np.arange(len(schedule)))
    index = data.draw(st.integers(0, len(schedule) - 1))
    alone = schedule.draw(np.array([index]))
    assert (int(alone[0][0]), int(alone[1][0])) == (int(components[index]), int(numbers[index]))
    assert schedule.drawn(index) == np.bincount(components[:index], minlength=len(counts)).tolist()
    assert schedule.index(int(components[index]), int(numbers[index])) == index


@settings(max_examples=60)
@given(st.lists(st.integers(1, 1 << 40), min_size=1, max_size=400), st.data())
def test_schedule_of_a_long_phase_is_exact_at_any_index(counts, data):
    schedule = Schedule(tuple(counts))
    length = sum(counts)
    indices = [0, length - 1, *data.draw(st.lists(st.integers(0, length - 1), max_size=20))]
    components, numbers = schedule.draw(np.array(indices))
    for index, component, number in zip(indices, components.tolist(), numbers.tolist(), strict=True):
        assert schedule.index(component, number) == index
        drawn = schedule.drawn(index)
        assert drawn[component] == number
        assert all(
            abs(d - Fraction(index * c, length)) < Fraction(str(DRIFT)) for d, c in zip(drawn, counts, strict=True)
        )


def test_schedule_of_two_thousand_components_and_1e12_sequences_keeps_the_bound():
    rnd = random.Random(5)
    counts = [1 + int(10**12 * rnd.random() ** 20 / 100) for _ in range(2000)]
    schedule = Schedule(tuple(counts))
    length = len(schedule)
    for _ in range(20):
        at = rnd.randrange(length)
        drawn = schedule.drawn(at)
        assert sum(drawn) == at
        assert max(abs(d - Fraction(at * c, length)) for d, c in zip(drawn, counts, strict=True)) < Fraction(str(DRIFT))


def test_schedule_golden_order_stays():
    components, _ = Schedule((5, 3, 2, 1)).draw(np.arange(11))
    assert components.tolist() == [2, 0, 1, 0, 3, 0, 1, 0, 2, 0, 1]


def test_schedule_in_every_window_is_within_twice_the_bound():
    counts = (500, 300, 150, 40, 9, 1)
    components, _ = Schedule(counts).draw(np.arange(1000))
    for start in range(1000 - 64):
        window = np.bincount(components[start : start + 64], minlength=6)
        assert max(abs(w - 64 * c / 1000) for w, c in zip(window, counts, strict=True)) < 2 * DRIFT


def test_schedule_outside_its_range_is_refused():
    schedule = Schedule((2, 1))
    for index in (-1, 3):
        with pytest.raises(IndexError, match=r"not in range\(3\)"):
            schedule.draw(np.array([0, index]))
    with pytest.raises(IndexError, match="drawn 1 times, not 2"):
        schedule.index(1, 1)
    for counts in ((), (1, 0), (LONGEST, 1)):
        with pytest.raises(ValueError, match="counts of at least 1"):
            Schedule(counts)
