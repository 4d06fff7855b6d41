# ruff: noqa: F722
"""Attention with rotary positions, masked by segments: a token sees itself and what is before it in its document.

Scores and softmax are float32 whatever the type of the stream. Memory for scores: batch · heads · position² floats.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from trainers.layers import HeadNorm, wide


class Rotation(eqx.Module):
    """Rotary positions (Su et al. 2021), halves paired: dimension i turns with dimension i + head / 2."""

    cos: Float[Array, "batch position half"]
    sin: Float[Array, "batch position half"]

    def __call__(self, x: Float[Array, "batch position heads head"]) -> Float[Array, "batch position heads head"]:
        """Return `x` with each pair of dimensions turned by its position's angle."""
        first, second = jnp.split(x, 2, axis=-1)
        cos, sin = self.cos[:, :, None], self.sin[:, :, None]
        turned = jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)
        return turned.astype(x.dtype)


def rotation(positions: Int[Array, "batch position"], head_width: int, base: float) -> Rotation:
    """Return the rotation of `positions`: pair i of a head turns by position · base^(-2i / head_width)."""
    frequencies = base ** (-jnp.arange(0, head_width, 2, dtype=jnp.float32) / head_width)
    angles = positions[..., None].astype(jnp.float32) * frequencies
    return Rotation(jnp.cos(angles), jnp.sin(angles))


def attention_mask(segments: Int[Array, "batch position"]) -> Bool[Array, "batch position position"]:
    """Return which position (second axis) sees which (third): not later, and of the same segment."""
    order = jnp.arange(segments.shape[1])
    return (order[:, None] >= order[None, :]) & (segments[:, :, None] == segments[:, None, :])


class Attention(eqx.Module):
    """Grouped-query attention (Ainslie et al. 2023): consecutive query heads share a key and value head.

    With `query_norm` and `key_norm`, queries and keys are normalised before they are turned, which bounds the scores.
    """

    query: Float[Array, "*layer embed heads head"]
    key: Float[Array, "*layer embed kv_heads head"]
    value: Float[Array, "*layer embed kv_heads head"]
    output: Float[Array, "*layer heads head embed"]
    query_norm: HeadNorm | None = None
    key_norm: HeadNorm | None = None

    def __call__(
        self,
        x: Float[Array, "batch position embed"],
        turn: Rotation,
        mask: Bool[Array, "batch position position"],
    ) -> Float[Array, "batch position embed"]:
        """Return what each position gathers from those that the mask lets it see."""
        (batch, position, _), (_, heads, head), kv_heads = x.shape, self.query.shape, self.key.shape[1]
        q, k = jnp.einsum("bpe,enh->bpnh", x, self.query), jnp.einsum("bpe,ekh->bpkh", x, self.key)
        q = q if self.query_norm is None else self.query_norm(q)
        k = k if self.key_norm is None else self.key_norm(k)
        q, k = turn(q) * head**-0.5, turn(k)
        v = jnp.einsum("bpe,ekh->bpkh", x, self.value)
        # The queries that share a key head stand below each other: one large product each, not many small ones.
        stacked = q.reshape(batch, position, kv_heads, -1, head).transpose(0, 2, 3, 1, 4)
        stacked = stacked.reshape(batch, kv_heads, -1, head)
        scores = jnp.matmul(stacked, k.transpose(0, 2, 3, 1), preferred_element_type=wide(q))
        scores = scores.reshape(batch, kv_heads, -1, position, position)
        weights = jax.nn.softmax(jnp.where(mask[:, None, None], scores, -jnp.inf), axis=-1).astype(v.dtype)
        gathered = weights.reshape(batch, kv_heads, -1, position) @ v.transpose(0, 2, 1, 3)
        gathered = gathered.reshape(batch, kv_heads, -1, position, head).transpose(0, 3, 1, 2, 4)
        return jnp.einsum("bpnh,nhe->bpe", gathered.reshape(batch, position, heads, head), self.output)
