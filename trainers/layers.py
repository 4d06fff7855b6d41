# ruff: noqa: F722
"""What layers are made of: normalisations with learned gains, and the gated feed-forward.

Arrays may be float32 or bfloat16; means, square roots and gains are float32 whatever the type of the stream (float64
where the stream is, as in tests).
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def wide(x: Array) -> jnp.dtype:
    """Return the type in which sums over `x` are taken: its own, at least float32."""
    return jnp.promote_types(x.dtype, jnp.float32)


def normalised(x: Float[Array, "*any axis"], gain: Float[Array, " axis"], epsilon: float) -> Float[Array, "*any axis"]:
    """Return `x` divided by its root mean square over the last axis, times `gain` (Zhang and Sennrich 2019)."""
    precise = x.astype(wide(x))
    scale = jax.lax.rsqrt(jnp.mean(precise * precise, axis=-1, keepdims=True) + epsilon)
    return (precise * scale * gain).astype(x.dtype)


class RMSNorm(eqx.Module):
    """Root-mean-square normalisation of the stream."""

    gain: Float[Array, "*layer embed"]
    epsilon: float = eqx.field(static=True)

    def __call__(self, x: Float[Array, "batch position embed"]) -> Float[Array, "batch position embed"]:
        """Return `x` normalised over the embed axis."""
        return normalised(x, self.gain, self.epsilon)


class HeadNorm(eqx.Module):
    """The same within each head, for queries and keys; all heads share the gain (Dehghani et al. 2023; Qwen3)."""

    gain: Float[Array, "*layer head"]
    epsilon: float = eqx.field(static=True)

    def __call__(self, x: Float[Array, "batch position heads head"]) -> Float[Array, "batch position heads head"]:
        """Return `x` normalised over the head axis."""
        return normalised(x, self.gain, self.epsilon)


class SwiGLU(eqx.Module):
    """The gated feed-forward: down(silu(gate(x)) · up(x)) (Shazeer 2020)."""

    gate: Float[Array, "*layer embed hidden"]
    up: Float[Array, "*layer embed hidden"]
    down: Float[Array, "*layer hidden embed"]

    def __call__(self, x: Float[Array, "batch position embed"]) -> Float[Array, "batch position embed"]:
        """Return the feed-forward of each position."""
        return (jax.nn.silu(x @ self.gate) * (x @ self.up)) @ self.down
