"""Measures of a card, each against a plain count of it."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transforms.classifier_corpus import SMALL, WIDTH, candidates, corpus, shuffled, trained
from transforms.classifier_card import Scored, auc, calibration, explained, precision_recall
from transforms.classifier_training import ClassifierError, train_and_judge
from transforms.training_set import NEGATIVE, Selection

rows = st.lists(st.tuples(st.integers(0, 1), st.integers(-3, 3), st.integers(-1, 2)), max_size=14)


def columns(given: list[tuple[int, int, int]]) -> list[np.ndarray]:  # type: ignore[type-arg]
    return [np.array([row[place] for row in given], np.int64) for place in range(3)]


@given(rows)
@settings(max_examples=80)
def test_auc_is_the_share_of_pairs_in_the_right_order_within_groups(given: list[tuple[int, int, int]]) -> None:
    labels, scores, groups = columns(given)
    for codes in (None, groups):
        pairs = [
            2 * (a[1] > b[1]) + (a[1] == b[1])
            for a, b in product(given, given)
            if a[0] == 1 and b[0] == 0 and (codes is None or a[2] == b[2] >= 0)
        ]
        assert auc(labels, scores, codes) == ([sum(pairs), 2 * len(pairs)] if pairs else None)


@given(rows)
@settings(max_examples=60)
def test_precision_and_recall_count_what_a_score_keeps(given: list[tuple[int, int, int]]) -> None:
    labels, scores, _ = columns(given)
    points = precision_recall(labels, scores)
    assert [point["score"] for point in points] == sorted(set(scores.tolist()), reverse=True)
    for point in points:
        kept = [label for label, score, _ in given if score >= point["score"]]
        assert (point["positives"], point["negatives"]) == (sum(kept), len(kept) - sum(kept))


def test_explained_variance_is_all_within_none_and_unbiased_by_small_groups() -> None:
    scores = np.array([5, 5, 9, 9, 1, 1], np.int64)
    assert explained(scores, np.array([0, 0, 1, 1, 2, 2])) == {"share": 1_000_000, "documents": 6, "groups": 3}
    assert explained(scores, np.array([0, 1, 0, 1, 0, 1])) == {"share": 0, "documents": 6, "groups": 2}
    assert explained(scores, np.arange(6)) is None  # a group of one explains itself: that says nothing
    draw = np.random.default_rng(3)
    found = explained(draw.integers(-1000, 1000, 4000), draw.integers(0, 1500, 4000))
    assert found is not None and found["share"] < 60_000  # η² would say .37


def test_calibration_has_every_document_in_one_tenth() -> None:
    labels, scores = np.array([1, 0, 1, 1]), np.array([2500, -2500, 100, 30_000], np.int64)
    held_out = Scored(labels, scores, np.ones(4, np.int64), {})
    bins = calibration(held_out, None)
    assert [(b["from"], b["held_out"], b["positives"]) for b in bins if b["held_out"]] == [
        (0, 1, 0), (500_000, 1, 1), (900_000, 2, 2),
    ]  # fmt: skip
    assert bins[0]["predicted"] == 75_858 and "target" not in bins[0]
    assert sum(b["target"] for b in calibration(held_out, held_out)) == 4


def test_card_and_model_do_not_depend_on_the_order_of_arrival() -> None:
    selection = Selection(1000, Fraction(1, 4), "books", None)
    again = train_and_judge(shuffled(candidates(corpus()), 5), SMALL, WIDTH, selection)
    assert again == trained()


def test_card_of_a_source_that_forbids_excerpts_shows_none() -> None:
    selection = Selection(1000, Fraction(1, 4), None, None)
    card = train_and_judge(candidates(corpus()), SMALL, WIDTH, selection, lambda source: source == "menus").card
    told = [feature["example"] for sense in ("positive", "negative") for feature in card["features"][sense]]
    assert told and not any("river" in text or "weather" in text for text in told)


def test_class_without_documents_is_an_error_that_says_what_went() -> None:
    selection = Selection(10, Fraction(0), None, None)
    with pytest.raises(ClassifierError, match="no positive document is left to train on"):
        train_and_judge(candidates([(NEGATIVE, "text", "a", None)]), SMALL, WIDTH, selection)
