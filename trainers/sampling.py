# ruff: noqa: F722
"""Text from a model, token after token; the same seed gives the same tokens (same environment).

Number n of a sample is drawn with a random number of its own, named by the seed and n, so a longer sample begins with
the shorter one. Each token is one forward pass over the text so far: right for models of this size, and the same code
as in training. A text longer than the model's sequences is seen through a window of its last tokens.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jaxtyping import Array, Float, Int

from curate.configuration import ConfigurationError
from trainers.model import Model
from trainers.saved import Saved


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn: probabilities ∝ exp(logit / `temperature`), 0 takes the likeliest.

    Only the `top_k` likeliest are drawn from, if given, and of these the fewest whose probabilities reach `top_p`
    (Holtzman et al. 2020).
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the ranges.

        Raises:
            ConfigurationError: a value is outside of its range.
        """
        if not (self.temperature >= 0 and 0 < self.top_p <= 1 and (self.top_k is None or self.top_k >= 1)):
            raise ConfigurationError(
                f"temperature {self.temperature}, top_k {self.top_k}, top_p {self.top_p}: the temperature is not "
                "negative, top_k at least 1, top_p above 0 and at most 1"
            )
        if not 0 <= self.seed < 1 << 64:
            raise ConfigurationError(f"seed is a number from 0 to 2^64 - 1, got {self.seed}")


def sample(
    saved: Saved, prompt: Sequence[int], count: int, sampling: Sampling, stop: Collection[int] = ()
) -> Iterator[int]:
    """Yield `count` tokens after `prompt`, or fewer: one of `stop` ends the text and is not yielded.

    Raises:
        ConfigurationError: the prompt is empty or holds ids that the model does not have.
    """
    vocabulary = saved.config.model.vocabulary
    if not prompt or not all(0 <= token < vocabulary for token in prompt):
        raise ConfigurationError(f"a prompt is at least one token, each below {vocabulary}, the model's vocabulary")
    tokens, length = list(prompt), min(saved.config.length, _rounded(len(prompt) + count))
    for number in range(count):
        window = np.zeros((1, length), np.int32)
        seen = tokens[-length:]
        window[0, : len(seen)] = seen
        logits = _last_logits(saved.model, saved.bias, jnp.asarray(window), jnp.int32(len(seen)))
        token = draw(np.asarray(logits, np.float64), sampling, number)
        if token in stop:
            return
        yield token
        tokens.append(token)


def draw(logits: npt.NDArray[np.float64], sampling: Sampling, number: int) -> int:
    """Return the token number `number` of a sample, from its logits; of equal ones the lower id is likelier."""
    order = np.argsort(-logits, kind="stable")
    if sampling.temperature == 0:
        return int(order[0])
    scaled = (logits[order] - logits[order[0]]) / sampling.temperature
    shares = np.exp(scaled[: sampling.top_k])
    shares /= shares.sum()
    before = np.cumsum(shares) - shares
    shares = shares[before < sampling.top_p]
    uniform = np.random.Generator(np.random.Philox(key=[sampling.seed, number])).random()
    place = int(np.searchsorted(np.cumsum(shares), uniform * shares.sum(), side="right"))
    return int(order[min(place, len(shares) - 1)])


@jax.jit
def _last_logits(
    model: Model, bias: Float[Array, "layer expert"], tokens: Int[Array, "1 position"], seen: Int[Array, ""]
) -> Float[Array, " vocabulary"]:
    """Return the logits after the first `seen` of `tokens`."""
    places = jnp.arange(tokens.shape[1])[None]
    x, _ = model.stream(tokens, (places < seen).astype(jnp.int32), places, bias)
    last = jax.lax.dynamic_slice_in_dim(x, seen - 1, 1, axis=1)
    return model.logits(last)[0, 0]


def _rounded(length: int) -> int:
    """Return the power of two from 16 that is not below `length`: a function is compiled for few lengths."""
    return max(16, 1 << (length - 1).bit_length())
