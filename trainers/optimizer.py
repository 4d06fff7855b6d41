# ruff: noqa: F722
"""The optimizers: AdamW, or Muon for the matrices of layers, behind a clip by the global norm; and the schedules.

Gains of norms and the embedding are not decayed: a decayed embedding makes early activations small and gradients large
(OLMo 2, 2024, §3.4). The schedules are pure functions of the update's number, defined for every number from 0.

Muon takes each matrix of each layer and expert apart: `MATRICES` says by the names of axes which of them are its inputs
and which its outputs, all others (layer, expert) only count matrices. All heads of a query are one matrix.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int
from optax.contrib import MuonDimensionNumbers

from trainers.axes import Axes, named_axes
from trainers.config import Compute, Config, OptimizerConfig
from trainers.model import Model

Schedule = Callable[[Int[Array, ""]], Float[Array, ""]]

MATRICES: Final = {
    "query": (("embed",), ("heads", "head")),
    "key": (("embed",), ("kv_heads", "head")),
    "value": (("embed",), ("kv_heads", "head")),
    "output": (("heads", "head"), ("embed",)),
    "gate": (("embed",), ("hidden",)),
    "up": (("embed",), ("hidden",)),
    "down": (("hidden",), ("embed",)),
}
"""The matrices that Muon updates: name of the array → axes of its inputs, axes of its outputs."""

QUINTIC: Final = (3.4445, -4.7750, 2.0315)
"""Coefficients of a Newton-Schulz step x → a x + b x³ + c x⁵ of singular values (Jordan 2024): steepest at zero."""

ADAM_RMS: Final = 0.2


def schedule(config: OptimizerConfig, steps: int) -> Schedule:
    """Return the learning rate as a function of the update's number, 0 to `steps` - 1; see `OptimizerConfig`.

    At `steps` it has reached learning_rate · floor, and stays there.
    """
    start = steps - config.decay if config.shape == "wsd" else config.warmup

    def rate(update: Int[Array, ""]) -> Float[Array, ""]:
        warmth = jnp.minimum(1.0, (update + 1) / max(config.warmup, 1))
        progress = jnp.clip((update - start) / max(steps - start, 1), 0.0, 1.0)
        remaining = (1 + jnp.cos(jnp.pi * progress)) / 2 if config.shape == "cosine" else 1 - progress
        return config.learning_rate * warmth * (config.floor + (1 - config.floor) * remaining)

    return rate


def decayed(model: Model) -> Model:
    """Return the tree of `model` with True at the arrays that weight decay shrinks: the matrices but the embedding."""

    def is_matrix(path: tuple[object, ...], _: Array) -> bool:
        name = getattr(path[-1], "name", "")
        return name not in ("gain", "embedding")

    marked: Model = jax.tree_util.tree_map_with_path(is_matrix, model)
    return marked


def dimension_numbers(model: Model) -> Any:
    """Return the tree of `model` with the inputs and outputs of Muon's matrices by place, None at all other arrays."""

    def numbers(path: tuple[Any, ...], _: Array, axes: Axes) -> MuonDimensionNumbers | None:
        if (matrix := MATRICES.get(path[-1].name)) is None:
            return None
        inputs, outputs = (tuple(axes.index(name) for name in names) for names in matrix)
        return MuonDimensionNumbers(inputs, outputs)

    return jax.tree_util.tree_map_with_path(numbers, model, named_axes(model))


def orthogonal(matrix: Array, numbers: MuonDimensionNumbers, compute: Compute) -> Array:
    """Return the matrices of `matrix` with all singular values near 1, times 0.2 √(longer side), in their type."""
    inputs, outputs = tuple(numbers.reduction_axis), tuple(numbers.output_axis)
    order = [axis for axis in range(matrix.ndim) if axis not in inputs + outputs] + [*inputs, *outputs]
    rows, columns = (math.prod(matrix.shape[axis] for axis in axes) for axes in (inputs, outputs))
    turned = matrix.transpose(order)
    near = newton_schulz(turned.reshape(-1, rows, columns), compute)
    scaled: Array = near.astype(matrix.dtype) * (ADAM_RMS * max(rows, columns) ** 0.5)
    return scaled.reshape(turned.shape).transpose([order.index(axis) for axis in range(matrix.ndim)])


def newton_schulz(
    matrices: Float[Array, "matrix rows columns"], compute: Compute = "float32"
) -> Float[Array, "matrix rows columns"]:
    """Return the matrices after five steps in the type `compute`, from a Frobenius norm of 1.

    Singular values of at least 1/200 of the norm come out between .68 and 1.16, smaller ones smaller. Tall matrices are
    multiplied from the right, not turned: a turned one's norm was seen to be summed in another order on eight devices.
    """
    norm = jnp.linalg.norm(matrices.reshape(len(matrices), -1), axis=1)[:, None, None]
    x: Array = (matrices / (norm + 1e-8)).astype(compute)
    tall = x.shape[1] > x.shape[2]
    a, b, c = QUINTIC
    for _ in range(5):
        square = jnp.einsum("mio,mip->mop" if tall else "mio,mjo->mij", x, x)
        factor = b * square + c * (square @ square)
        x = a * x + (x @ factor if tall else factor @ x)
    return x


def make_optimizer(config: Config) -> optax.GradientTransformation:
    """Return the optimizer of a run."""
    adam = config.optimizer
    rate = schedule(adam, config.steps)
    adamw = optax.adamw(
        rate, b1=adam.beta1, b2=adam.beta2, eps=adam.epsilon, weight_decay=adam.weight_decay, mask=decayed
    )
    clip = optax.clip_by_global_norm(adam.clip)
    if adam.matrices == "adamw":
        return optax.chain(clip, adamw)
    muon = optax.chain(
        optax.trace(adam.momentum, nesterov=True),
        _orthogonal_updates(config.compute),
        optax.add_decayed_weights(adam.weight_decay),
        optax.scale_by_learning_rate(rate),
    )
    return optax.chain(clip, optax.partition({"muon": muon, "adamw": adamw}, _labels))


def _labels(model: Model) -> Any:
    return jax.tree_util.tree_map_with_path(lambda path, _: "muon" if path[-1].name in MATRICES else "adamw", model)


def _orthogonal_updates(compute: Compute) -> optax.GradientTransformation:
    """Return the transformation that makes each matrix orthogonal; of other arrays there must be none."""

    def update(updates: Any, _: Any) -> Any:
        return jax.tree.map(
            lambda array, numbers: orthogonal(array, numbers, compute), updates, dimension_numbers(updates)
        )

    return optax.stateless(update)
