# ruff: noqa: F722
"""The model of a run, read from a checkpoint: for sampling, export and whatever else comes after training.

A model with a capacity is read as a dropless one: what a token gives then depends on no other document, as when it is
evaluated alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import jax
from jaxtyping import Array, Float

from curate.configuration import ConfigurationError
from trainers.checkpoint import Checkpoints
from trainers.config import Config, unflat
from trainers.model import Model
from trainers.state import restore

Weights = Literal["last", "average"]
"""The parameters after the last update, or their running average, of a run that keeps one."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A model with the bias of its routers, and where it comes from: run, step, digests of plan and state."""

    config: Config
    model: Model
    bias: Float[Array, "layer expert"]
    step: int
    plan: str
    state: str


def open_model(run: Path, step: int | None = None, weights: Weights = "last") -> Saved:
    """Return the model of the run in the folder `run` after `step` updates (default: those of its last checkpoint).

    Raises:
        ConfigurationError: there is no such checkpoint, or no average in it.
        CheckpointError: the checkpoint is damaged.
    """
    checkpoints = Checkpoints(run)
    steps = checkpoints.steps()
    if not steps or (step is not None and step not in steps):
        raise ConfigurationError(
            f"{run} has no checkpoint{'' if step is None else f' of step {step}'}: "
            + (f"there are {', '.join(map(str, steps))}" if steps else "name the folder given to curate train --run")
        )
    stored = checkpoints.load(steps[-1] if step is None else step)
    config = unflat(stored.config)
    state = restore(_dropless(config), stored.arrays)
    model = state.model if weights == "last" else state.average
    if model is None:
        raise ConfigurationError(f"{run} keeps no average of its parameters: take its last ones")
    return Saved(config, jax.tree.map(jax.numpy.asarray, model), state.bias, stored.step, stored.plan, stored.state)


def _dropless(config: Config) -> Config:
    if config.model.experts is None:
        return config
    return replace(config, model=replace(config.model, experts=replace(config.model.experts, capacity=None)))
