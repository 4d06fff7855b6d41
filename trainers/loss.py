# ruff: noqa: F722
"""The loss: cross-entropy of the next token within its document, and the logit z-loss.

Position p predicts token p + 1 if both belong to one segment and the loss mask allows token p + 1: the mask names
tokens that may be *targets*, so the first token of a document is never one. The z-loss pulls log Σ exp(logits) towards
zero (PaLM, Chowdhery et al. 2022, §5); it is part of the objective and not of the loss that is reported.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


class Loss(NamedTuple):
    """Sums over the predicted tokens of a batch, in nats, and how many they are."""

    cross_entropy: Float[Array, ""]
    squared_normaliser: Float[Array, ""]
    predicted: Int[Array, ""]

    def objective(self, z_loss: float) -> Float[Array, ""]:
        """Return what is minimised: the mean of cross-entropy + z_loss · normaliser² (0 if nothing is predicted)."""
        return (self.cross_entropy + z_loss * self.squared_normaliser) / jnp.maximum(self.predicted, 1)


def next_token_loss(
    logits: Float[Array, "batch position vocabulary"],
    tokens: Int[Array, "batch position"],
    segments: Int[Array, "batch position"],
    loss_mask: Bool[Array, "batch position"],
) -> Loss:
    """Return the sums of the loss over the batch."""
    counts = jnp.pad(loss_mask[:, 1:] & (segments[:, 1:] == segments[:, :-1]), ((0, 0), (0, 1)))
    targets = jnp.roll(tokens, -1, axis=1)  # the last column is not counted
    normaliser = jax.nn.logsumexp(logits, axis=-1)
    chosen = jnp.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
    return Loss(
        jnp.sum(jnp.where(counts, normaliser - chosen, 0.0)),
        jnp.sum(jnp.where(counts, normaliser**2, 0.0)),
        jnp.sum(counts, dtype=jnp.int32),
    )
