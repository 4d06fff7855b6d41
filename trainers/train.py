"""Training on a plan: the loop, its log, its checkpoints; killed at any moment, the same command ends the same.

Invariants: update s uses `loader.batch(s)` and nothing else of the outside; the last checkpoint is all that a resume
reads. So the final state and the log without its timings are those of an undisturbed run (same environment; a start in
another one is recorded in the log and returned in `Trained`). A checkpoint of another plan or configuration is refused.
"""

from __future__ import annotations

import math
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from curate.configuration import ConfigurationError
from trainers.batches import Batch, Loader, checked
from trainers.checkpoint import Checkpoint, CheckpointError, Checkpoints, digest_arrays
from trainers.config import Config, differences, flat
from trainers.environment import environment
from trainers.log import Writer
from trainers.state import State, arrays, digest, init_state, restore
from trainers.step import Measured, make_step, on_device, on_host
from trainers.validation import evaluate_sources

POINTS = ("batch", "step", "logged", "validated")
"""Moments of the loop at which a test may stop the process, besides those of a save."""


class TrainingError(RuntimeError):
    """Training cannot go on: the loss is not finite."""


@dataclass(frozen=True, slots=True)
class Trained:
    """What `train` came to: updates made, digest of the state, the state itself; the losses are in the log.

    `changed` names what differs between the environment of the checkpoint that was resumed and this one: empty means
    that the result is bit for bit that of an undisturbed run.
    """

    step: int
    digest: str
    changed: tuple[str, ...]
    state: State


def same_plan_only(plan: str, step: int) -> bool:
    """Return False: no other plan continues this one."""
    return False


def fit(loader: Loader, config: Config) -> State:
    """Return the state after all steps of `config`, in memory: no log, no checkpoints, no resume.

    Raises:
        TrainingError: the loss of a step is not finite.
        ConfigurationError: a batch does not fit the configuration.
    """
    last = deque(_steps(init_state(config), 0, config.steps, loader, config), maxlen=1)
    state, _, _ = last.pop()
    return state


def train(
    loader: Loader,
    config: Config,
    folder: Path,
    *,
    steps: int | None = None,
    validation: Mapping[str, Sequence[Batch]] | None = None,
    validate_every: int = 100,
    checkpoint_every: int = 100,
    keep: int = 2,
    continues: Callable[[str, int], bool] = same_plan_only,
    failpoint: Callable[[str], None] = lambda point: None,
) -> Trained:
    """Train in `folder` up to `steps` updates (default: all of `config`), from its last checkpoint if it has one.

    Args:
        loader: gives the batch of each step.
        config: the whole configuration; `batch` and `length` must be those of the loader's batches.
        folder: holds `log.jsonl` and `checkpoints/`; made if absent.
        steps: stop here for now; schedules belong to `config.steps`.
        validation: held-out batches by source, evaluated before the first update, every `validate_every` updates and
            after the last.
        validate_every: updates between validations.
        checkpoint_every: updates between checkpoints; there is one at the end too.
        keep: how many checkpoints stay.
        continues: whether this loader's plan gives, below a step, the same batches as the plan of a digest.
        failpoint: called at `POINTS` and at those of a save, with "<point>"; tests pass one that kills the process.

    Raises:
        CheckpointError: the last checkpoint is damaged or of another plan or configuration (fields named), or another
            process trains here.
        ConfigurationError: a batch does not fit the configuration, or an interval is not positive.
        TrainingError: the loss of a step is not finite.
    """
    if validate_every < 1 or checkpoint_every < 1:
        raise ConfigurationError(f"validate_every {validate_every}, checkpoint_every {checkpoint_every}: at least 1")
    checkpoints = Checkpoints(folder, keep, failpoint)
    with checkpoints.locked(), closing(Writer(folder)) as log:
        run = _Run(loader, config, checkpoints, log, validation or {}, validate_every, checkpoint_every)
        return run.to(config.steps if steps is None else min(steps, config.steps), continues)


@dataclass(frozen=True, slots=True)
class _Run:
    """The parts of a run that its loop needs."""

    loader: Loader
    config: Config
    checkpoints: Checkpoints
    log: Writer
    validation: Mapping[str, Sequence[Batch]]
    validate_every: int
    checkpoint_every: int

    def to(self, stop: int, continues: Callable[[str, int], bool]) -> Trained:
        """Run from the last checkpoint, or from the beginning, to `stop` updates."""
        state, begin, changed = self._open(continues)
        if begin == 0:
            self._validate(state, 0)
        failpoint = self.checkpoints.failpoint
        begun = time.perf_counter()
        for state, step, measured in _steps(state, begin, stop, self.loader, self.config, failpoint):  # noqa: B020
            self._log_step(step, measured, time.perf_counter() - begun)
            failpoint("logged")
            done = step + 1
            if done % self.validate_every == 0 or done == self.config.steps:
                self._validate(state, done)
                failpoint("validated")
            if done % self.checkpoint_every == 0 or done == stop:
                self._save(state, done)
            begun = time.perf_counter()
        return Trained(max(begin, stop), digest(state), changed, state)

    def _open(self, continues: Callable[[str, int], bool]) -> tuple[State, int, tuple[str, ...]]:
        """Return the state to go on from, its step, and what differs in the environment that made it."""
        here = environment()
        steps = self.checkpoints.steps()
        if steps:
            stored = self.checkpoints.load(steps[-1])
            self._refuse_another_run(stored, continues)
            state, step = restore(self.config, stored.arrays), stored.step
            changed = tuple(differences(stored.environment, here))
        else:
            state, step, changed = init_state(self.config), 0, ()
        values = {"plan": self.loader.digest, "config": flat(self.config), "environment": here, "changed": changed}
        self.log.write("start", step, values, {"time": time.time(), "host": socket.gethostname()})
        if not steps:
            self._save(state, 0)
        return state, step, changed

    def _refuse_another_run(self, stored: Checkpoint, continues: Callable[[str, int], bool]) -> None:
        differing = differences(stored.config, flat(self.config))
        if stored.plan != self.loader.digest and not continues(stored.plan, stored.step):
            differing.append(f"plan: stored {stored.plan}, given {self.loader.digest}")
        if differing:
            raise CheckpointError(
                f"{self.checkpoints.folder} holds step {stored.step} of another run: {'; '.join(differing)}. "
                "Take the plan and the configuration of that run, or another folder"
            )

    def _log_step(self, step: int, measured: Measured, seconds: float) -> None:
        tokens = self.config.batch * self.config.length
        values = {
            "loss": measured.loss if measured.predicted else None,
            "tokens": (step + 1) * tokens,
            "predicted": measured.predicted,
            "learning_rate": measured.learning_rate,
            "gradient_norm": measured.gradient_norm,
        }
        self.log.write("train", step, values, {"seconds": seconds, "tokens_per_second": tokens / seconds})

    def _validate(self, state: State, step: int) -> None:
        begun = time.perf_counter()
        for source, result in evaluate_sources(state.model, state.bias, self.validation).items():
            values = {"source": source, "loss": result.loss, "predicted": result.predicted}
            self.log.write("validation", step, values, {"seconds": time.perf_counter() - begun})

    def _save(self, state: State, step: int) -> None:
        begun = time.perf_counter()
        self.log.sync()  # a checkpoint never outlives the lines that lead to it
        stored = arrays(state)
        name = digest_arrays(stored)
        self.checkpoints.save(Checkpoint(step, self.loader.digest, flat(self.config), environment(), stored, name))
        self.log.write("checkpoint", step, {"state": name}, {"seconds": time.perf_counter() - begun})


def _steps(
    state: State,
    begin: int,
    stop: int,
    loader: Loader,
    config: Config,
    failpoint: Callable[[str], None] = lambda point: None,
) -> Iterator[tuple[State, int, Measured]]:
    """Yield the state after each update, the update's number and what was measured; a yielded state dies with the next.

    Raises:
        TrainingError: the loss of a step is not finite.
    """
    advance = make_step(config)
    shape = (config.batch, config.length)
    for step in range(begin, stop):
        batch = checked(loader.batch(step), config.model.vocabulary, shape)
        failpoint("batch")
        state, metrics = advance(state, on_device(batch))
        measured = on_host(metrics)
        failpoint("step")
        if not (math.isfinite(measured.loss) and math.isfinite(measured.gradient_norm)):
            raise TrainingError(
                f"step {step}: the loss is {measured.loss}, the gradient norm {measured.gradient_norm}. Nothing of it "
                "was saved; look at the batch, or lower the learning rate"
            )
        yield state, step, measured
