# ruff: noqa: F722
"""The optimizer: AdamW behind a clip by the global norm, and the schedules of its learning rate.

Gains of norms and the embedding are not decayed: a decayed embedding makes early activations small and gradients large
(OLMo 2, 2024, §3.4). The schedules are pure functions of the update's number, defined for every number from 0.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from trainers.config import Config, OptimizerConfig
from trainers.model import Model

Schedule = Callable[[Int[Array, ""]], Float[Array, ""]]


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


def make_optimizer(config: Config) -> optax.GradientTransformation:
    """Return the optimizer of a run."""
    adam = config.optimizer
    return optax.chain(
        optax.clip_by_global_norm(adam.clip),
        optax.adamw(
            schedule(adam, config.steps),
            b1=adam.beta1,
            b2=adam.beta2,
            eps=adam.epsilon,
            weight_decay=adam.weight_decay,
            mask=decayed,
        ),
    )
