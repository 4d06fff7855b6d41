"""The page of a comparison and its values: what was stated, what was found, and what the ranking is worth."""

import json
from dataclasses import replace

from curate.ablations import AblatedPart, Ablation, Effect
from curate.store import check_self_digest
from tests.trainers.synthetic import tiny
from trainers.evidence.compare import AtSize, Comparison, Contrast
from trainers.evidence.pilot import Planned
from trainers.evidence.power import noise_of
from trainers.evidence.statistics import Interval
from viewers.comparison_page import comparison_page, write_comparison
from viewers.loading import Report
from viewers.panels.ablation import ablation

HOSTILE = "<b>web</b>\u202e"
LOSSES = {"a": {"news": (3.0, 3.1, 3.2)}, HOSTILE: {"news": (2.5, 2.6, 2.7)}}
APART, ALIKE = Interval(-0.5, -0.6, -0.4, "different"), Interval(0.01, -0.2, 0.22, "not told apart")
SIZE = AtSize(tiny(), (1, 2, 3), {"a": ("p1",), HOSTILE: ("p2",)}, LOSSES, (Contrast("a", HOSTILE, "news", APART),))
TURNED = replace(
    SIZE, losses={"a": LOSSES[HOSTILE], HOSTILE: LOSSES["a"]}, contrasts=(Contrast("a", HOSTILE, "news", ALIKE),)
)
FOUND = Comparison(("a", HOSTILE), 0.01, 2, (SIZE, TURNED))
NOISE = noise_of([0.1, -0.2, 0.05, 0.1])
PLANNED = Planned((tiny(),), (1, 2, 3), 2, 0.01, {"news": NOISE}, {"news": 0.75}, 61.0, 300.0)


def test_page_says_what_was_found_at_each_size_that_the_rank_did_not_hold_and_what_was_stated():
    page = comparison_page(FOUND, PLANNED)
    assert "They differ." in page and "may not transfer" in page and "is NOT the same at 2 sizes" in page
    assert "−0.5000" in page and "+0.0100" in page and "not told apart" in page
    assert "Stated before the first run" in page and "0.7500" in page
    assert "<b>web" not in page and "\u202e" not in page and "&lt;b&gt;web" in page


def test_values_beside_the_page_have_every_loss_and_their_digest(tmp_path):
    paths = write_comparison(FOUND, PLANNED, tmp_path / "c.html")
    assert [path.name for path in paths] == ["c.html", "c.json"]
    values = check_self_digest(json.loads((tmp_path / "c.json").read_bytes()), "c.json")
    assert values["rank_held"] is False and values["verdict"] == "different"
    assert values["sizes"][0]["losses"]["a"]["news"] == ["3.0", "3.1", "3.2"]
    assert values["sizes"][0]["contrasts"][0]["difference"] == "-0.5"
    assert values["stated"]["detectable"] == {"news": "0.75"}


def test_panel_of_an_ablation_shows_verdicts_and_effects_and_none_where_nothing_was_tried():
    report = Report("r", "k", "c", "d", {}, ())
    assert ablation(report) is None
    parts = (
        AblatedPart("Filter of web", "earned its place", "", (Effect("news", 0.25, 0.125, 0.375, "different"),)),
        AblatedPart("MaskPII of web", "not tried", "it protects personal data, which loss does not measure", ()),
    )
    panel = ablation(replace(report, ablation=Ablation("k", 0.01, "width 64", parts)))
    html = panel.markup().html
    assert "earned its place" in html and "+0.2500" in html and "protects personal data" in html and "99%" in html
