from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transforms.documents import batch_of, kept_texts
from transforms.outcome import SchemaError
from transforms.predicates import Comparison, IsIn, Predicate
from transforms.where import Where, field

STARS = pa.field("stars", pa.int64())
NAME = pa.field("name", pa.large_string())


def stars(values: list[int | None]) -> pa.RecordBatch:
    return batch_of(["t"] * len(values), {STARS: values})


def holds(predicate: Predicate, values: list[int | None]) -> list[bool]:
    return predicate.evaluate(stars(values)).tolist()


def test_where_false_rows_are_dropped_with_the_values_as_evidence() -> None:
    batch = batch_of(["a", "b", "c"], {STARS: [5, 1, None]})
    outcome = Where(field("stars") >= 2, "few stars").apply(batch)
    assert kept_texts(outcome) == ["a"]
    assert outcome.dropped.column("reason").to_pylist() == ["few stars"] * 2
    assert outcome.dropped.column("transform").to_pylist() == ["Where"] * 2
    assert [json.loads(text) for text in outcome.dropped.column("evidence").to_pylist()] == [
        {"stars": 1},
        {"stars": None},
    ]


def test_where_long_values_are_cut_in_evidence() -> None:
    batch = batch_of(["a"], {NAME: ["n" * 1000]})
    evidence = Where(field("name") == "x", "name").apply(batch).dropped.column("evidence")[0].as_py()
    assert json.loads(evidence) == {"name": "n" * 200}


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (field("stars") == 2, [False, True, False, False]),
        (field("stars") != 2, [True, False, True, False]),
        (field("stars") < 2, [True, False, False, False]),
        (field("stars") <= 2, [True, True, False, False]),
        (field("stars") > 2, [False, False, True, False]),
        (field("stars") >= 2, [False, True, True, False]),
        (field("stars").isin([3, 1]), [True, False, True, False]),
        (field("stars").isin([]), [False, False, False, False]),
        (field("stars").is_null(), [False, False, False, True]),
        (~(field("stars") == 2), [True, False, True, True]),
        ((field("stars") == 1) | field("stars").is_null(), [True, False, False, True]),
        ((field("stars") > 1) & (field("stars") < 3), [False, True, False, False]),
    ],
)
def test_predicate_each_form_is_two_valued(predicate: Predicate, expected: list[bool]) -> None:
    assert holds(predicate, [1, 2, 3, None]) == expected


@given(st.lists(st.one_of(st.none(), st.integers(-3, 3)), max_size=8), st.integers(-3, 3), st.integers(-3, 3))
@settings(max_examples=60)
def test_predicate_any_values_equal_plain_python(values: list[int | None], low: int, high: int) -> None:
    found = holds(((field("stars") >= low) & ~(field("stars") > high)) | field("stars").is_null(), values)
    assert found == [value is None or (value >= low and not value > high) for value in values]


def test_predicates_equal_trees_are_equal_and_hash_equally() -> None:
    one = (field("a") == 1) & field("b").isin(("x", "y", "x"))
    two = (field("a") == 1) & field("b").isin(["y", "x"])
    assert one == two
    assert hash(one) == hash(two)
    assert isinstance(field("a") == 1, Comparison)
    assert field("b").isin("ab") == IsIn("b", ("a", "b"))


def test_predicate_in_and_or_is_refused() -> None:
    with pytest.raises(TypeError, match="&"):
        assert (field("a") == 1) and (field("b") == 2)
    with pytest.raises(TypeError, match="is_null"):
        assert field("a") == None  # noqa: E711


@pytest.mark.parametrize("predicate", [field("absent") == 1, field("absent").is_null(), field("absent").isin([1])])
def test_where_missing_column_is_refused_before_any_row(predicate: Predicate) -> None:
    with pytest.raises(SchemaError, match="absent"):
        Where(predicate, "reason").output_schema(stars([]).schema)


@pytest.mark.parametrize("value", ["two", 1.5, 2**70])
def test_where_value_of_another_type_is_refused_before_any_row(value: Any) -> None:
    with pytest.raises(SchemaError, match="int64"):
        Where(field("stars") == value, "reason").output_schema(stars([]).schema)


def test_where_times_are_compared_with_iso_strings() -> None:
    batch = batch_of(["a", "b", "c"])
    predicate = field("crawled_at") >= "2024-01-02T00:00:00Z"
    Where(predicate, "old").output_schema(batch.schema)
    assert predicate.evaluate(batch).tolist() == [False, True, True]
