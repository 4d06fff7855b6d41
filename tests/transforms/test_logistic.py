"""Logistic regression: integers that equal the floats they came from, and probabilities that are exact."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

from transforms.logistic import (
    MOST,
    UNIT,
    Descent,
    Linear,
    log_odds,
    probability,
    score_of,
    to_milli,
    train,
)
from transforms.text_features import Features


def features(rows: list[dict[int, int]]) -> Features:
    offsets = np.cumsum([0, *(len(row) for row in rows)]).astype(np.int64)
    pairs = [pair for row in rows for pair in row.items()]
    buckets = np.array([bucket for bucket, _ in pairs], np.uint32)
    values = np.array([value for _, value in pairs], np.int16)
    squares = np.array([sum(value * value for value in row.values()) for row in rows], np.int64)
    return Features(offsets, buckets, values, squares)


def test_log_odds_are_within_a_thousandth_of_their_floats() -> None:
    draw = np.random.default_rng(1)
    weights = draw.normal(size=64)
    rows = [{int(b): int(draw.integers(1, 140)) for b in draw.choice(64, 20, replace=False)} for _ in range(50)]
    model = Linear(np.floor(weights * UNIT + 0.5).astype(np.int32), int(0.25 * UNIT))
    found = log_odds(model, features(rows)) / UNIT
    for row, odds in zip(rows, found, strict=True):
        length = math.sqrt(sum(value * value for value in row.values()))
        exact = 0.25 + sum(weights[b] * v for b, v in row.items()) / length
        assert abs(odds - exact) < 1e-3
        assert abs(1 / (1 + math.exp(-odds)) - 1 / (1 + math.exp(-exact))) <= 1e-4


def test_text_without_features_has_the_odds_of_the_bias() -> None:
    assert log_odds(Linear(np.zeros(4, np.int32), -77), features([{}])).tolist() == [-77]


def test_training_finds_what_divides_the_classes_and_repeats_to_the_bit() -> None:
    rows = [{0: 16, n % 5 + 2: 16} if n % 2 else {1: 16, n % 5 + 2: 16} for n in range(40)]
    labels = np.array([n % 2 for n in range(40)], np.int8)

    def examples(epoch: int) -> Iterator[tuple[Features, np.ndarray, np.ndarray]]:  # type: ignore[type-arg]
        yield features(rows), labels, np.ones(40)

    first, second = (train(examples, 3, Descent(epochs=4)) for _ in range(2))
    assert first.weights.tolist() == second.weights.tolist() and first.bias == second.bias
    assert first.weights[0] > UNIT // 2 and first.weights[1] < -UNIT // 2
    odds = log_odds(first, features(rows))
    assert ((odds > 0) == (labels == 1)).all()


@pytest.mark.parametrize("score", [-40000, -3993, -1, 0, 1, 250, 12345])
def test_probability_is_the_rounded_logistic_function(score: int) -> None:
    assert probability(score) == round(1e6 / (1 + math.exp(-score / 1000)))


def test_score_of_a_probability_leads_back_to_it() -> None:
    assert score_of(18_112) == -3993  # the threshold of DCLM-baseline, .018112
    assert score_of(0) == score_of(1) and score_of(1_000_000) == -score_of(1)
    for millionths in (1, 999, 500_000, 731_059, 999_999):
        assert abs(probability(score_of(millionths)) - millionths) <= 130


def test_scores_are_means_of_windows_rounded_and_capped() -> None:
    odds = np.array([3 * UNIT, UNIT, 100 * UNIT, -UNIT // 3000], np.int64)
    assert to_milli(odds, np.array([2, 1, 1, 1])).tolist() == [1500, 1000, MOST, 0]


def test_descent_with_senseless_numbers_is_refused() -> None:
    for wrong in ({"epochs": 0}, {"rate": 0.0}, {"decay": 1.0}):
        with pytest.raises(ValueError, match="at least one epoch"):
            Descent(**wrong)  # type: ignore[arg-type]
