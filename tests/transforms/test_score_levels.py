"""Borders of levels, against a plain search, and histograms that add up in any order."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.score_levels import (
    LevelError,
    Levels,
    borders_of,
    card_of,
    equal_shares,
    histogram,
    merged,
    read_levels,
)

documents = st.lists(st.tuples(st.integers(-4, 4), st.integers(0, 9)), min_size=1, max_size=20).filter(
    lambda rows: any(weight for _, weight in rows)
)


def table(rows: list[tuple[int, int]]) -> pa.Table:
    return histogram(None, np.array([r[0] for r in rows], np.int64), np.array([r[1] for r in rows], np.int64))


@given(documents, st.fractions(Fraction(1, 20), 1, max_denominator=20))
@settings(max_examples=150)
def test_border_is_the_highest_score_that_keeps_the_share(rows: list[tuple[int, int]], share: Fraction) -> None:
    total = sum(weight for _, weight in rows)
    enough = [score for score in range(-4, 5) if sum(w for s, w in rows if s >= score) >= share * total]
    there = [score for score, _ in rows if score <= max(enough)]
    (border,) = borders_of(table(rows), (share,))
    kept = {at: sum(weight for score, weight in rows if score >= at) for at in (border, max(enough))}
    assert len(set(kept.values())) == 1 and border in {score for score, _ in rows}, there


@given(documents, st.integers(1, 5))
@settings(max_examples=40)
def test_histograms_of_parts_add_up_to_that_of_the_whole(rows: list[tuple[int, int]], size: int) -> None:
    parts = [table(rows[at : at + size]) for at in range(0, len(rows), size)]
    assert merged(parts[::-1]) == table(rows)


def test_levels_count_borders_that_are_reached_by_group() -> None:
    levels = Levels("s", "topic", {"a": (0, 10), "": (5,)})
    scores = np.array([-1, 0, 10, 5, 4, 7], np.int64)
    assert levels.of(scores, ["a", "a", "a", None, None, "new"]).tolist() == [0, 1, 2, 1, 0, -1]
    assert read_levels(levels.to_bytes()) == levels
    rows = histogram(["a", "a", None], np.array([0, 12, 9]), np.array([2, 3, 4]))
    assert card_of(levels, rows)["groups"]["a"]["levels"] == [
        {"documents": 0, "weight": 0}, {"documents": 1, "weight": 2}, {"documents": 1, "weight": 3},
    ]  # fmt: skip


def test_equal_scores_leave_levels_empty_and_nothing_weighs_nothing() -> None:
    assert borders_of(table([(3, 1)] * 9), equal_shares(4)) == (3, 3, 3)
    with pytest.raises(LevelError, match="no documents with a score"):
        borders_of(table([(3, 0)]), (Fraction(1, 2),))
    with pytest.raises(LevelError, match="give two at least"):
        equal_shares(1)
