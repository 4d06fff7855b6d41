"""Who trains and who judges: no text, site or source on both sides, and no order of arrival that matters."""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa
import pytest

from tests.transforms.classifier_corpus import candidates, corpus, menu, prose, shuffled
from transforms.minhash import MinHash
from transforms.training_set import (
    NEGATIVE,
    POSITIVE,
    RATIO,
    Selection,
    divide,
    examples_of,
    first_candidates,
    source_to_leave_out,
)

QUARTER = Selection(1000, Fraction(1, 4), "books", None)


def test_no_site_source_or_text_is_on_both_sides() -> None:
    divided = divide(candidates(corpus()), QUARTER)
    parts = [divided.training, divided.held_out, divided.left_out]
    assert all(part.num_rows for part in parts) and sum(part.num_rows for part in parts) == 120
    sites = [set(part.column("site").to_pylist()) for part in parts[:2]]
    assert not sites[0] & sites[1]
    assert set(divided.left_out.column("source").to_pylist()) == {"books"}
    assert "books" not in divided.training.column("source").to_pylist() + divided.held_out.column("source").to_pylist()


@pytest.mark.parametrize("seed", [1, 2])
def test_order_of_arrival_changes_nothing(seed: int) -> None:
    table = candidates(corpus())
    for part in ("training", "held_out", "left_out"):
        assert getattr(divide(shuffled(table, seed), QUARTER), part) == getattr(divide(table, QUARTER), part)


def test_equal_texts_count_once_and_not_at_all_in_both_classes() -> None:
    rows = [(POSITIVE, "same text", "a", "x.example"), (POSITIVE, "same text", "b", "y.example")]
    rows += [(POSITIVE, "on both sides", "a", None), (NEGATIVE, "on both sides", "c", None)]
    rows += [(NEGATIVE, "other text", "c", None)]
    divided = divide(candidates(rows), Selection(10, Fraction(0), None, None))  # type: ignore[arg-type]
    assert divided.training.num_rows == 2
    assert divided.gone["equal text"] == {"positive": 1, "negative": 0}
    assert divided.gone["text in both classes"] == {"positive": 1, "negative": 1}


def test_near_duplicates_go_within_a_class_and_stay_across() -> None:
    text = prose(1)
    rows = [(POSITIVE, text, "a", None), (POSITIVE, text + " More.", "a", None), (NEGATIVE, text + " End.", "b", None)]
    divided = divide(candidates(rows), Selection(10, Fraction(0), None, MinHash(threshold=0.8)))  # type: ignore[arg-type]
    assert divided.gone["near duplicate"] == {"positive": 1, "negative": 0}
    assert sorted(divided.training.column("class").to_pylist()) == [NEGATIVE, POSITIVE]


def test_classes_weigh_the_same_and_the_larger_is_capped() -> None:
    rows = [(POSITIVE, prose(n), "a", None) for n in range(3)] + [(NEGATIVE, menu(n), "b", None) for n in range(50)]
    training = divide(candidates(rows), Selection(40, Fraction(0), None, None)).training  # type: ignore[arg-type]
    assert training.num_rows == 3 + 3 * RATIO
    examples = examples_of(training)
    sums = [examples.importance[examples.labels == label].sum() for label in (0, 1)]
    assert sums[0] == pytest.approx(sums[1])
    assert len(examples.texts) > training.num_rows  # windows


def test_first_candidates_of_parts_hold_those_of_the_whole() -> None:
    table = candidates(corpus())
    whole = first_candidates(table, 20)
    parts = pa.concat_tables([first_candidates(table.slice(at, 37), 20) for at in range(0, table.num_rows, 37)])
    assert first_candidates(parts, 20) == whole and whole.num_rows == 50


def test_source_that_is_left_out_is_the_smallest_that_can_be_spared() -> None:
    assert source_to_leave_out(candidates(corpus())) == "books"
    assert source_to_leave_out(candidates([(POSITIVE, "a", "x", None), (NEGATIVE, "b", "y", None)])) is None
