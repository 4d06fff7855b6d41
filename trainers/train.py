"""Training on a plan: the loop, its log, its checkpoints; killed at any moment, the same command ends the same.

Invariants: update s uses the loader's batch s and nothing else of the outside; the last checkpoint is all that a resume
reads. So the final state and the log without its timings are those of an undisturbed run (same environment; a start in
another one is recorded in the log and returned in `Trained`). A checkpoint of another plan or configuration is refused.

The next batch is read while a step runs, and a checkpoint is written while training goes on; the loop waits for a copy
of the state on the host, and for the checkpoint before. SIGTERM and SIGINT end a run after the step that is being
made, with a checkpoint.
"""

from __future__ import annotations

import math
import socket
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jax.sharding import Mesh

from curate.configuration import ConfigurationError
from trainers.batches import Batch, Loader, Sequences, read_update, tokens_before
from trainers.checkpoint import Checkpoint, CheckpointError, Checkpoints, Saver
from trainers.config import Config, differences, flat
from trainers.environment import HARDWARE, environment
from trainers.hosts import agreed, any_of, writes
from trainers.log import Log, Writer, read_log
from trainers.speed import Peak, flop_per_token
from trainers.state import State, arrays, digest, init_state, restore
from trainers.step import Measured, make_step, on_device, on_host, on_mesh
from trainers.stopping import Asked, signals_wait
from trainers.validation import TokenBytes, evaluate_sources

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


def fit(loader: Loader, config: Config, mesh: Mesh | None = None) -> State:
    """Return the state after all steps of `config`, in memory: no log, no checkpoints, no resume.

    With a `mesh`, its devices train together.

    Raises:
        TrainingError: the loss of a step is not finite.
        ConfigurationError: a batch does not fit the configuration.
    """
    state = init_state(config)
    begun = state if mesh is None else on_mesh(state, mesh)
    last = deque(_steps(begun, 0, config.steps, loader, config, mesh), maxlen=1)
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
    token_bytes: TokenBytes | None = None,
    checkpoint_every: int = 100,
    keep: int = 2,
    keep_every: int = 0,
    peak: Peak | None = None,
    mesh: Mesh | None = None,
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
        token_bytes: bytes of each token id (`transforms.token_bytes`), for bits per byte of held-out text.
        checkpoint_every: updates between checkpoints; there is one at the end, and where a signal ends the run, too.
        keep: how many of the last checkpoints stay.
        keep_every: checkpoints of every so many updates stay for good; 0: none.
        peak: what the hardware could do, for the MFU that is shown of the log.
        mesh: devices that train together (`trainers.mesh.make_mesh`), of all processes if there are several
            (`trainers.hosts`); None: one device. A run may go on with another one.
        continues: whether this loader's plan gives, below a step, the same batches as the plan of a digest.
        failpoint: called at `POINTS` and at those of a save, with "<point>"; tests pass one that kills the process.

    Raises:
        CheckpointError: the last checkpoint is damaged or of another plan or configuration (fields named), another
            process trains here, or a strict run is resumed in another environment.
        ConfigurationError: a batch does not fit the configuration, or an interval is not positive.
        TrainingError: the loss of a step is not finite.
    """
    if validate_every < 1 or checkpoint_every < 1:
        raise ConfigurationError(f"validate_every {validate_every}, checkpoint_every {checkpoint_every}: at least 1")
    checkpoints = Checkpoints(folder, keep, failpoint, keep_every)
    every = _Intervals(validate_every, checkpoint_every)
    held_out = _HeldOut(validation or {}, token_bytes)
    with signals_wait() as asked, _writing(checkpoints) as log, closing(_saver(checkpoints, log)) as saver:
        last = agreed(max(checkpoints.steps(), default=-1))
        stored = None if last < 0 else checkpoints.load(last)
        run = _Run(loader, config, checkpoints, stored, log, saver, asked, held_out, every, peak, mesh)
        return run.to(config.steps if steps is None else min(steps, config.steps), continues)


@contextmanager
def _writing(checkpoints: Checkpoints) -> Iterator[Writer | None]:
    """Lock the folder and open its log, in the process that writes."""
    if not writes():
        yield None
        return
    with checkpoints.locked(), closing(Writer(checkpoints.folder)) as log:
        yield log


def _saver(checkpoints: Checkpoints, log: Writer | None) -> Saver:
    def done(step: int, state: str, seconds: float) -> None:
        if log is not None:
            log.write("checkpoint", step, {"state": state}, {"seconds": seconds})

    return Saver(checkpoints, done)


@dataclass(frozen=True, slots=True)
class _Intervals:
    """Updates between two validations, and between two checkpoints."""

    validate: int
    checkpoint: int


@dataclass(frozen=True, slots=True)
class _HeldOut:
    """Held-out batches by source, and the bytes of each token."""

    batches: Mapping[str, Sequence[Batch]]
    token_bytes: TokenBytes | None


@dataclass(frozen=True, slots=True)
class _Run:
    """The parts of a run; `stored` is where it goes on, if anywhere, `log` is None in a process that does not write."""

    loader: Loader
    config: Config
    checkpoints: Checkpoints
    stored: Checkpoint | None
    log: Writer | None
    saver: Saver
    asked: Asked
    held_out: _HeldOut
    every: _Intervals
    peak: Peak | None
    mesh: Mesh | None

    def to(self, stop: int, continues: Callable[[str, int], bool]) -> Trained:
        """Run from the last checkpoint, or from the beginning, to `stop` updates."""
        state, done, changed = self._open(continues)
        try:
            failpoint = self.checkpoints.failpoint
            steps = _steps(state, done, stop, self.loader, self.config, self.mesh, failpoint)
            with closing(steps):
                begun = time.perf_counter()
                for state, step, measured in steps:
                    self._log_step(step, measured, time.perf_counter() - begun)
                    failpoint("logged")
                    done = step + 1
                    if self._after(state, done, stop):
                        break
                    begun = time.perf_counter()
            self.saver.settle()
        except BaseException as error:
            self._write("stop", done, {}, {"time": time.time(), "reason": f"{type(error).__name__}: {error}"})
            raise
        finished = "finished" if done == self.config.steps else "steps"
        self._write("stop", done, {}, {"time": time.time(), "reason": self.asked.name or finished})
        return Trained(done, digest(state), changed, state)

    def _after(self, state: State, done: int, stop: int) -> bool:
        """Validate and save if it is time, and return whether a signal asked to stop."""
        asked = any_of(self.asked.signal is not None)
        if not asked and (done % self.every.validate == 0 or done == self.config.steps):
            self._validate(state, done)
            self.checkpoints.failpoint("validated")
        if asked or done % self.every.checkpoint == 0 or done == stop:
            self._save(state, done)
        return asked

    def _open(self, continues: Callable[[str, int], bool]) -> tuple[State, int, tuple[str, ...]]:
        """Return the state to go on from, its step, and what differs in the environment that made it."""
        stored, here, changed = self.stored, self._environment(), list[str]()
        if stored is not None:
            self._refuse_another_run(stored, continues)
            changed = self._changed(stored, here)
            state = restore(self.config, stored.arrays, self.mesh)
        else:
            begun = init_state(self.config)
            state = begun if self.mesh is None else on_mesh(begun, self.mesh)
        step = stored.step if stored else 0
        self._log_start(step, here, changed)
        if stored is None:
            self._save(state, 0)
        if stored is None or self._validation_is_missing(step):
            self._validate(state, step)
        return state, step, tuple(changed)

    def _log_start(self, step: int, here: Mapping[str, str], changed: Sequence[str]) -> None:
        values = {
            "plan": self.loader.digest,
            "config": flat(self.config),
            "environment": here,
            "changed": changed,
            "parent": self.parent,
            "flop_per_token": flop_per_token(self.config.model, self.config.length),
        }
        timing: dict[str, object] = {"time": time.time(), "host": socket.gethostname()}
        if self.peak is not None:
            timing |= {"peak_flops": self.peak.flops, "peak": self.peak.basis}
        self._write("start", step, values, timing)

    def _environment(self) -> dict[str, str]:
        return environment(1 if self.mesh is None else self.mesh.size)

    @property
    def parent(self) -> dict[str, Any] | None:
        """The link to the run that this one branched from."""
        return self.stored.parent if self.stored else None

    def _changed(self, stored: Checkpoint, here: Mapping[str, str]) -> list[str]:
        """Return what reaches the bits and differs from where `stored` was made.

        Raises:
            CheckpointError: something does, and the run is strict.
        """
        strict = self.config.reduction == "strict"
        free = HARDWARE if strict else ()
        kept, given = ({k: v for k, v in each.items() if k not in free} for each in (stored.environment, here))
        found = differences(kept, given)
        if found and strict:
            raise CheckpointError(
                f"{self.checkpoints.folder} holds step {stored.step} of a strict run, made in another environment: "
                f"{'; '.join(found)}. Resume it in the environment that it began in, or branch from it"
            )
        return found

    def _validation_is_missing(self, step: int) -> bool:
        """Return whether a run that was asked to stop left its validation at `step` to the next one."""
        if self.log is None:
            return bool(agreed(0))
        lines: Log = read_log(self.checkpoints.folder)
        due = step % self.every.validate == 0 or step == self.config.steps
        return bool(agreed(due and step not in {line["step"] for line in lines.validation}))

    def _refuse_another_run(self, stored: Checkpoint, continues: Callable[[str, int], bool]) -> None:
        differing = differences(stored.config, flat(self.config))
        if stored.plan != self.loader.digest and not continues(stored.plan, stored.step):
            differing.append(f"plan: stored {stored.plan}, given {self.loader.digest}")
        if differing:
            raise CheckpointError(
                f"{self.checkpoints.folder} holds step {stored.step} of another run: {'; '.join(differing)}. "
                "Take the plan and the configuration of that run, or another folder; a run that goes on otherwise is "
                "a branch (trainers.branch)"
            )

    def _log_step(self, step: int, measured: Measured, seconds: float) -> None:
        shape = self.config.batch, self.config.length
        before, done = (tokens_before(self.loader, update, shape) for update in (step, step + 1))
        values = {
            "loss": measured.loss if measured.predicted else None,
            "tokens": done,
            "predicted": measured.predicted,
            "learning_rate": measured.learning_rate,
            "gradient_norm": measured.gradient_norm,
            "parameter_norm": measured.parameter_norm,
            **({} if measured.experts is None else {"experts": measured.experts}),
        }
        timing = {"time": time.time(), "seconds": seconds, "tokens_per_second": (done - before) / seconds}
        self._write("train", step, values, timing)

    def _validate(self, state: State, step: int) -> None:
        begun = time.perf_counter()
        held_out = self.held_out
        results = evaluate_sources(state.model, state.bias, held_out.batches, held_out.token_bytes)
        for source, result in results.items():
            values: dict[str, object] = {"source": source, "loss": result.loss, "predicted": result.predicted}
            if result.bits_per_byte is not None:
                values["bits_per_byte"] = result.bits_per_byte
            self._write("validation", step, values, {"seconds": time.perf_counter() - begun})

    def _save(self, state: State, step: int) -> None:
        self.saver.settle()
        stored = arrays(state)
        if self.log is not None:
            self.log.sync()  # a checkpoint never outlives the lines that lead to it
            plan, parent = self.loader.digest, self.parent
            self.saver.save(Checkpoint(step, plan, flat(self.config), self._environment(), stored, parent=parent))

    def _write(self, kind: str, step: int, values: Mapping[str, object], timing: Mapping[str, object]) -> None:
        if self.log is not None:
            self.log.write(kind, step, values, timing)


def _steps(
    state: State,
    begin: int,
    stop: int,
    loader: Loader,
    config: Config,
    mesh: Mesh | None,
    failpoint: Callable[[str], None] = lambda point: None,
) -> Generator[tuple[State, int, Measured]]:
    """Yield the state after each update, the update's number and what was measured; a yielded state dies with the next.

    Raises:
        TrainingError: the loss of a step is not finite.
    """
    advance = make_step(config, mesh)
    batches = _read_ahead(loader, config, begin, stop)
    with closing(batches):
        for step, batch in enumerate(batches, begin):
            failpoint("batch")
            state, metrics = advance(state, on_device(batch, mesh))
            measured = on_host(metrics)
            failpoint("step")
            if not (math.isfinite(measured.loss) and math.isfinite(measured.gradient_norm)):
                raise TrainingError(
                    f"step {step}: the loss is {measured.loss}, the gradient norm {measured.gradient_norm}. Nothing of "
                    "it was saved; look at the batch, or lower the learning rate"
                )
            yield state, step, measured


def _read_ahead(loader: Loader, config: Config, begin: int, stop: int) -> Generator[Sequences]:
    """Yield the batches of the steps, each read while the step before it runs."""
    shape = (config.batch, config.length)

    def read(step: int) -> Sequences:
        return read_update(loader, step, config.model.vocabulary, shape)

    if begin >= stop:
        return
    with ThreadPoolExecutor(1, "batches") as pool:
        reading = pool.submit(read, begin)
        for step in range(begin, stop):
            batch = reading.result()
            if step + 1 < stop:
                reading = pool.submit(read, step + 1)
            yield batch
