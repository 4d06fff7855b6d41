"""The panel on scores: what a classifier is worth, and what levels hold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tests.transforms.classifier_corpus import trained
from tests.viewers.parsed import parse, tables
from tests.viewers.stores import report, stage
from transforms.score_levels import Levels, card_of, histogram
from viewers.loading import ProductView, Report
from viewers.panels.scores import scores


def with_models(*cards: dict[str, Any]) -> Report:
    files = {"file.bin": {"bytes": 1, "digest": "d" * 64}}
    models = [
        ProductView(
            {"name": f"model {n}", "key": "k" * 64, "kind": "model", "card": card, "files": files, "inputs": []}
        )
        for n, card in enumerate(cards)
    ]
    return replace(report(stage()), products=tuple(models))


def levels_card() -> dict[str, Any]:
    rows = histogram(["a", "a", None], np.array([0, 1200, 9]), np.array([1, 3, 4]))
    levels = Levels("quality_score", "topic", {"a": (1000,), "": (5,)})
    return {**card_of(levels, rows), "keep": ["3/4"]}


def test_scores_of_a_classifier_are_told_with_what_it_may_have_learned_instead() -> None:
    card = trained().card
    panel = scores(with_models(card))
    assert panel is not None
    found = tables(parse(panel.markup().html))
    areas = {row[0]: row[1] for row in found["What the classifier is worth"][1:]}
    assert areas["pooled"] == "1.0000" and areas["within source"] == "–" and areas["source alone"] == "1.0000"
    rows = found["Calibration"][1:]
    assert len(rows) == 10 and sum(int(row[4]) for row in rows) == 10
    assert "Features that tell most" in found


def test_scores_levels_are_told_by_group() -> None:
    panel = scores(with_models(levels_card()))
    assert panel is not None
    rows = tables(parse(panel.markup().html))["Levels of quality_score"]
    assert ["level 1", "1.000", "1", "75.0\u202f%"] in rows and len(rows) == 5


def test_scores_result_without_models_has_no_panel() -> None:
    assert scores(report(stage())) is None
    assert scores(with_models({"documents": 3})) is None
