"""Branches: going on from a step of a run with another mixture, rate, optimizer or hardware, as a run of its own.

`branch` copies a checkpoint into a new folder under the new plan and configuration, with a link to where it came from;
then `train` on that folder goes on as on any other. The parent is not changed, and may go on too. So a cooldown, a
microanneal or a switch in the middle of a run is a segment that leads back: `trainers.history` follows the links.

What stays: parameters, their average, the routers' bias and the number of updates, and the optimizer's state where the
optimizer has the same arrays; else that begins afresh, at the step of the schedule where the run is, and the link says
so. The model must be the same.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import optax

from curate.configuration import ConfigurationError
from trainers.batches import Batch, Loader
from trainers.checkpoint import Checkpoint, Checkpoints
from trainers.config import Config, differences, flat
from trainers.environment import environment
from trainers.state import State, arrays, init_state
from trainers.stored_arrays import CheckpointError, StoredArray


@dataclass(frozen=True, slots=True)
class Later:
    """A loader whose first batch is that of step `begin`: a mixture made for a branch, from its own beginning."""

    loader: Loader
    begin: int

    @property
    def digest(self) -> str:
        """The digest of the plan and where it begins."""
        return f"{self.loader.digest}+{self.begin}" if self.begin else self.loader.digest

    def batch(self, step: int) -> Batch:
        """Return the batch of `step` of the run.

        Raises:
            IndexError: the run's step lies before the beginning.
        """
        if step < self.begin:
            raise IndexError(f"step {step} lies before the branch, which begins at {self.begin}")
        return self.loader.batch(step - self.begin)


def cooldown(config: Config, step: int, steps: int, *, floor: float = 0.0) -> Config:
    """Return `config` with a rate that falls from step `step` on over `steps` updates, linearly to `floor` of it.

    Raises:
        ConfigurationError: the schedule is not "wsd", or its own decay has begun before `step`.
    """
    optimizer = config.optimizer
    if optimizer.shape != "wsd" or step > config.steps - optimizer.decay:
        raise ConfigurationError(f'a cooldown begins where a "wsd" schedule still is at its top, step {step} is not')
    falling = dataclasses.replace(optimizer, decay=steps, floor=floor)
    return dataclasses.replace(config, steps=step + steps, optimizer=falling)


def branch(run: Path, step: int, folder: Path, config: Config, loader: Loader) -> Checkpoint:
    """Begin a run in `folder` at the checkpoint of `step` of the run in `run`, and return its first checkpoint.

    Args:
        run: folder of the run to branch from.
        step: one of `Checkpoints(run).steps()`.
        folder: of the new run; has no checkpoint.
        config: of the new run; its `steps` count from the beginning of `run`, and its model is that of `run`.
        loader: gives the batches of the new run from `step` on; `Later` begins a plan there.

    Raises:
        CheckpointError: the checkpoint is not there, is damaged, or has another model; or `folder` has checkpoints.
        ConfigurationError: `config` ends before `step`.
    """
    if config.steps <= step:
        raise ConfigurationError(f"the branch begins at step {step} and its configuration ends after {config.steps}")
    if step not in (there := Checkpoints(run).steps()):
        raise CheckpointError(f"{run} has no checkpoint of step {step}, only of {', '.join(map(str, there)) or 'none'}")
    stored = Checkpoints(run).load(step)
    kept, fresh = _carried(stored, config)
    link = {
        "run": run.resolve().name,
        "folder": os.path.relpath(run.resolve(), folder.resolve()),
        "step": step,
        "state": stored.state,
        "plan": stored.plan,
        "changed": _changed(stored, config, loader.digest),
        "fresh": fresh,
        "parent": stored.parent,
    }
    first = Checkpoint(step, loader.digest, flat(config), environment(), kept, parent=link)
    checkpoints = Checkpoints(folder)
    if checkpoints.steps():  # before the lock, which removes checkpoints that do not stay
        raise CheckpointError(f"{folder} has checkpoints already: a branch begins in a folder of its own")
    with checkpoints.locked():
        checkpoints.save(first)
    return checkpoints.load(step)


def _carried(stored: Checkpoint, config: Config) -> tuple[dict[str, npt.NDArray[np.generic]], list[str]]:
    """Return the arrays that the branch begins with, and the names of those that begin afresh.

    Raises:
        CheckpointError: the model is another one.
    """
    if other := differences(_model_of(stored.config), _model_of(flat(config))):
        raise CheckpointError(f"a branch goes on with the model of its run: {'; '.join(other)}")
    begun = arrays(_begun(config, stored.step))
    same = {name for name, array in begun.items() if _fits(stored.arrays.get(name), array)}
    if any(name.startswith("optimizer.") and name not in same for name in begun):
        same = {name for name in same if not name.startswith("optimizer.")}
    found = {name: np.asarray(stored.arrays[name]) if name in same else array for name, array in begun.items()}
    if average := [name for name in begun if name.startswith("average.") and name not in same]:
        found |= {name: np.asarray(stored.arrays[name.replace("average.", "model.", 1)]) for name in average}
    return found, sorted(name for name in begun if name not in same)


def _begun(config: Config, step: int) -> State:
    """Return a first state whose schedules stand at `step`."""
    state = init_state(config)

    def is_schedule(node: object) -> bool:
        return isinstance(node, optax.ScaleByScheduleState)

    def moved(node: Any) -> Any:
        return node._replace(count=jnp.full_like(node.count, step)) if is_schedule(node) else node

    return dataclasses.replace(state, optimizer=jax.tree.map(moved, state.optimizer, is_leaf=is_schedule))


def _fits(stored: npt.NDArray[Any] | StoredArray | None, array: npt.NDArray[Any]) -> bool:
    return stored is not None and (stored.shape, stored.dtype) == (array.shape, array.dtype)


def _model_of(config: Mapping[str, int | str]) -> dict[str, int | str]:
    return {name: value for name, value in config.items() if name.startswith("model.")}


def _changed(stored: Checkpoint, config: Config, plan: str) -> list[str]:
    here = environment()
    found = differences(stored.config, flat(config))
    if stored.plan != plan:
        found.append(f"plan: stored {stored.plan}, given {plan}")
    return [*found, *differences(stored.environment, here)]
