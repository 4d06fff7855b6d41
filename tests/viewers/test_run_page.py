"""The page of a training run: what it says of one with kills, a branch, a spike and notes; hostile text stays text."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest

from curate.configuration import ConfigurationError
from tests.viewers.browser import Browser
from tests.viewers.parsed import parse, tables
from tests.viewers.runs import BEGUN, line_of_runs, start, trained, write
from tests.viewers.test_browser import violations
from viewers.run_checks import check_run
from viewers.run_page import NAME, render_run, write_run_page
from viewers.run_view import load_run_page
from viewers.verdict import Verdict

NOW = BEGUN + 350


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return line_of_runs(tmp_path_factory.mktemp("runs"))


def test_page_tells_sessions_branches_spikes_and_notes(folder: Path) -> None:
    run = write_run_page(folder, NOW)
    page = (folder / NAME).read_text("utf-8")
    shown = tables(parse(page, (files("viewers.scripts") / "refresh.js").read_text("utf-8")))
    assert [row[3:] for row in shown["Sessions"][1:]] == [
        ["80", "160", "killed", "10"],
        ["150", "200", "SIGTERM", "0"],
        ["200", "260", "running", "0"],
    ]
    assert [row[:3] for row in shown["Segments"][1:]] == [["parent & <b>", "0", "80"], ["child", "80", "its own end"]]
    assert shown["Spikes"][1][0] == "170" and shown["Spikes"][1][3] == "curate batch STORE --step 170"
    assert shown["Notes"][1][0] == "175" and "1 line of the journal is not as it was written" in page
    assert [line["step"] for line in run.train] == list(range(260))
    assert shown["Loss on held-out text"][2][:3] == ["books", "200", "3.2357"]
    assert shown["Load of experts at the last step"][1] == ["0", "4", "15.6%", "48.4%", "25.0%"]
    assert "Step 260 of 400: running." in page and "&lt;script&gt;alert" in page and "<script>alert" not in page
    assert render_run(load_run_page(folder, NOW)) == page


def test_checks_name_what_is_wrong_and_pass_where_nothing_is(folder: Path, tmp_path: Path) -> None:
    found = {check.id: check for check in check_run(load_run_page(folder, NOW))}
    assert {name for name, check in found.items() if check.verdict is not Verdict.PASS} == {
        "no-spikes", "same-environment", "not-killed", "goodput", "records-whole",
    }  # fmt: skip
    assert "3 sessions, 1 kill, 10 steps lost" in found["not-killed"].finding
    lines = [start(0, 0, 1), *(trained(step, 0.4 * (step + 1)) for step in range(60))]
    quiet = write(tmp_path / "quiet", lines)
    assert {check.verdict for check in check_run(load_run_page(quiet, BEGUN + 30))} == {Verdict.PASS}
    lines += [start(50, 30, 1), trained(50, 31, 4.5)]
    lines += [{"kind": "stop", "step": 51, "timing": {"time": BEGUN + 32, "reason": "TrainingError: the loss is nan"}}]
    lines += [start(51, 35, 1), *(trained(step, 36 + step, 4.9) for step in range(51, 160))]
    ill = {check.id: check for check in check_run(load_run_page(write(tmp_path / "ill", lines), BEGUN + 9999))}
    assert {name for name, check in ill.items() if check.verdict is Verdict.FAIL} == {
        "loss-finite", "not-diverged", "repeats-agree",
    }  # fmt: skip
    assert "silent" in ill["no-stalls"].finding and "(at step 50, 51, " in ill["repeats-agree"].finding


def test_page_loads_itself_again_while_the_run_goes_on_and_no_longer(folder: Path, tmp_path: Path) -> None:
    assert 'http-equiv="refresh"' in render_run(load_run_page(folder, NOW))
    assert 'http-equiv="refresh"' not in render_run(load_run_page(folder, NOW + 1e6))
    done = {"kind": "stop", "step": 1, "timing": {"time": BEGUN + 2, "reason": "finished"}}
    page = render_run(load_run_page(write(tmp_path / "r", [start(0, 0, 1), trained(0, 1), done]), NOW))
    assert 'http-equiv="refresh"' not in page and "<script" not in page and "finished" in page


def test_run_that_only_began_has_a_page_and_a_folder_without_one_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "begun", [start(0, 0, 1)])
    assert "Step 0 of 400: running." in render_run(load_run_page(tmp_path / "begun", BEGUN))
    write(tmp_path / "killed at once", [])
    assert "not recorded" in render_run(load_run_page(tmp_path / "killed at once", BEGUN))
    with pytest.raises(ConfigurationError, match="holds no training run"):
        load_run_page(tmp_path, BEGUN)
    (tmp_path / "log.jsonl").write_text(json.dumps([1]) + "\n")
    with pytest.raises(ConfigurationError, match="holds no training run"):
        load_run_page(tmp_path, BEGUN)


@pytest.mark.browser
def test_page_of_a_run_is_silent_fits_and_is_accessible_and_its_button_stops_it(browser: Browser, folder: Path) -> None:
    write_run_page(folder, NOW, refresh=600)
    browser.prepare = (
        "const clear = clearTimeout; window.cleared = 0; clearTimeout = id => { cleared += id > 0; clear(id) }"
    )
    try:
        opened = browser.open(folder / NAME, 320)
    finally:
        browser.prepare = ""
    opened.page.click("#refresh")
    assert opened.evaluate("cleared") == 1 and opened.page.inner_text("#refresh") == "Load again"
    assert opened.noise == [] and opened.overflow <= 0
    assert [url for url in opened.requests if not url.startswith("data:")] == [(folder / NAME).as_uri()]
    assert violations(opened) == []
