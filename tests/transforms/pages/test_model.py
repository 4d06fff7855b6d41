"""The classifier: trees as their trainer has them, probabilities as the logistic function, the same on each machine."""

from __future__ import annotations

import hashlib
from pathlib import Path

import lightgbm
import numpy as np
import pytest

from benchmarks.train_extractor import forest_of
from transforms.pages.engine import extract, parsed
from transforms.pages.features import ONE, log, share
from transforms.pages.forest import CERTAIN, LOGISTIC, SCORE, probabilities
from transforms.pages.model import FILE, packaged_model, read_model, write_model

DIGEST = "269e21b378a57e9c"
"""Of the packaged model's file. One that changes means: raise `ExtractText.version`."""

PROSE = "The hill lies behind the village, and in winter, when snow covers it, the children take their sledges there. "
PAGE = (
    "<html lang=en><head><title>The hill - Village news</title></head><body><nav class=menu><ul><li><a href=/>Home</a>"
    f"<li><a href=/x>News</a></ul></nav><article class=post><h1>The hill</h1><p>{PROSE * 2}<p>{PROSE * 3}<p>{PROSE}"
    "</article><aside class=related><h3>Related</h3><ul><li><a href=/1>One</a><li><a href=/2>Two</a></ul></aside>"
    "<footer class=footer><p><a href=/i>Imprint</a> <a href=/p>Privacy</a></footer></body></html>"
)


def test_forest_gives_the_leaves_and_probabilities_of_its_trainer() -> None:
    random = np.random.RandomState(3)
    rows = random.randint(-50, 2000, (3000, 6)).astype(np.int32)
    labels = (rows[:, 0] * 2 + rows[:, 3] + random.randint(0, 900, 3000)) > 2900
    settings = {"objective": "binary", "num_leaves": 15, "verbose": -1, "num_threads": 1, "seed": 1, "max_bin": 63}
    booster = lightgbm.train(settings, lightgbm.Dataset(rows.astype(np.float32), labels), 25)
    forest = forest_of(booster)
    expected = booster.predict(rows.astype(np.float32), num_threads=1)
    assert np.abs(probabilities(forest, rows) / CERTAIN - expected).max() <= 1e-4
    alone = [round(leaf * SCORE) for leaf in booster.predict(rows[:50], raw_score=True, num_iteration=1)]
    one = forest_of(lightgbm.Booster(model_str=booster.model_to_string(num_iteration=1)))
    table = {leaf: number for number, leaf in enumerate(one.leaves.tolist())}
    assert all(leaf in table for leaf in alone)


def test_logistic_table_is_within_its_bound() -> None:
    points = np.linspace(-16, 16, len(LOGISTIC))
    assert np.abs(LOGISTIC / CERTAIN - 1 / (1 + np.exp(-points))).max() <= 0.5001 / CERTAIN


def test_logarithms_and_shares_are_whole_numbers_in_order() -> None:
    values = [int(log(np.int64(value))) for value in range(2000)]
    assert values == sorted(values)
    assert [values[place] for place in (0, 1, 3, 7, 1023)] == [0, 64, 128, 192, 640]
    assert max(abs(value / 64 - np.log2(1 + place)) for place, value in enumerate(values)) < 0.11
    assert int(share(np.int64(1), np.int64(2))) == ONE // 2
    assert int(share(np.int64(0), np.int64(0))) == 0


def test_model_file_is_small_and_survives_being_written(tmp_path: Path) -> None:
    assert FILE.stat().st_size < 1_500_000
    write_model(packaged_model(), tmp_path / "again.npz")
    again = read_model(tmp_path / "again.npz")
    assert (again.weights == packaged_model().weights).all()
    page = parsed(PAGE.encode())
    assert (again.score(page) == packaged_model().score(page)).all()


def test_packaged_model_changes_only_together_with_the_version() -> None:
    arrays = [packaged_model().weights, *packaged_model().first.leaves, *packaged_model().second.leaves]
    digest = hashlib.blake2b(b"".join(np.asarray(array).tobytes() for array in arrays), digest_size=8)
    assert digest.hexdigest() == DIGEST


def test_main_text_of_an_article_is_found_without_its_surroundings() -> None:
    extracted = extract(PAGE.encode())
    assert extracted.text.split("\n")[-3:] == [(PROSE * 2).strip(), (PROSE * 3).strip(), PROSE.strip()]
    assert not any(word in extracted.text for word in ("Home", "Related", "Imprint"))
    assert 5000 < extracted.confidence <= 10_000
    assert 0 < extracted.kept < extracted.visible


@pytest.mark.parametrize("html", ["", "<p>", "<title>x</title>", "<!-- -->", "<script>x</script>"])
def test_page_without_text_gives_none(html: str) -> None:
    extracted = extract(html.encode())
    assert (extracted.text, extracted.confidence, extracted.kept, extracted.visible) == ("", 0, 0, 0)
