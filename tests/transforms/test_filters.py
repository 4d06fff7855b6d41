from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transforms.documents import batch_of, kept_texts, reasons
from transforms.filters import Filter, Measure, at_least, at_most, snake_case
from transforms.outcome import DROPPED, SchemaError, nothing


@dataclass(frozen=True, slots=True)
class Letters(Filter):
    """Wants at least `least` letters, of which at most the part `most` is the letter x."""

    least: int = 2
    most: float = 0.5

    version: ClassVar[int] = 1

    def measures(self, batch: pa.RecordBatch) -> list[Measure]:
        text = batch.column("text")
        letters = pc.utf8_length(text).to_numpy().astype(np.int64)
        crosses = pc.count_substring(text, "x").to_numpy().astype(np.int64)
        return [
            Measure("too short", "letters", letters, np.ones(len(text), np.int64), at_least(self.least)),
            Measure("too many x", "x per letter", crosses, letters, at_most(self.most)),
        ]


def test_filter_failing_rows_are_dropped_under_the_first_failing_measure() -> None:
    outcome = Letters().apply(batch_of(["ab", "x", "axx", "", "abxx"]))
    assert kept_texts(outcome) == ["ab", "abxx"]
    assert outcome.dropped.schema == DROPPED
    columns = outcome.dropped.drop_columns(["id", "evidence"]).to_pylist()
    short = {"transform": "Letters", "reason": "too short", "measure": "letters", "denominator": 1, "threshold": "≥ 2"}
    assert columns == [
        {**short, "numerator": 1},
        {"transform": "Letters", "reason": "too many x", "measure": "x per letter", "numerator": 2, "denominator": 3,
         "threshold": "≤ 0.5"},
        {**short, "numerator": 0},
    ]  # fmt: skip


def test_filter_threshold_written_as_decimal_is_that_decimal() -> None:
    # 0.1 as a binary float is above one tenth: 3 · 0.1 > 0.3
    ten = "x" + "a" * 9
    assert kept_texts(Letters(most=0.1).apply(batch_of([ten, "x" + ten]))) == [ten]


def test_filter_value_near_its_threshold_is_one_near_row() -> None:
    texts = ["a" * 100, "a" * 105, "a" * 106, "a" * 99, "x" * 50 + "a" * 50, "x" * 48 + "a" * 52]
    outcome = Letters(least=100).apply(batch_of(texts))
    near = outcome.near
    assert outcome.near.schema == DROPPED
    assert near.column("measure").to_pylist() == ["letters", "letters", "letters", "letters"]
    assert near.column("numerator").to_pylist() == [100, 105, 100, 100]


def test_filter_nearer_of_two_measures_is_the_near_row() -> None:
    outcome = Letters(least=100).apply(batch_of(["x" * 51 + "a" * 51]))
    assert outcome.near.column("measure").to_pylist() == ["x per letter"]


@given(st.integers(0, 500), st.integers(1, 500), st.fractions(0, 3, max_denominator=40))
@settings(max_examples=300)
def test_measure_any_value_is_judged_as_the_fraction(numerator: int, denominator: int, threshold: Fraction) -> None:
    arrays = np.array([numerator], np.int64), np.array([denominator], np.int64)
    value = Fraction(numerator, denominator)
    for bound, passes in ((at_least(threshold), value >= threshold), (at_most(threshold), value <= threshold)):
        measure = Measure("reason", "name", *arrays, bound)
        assert measure.passes().tolist() == [passes]
        assert measure.is_near().tolist() == [threshold > 0 and abs(value - threshold) <= threshold / 20]


def test_measure_without_denominator_passes_every_bound() -> None:
    zero = np.zeros(1, np.int64)
    for bound in (at_least(0.5), at_most(0.5)):
        assert Measure("reason", "name", zero, zero, bound).passes().all()
        assert not Measure("reason", "name", zero, zero, bound).is_near().any()


def test_measure_huge_values_do_not_overflow() -> None:
    huge = np.array([2**62], np.int64)
    measure = Measure("reason", "name", huge, huge, at_least(Fraction(10**18 + 1, 10**18)))
    assert measure.passes().tolist() == [False]


def test_tag_keeps_all_rows_and_writes_columns() -> None:
    tag = Letters().tag()
    batch = batch_of(["ab", "x"])
    outcome = tag.apply(batch)
    assert outcome.kept.schema == tag.output_schema(batch.schema)
    assert outcome.kept.column("letters_reason").to_pylist() == [None, "too short"]
    assert outcome.kept.column("letters_x_per_letter").to_pylist() == [
        {"numerator": 0, "denominator": 2},
        {"numerator": 1, "denominator": 1},
    ]
    assert outcome.kept.schema.names[-1] == "extra"
    assert outcome.dropped.num_rows == outcome.near.num_rows == 0
    assert tag.name == "Letters.tag"


def test_tag_twice_needs_another_prefix() -> None:
    schema = Letters().tag().output_schema(batch_of([]).schema)
    with pytest.raises(SchemaError, match="letters_reason"):
        Letters(least=3).tag().output_schema(schema)
    assert "strict_reason" in Letters(least=3).tag("strict").output_schema(schema).names


def test_filter_without_text_is_refused() -> None:
    schema = pa.schema([pa.field("id", pa.binary(16))])
    with pytest.raises(SchemaError, match="text"):
        Letters().output_schema(schema)


def test_filter_empty_batch_gives_empty_tables() -> None:
    batch = nothing(batch_of([]).schema)
    outcome = Letters().apply(batch)
    assert outcome.kept.num_rows == outcome.dropped.num_rows == outcome.near.num_rows == 0
    assert reasons(outcome) == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [("GopherQuality", "gopher_quality"), ("top 2-gram", "top_2_gram"), ("MaskPII", "mask_pii"), ("a  b!", "a_b")],
)
def test_snake_case_names_are_column_names(name: str, expected: str) -> None:
    assert snake_case(name) == expected


def test_filter_with_all_reasons_drops_the_same_and_names_every_rule_that_fails() -> None:
    batch = batch_of(["ab", "x", "axx", ""])
    plain, told = Letters().apply(batch), Letters().all_reasons().apply(batch)
    assert told.kept.equals(plain.kept)
    assert told.dropped.drop_columns(["evidence"]).equals(plain.dropped.drop_columns(["evidence"]))
    assert told.dropped.column("evidence").to_pylist() == [
        '{"fails":["too short","too many x"]}',
        '{"fails":["too many x"]}',
        '{"fails":["too short"]}',
    ]
