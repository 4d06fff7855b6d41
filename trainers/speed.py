"""How much a training step computes, and how much the hardware could: what MFU is made of.

MFU (Chowdhery et al., "PaLM", 2022, appendix B) is floating-point operations that the model needs, divided by those
that the hardware could have done in the same time: recomputed activations and padding do not count as needed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp

from trainers.config import Compute, ModelConfig

Basis = Literal["given", "measured"]


@dataclass(frozen=True, slots=True)
class Peak:
    """Floating-point operations a second that all devices together could do, and how that is known."""

    flops: float
    basis: Basis


def flop_per_token(model: ModelConfig, length: int) -> int:
    """Return the floating-point operations of one token in a training step on sequences of `length`.

    Three times the forward pass (backward costs two), a product with a matrix of n weights 2 n: 6 per weight that the
    token meets, embedding look-up excluded, logits included, and 6 · layers · width · length for attention, whose
    causal half is counted.
    """
    weights = model.active_parameters + model.vocabulary * model.width
    return 6 * weights + 6 * model.layers * model.width * length


def measure_peak(compute: Compute = "float32", *, seconds: float = 0.2) -> Peak:
    """Return what products of square matrices reach on the first device, times the number of devices.

    The best of as many products as fit into `seconds`, of a size that keeps the device busy. What is measured is an
    attainable peak, below that of a data sheet, so an MFU over it is above one over the data sheet's.
    """
    size = 1024 if jax.default_backend() == "cpu" else 8192
    matrix = jnp.ones((size, size), jnp.dtype(compute))
    product = jax.jit(lambda a: a @ a)
    product(matrix).block_until_ready()
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        begun = time.perf_counter()
        product(matrix).block_until_ready()
        best = min(best, time.perf_counter() - begun)
    return Peak(2 * size**3 / best * jax.device_count(), "measured")
