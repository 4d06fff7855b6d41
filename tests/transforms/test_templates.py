from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.shingles import Sets
from transforms.templates import (
    Summary,
    TooFewCountersError,
    capacity_for,
    frequent,
    left_out,
    merged,
    occurrences,
    suspects,
    templates,
)

DOCUMENTS = st.lists(st.sets(st.integers(0, 9) | st.integers(2**64 - 3, 2**64 - 1)), min_size=1, max_size=12)


def sets_of(values: list[set[int]]) -> Sets:
    offsets = np.array([0, *itertools.accumulate(len(value) for value in values)], np.int64)
    return Sets(offsets, np.array([x for value in values for x in sorted(value)], np.uint64))


def exact_counts(values: list[set[int]]) -> Counter[int]:
    return Counter(x for value in values for x in value)


def check(summary: Summary, counts: Counter[int]) -> None:
    listed = dict(zip(summary.shingles.tolist(), summary.counts.tolist(), strict=True))
    assert len(listed) <= summary.capacity and list(listed) == sorted(listed)
    for shingle, count in counts.items():
        assert listed.get(shingle, 0) <= count <= listed.get(shingle, 0) + summary.undercount
    assert summary.undercount * (summary.capacity + 1) <= counts.total()


@settings(max_examples=200)
@given(values=DOCUMENTS, capacity=st.integers(1, 8), cuts=st.lists(st.integers(0, 12), max_size=3), data=st.data())
def test_summaries_of_any_batches_bound_the_counts(
    values: list[set[int]], capacity: int, cuts: list[int], data: st.DataObject
) -> None:
    borders = [0, *sorted(cuts), len(values)]
    parts = [frequent(sets_of(values[i:j]), capacity) for i, j in itertools.pairwise(borders)]
    check(merged(data.draw(st.permutations(parts))), exact_counts(values))
    halves = [merged(parts[:1]), merged(parts[1:])] if len(parts) > 1 else parts
    check(merged(halves), exact_counts(values))
    assert merged(parts).documents == len(values)


@settings(max_examples=200)
@given(values=DOCUMENTS, tenths=st.integers(0, 9), least=st.integers(1, 3), capacity=st.integers(1, 20))
def test_templates_of_any_documents_are_those_of_exact_counts_for_any_capacity(
    values: list[set[int]], tenths: int, least: int, capacity: int
) -> None:
    share = Fraction(tenths, 10)
    summary = merged([frequent(sets_of(values[:5]), capacity), frequent(sets_of(values[5:]), capacity)])
    try:
        listed = suspects(summary, share, least)
    except TooFewCountersError:
        assert capacity < max(len(value) for value in values) * 10
        return
    counts = occurrences(sets_of(values[:3]), listed) + occurrences(sets_of(values[3:]), listed)
    found = templates("web", listed, counts, len(values), share, least)
    expected = {x: n for x, n in exact_counts(values).items() if n > share * len(values) and n >= least}
    assert dict(zip(found.shingles.tolist(), found.counts.tolist(), strict=True)) == expected


def test_capacity_for_a_share_misses_no_template() -> None:
    """1,000 documents of 50 shingles, 3 of which occur in 11 %; 500 counters for shares above 10 %."""
    draw = np.random.default_rng(0)
    values = [set(draw.integers(100, 1 << 64, 47, np.uint64).tolist()) for _ in range(1000)]
    for row in range(0, 1000, 9):
        values[row] |= {1, 2, 3}
    assert capacity_for(Fraction(1, 10), 50) == 500
    summary = merged(frequent(sets_of(values[i : i + 100]), 500) for i in range(0, 1000, 100))
    listed = suspects(summary, Fraction(1, 10), 2)
    assert {1, 2, 3} <= set(listed.tolist())
    found = templates("web", listed, occurrences(sets_of(values), listed), 1000, Fraction(1, 10), 2)
    assert found.shingles.tolist() == [1, 2, 3] and found.counts.tolist() == [112] * 3


def test_summary_that_is_too_small_says_so() -> None:
    values = [{i, i + 100, 7} for i in range(20)]
    with pytest.raises(TooFewCountersError, match="take more counters"):
        suspects(merged(frequent(sets_of(values[i : i + 1]), 1) for i in range(20)), Fraction(1, 20), 2)


def test_least_count_keeps_a_small_source_from_being_all_template() -> None:
    values = [{1, 2}, {1, 3}]
    summary = frequent(sets_of(values), 10)
    assert suspects(summary, Fraction(1, 100), 1).tolist() == [1, 2, 3]
    assert suspects(summary, Fraction(1, 100), 2).tolist() == [1]


def test_left_out_is_the_union_of_the_lists() -> None:
    lists = [
        templates(name, np.array(values, np.uint64), np.full(2, 5), 6, Fraction(1, 2), 1)
        for name, values in (("a", [1, 5]), ("b", [3, 5]))
    ]
    assert left_out(lists).tolist() == [1, 3, 5] and len(left_out([])) == 0
