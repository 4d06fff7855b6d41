"""Lengths, equality and order over Arrow's buffers equal what Python says of the values."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from transforms.text_columns import code_points, first_difference, ordered_places

TEXTS = st.lists(st.one_of(st.none(), st.text(max_size=40)), max_size=20)


def array(texts: list[str | None], offset: int = 0) -> pa.LargeStringArray:
    return pa.array([*["é before"] * offset, *texts], pa.large_string()).slice(offset)


@given(texts=TEXTS, offset=st.integers(0, 3))
def test_code_points_of_any_texts_are_their_lengths(texts: list[str | None], offset: int) -> None:
    assert code_points(array(texts, offset)).tolist() == [len(text or "") for text in texts]


@given(texts=st.lists(st.text(max_size=40), min_size=1, max_size=12), data=st.data())
def test_first_difference_of_any_texts_is_the_first_that_differs(texts: list[str], data: Any) -> None:
    rows = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=12))
    after = [texts[row] for row in rows]
    changed = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    after = [data.draw(st.text(max_size=40)) if flag else text for flag, text in zip(changed, after, strict=True)]
    expected = next((i for i, row in enumerate(rows) if texts[row] != after[i]), None)
    positions = np.array(rows, np.int64)
    places = np.arange(len(rows), dtype=np.int64)
    assert first_difference(array(texts, 2), positions, array(after, 1), places) == expected  # type: ignore[arg-type]


def test_first_difference_of_a_batch_with_itself_is_seen_without_reading_and_other_rows_are_read() -> None:
    text = array(["a", "b", "a"])
    rows = np.arange(3, dtype=np.int64)
    assert first_difference(text, rows, text, rows) is None
    assert first_difference(text, rows, text, rows[[0, 2, 2]]) == 1
    assert first_difference(text, rows[:1], text, rows[2:]) is None


def ids(numbers: list[int]) -> pa.FixedSizeBinaryArray:
    return pa.array([number.to_bytes(16, "big") for number in [0, *numbers]], pa.binary(16)).slice(1)


@given(count=st.integers(0, 12), data=st.data())
def test_ordered_places_are_found_for_any_rows_in_order_and_for_no_others(count: int, data: Any) -> None:
    every = list(range(1, count + 1))
    some = data.draw(st.lists(st.integers(1, count + 2), max_size=8)) if count else []
    found = ordered_places(ids(every), ids(some))
    in_order = all(a < b for a, b in pairwise(some)) and set(some) <= set(every)
    assert (found is not None) == in_order
    if found is not None:
        assert found.tolist() == [number - 1 for number in some]
