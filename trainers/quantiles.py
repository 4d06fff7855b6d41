# ruff: noqa: F722
"""Quantiles of small signed numbers from counts in fixed bins, so that they add up over shards like any other sum.

A bin is a sign and the leading bits of a float32: exponent and three of the mantissa, so each is an eighth of its lower
edge wide, from 2^-24 (below it, one bin around zero) to 4. The bin is read off the bits of the number: no rounding of
a division or logarithm decides where it falls. A quantile is off by at most a bin's width, and exact in its sign.
"""

from __future__ import annotations

from typing import Final

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jaxtyping import Array, Bool, Float, Int

SHIFT: Final = 20
"""Bits of a float32 below the three leading ones of its mantissa."""

LOWEST: Final = (127 - 24) << 3
"""Sign-free leading bits of 2^-24."""

SIDE: Final = 26 << 3
"""Bins on either side of the one around zero."""

BINS: Final = 2 * SIDE + 1


def bin_of(values: Float[Array, "*any"]) -> Int[Array, "*any"]:
    """Return the number of the bin of each value, ascending with it."""
    bits = jax.lax.bitcast_convert_type(values.astype(jnp.float32), jnp.int32)
    distance = jnp.clip(((bits & 0x7FFFFFFF) >> SHIFT) - LOWEST + 1, 0, SIDE)
    return SIDE + jnp.where(bits < 0, -distance, distance)


def histogram(values: Float[Array, "token expert"], real: Bool[Array, " token"]) -> Int[Array, "expert bin"]:
    """Return how many `real` tokens have a value in each bin, per expert."""
    experts = jnp.arange(values.shape[1])
    counts = jnp.zeros((values.shape[1], BINS), jnp.int32)
    return counts.at[experts[None, :], bin_of(values)].add(real[:, None].astype(jnp.int32))


def exceeded_by(counts: Int[Array, "*expert bin"], share: float) -> Float[Array, "*expert"]:
    """Return the value that `share` of the numbers counted exceed, spread evenly within their bins."""
    edges = jnp.asarray(_edges())
    above = jnp.cumsum(counts[..., ::-1], axis=-1)[..., ::-1]
    wanted = share * above[..., 0]
    at = jnp.sum(above >= wanted[..., None], axis=-1) - 1
    at = jnp.clip(at, 0, BINS - 1)
    inside = jnp.take_along_axis(counts, at[..., None], axis=-1)[..., 0]
    over = jnp.take_along_axis(above, at[..., None], axis=-1)[..., 0] - inside
    part = (wanted - over) / jnp.maximum(inside, 1)
    return edges[at + 1] - part * (edges[at + 1] - edges[at])


def _edges() -> npt.NDArray[np.float32]:
    """Return the edges of all bins, ascending."""
    positive = ((np.arange(SIDE + 1) + LOWEST) << SHIFT).astype(np.int32).view(np.float32)
    return np.concatenate([-positive[::-1], positive])
