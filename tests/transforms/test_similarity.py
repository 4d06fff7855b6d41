from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.minhash import MinHash
from transforms.shingles import Sets
from transforms.similarity import REFUSED, Measure, edges, intersections, jaccard_of_containment, needed

VALUES = st.integers(0, 12) | st.integers(2**63 - 3, 2**63 + 3) | st.integers(2**64 - 5, 2**64 - 1)


def longs(values: object) -> npt.NDArray[np.int64]:
    return np.array(values, np.int64)


def sets_of(values: list[set[int]]) -> Sets:
    offsets = longs([0, *itertools.accumulate(len(value) for value in values)])
    return Sets(offsets, np.array([x for value in values for x in sorted(value)], np.uint64))


def similarity(a: set[int], b: set[int], measure: Measure) -> Fraction:
    whole = len(a | b) if measure == "jaccard" else min(len(a), len(b))
    return Fraction(len(a & b), whole) if whole else Fraction(1)


def drawn_pair(size: int, both: int, seed: int, further: int = 0) -> list[set[int]]:
    """Two sets of `size` and `size + further` random values that share `both`."""
    drawn = np.random.default_rng(seed).integers(0, 1 << 64, 2 * size - both + further, np.uint64).tolist()
    return [set(drawn[:size]), set(drawn[size - both :])]


@given(values=st.lists(st.sets(VALUES), min_size=1, max_size=6), measure=st.sampled_from(["jaccard", "containment"]))
def test_edges_of_any_sets_are_the_pairs_at_or_above_the_threshold(values: list[set[int]], measure: Measure) -> None:
    pairs = list(itertools.product(range(len(values)), repeat=2))
    a, b = longs([a for a, _ in pairs]), longs([b for _, b in pairs])
    for threshold in (Fraction(1, 10), Fraction(1, 2), Fraction(4, 5), Fraction(1)):
        found = edges(sets_of(values), a, b, threshold, measure)
        expected = [i for i, (x, y) in enumerate(pairs) if similarity(values[x], values[y], measure) >= threshold]
        assert found.pair.tolist() == expected and len(found) == len(expected)
        for i, shared, whole in zip(found.pair, found.shared, found.whole, strict=True):
            left, right = (values[place] for place in pairs[i])
            assert shared == len(left & right)
            assert whole == (len(left | right) if measure == "jaccard" else min(len(left), len(right)))


@pytest.mark.parametrize("size", [30, 500, 3000])
@pytest.mark.parametrize("further", [0, 100, 60_000])
def test_intersections_of_large_sets_are_exact_or_refused_on_proof(size: int, further: int) -> None:
    for share in range(11):
        values = drawn_pair(size, size * share // 10, share, further)
        sets, both = sets_of(values), len(values[0] & values[1])
        for a, b in ((0, 1), (1, 0)):
            for least, expected in ((0, both), (both, both), (both + 1, REFUSED), (size, both if share == 10 else -1)):
                assert intersections(sets, longs([a]), longs([b]), longs([least])).tolist() == [expected]


def test_intersections_of_sets_on_one_side_of_the_middle_are_exact() -> None:
    low = [set(range(0, 900, 2)), set(range(0, 900, 3))]
    high = [{x + 2**63 for x in values} for values in low]
    sets = sets_of(low + high)
    found = intersections(sets, longs([0, 2, 0]), longs([1, 3, 3]), longs([0, 0, 0]))
    assert found.tolist() == [150, 150, 0]


def test_needed_is_the_least_intersection_that_reaches_the_threshold() -> None:
    sizes = [(a, b) for a in range(8) for b in range(8)]
    left, right = longs([a for a, _ in sizes]), longs([b for _, b in sizes])
    for threshold in (Fraction(4, 5), Fraction(1, 3), Fraction(1)):
        jaccard = needed(left, right, threshold).tolist()
        contained = needed(left, right, threshold, "containment").tolist()
        for (a, b), least, of_smaller in zip(sizes, jaccard, contained, strict=True):
            assert least == next(i for i in range(20) if i >= threshold * (a + b - i))
            assert of_smaller == next(i for i in range(20) if i >= threshold * min(a, b))


def test_needed_does_not_overflow_at_the_largest_sizes() -> None:
    size, threshold = longs([10**12 - 1]), Fraction(999_999, 1_000_000)
    assert needed(size, size, threshold, "containment").tolist() == [-(-(10**12 - 1) * 999_999 // 10**6)]
    assert needed(size, size, threshold).tolist() == [-(-2 * (10**12 - 1) * 999_999 // 1_999_999)]


@pytest.mark.parametrize("ratio", [1, 2, 5])
def test_jaccard_of_containment_is_that_of_sets_of_these_sizes(ratio: int) -> None:
    values = drawn_pair(100, 80, 0, 100 * (ratio - 1))
    assert similarity(*values, "containment") == Fraction(4, 5)
    assert float(similarity(*values, "jaccard")) == pytest.approx(jaccard_of_containment(0.8, ratio))


def test_bands_promise_little_for_containment_at_unlike_sizes() -> None:
    """The figures of the module's docstring, and what they mean for the default bands."""
    values = [jaccard_of_containment(0.8, ratio) for ratio in (1, 2, 5)]
    assert [round(value, 2) for value in values] == [0.67, 0.36, 0.15]
    assert [round(MinHash().recall(value), 3) for value in values] == [0.841, 0.045, 0.0]
