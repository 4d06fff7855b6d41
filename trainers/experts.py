# ruff: noqa: F722
"""Where the tokens of a batch were routed."""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Array, Float, Int


class Routing(NamedTuple):
    """Sums over the tokens of a batch that are not padding, per layer: whole numbers but `entropy`.

    `load` counts the choices that fell on an expert, `overflowed` those of them that found it full, `entropy` is that
    of the router's distribution over experts, in nats. `margins` counts, per expert, by how much tokens chose it or
    passed it by, in bins (none where the balance does not need them).
    """

    tokens: Int[Array, "*layer"]
    load: Int[Array, "*layer expert"]
    overflowed: Int[Array, "*layer expert"]
    entropy: Float[Array, "*layer"]
    margins: Int[Array, "*layer expert bin"]
