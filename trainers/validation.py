# ruff: noqa: F722
"""Loss on held-out text, per source: the same batches each time, so that two losses can be compared.

Losses in nats per token hang on the tokenizer; bits per byte do not: the nats of all predicted tokens in bits, divided
by the bytes of UTF-8 that these tokens stand for (Gao et al., "The Pile", 2020, §3.1).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import jax
import numpy as np
import numpy.typing as npt
from jaxtyping import Array, Float

from curate.configuration import ConfigurationError
from trainers.batches import Batch, checked
from trainers.loss import Inputs, model_loss
from trainers.model import Model

_losses = jax.jit(model_loss)

TokenBytes = npt.NDArray[np.integer]


@dataclass(frozen=True, slots=True)
class HeldOut:
    """The mean loss on a source, in nats per predicted token, how many tokens were predicted, and their bytes.

    `bytes` is None where nobody said how many bytes a token has.
    """

    loss: float
    predicted: int
    bytes: int | None = None

    @property
    def bits_per_byte(self) -> float | None:
        """The loss in bits per byte of text."""
        return self.loss * self.predicted / math.log(2) / self.bytes if self.bytes else None


def evaluate(
    model: Model,
    bias: Float[Array, "layer expert"],
    batches: Sequence[Batch],
    token_bytes: TokenBytes | None = None,
) -> HeldOut:
    """Return the loss of `model` over all tokens of `batches`; sums over batches are in double precision.

    The routers' `bias` is used as it is, and not changed. `token_bytes` has the bytes of each token id.

    Raises:
        ConfigurationError: nothing is predicted, or a batch does not fit the model.
    """
    total, predicted = 0.0, 0
    for batch in batches:
        given = checked(batch, model.embedding.shape[0])
        arrays = given.tokens, given.segments, given.positions, given.loss_mask
        loss = _losses(model, bias, Inputs(*map(np.asarray, arrays)))  # type: ignore[arg-type]  # whole on each device
        total += float(loss.cross_entropy)
        predicted += int(loss.predicted)
    if not predicted:
        raise ConfigurationError("the held-out batches predict no token: hold out more")
    size = None if token_bytes is None else sum(predicted_bytes(batch, token_bytes) for batch in batches)
    return HeldOut(total / predicted, predicted, size)


def predicted_bytes(batch: Batch, token_bytes: TokenBytes) -> int:
    """Return the bytes of the tokens of `batch` that are predicted; see `trainers.loss` for which these are."""
    segments = np.asarray(batch.segments)
    counts = np.asarray(batch.loss_mask)[:, 1:] & (segments[:, 1:] == segments[:, :-1])
    return int(token_bytes[np.asarray(batch.tokens)[:, 1:][counts]].sum())


def evaluate_sources(
    model: Model,
    bias: Float[Array, "layer expert"],
    validation: Mapping[str, Sequence[Batch]],
    token_bytes: TokenBytes | None = None,
) -> dict[str, HeldOut]:
    """Return the loss of `model` on each source of `validation`, by name in order.

    Raises:
        ConfigurationError: as `evaluate`, naming the source.
    """
    results = {}
    for source, batches in sorted(validation.items()):
        try:
            results[source] = evaluate(model, bias, batches, token_bytes)
        except ConfigurationError as error:
            raise ConfigurationError(f"held-out source {source!r}: {error}") from error
    return results
