# ruff: noqa: F722
"""Loss on held-out text, per source: the same batches each time, so that two losses can be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import jax
from jaxtyping import Array, Float

from curate.configuration import ConfigurationError
from trainers.batches import Batch, checked
from trainers.loss import model_loss
from trainers.model import Model
from trainers.step import on_device

_losses = jax.jit(model_loss)


@dataclass(frozen=True, slots=True)
class HeldOut:
    """The mean loss on a source, in nats per predicted token, and how many tokens were predicted."""

    loss: float
    predicted: int


def evaluate(model: Model, bias: Float[Array, "layer expert"], batches: Sequence[Batch]) -> HeldOut:
    """Return the loss of `model` over all tokens of `batches`; sums over batches are in double precision.

    The routers' `bias` is used as it is, and not changed.

    Raises:
        ConfigurationError: nothing is predicted, or a batch does not fit the model.
    """
    total, predicted = 0.0, 0
    for batch in batches:
        loss = _losses(model, bias, on_device(checked(batch, model.embedding.shape[0])))
        total += float(loss.cross_entropy)
        predicted += int(loss.predicted)
    if not predicted:
        raise ConfigurationError("the held-out batches predict no token: hold out more")
    return HeldOut(total / predicted, predicted)


def evaluate_sources(
    model: Model, bias: Float[Array, "layer expert"], validation: Mapping[str, Sequence[Batch]]
) -> dict[str, HeldOut]:
    """Return the loss of `model` on each source of `validation`, by name in order.

    Raises:
        ConfigurationError: as `evaluate`, naming the source.
    """
    results = {}
    for source, batches in sorted(validation.items()):
        try:
            results[source] = evaluate(model, bias, batches)
        except ConfigurationError as error:
            raise ConfigurationError(f"held-out source {source!r}: {error}") from error
    return results
