# ruff: noqa: F722
"""The loss: cross-entropy of the next token within its document, and the logit z-loss, as sums that add up.

Position p predicts token p + 1 if both belong to one segment and the loss mask allows token p + 1: the mask names
tokens that may be *targets*, so the first token of a document is never one. The z-loss pulls log Σ exp(logits) towards
zero (PaLM, Chowdhery et al. 2022, §5); it is part of the objective and not of the loss that is reported.

Invariant: every leaf of `Sums` is a sum over tokens, so the sums of a batch are those of its parts added up, however it
is cut (shards, devices, microbatches); objective, metrics and the next routing bias are formed from the total.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from trainers.chunked import normaliser_and_target
from trainers.experts import Routing
from trainers.model import Model


class Inputs(NamedTuple):
    """A batch on the device; see `trainers.batches.Batch`."""

    tokens: Int[Array, "batch position"]
    segments: Int[Array, "batch position"]
    positions: Int[Array, "batch position"]
    loss_mask: Bool[Array, "batch position"]


class Sums(NamedTuple):
    """Sums over the predicted tokens of a batch, in nats, how many they are, and where tokens were routed.

    `routing` is None for a model without experts.
    """

    cross_entropy: Float[Array, ""]
    squared_normaliser: Float[Array, ""]
    predicted: Int[Array, ""]
    routing: Routing | None = None

    def objective(self, z_loss: float) -> Float[Array, ""]:
        """Return what is minimised: the mean of cross-entropy + z_loss · normaliser² (0 if nothing is predicted)."""
        return (self.cross_entropy + z_loss * self.squared_normaliser) / jnp.maximum(self.predicted, 1)


def model_loss(model: Model, bias: Float[Array, "layer expert"], batch: Inputs) -> Sums:
    """Return the sums of `model` on a batch; `bias` is the routers' (of no expert for a model without them)."""
    x, routing = model.stream(batch.tokens, batch.segments, batch.positions, bias)
    if model.vocabulary_chunk is None:
        sums = next_token_loss(model.logits(x), batch.tokens, batch.segments, batch.loss_mask)
    else:
        words = model.embedding if model.head is None else model.head.T
        found = normaliser_and_target(x, words, jnp.roll(batch.tokens, -1, axis=1), model.vocabulary_chunk)
        sums = _sums(*found, counted(batch.segments, batch.loss_mask))
    return sums._replace(routing=routing)


def next_token_loss(
    logits: Float[Array, "batch position vocabulary"],
    tokens: Int[Array, "batch position"],
    segments: Int[Array, "batch position"],
    loss_mask: Bool[Array, "batch position"],
) -> Sums:
    """Return the sums of the loss over the batch, without routing."""
    targets = jnp.roll(tokens, -1, axis=1)  # the last column is not counted
    normaliser = jax.nn.logsumexp(logits, axis=-1)
    target = jnp.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
    return _sums(normaliser, target, counted(segments, loss_mask))


def _sums(
    normaliser: Float[Array, "batch position"],
    target: Float[Array, "batch position"],
    counts: Bool[Array, "batch position"],
) -> Sums:
    """Return the sums over the positions that count, from log Σ exp(logits) and the logit of the next token."""
    return Sums(
        jnp.sum(jnp.where(counts, normaliser - target, 0.0)),
        jnp.sum(jnp.where(counts, normaliser**2, 0.0)),
        jnp.sum(counts, dtype=jnp.int32),
    )


def counted(
    segments: Int[Array, "batch position"], loss_mask: Bool[Array, "batch position"]
) -> Bool[Array, "batch position"]:
    """Return which positions predict the next one."""
    return jnp.pad(loss_mask[:, 1:] & (segments[:, 1:] == segments[:, :-1]), ((0, 0), (0, 1)))
