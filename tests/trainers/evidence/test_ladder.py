"""Ladders: sizes and plans of rungs, training them, and the forecast that is made of their logs."""

from __future__ import annotations

import dataclasses
import json

import pytest

from curate.configuration import ConfigurationError
from mixtures.scaled import apportioned, epochs, scaled
from tests.trainers.ladders import WIDTHS, a_ladder, a_log, a_plan, made, seeded, write_log
from trainers.evidence.forecast import ForecastError, load_forecast, scored, stretch_means, voids
from trainers.evidence.ladder import forecast, plan_ladder, run_ladder


@pytest.fixture(scope="module")
def ladder_and_forecast():
    return made()


def test_rungs_have_the_ratio_of_tokens_to_parameters_that_the_target_has():
    ladder = a_ladder()
    ratio = ladder.target.tokens / ladder.target.parameters
    assert [rung.width for rung in ladder.rungs] == list(WIDTHS)
    assert ladder.target.plan.digest == a_plan().digest and ladder.target.config.steps == 1000
    for rung in ladder.rungs:
        assert rung.tokens / rung.parameters == pytest.approx(ratio, rel=0.03)
        assert rung.plan.steps == rung.config.steps
    assert "target" in str(ladder)


def test_scaled_plan_keeps_phases_and_components_in_proportion():
    plan = a_plan()
    small = scaled(plan, 100)
    assert small.steps == 100 and [segment.drawn_length for segment in small.segments] == [200, 200]
    assert small.draws() == {"a": 250, "b": 150}
    assert scaled(plan, 1000) is plan and epochs(small)[1] < epochs(plan)[1] < 1
    for steps in (1, 1001):
        with pytest.raises(ConfigurationError, match="can be scaled down to 2 to 1000 steps"):
            scaled(plan, steps)
    assert apportioned({"x": 1, "y": 1, "z": 1}, 4) == {"x": 2, "y": 1, "z": 1}
    assert apportioned({"x": 1, "y": 98}, 3, least=1) == {"x": 1, "y": 2}


@pytest.mark.parametrize(
    ("plan", "widths", "target", "said"),
    [
        (a_plan(), (64, 128), 192, "at least 3 different widths"),
        (a_plan(), (64, 64, 128), 192, "at least 3 different widths"),
        (a_plan(), WIDTHS, 192, "below the target"),
        (a_plan(200), WIDTHS, 256, "fewer than 20"),
    ],
)
def test_ladder_that_cannot_forecast_is_refused(plan, widths, target, said):
    with pytest.raises(ConfigurationError, match=said):
        plan_ladder(plan, widths, target)


def test_rung_that_reads_a_text_twice_is_refused():
    plan = a_plan()
    few = tuple(dataclasses.replace(part, tokens=160, sequences=10) for part in plan.components)
    with pytest.raises(ConfigurationError, match="rungs read no text twice"):
        plan_ladder(dataclasses.replace(plan, components=few), WIDTHS, 256)


def test_plan_whose_phases_have_a_batch_of_their_own_is_refused():
    plan = a_plan()
    other = (dataclasses.replace(plan.segments[0], batch=8), *plan.segments[1:])
    with pytest.raises(ConfigurationError, match="batch or length of its own"):
        plan_ladder(dataclasses.replace(plan, segments=other), WIDTHS, 256)


def test_runs_of_a_ladder_differ_in_the_seed_and_lie_in_folders_of_their_own(tmp_path, monkeypatch):
    ladder, asked = a_ladder(), []

    def train(loader, config, folder, **arguments):
        rung = next(rung for rung in ladder.rungs if rung.width == config.model.width)
        asked.append((folder.name, loader.digest == rung.plan.digest, config.seed))
        write_log(folder, seeded(a_log(rung), config.seed))

    monkeypatch.setattr("trainers.evidence.ladder.train", train)
    logs = run_ladder(ladder, lambda part: part, {}, tmp_path, seeds=(2,))
    assert asked == [("w64-s0", True, 0), ("w64-s1", False, 1), ("w128-s0", True, 0), ("w192-s0", True, 0)]
    assert [log.starts[0]["config"]["seed"] for runs in logs for log in runs] == [0, 1, 0, 0]
    with pytest.raises(ConfigurationError, match="at least one seed"):
        run_ladder(ladder, lambda part: part, {}, tmp_path, seeds=(1, 0))


def test_forecast_holds_what_the_law_gives_and_names_its_target(ladder_and_forecast):
    ladder, found = ladder_and_forecast
    truth = a_log(ladder.target)
    assert (found.plan, found.config["model.width"]) == (ladder.target.plan.digest, 256)
    assert found.is_noise_measured and found.noise == pytest.approx(0.005)
    assert sorted(found.progress) == list(range(5, 101, 5))
    assert found.held_out == {"books": 1000, "code": 1000} and sorted(found.sources) == ["books", "code"]
    points = scored(found, truth)
    assert len(points) == 20 + 1 + 2 and all(point.is_inside for point in points)
    assert not voids(found, truth)
    assert all(rung.left_out.low < rung.left_out.high for rung in found.rungs) and not found.caveats


def test_running_target_is_scored_as_far_as_it_got(ladder_and_forecast):
    ladder, found = ladder_and_forecast
    half = a_log(ladder.target, stop=500, reason=None)
    assert [point.where for point in scored(found, half)] == [f"{p} %" for p in range(5, 51, 5)]
    bad = a_log(ladder.target, offset=1.0, stop=100, reason=None)
    assert [point.is_inside for point in scored(found, bad)] == [False, False]
    gone = dataclasses.replace(half, train=half.train[:30] + half.train[40:])
    assert sorted(stretch_means(gone, 1000)) == list(range(5, 51, 5))[1:]


def test_forecast_is_void_for_another_run(ladder_and_forecast):
    ladder, found = ladder_and_forecast
    log = a_log(ladder.target, sources=("books",))
    start = {**log.starts[0], "plan": "other", "parent": {"run": "x"}}
    start["config"] = {**start["config"], "optimizer.learning_rate": "0.1"}
    said = "; ".join(voids(found, dataclasses.replace(log, starts=(start,))))
    for part in ("learning_rate", "plan: forecast", "branched", "0 tokens of code"[2:]):
        assert part in said


def test_forecast_file_is_canonical_stays_and_notices_changes(ladder_and_forecast, tmp_path):
    _, found = ladder_and_forecast
    path = tmp_path / "forecast.json"
    found.save(path)
    found.save(path)
    read = load_forecast(path, found.digest)
    assert read.to_json() == found.to_json() and read.digest == found.digest
    with pytest.raises(ForecastError, match="forecasts stay"):
        dataclasses.replace(found, noise=1.0).save(path)
    with pytest.raises(ForecastError, match="another forecast"):
        load_forecast(path, "0" * 64)
    value = json.loads(path.read_text())
    value["loss"]["high"] = "99.0"
    path.write_text(json.dumps(value))
    with pytest.raises(ForecastError, match="damaged"):
        load_forecast(path)


def test_rungs_without_held_out_text_or_seeds_forecast_the_last_batches_and_say_so():
    ladder = a_ladder()
    found = forecast(ladder, [[a_log(rung, sources=())] for rung in ladder.rungs])
    assert not found.is_noise_measured and "assumed" in found.caveats[0]
    points = scored(found, a_log(ladder.target, sources=()))
    assert points[-1].where == "last batches" and points[-1].is_inside
    with pytest.raises(ConfigurationError, match="no loss at step"):
        forecast(ladder, [[a_log(rung, sources=(), stop=3)] for rung in ladder.rungs])
