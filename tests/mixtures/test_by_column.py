"""Weights by the columns that cells were made of: sizes times factors, exact; mistakes are named."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from curate.configuration import ConfigurationError
from mixtures import ByColumn, Chunks, Mixture, Phase
from tests.mixtures.memory import caches_of

CELLS = {"topic=sea/level=0": 100, "topic=sea/level=2": 300, "topic=law/old/level=2": 50, "topic=null/level=0": 10}


def weights(cells: dict[str, int] = CELLS, **factors: Any) -> dict[str, Fraction]:
    return ByColumn(**factors).weights_of(cells, "main", 100)


def test_weights_by_column_are_tokens_times_factors() -> None:
    found = weights(level={0: 0.1, 2: 3}, topic={"law/old": "1/2", None: 0})
    assert found == dict(zip(CELLS, (Fraction(10), Fraction(900), Fraction(75), Fraction(0)), strict=True))


def test_weights_of_values_without_a_factor_are_their_tokens() -> None:
    assert list(weights(level={2: 2}).values()) == [100, 600, 100, 10]


def test_weights_of_cells_of_one_column_go_by_their_names() -> None:
    assert weights({"web": 7, "code": 5, "true": 1}, source={"web": 3, True: 0}) == {"web": 21, "code": 5, "true": 0}


@pytest.mark.parametrize(
    ("factors", "said"),
    [
        ({"level": {7: 1}}, "no cell has level='7'; there are 0, 2"),
        ({"quality": {0: 1}}, "not made by it"),
        ({"level": {0: 0, 2: 0}}, "draws nothing"),
    ],
)
def test_weights_by_column_that_fit_no_cells_are_refused(factors: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        weights(**factors)


def test_by_column_of_wrong_numbers_is_refused_at_once() -> None:
    with pytest.raises(ConfigurationError, match="names no column"):
        ByColumn()
    with pytest.raises(ConfigurationError, match="must not be negative"):
        ByColumn(level={0: -1})
    with pytest.raises(ConfigurationError, match="leave others= out"):
        Phase("main", 100, ByColumn(level={0: 0}), others=1)


def test_mixture_by_column_compiles_to_integers_and_shows_itself() -> None:
    caches = caches_of(**{"topic=a/level=0": [160], "topic=a/level=1": [160], "topic=b/level=1": [320]})
    mixture = Mixture(
        None,
        Phase("main", 16 * 40, ByColumn(level={0: 0, 1: 3}), None),
        sequences=Chunks(16),
        batch=8,
        repeats=None,
    )
    plan = mixture.compile(caches)
    assert plan.draws() == {"topic=a/level=0": 0, "topic=a/level=1": 13, "topic=b/level=1": 27}
    assert plan.segments[0].weights == {"topic=a/level=1": 1, "topic=b/level=1": 2}
    assert "all by their tokens, level=0 × 0, level=1 × 3" in str(mixture)
