"""Declared runs: written before the run, unchangeable, and scored by the log."""

from __future__ import annotations

import dataclasses
import json

import pytest

from curate.configuration import ConfigurationError
from tests.trainers.ladders import a_log, made, write_log
from trainers.config import flat
from trainers.evidence.declaration import DeclarationError, condition, declare, load_declaration
from trainers.evidence.forecast import ForecastError
from trainers.evidence.judgement import judge, measured, outcome_of

HYPOTHESIS = "Books and code in this mixture follow the ladder."


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """The target of a ladder, its forecast and the forecast's file."""
    ladder, forecast = made()
    path = tmp_path_factory.mktemp("forecast") / "forecast.json"
    forecast.save(path)
    return ladder.target, forecast, path


def declared(run, known, **changed):
    target, _, path = known
    arguments = {"plan": target.plan.digest, "config": flat(target.config), "forecast": path, "now": 0.0}
    return declare(run, HYPOTHESIS, **(arguments | changed))


def test_declaration_is_read_as_written_and_holds_the_digest_of_the_forecast(known, tmp_path):
    _, forecast, _ = known
    made_now = declared(tmp_path / "run", known)
    read = load_declaration(tmp_path / "run")
    assert read == made_now and read.digest == made_now.digest
    assert read.forecast == forecast.digest and read.declared == "1970-01-01T00:00:00Z"
    assert [str(each) for each in read.failure] == [f"loss > {round(forecast.loss.high, 6)!r}"]
    assert judge(tmp_path / "run").outcome == "declared"
    with pytest.raises(DeclarationError, match="declarations stay"):
        declared(tmp_path / "run", known)
    assert load_declaration(tmp_path) is None


def test_run_that_has_begun_cannot_be_declared(known, tmp_path):
    write_log(tmp_path / "run", a_log(known[0], stop=1, reason=None))
    with pytest.raises(DeclarationError, match="has 1 steps in its log: a declaration comes before"):
        declared(tmp_path / "run", known)


def test_declaration_or_forecast_that_was_changed_is_refused(known, tmp_path):
    declared(tmp_path / "run", known)
    path = tmp_path / "run" / "declaration.json"
    value = json.loads(path.read_text())
    path.write_text(json.dumps({**value, "failure": []}))
    with pytest.raises(DeclarationError, match="damaged"):
        judge(tmp_path / "run")
    path.write_text(json.dumps(value))
    (tmp_path / "run" / "forecast.json").unlink()
    with pytest.raises(ForecastError, match="no forecast"):
        judge(tmp_path / "run")


@pytest.mark.parametrize(
    ("changed", "error", "said"),
    [
        ({"plan": "other"}, ForecastError, "of another run: plan"),
        ({"config": {"steps": 3}}, ForecastError, "steps: stored 1000, given 3"),
        ({"forecast": None}, ConfigurationError, "what would count as failure"),
        ({"failure": ("loss is bad",)}, ConfigurationError, "METRIC < NUMBER"),
        ({"health": ("happiness > 3",)}, ConfigurationError, "METRIC < NUMBER"),
        ({"health": ("spikes[x] > 3",)}, ConfigurationError, "METRIC < NUMBER"),
        ({"health": ("spikes > 3e",)}, ConfigurationError, "METRIC < NUMBER"),
    ],
)
def test_declaration_that_says_nothing_is_refused(known, tmp_path, changed, error, said):
    with pytest.raises(error, match=said):
        declared(tmp_path / "run", known, **changed)
    assert load_declaration(tmp_path / "run") is None


def test_run_as_forecast_passes(known, tmp_path):
    declared(tmp_path, known)
    write_log(tmp_path, a_log(known[0]))
    found = judge(tmp_path)
    assert (found.verdict, found.outcome, found.reason) == ("passed", "finished", "1,000 of 1,000 steps")
    assert not found.changes and not found.voids and len(found.points) == 23
    assert [told.holds for told in found.health] == [True, True] and [told.holds for told in found.failure] == [False]


def test_run_above_its_band_failed_although_it_finished(known, tmp_path):
    declared(tmp_path, known)
    write_log(tmp_path, a_log(known[0], offset=0.5))
    found = judge(tmp_path)
    assert (found.verdict, found.outcome) == ("failed", "finished")
    assert [told.holds for told in found.failure] == [True]


def test_run_under_way_is_scored_so_far_and_failure_is_not_known(known, tmp_path):
    declared(tmp_path, known)
    write_log(tmp_path, a_log(known[0], stop=500, reason=None))
    found = judge(tmp_path)
    assert (found.verdict, found.outcome) == ("running", "running") and len(found.points) == 10
    assert [told.holds for told in found.failure] == [None]


def test_run_that_ended_by_an_error_failed_and_says_why(known, tmp_path):
    declared(tmp_path, known)
    write_log(tmp_path, a_log(known[0], stop=7, reason="TrainingError: step 7: the loss is nan"))
    found = judge(tmp_path)
    assert (found.verdict, found.outcome) == ("failed", "failed")
    assert found.reason == "TrainingError: step 7: the loss is nan (7 of 1,000 steps)"
    stopped = outcome_of(a_log(known[0], stop=7, reason="SIGTERM"))
    assert stopped == ("stopped", "7 of 1,000 steps, SIGTERM")


def test_run_otherwise_than_declared_is_told_and_its_forecast_void(known, tmp_path):
    declared(tmp_path, known)
    log = a_log(known[0])
    start = {**log.starts[0], "plan": "other", "config": {**log.starts[0]["config"], "optimizer.learning_rate": "0.1"}}
    write_log(tmp_path, dataclasses.replace(log, starts=(start,)))
    found = judge(tmp_path)
    assert len(found.changes) == len(found.voids) == 2
    assert "optimizer.learning_rate" in found.changes[0] and "plan: declared" in found.changes[1]


def test_metrics_of_conditions_come_from_the_log(known):
    log = a_log(known[0])
    jump = {**log.train[30], "loss": log.train[30]["loss"] + 3.0, "gradient_norm": 7.0}
    found = measured(dataclasses.replace(log, train=(*log.train[:30], jump, *log.train[31:]), repeated=2))
    assert (found["spikes"], found["repeated"]) == (1, 2)
    assert found["loss[code]"] == pytest.approx(found["loss[books]"] + 0.1)
    assert found["loss"] == pytest.approx((found["loss[books]"] + found["loss[code]"]) / 2)
    assert found["gradient_norm"] == (7.0 if int(log.starts[0]["config"]["optimizer.warmup"]) <= 30 else 1.0)
    assert condition(" loss[the web] <= 3.25 ").source == "the web"


def test_branch_is_declared_with_the_state_that_it_begins_from(known, tmp_path):
    target = known[0]
    parent = {"step": 500, "state": "a" * 64}
    made_now = declared(tmp_path, known, forecast=None, failure=("loss > 3",), parent=parent)
    assert load_declaration(tmp_path) == made_now and made_now.parent == parent
    assert judge(tmp_path).changes == ()
    log = a_log(target)
    for begun, changes in (
        ({"parent": parent}, 0),
        ({"parent": {**parent, "state": "b" * 64}}, 1),
        ({"parent": None}, 1),
    ):
        write_log(tmp_path, dataclasses.replace(log, starts=({**log.starts[0], **begun},)))
        assert len(judge(tmp_path).changes) == changes
    with pytest.raises(ForecastError, match="not of a branch"):
        declared(tmp_path / "other", known, parent=parent)
