"""What pages say of declared runs: verdict, bands, conditions, what was changed, notes; ladders with hollow points."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from tests.trainers.ladders import a_log, made, write_log
from tests.viewers.parsed import parse
from trainers.config import flat
from trainers.evidence.declaration import declare
from trainers.evidence.diary import NAME as NOTES
from trainers.evidence.diary import write_note
from trainers.evidence.forecast import Forecast
from trainers.evidence.judgement import judged_of
from trainers.evidence.ladder import Size
from viewers.forecasts import render_ladder
from viewers.judged import forecast_panel
from viewers.loading import Report
from viewers.panels.loss import loss
from viewers.runs import load_run

HOSTILE = "</script><b>Zü\u202e\0"


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> tuple[Size, Forecast, Path]:
    ladder, forecast = made()
    path = tmp_path_factory.mktemp("forecast") / "forecast.json"
    forecast.save(path)
    return ladder.target, forecast, path


def declared(run: Path, known: tuple[Size, Forecast, Path], **changed: object) -> Path:
    target, _, path = known
    arguments = {"plan": target.plan.digest, "config": flat(target.config), "forecast": path, "now": 0.0}
    declare(run, f"It follows the ladder. {HOSTILE}", **(arguments | changed))  # type: ignore[arg-type]
    return run


def report_of(run: Path) -> Report:
    return Report("n", "k", "c", "d", {}, (), runs=(load_run(run),))


def test_ladder_page_draws_rungs_full_and_the_target_hollow(known: tuple[Size, Forecast, Path]) -> None:
    _, forecast, _ = known
    page = render_ladder(forecast)
    assert page.count('class="dot hollow"') == 1
    assert page.count('class="dot out"') == 5 + 1  # three seeds and two rungs; the hollow one's rim
    assert page.count('class="line beyond"') == 2
    shown = parse(page).text
    for said in (f"{forecast.loss.low:.4f} to {forecast.loss.high:.4f}", forecast.digest, "between seeds", "5 %"):
        assert said in shown
    assert render_ladder(forecast) == page


def test_panel_of_a_finished_run_says_the_verdict_and_each_forecast(
    known: tuple[Size, Forecast, Path], tmp_path: Path
) -> None:
    panel = forecast_panel(judged_of(write_log(declared(tmp_path, known), a_log(known[0]))))
    assert panel is not None
    html = panel.markup().html
    shown = parse(html).text
    assert "Passed: 1,000 of 1,000 steps. 23 of 23 forecasts met so far." in shown
    assert HOSTILE not in html and "</script>" in shown
    assert 'class="dot seen"' in html and 'class="band"' in html
    assert "What the run does otherwise" not in shown and "gradient_norm < 100" in shown


def test_panel_of_a_run_above_its_bands_says_failed(known: tuple[Size, Forecast, Path], tmp_path: Path) -> None:
    panel = forecast_panel(judged_of(write_log(declared(tmp_path, known), a_log(known[0], offset=0.5))))
    assert panel is not None
    shown = parse(panel.markup().html).text
    assert "Failed: 1,000 of 1,000 steps. 0 of 23 forecasts met so far." in shown and "outside" in shown


def test_panel_of_another_run_than_declared_says_what_differs(
    known: tuple[Size, Forecast, Path], tmp_path: Path
) -> None:
    log = a_log(known[0], stop=500, reason=None)
    start = {**log.starts[0], "config": {**log.starts[0]["config"], "optimizer.learning_rate": "0.1"}}
    write_log(declared(tmp_path, known), dataclasses.replace(log, starts=(start,)))
    panel = forecast_panel(judged_of(tmp_path))
    assert panel is not None
    shown = parse(panel.markup().html).text
    assert "The forecast is void" in shown and "optimizer.learning_rate: stored" in shown and "Not over" in shown


def test_changed_declaration_is_said_in_the_page_and_undeclared_runs_have_no_panel(
    known: tuple[Size, Forecast, Path], tmp_path: Path
) -> None:
    assert forecast_panel(judged_of(write_log(tmp_path / "plain", a_log(known[0])))) is None
    run = declared(tmp_path / "run", known)
    value = json.loads((run / "declaration.json").read_text())
    (run / "declaration.json").write_text(json.dumps({**value, "failure": []}))
    panel = forecast_panel(judged_of(run))
    assert panel is not None and "the file is damaged" in parse(panel.markup().html).text


def test_report_shows_bands_and_notes_of_its_runs(known: tuple[Size, Forecast, Path], tmp_path: Path) -> None:
    run = write_log(declared(tmp_path, known), a_log(known[0], stop=300, reason="SIGTERM"))
    write_note(run, 120, f"new shard {HOSTILE}", "ada", now=60)
    write_note(run, 130, "and back", "ada", now=70)
    panel = loss(report_of(run))
    assert panel is not None
    html = panel.markup().html
    shown = parse(html).text
    assert 'class="band"' in html and html.count('class="border"') == 2 * 1
    assert "new shard" in shown and "1970-01-01 00:01 UTC" in shown and HOSTILE not in html
    assert "stopped" not in shown.lower() or "SIGTERM" in shown
    lines = (run / NOTES).read_text().splitlines()
    (run / NOTES).write_text(lines[0].replace("ada", "eve") + "\n" + lines[1] + "\n")
    panel = loss(report_of(run))
    assert panel is not None and "at line 2 of notes.jsonl" in parse(panel.markup().html).text
