# ruff: noqa: F722
"""Logits over a large vocabulary, a chunk of it at a time: what the loss needs of them, without ever holding them all.

Forward keeps a running log Σ exp and picks the target's logit where it comes by; backward computes each chunk's logits
again. Cost: one more product with the head; memory batch · position · chunk floats instead of · vocabulary.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from trainers.layers import wide

Pair = tuple[Float[Array, "batch position"], Float[Array, "batch position"]]


@partial(jax.custom_vjp, nondiff_argnums=(3,))
def normaliser_and_target(
    x: Float[Array, "batch position embed"],
    words: Float[Array, "vocabulary embed"],
    targets: Int[Array, "batch position"],
    chunk: int,
) -> tuple[Float[Array, "batch position"], Float[Array, "batch position"]]:
    """Return log Σ exp of the logits x · words at each position, and the logit of its target."""

    def add(found: Any, part: Any) -> tuple[Any, None]:
        top, total, target = found
        logits, hit = _logits(x, targets, *part)
        higher = jnp.maximum(top, logits.max(axis=-1))
        total = total * jnp.exp(top - higher) + jnp.sum(jnp.exp(logits - higher[..., None]), axis=-1)
        return (higher, total, target + jnp.sum(jnp.where(hit, logits, 0.0), axis=-1)), None

    start = jnp.full(targets.shape, -jnp.inf, wide(x)), *(jnp.zeros(targets.shape, wide(x)) for _ in range(2))
    (top, total, target), _ = jax.lax.scan(add, start, _chunks(words, chunk))
    return top + jnp.log(total), target


def _forward(x: Array, words: Array, targets: Array, chunk: int) -> tuple[Pair, tuple[Array, ...]]:
    normaliser, target = normaliser_and_target(x, words, targets, chunk)
    return (normaliser, target), (x, words, targets, normaliser)


def _backward(chunk: int, kept: tuple[Array, ...], slopes: Pair) -> tuple[Array, Array, None]:
    x, words, targets, normaliser = kept

    def add(slope: Array, part: Any) -> tuple[Array, Array]:
        logits, hit = _logits(x, targets, *part)
        of_logits = jnp.exp(logits - normaliser[..., None]) * slopes[0][..., None]
        of_logits = (of_logits + jnp.where(hit, slopes[1][..., None], 0.0)).astype(x.dtype)
        of_words = jnp.einsum("bpv,bpe->ve", of_logits, x)
        return slope + jnp.einsum("bpv,ve->bpe", of_logits, part[0], preferred_element_type=slope.dtype), of_words

    slope, of_words = jax.lax.scan(add, jnp.zeros(x.shape, wide(x)), _chunks(words, chunk))
    return slope.astype(x.dtype), of_words.reshape(-1, words.shape[1])[: len(words)], None


def _chunks(words: Array, chunk: int) -> tuple[Array, Array]:
    """Return `words` in chunks (the last one filled up), and the number of the first word that is none."""
    count = -(-len(words) // chunk)
    filled = jnp.pad(words, ((0, count * chunk - len(words)), (0, 0))).reshape(count, chunk, -1)
    numbers = jnp.arange(count * chunk).reshape(count, chunk)
    return filled, jnp.where(numbers < len(words), numbers, -1)


def _logits(x: Array, targets: Array, words: Array, numbers: Array) -> tuple[Array, Array]:
    """Return the logits of a chunk, -inf where there is no word, and where the target is."""
    logits = jnp.einsum("bpe,ve->bpv", x, words, preferred_element_type=wide(x))
    return jnp.where(numbers < 0, -jnp.inf, logits), targets[..., None] == numbers


normaliser_and_target.defvjp(_forward, _backward)
