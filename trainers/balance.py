# ruff: noqa: F722
"""Balancing the load of experts by a bias that routers add to their scores when they choose, never by the loss.

The bias of a step is formed from where the whole batch before it was routed, part of the state, used and not changed
in evaluation. It is no parameter: it has no gradient, no weight decay, and its norm is told apart from theirs.

- "sign" (Wang et al. 2024; DeepSeek-V3, 2024, §2.1.2): `rate` more for experts below the mean load, less above.
- "quantile" (Su, "A tour of MoE", part 6): choosing experts so that scores are large and loads equal is a linear
  program, whose dual has a threshold per token and a bias per expert. For the thresholds of this batch (halfway
  between the scores of the last expert chosen and the first that was not) the best bias gives each expert exactly its
  share of tokens above them: a quantile. `rate` is how far the bias goes there, below 1 because a batch is a sample.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from trainers.config import ModelConfig
from trainers.experts import Routing
from trainers.quantiles import exceeded_by


class Balanced(NamedTuple):
    """How a batch was spread over experts; see `Routing`. `entropy` is the mean over tokens, in nats.

    `max_violation` is the largest load of a layer over the mean one, less 1: 0 is perfect balance.
    """

    load: Int[Array, "layer expert"]
    overflowed: Int[Array, "layer expert"]
    entropy: Float[Array, " layer"]
    max_violation: Float[Array, " layer"]
    bias_norm: Float[Array, ""]


def next_bias(
    config: ModelConfig, bias: Float[Array, "layer expert"], routing: Routing | None
) -> Float[Array, "layer expert"]:
    """Return the bias of the next step, from that of this step and where its whole batch was routed; its mean is 0."""
    experts = config.experts
    if experts is None or routing is None or experts.balance == "none":
        return bias
    if experts.balance == "sign":
        load = routing.load.astype(jnp.float32)
        shift = jnp.sign(load.mean(axis=-1, keepdims=True) - load)
    else:
        shift = -exceeded_by(routing.margins, experts.chosen / experts.count)
    moved = bias + experts.bias_rate * shift
    moved = moved - moved.mean(axis=-1, keepdims=True)
    return jnp.where(routing.tokens[:, None] > 0, moved, bias)


def balanced(routing: Routing | None, bias: Float[Array, "layer expert"]) -> Balanced | None:
    """Return how a batch was spread over experts with `bias`, None for a model without experts."""
    if routing is None:
        return None
    load = routing.load.astype(jnp.float32)
    return Balanced(
        routing.load,
        routing.overflowed,
        routing.entropy / jnp.maximum(routing.tokens, 1),
        load.max(axis=-1) / jnp.where(routing.tokens > 0, load.mean(axis=-1), 1) - (routing.tokens > 0),
        jnp.linalg.norm(bias),
    )
