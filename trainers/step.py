# ruff: noqa: F722
"""One training step as one jitted function that gives its old state's memory to the new one.

A batch is computed shard by shard (`trainers.reduction`): forward and backward in the type `Config.compute`, sums and
gradients in float32. All shards divide by the tokens that the whole batch predicts, which are counted beforehand, so
sums of shards are all that is added. Then, once: clip, optimizer, average, the routers' bias.

Invariants: the new state is a function of the old one and the batch; on one host, with the same XLA, instruction set
and number of threads, equal bit for bit, and in strict mode on 1, 2, 4 … devices. Functions are compiled once per
configuration, mesh and shape of the batch, whatever the seed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import AbstractMesh, Mesh, NamedSharding
from jaxtyping import Array, Float, Int

from trainers.axes import spec
from trainers.balance import Balanced, balanced, next_bias
from trainers.batches import Sequences
from trainers.config import Compute, Config
from trainers.loss import Inputs, Sums, counted, model_loss
from trainers.mesh import ROWS, check_mesh, place, shardings
from trainers.model import Model
from trainers.optimizer import make_optimizer, schedule
from trainers.reduction import over_shards
from trainers.state import State, init_state

EXACT: Final = ("gain", "router")
"""Arrays whose products are float32 whatever the run computes in."""


class Metrics(NamedTuple):
    """What a step tells: the mean loss before its update (nats per predicted token), and how the update was made.

    `parameter_norm` is that of the model before the update, without the routers' bias; `experts` is None without them.
    """

    loss: Float[Array, ""]
    predicted: Int[Array, ""]
    gradient_norm: Float[Array, ""]
    parameter_norm: Float[Array, ""]
    learning_rate: Float[Array, ""]
    experts: Balanced | None


@dataclass(frozen=True, slots=True)
class Measured:
    """`Metrics` on the host; to read them is to wait for the step."""

    loss: float
    predicted: int
    gradient_norm: float
    parameter_norm: float
    learning_rate: float
    experts: dict[str, Any] | None


Step = Callable[[State, Inputs], tuple[State, Metrics]]


def make_step(config: Config, mesh: Mesh | AbstractMesh | None = None) -> Step:
    """Return the compiled step of `config`: (state, batch) to (new state, metrics). The old state is given away.

    With a `mesh`, the state lies on it as `on_mesh` places it, and batches as `on_device` does.

    Raises:
        ConfigurationError: the run cannot be cut along the axes of `mesh`.
    """
    if mesh is not None:
        check_mesh(config, mesh)
    return _compiled(replace(config, seed=0), mesh)


def on_device(batch: Sequences, mesh: Mesh | None = None) -> Inputs:
    """Return `batch` on the device, or its rows on those of `mesh`."""
    inputs = Inputs(*(jnp.asarray(a) for a in (batch.tokens, batch.segments, batch.positions, batch.loss_mask)))
    if mesh is None:
        return inputs
    return place(inputs, jax.tree.map(lambda _: NamedSharding(mesh, ROWS), inputs))


def on_mesh(state: State, mesh: Mesh) -> State:
    """Return `state` with its arrays on the devices of `mesh`."""
    return place(state, shardings(state, mesh))


def on_host(metrics: Metrics) -> Measured:
    """Return `metrics` as numbers, once the step is done."""
    experts = metrics.experts
    return Measured(
        loss=float(metrics.loss),
        predicted=int(metrics.predicted),
        gradient_norm=float(metrics.gradient_norm),
        parameter_norm=float(metrics.parameter_norm),
        learning_rate=float(metrics.learning_rate),
        experts=None if experts is None else {name: np.asarray(a).tolist() for name, a in experts._asdict().items()},
    )


@lru_cache(maxsize=8)
def _compiled(config: Config, mesh: Mesh | AbstractMesh | None) -> Step:
    optimizer = make_optimizer(config)
    rate = schedule(config.optimizer, config.steps)
    over_batch = over_shards(partial(_sums_and_gradients, config), config, mesh)

    def step(state: State, batch: Inputs) -> tuple[State, Metrics]:
        shared = _Shared(state.model, state.bias, jnp.sum(counted(batch.segments, batch.loss_mask), dtype=jnp.int32))
        sums, gradients = over_batch(shared, batch)
        updates, optimizer_state = optimizer.update(gradients, state.optimizer, state.model)
        metrics = Metrics(
            sums.cross_entropy / jnp.maximum(sums.predicted, 1),
            sums.predicted,
            optax.tree.norm(gradients),
            optax.tree.norm(state.model),
            rate(state.updates),
            balanced(sums.routing, state.bias),
        )
        model = optax.apply_updates(state.model, updates)
        average = _averaged(config.ema, state, model)
        bias = next_bias(config.model, state.bias, sums.routing)
        return State(model, optimizer_state, bias, average, state.updates + 1), metrics

    if mesh is None:
        return jax.jit(step, donate_argnums=0)

    def on_its_mesh(state: State, batch: Inputs) -> tuple[State, Metrics]:
        with jax.sharding.use_abstract_mesh(mesh if isinstance(mesh, AbstractMesh) else mesh.abstract_mesh):
            return step(state, batch)

    state = shardings(jax.eval_shape(lambda: init_state(config)), mesh)
    rows, whole = NamedSharding(mesh, ROWS), NamedSharding(mesh, spec())
    return jax.jit(on_its_mesh, donate_argnums=0, in_shardings=(state, rows), out_shardings=(state, whole))


class _Shared(NamedTuple):
    """What all shards of a batch share."""

    model: Model
    bias: Float[Array, "layer expert"]
    predicted: Int[Array, ""]


def _sums_and_gradients(config: Config, shared: _Shared, shard: Inputs) -> tuple[Sums, Model]:
    """Return the sums of a shard, and its part of the gradients of the mean over the whole batch."""

    def objective(model: Model) -> tuple[Float[Array, ""], Sums]:
        sums = model_loss(in_type(model, config.compute), shared.bias, shard)
        return sums._replace(predicted=shared.predicted).objective(config.z_loss), sums

    gradients, sums = jax.grad(objective, has_aux=True)(shared.model)
    return sums, gradients


def in_type(model: Model, compute: Compute) -> Model:
    """Return `model` with the matrices in the type `compute`; gains and routers stay float32."""

    def cast(path: tuple[Any, ...], array: Array) -> Array:
        return array if path[-1].name in EXACT else array.astype(compute)

    return model if compute == "float32" else jax.tree_util.tree_map_with_path(cast, model)


def _averaged(ema: float, state: State, model: Model) -> Model | None:
    """Return the running average with the parameters after an update.

    Of the old average min(ema, (1 + updates) / (10 + updates)) stays, so that the first parameters are soon forgotten
    (TensorFlow's `ExponentialMovingAverage` with `num_updates`).
    """
    if state.average is None:
        return None
    stays = jnp.minimum(ema, (1 + state.updates) / (10 + state.updates))
    average: Model = jax.tree.map(lambda old, new: stays * old + (1 - stays) * new, state.average, model)
    return average
