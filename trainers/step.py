# ruff: noqa: F722
"""One training step as one jitted function that gives its old state's memory to the new one.

Invariants: the new state is a function of the old one and the batch; on one host, with the same XLA, instruction set
and number of threads, equal bit for bit. Functions are compiled once per configuration and shape, whatever the seed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from trainers.balance import next_bias
from trainers.batches import Sequences
from trainers.config import Config
from trainers.loss import Inputs, Sums, model_loss
from trainers.model import Model
from trainers.optimizer import make_optimizer, schedule
from trainers.state import State


class Metrics(NamedTuple):
    """What a step tells: the mean loss before its update (nats per predicted token), and how the update was made."""

    loss: Float[Array, ""]
    predicted: Int[Array, ""]
    gradient_norm: Float[Array, ""]
    learning_rate: Float[Array, ""]


@dataclass(frozen=True, slots=True)
class Measured:
    """`Metrics` on the host; to read them is to wait for the step."""

    loss: float
    predicted: int
    gradient_norm: float
    learning_rate: float


Step = Callable[[State, Inputs], tuple[State, Metrics]]


def make_step(config: Config) -> Step:
    """Return the compiled step of `config`: (state, batch) to (new state, metrics). The old state is given away."""
    return _compiled(replace(config, seed=0))


def on_device(batch: Sequences) -> Inputs:
    """Return `batch` on the device."""
    return Inputs(*(jnp.asarray(a) for a in (batch.tokens, batch.segments, batch.positions, batch.loss_mask)))


def on_host(metrics: Metrics) -> Measured:
    """Return `metrics` as numbers, once the step is done."""
    return Measured(
        float(metrics.loss), int(metrics.predicted), float(metrics.gradient_norm), float(metrics.learning_rate)
    )


@lru_cache(maxsize=8)
def _compiled(config: Config) -> Step:
    optimizer = make_optimizer(config)
    rate = schedule(config.optimizer, config.steps)

    def objective(model: Model, bias: Float[Array, "layer expert"], batch: Inputs) -> tuple[Float[Array, ""], Sums]:
        loss = model_loss(model, bias, batch)
        return loss.objective(config.z_loss), loss

    def step(state: State, batch: Inputs) -> tuple[State, Metrics]:
        gradients, loss = jax.grad(objective, has_aux=True)(state.model, state.bias, batch)
        updates, optimizer_state = optimizer.update(gradients, state.optimizer, state.model)
        metrics = Metrics(
            loss.cross_entropy / jnp.maximum(loss.predicted, 1),
            loss.predicted,
            optax.tree.norm(gradients),
            rate(state.updates),
        )
        model = optax.apply_updates(state.model, updates)
        bias = next_bias(config.model, state.bias, loss.routing)
        return State(model, optimizer_state, bias, None, state.updates + 1), metrics

    return jax.jit(step, donate_argnums=0)
