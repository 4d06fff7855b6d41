import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

from curate.configuration import ConfigurationError
from tests.trainers.synthetic import MODEL, MarkovLoader, held_out, sequences, tiny
from tests.trainers.training import STRICT, run
from trainers.checkpoint import CheckpointError, Checkpoints
from trainers.environment import environment
from trainers.log import read_log, untimed
from trainers.state import arrays, digest, init_state, restore
from trainers.step import on_host
from trainers.train import TrainingError, fit
from trainers.validation import evaluate

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The folder of a run that nothing disturbed, and what it returned."""
    folder = tmp_path_factory.mktemp("undisturbed")
    return folder, run(folder)


def lines(folder):
    """What must be the same in every run: the log without the clock, each step once."""
    log = read_log(folder)
    return [[untimed(line) for line in part] for part in (log.train, log.validation)]


def in_child(folder, devices, *kill):
    command = [sys.executable, "-W", "error", "-m", "tests.trainers.training", str(folder), *map(str, kill)]
    environment = os.environ | {"XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}"}
    return subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True, env=environment)


def test_loss_falls_clearly_on_what_can_be_learnt():
    first, state = init_state(tiny()), fit(MarkovLoader(), tiny(100))
    uniform = np.log(MODEL.vocabulary)
    assert evaluate(first.model, first.bias, held_out()).loss > 0.95 * uniform
    assert evaluate(state.model, state.bias, held_out()).loss < 0.6 * uniform
    assert evaluate(state.model, state.bias, held_out(salt=7)).loss > uniform  # what it was not shown


def test_log_tells_of_every_step_and_validation(undisturbed):
    folder, trained = undisturbed
    log = read_log(folder)
    assert [line["step"] for line in log.train] == list(range(10))
    assert [line["tokens"] for line in log.train] == [64 * (step + 1) for step in range(10)]
    assert {line["predicted"] for line in log.train} == {4 * (9 + 5)}
    assert log.train[0]["learning_rate"] == pytest.approx(0.01)
    assert [(line["step"], line["source"]) for line in log.validation] == [
        (step, source) for step in (0, 5, 10) for source in ("markov", "other")
    ]
    assert [line["step"] for line in log.checkpoints] == [0, 4, 8, 10]
    assert log.checkpoints[-1]["state"] == trained.digest
    assert log.starts[0]["plan"] == MarkovLoader().digest
    assert all(line["timing"]["tokens_per_second"] > 0 for line in log.train)
    assert (trained.step, trained.changed, log.repeated, log.disagreed) == (10, (), 0, ())
    assert Checkpoints(folder).steps() == [8, 10]


class Growing:
    """A loader of a plan whose batch doubles at update 2, and whose rows are half as long there."""

    digest = "growing"

    def update(self, number):
        tokens = MarkovLoader().batch(number).tokens
        return sequences(tokens if number < 2 else np.concatenate([tokens, tokens]).reshape(16, 8))

    def tokens_before(self, number):
        return 64 * number + 64 * max(0, number - 2)

    def batch(self, step):
        raise AssertionError("asked for a batch, not for an update")


def test_updates_of_a_schedule_of_batches_and_lengths_are_trained_on_and_counted(tmp_path):
    assert run(tmp_path, loader=Growing(), steps=3, validation={}).step == 3
    lines = read_log(tmp_path).train
    assert [line["tokens"] for line in lines] == [64, 128, 256]
    assert [line["predicted"] for line in lines] == [4 * 15, 4 * 15, 16 * 7]


def test_run_in_parts_ends_as_the_undisturbed_one(undisturbed, tmp_path):
    assert run(tmp_path, steps=3).step == 3
    assert run(tmp_path, steps=7).step == 7
    assert run(tmp_path).digest == undisturbed[1].digest
    assert lines(tmp_path) == lines(undisturbed[0])


def test_run_that_is_finished_does_nothing_more(undisturbed):
    before = lines(undisturbed[0])
    again = run(undisturbed[0])
    assert (again.step, again.digest) == (10, undisturbed[1].digest)
    assert lines(undisturbed[0]) == before


def test_intervals_of_validation_and_checkpoints_do_not_reach_the_state(undisturbed, tmp_path):
    assert run(tmp_path, checkpoint_every=99, validation={}).digest == undisturbed[1].digest
    assert digest(fit(MarkovLoader(), tiny(10))) == undisturbed[1].digest


@pytest.mark.slow
def test_strict_run_killed_in_training_and_saving_and_resumed_on_other_devices_ends_as_the_undisturbed_one(tmp_path):
    folder, calm = tmp_path / "run", tmp_path / "calm"
    undisturbed = run(calm, config=STRICT)
    # Updates 0 to 9, checkpoints at 0, 4, 8, 10: each run goes on from what the one before it left.
    for devices, point, count in [(4, "step", 6), (2, "manifest", 1)]:
        result = in_child(folder, devices, point, count)
        assert result.returncode == -9, (point, result.stderr)
    again = run(folder, config=STRICT)
    assert (again.digest, again.changed) == (undisturbed.digest, ())
    assert lines(folder) == lines(calm)
    log = read_log(folder)
    assert [line["environment"]["devices"] for line in log.starts] == ["4", "2", "1"]
    assert (log.disagreed, log.repeated > 0) == ((), True)


def test_strict_run_is_not_resumed_in_another_environment(tmp_path, monkeypatch):
    run(tmp_path, config=STRICT, steps=1, validation={})
    monkeypatch.setattr("trainers.environment._threads", lambda: 999)
    with pytest.raises(CheckpointError, match=r"strict run.*threads: stored .*, given 999.*branch from it"):
        run(tmp_path, config=STRICT)


@pytest.mark.parametrize(("cores", "devices", "threads"), [("1", 1, "1"), ("1", 8, "2"), ("4", 8, "4")])
def test_fingerprint_tells_one_thread_from_the_several_that_devices_bring_to_one_core(
    cores, devices, threads, monkeypatch
):
    monkeypatch.setenv("NPROC", cores)
    monkeypatch.setattr(jax, "local_device_count", lambda: devices)
    assert environment()["threads"] == threads


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_a_run_after_its_step_with_a_checkpoint_and_is_handed_on(undisturbed, tmp_path, number):
    seen = []

    def failpoint(point):
        if point == "batch" and not seen and len(read_log(tmp_path).train) == 5:
            signal.raise_signal(number)
            seen.append("raised")

    before = signal.signal(number, lambda *_: seen.append("handed on"))
    try:
        stopped = run(tmp_path, failpoint=failpoint)
    finally:
        signal.signal(number, before)
    assert seen == ["raised", "handed on"]
    assert (stopped.step, Checkpoints(tmp_path).steps()) == (6, [4, 6])
    log = read_log(tmp_path)
    assert [line["timing"]["reason"] for line in log.stops] == [signal.Signals(number).name]
    assert run(tmp_path).digest == undisturbed[1].digest
    assert lines(tmp_path) == lines(undisturbed[0])


def test_validation_that_a_signal_left_out_is_made_at_the_next_start(undisturbed, tmp_path):
    def failpoint(point):
        if point == "batch" and len(read_log(tmp_path).train) == 4:
            signal.raise_signal(signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        assert run(tmp_path, failpoint=failpoint).step == 5
    finally:
        signal.signal(signal.SIGTERM, before)
    assert run(tmp_path).digest == undisturbed[1].digest
    assert lines(tmp_path) == lines(undisturbed[0])


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"loader": MarkovLoader(seed=1)}, "plan: stored markov 0 0.1 5, given markov 1 0.1 5"),
        ({"config": tiny(11)}, "steps: stored 10, given 11"),
        ({"config": replace(tiny(10), model=replace(MODEL, hidden=32))}, "model.hidden: stored 24, given 32"),
    ],
)
def test_resume_with_another_plan_or_configuration_is_refused_by_the_names_of_the_fields(undisturbed, changed, named):
    before = (undisturbed[0] / "log.jsonl").read_bytes()
    with pytest.raises(CheckpointError, match=named):
        run(undisturbed[0], **changed)
    assert (undisturbed[0] / "log.jsonl").read_bytes() == before


def test_resume_with_a_plan_that_continues_the_stored_one_goes_on(tmp_path):
    run(tmp_path, steps=4)
    asked = []

    def continues(plan, step):
        asked.append((plan, step))
        return True

    assert run(tmp_path, loader=MarkovLoader(seed=1), continues=continues).step == 10
    assert asked == [("markov 0 0.1 5", 4)]


def test_resume_in_another_environment_says_what_differs(tmp_path, monkeypatch):
    run(tmp_path, steps=4)
    monkeypatch.setattr("trainers.environment._threads", lambda: 999)
    changed = run(tmp_path, steps=5).changed
    assert len(changed) == 1
    assert changed[0].startswith("threads: stored")
    assert read_log(tmp_path).starts[1]["changed"] == list(changed)


def test_damaged_checkpoint_is_an_error_and_without_it_the_run_goes_on(undisturbed, tmp_path):
    run(tmp_path, steps=8)
    file = tmp_path / "checkpoints" / "step-00000008" / "model.embedding" / "c.0.0"
    content = bytearray(file.read_bytes())
    content[50] ^= 1
    file.write_bytes(content)
    with pytest.raises(CheckpointError, match="damaged"):
        run(tmp_path)
    shutil.rmtree(file.parents[1])
    assert run(tmp_path).digest == undisturbed[1].digest


class Changed:
    """The loader of these tests with another batch at step 6."""

    digest = MarkovLoader().digest

    def __init__(self, change):
        self.change = change

    def batch(self, step):
        batch = MarkovLoader().batch(step)
        return self.change(batch) if step == 6 else batch


def test_batch_that_predicts_nothing_has_no_loss(tmp_path):
    loader = Changed(lambda batch: replace(batch, loss_mask=np.zeros_like(batch.loss_mask)))
    run(tmp_path, loader=loader)
    assert [line["step"] for line in read_log(tmp_path).train if line["loss"] is None] == [6]


def test_batch_that_does_not_fit_stops_the_run_and_names_what_differs(tmp_path):
    with pytest.raises(ConfigurationError, match=r"tokens.*\(4, 15\).*\(4, 16\)"):
        run(tmp_path, loader=Changed(lambda batch: replace(batch, tokens=batch.tokens[:, 1:])))
    assert Checkpoints(tmp_path).steps() == [0, 4]


@pytest.mark.parametrize("field", ["loss", "gradient_norm"])
def test_number_that_is_not_finite_stops_the_run_before_anything_of_it_is_saved(tmp_path, monkeypatch, field):
    def measured(metrics):
        found = on_host(metrics)
        return replace(found, **{field: np.inf}) if found.learning_rate < 0.02 * 0.6 else found

    monkeypatch.setattr("trainers.train.on_host", measured)
    with pytest.raises(TrainingError, match="step 0: the loss is"):
        run(tmp_path)
    assert Checkpoints(tmp_path).steps() == [0]
    assert read_log(tmp_path).train == ()


def test_intervals_that_are_not_positive_are_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="checkpoint_every 0"):
        run(tmp_path, checkpoint_every=0)


def test_restored_state_has_the_arrays_that_were_stored_and_refuses_others():
    state = init_state(tiny(seed=2))
    stored = {name: np.array(array) for name, array in arrays(state).items()}
    assert digest(restore(tiny(), stored)) == digest(state)
    assert "model.blocks.attention.query" in stored
    with pytest.raises(CheckpointError, match="updates"):
        restore(tiny(), {name: array for name, array in stored.items() if name != "updates"})
    with pytest.raises(CheckpointError, match=r"updates is stored as float32"):
        restore(tiny(), {**stored, "updates": np.zeros(3, np.float32)})


def test_held_out_source_that_predicts_nothing_is_refused_by_name_before_training(tmp_path):
    with pytest.raises(ConfigurationError, match=r"'books'.*hold out more"):
        run(tmp_path, validation={"books": []})
    assert read_log(tmp_path).train == ()
