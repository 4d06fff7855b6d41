"""Columns as codes: counts and sums are those of the values, whatever order they came in."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from curate.accounting.measures import Measures, bytes_of, coded, combined, measure
from transforms.duplicates import text_digests

VALUES = st.sampled_from(["a", "b", "", None])


@given(rows=st.lists(st.tuples(VALUES, VALUES, VALUES, st.integers(0, 2**40)), max_size=30))
def test_counts_and_sums_of_combined_columns_are_those_of_the_rows(rows: list[tuple[Any, ...]]) -> None:
    columns = [coded(pa.array([row[place] for row in rows], pa.large_string())) for place in range(3)]
    amounts = np.array([row[3] for row in rows], np.int64)
    found = combined(*columns)
    expected = Counter(row[:3] for row in rows)
    totals = {key: sum(row[3] for row in rows if row[:3] == key) for key in expected}
    assert {value: n for value, n in zip(found.values, found.counts(), strict=True) if n} == expected
    summed = zip(found.values, found.counts(amounts), found.counts(), strict=True)
    assert {value: total for value, total, n in summed if n} == totals


def texts(*values: str) -> pa.RecordBatch:
    return pa.record_batch([pa.array(values, pa.large_string())], names=["text"])


def test_measures_of_texts_follow_their_rows_and_are_replaced_where_a_text_is() -> None:
    first = measure(texts("one", "zwölf", "", "漢字"))
    taken = first.take(np.array([1, 3]))
    assert taken.characters.tolist() == [5, 2]
    assert taken.digests.to_pylist() == text_digests(texts("zwölf", "漢字").column("text")).to_pylist()
    changed = first.replaced(np.array([0, 2]), measure(texts("four", "x")))
    whole = measure(texts("four", "zwölf", "x", "漢字"))
    assert changed.characters.tolist() == whole.characters.tolist()
    assert changed.digests.to_pylist() == whole.digests.to_pylist()
    assert first.characters.tolist() == [3, 5, 0, 2]


def test_measures_of_records_without_text_are_zeros_and_nulls() -> None:
    found = measure(pa.record_batch([pa.array([b"x"])], names=["payload"]))
    assert isinstance(found, Measures) and found.characters.tolist() == [0]
    assert found.digests.to_pylist() == [None]
    assert bytes_of(text_digests(texts().column("text"))).shape == (0, 16)
