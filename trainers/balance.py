# ruff: noqa: F722
"""Balancing the load of experts by a bias that the router adds to its scores, changed from step to step."""

from __future__ import annotations

from jaxtyping import Array, Float

from trainers.config import ModelConfig
from trainers.experts import Routing


def next_bias(
    config: ModelConfig, bias: Float[Array, "layer expert"], routing: Routing | None
) -> Float[Array, "layer expert"]:
    """Return the bias of the next step, from that of this step and where its whole batch was routed."""
    return bias
