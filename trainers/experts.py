# ruff: noqa: F722
"""A mixture of experts as feed-forward: each token goes to a few of many small SwiGLUs (Shazeer et al. 2017).

A router scores the experts, in float32; those with the largest score + bias are chosen, and their outputs are added
with weights in proportion to the scores alone, so the bias (`trainers.balance`) steers the load and gets no gradient
(Wang et al. 2024). A shared expert, if there is one, sees every token.

Tokens are gathered by expert into blocks of one size, each multiplied with its expert's matrices: products of known
shapes, equal to the sum over all experts with weight 0 for those not chosen. Dropless, an expert has as many blocks as
it needs; with a capacity, one block that holds that multiple of its fair share, and later tokens that find it full go
without it. Padding (segment 0 or below) is routed nowhere.

Invariants: dropless, the output at a token depends on no other token. With a capacity it depends on the tokens before
it in the batch or shard: documents packed together then meet in the experts. Each token's place in a block is its own,
so all but the gradients of matrices is moved and not added up. Cost: dropless `chosen` SwiGLUs a token and at most one
block per expert in vain; jax.lax.ragged_dot, without a kernel of its own on CPU, took ten times as long (docs/log.md).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from trainers.config import Balance, Gate
from trainers.layers import SwiGLU, wide
from trainers.quantiles import histogram

SMALLEST_BLOCK, LARGEST_BLOCK = 8, 128


class Routing(NamedTuple):
    """Sums over the tokens of a batch that are not padding, per layer: whole numbers but `entropy`.

    `load` counts the choices that fell on an expert, `overflowed` those of them that found it full, `entropy` is that
    of the router's distribution over experts, in nats. `margins` counts, per expert, by how much tokens chose it or
    passed it by, in bins (`trainers.quantiles`; none where the balance does not need them).
    """

    tokens: Int[Array, "*layer"]
    load: Int[Array, "*layer expert"]
    overflowed: Int[Array, "*layer expert"]
    entropy: Float[Array, "*layer"]
    margins: Int[Array, "*layer expert bin"]


class Blocks(NamedTuple):
    """Where choices lie among blocks of `size` tokens: beyond the last block if dropped; and each block's expert."""

    place: Int[Array, " choice"]
    expert: Int[Array, " block"]
    size: int


class Choice(NamedTuple):
    """The experts that tokens go to, with which weights; `margins` as in `Routing`."""

    expert: Int[Array, "token chosen"]
    weight: Float[Array, "token chosen"]
    entropy: Float[Array, " token"]
    margins: Int[Array, "expert bin"]


class Experts(eqx.Module):
    """The experts of a layer, their router and the shared expert."""

    router: Float[Array, "*layer embed expert"]
    gate: Float[Array, "*layer expert embed hidden"]
    up: Float[Array, "*layer expert embed hidden"]
    down: Float[Array, "*layer expert hidden embed"]
    shared: SwiGLU | None
    chosen: int = eqx.field(static=True)
    scores: Gate = eqx.field(static=True)
    balance: Balance = eqx.field(static=True)
    capacity: float | None = eqx.field(static=True)

    def __call__(
        self,
        x: Float[Array, "batch position embed"],
        bias: Float[Array, " expert"],
        real: Bool[Array, "batch position"],
    ) -> tuple[Float[Array, "batch position embed"], Routing]:
        """Return the feed-forward of each position, and where the `real` ones (not padding) were routed."""
        tokens, count = x.reshape(-1, x.shape[-1]), self.router.shape[-1]
        choice = self.choose(tokens, bias, real.reshape(-1))
        expert = jnp.where(real.reshape(-1, 1), choice.expert, count).reshape(-1)
        load = jnp.bincount(expert, length=count + 1)[:count].astype(jnp.int32)
        blocks = self._blocks(expert, load)
        held = jnp.bincount(jnp.where(blocks.place < blocks.size * len(blocks.expert), expert, count), length=count + 1)
        y = self._through(blocks, jnp.repeat(tokens, self.chosen, axis=0)).reshape(-1, self.chosen, tokens.shape[1])
        y = jnp.einsum("tce,tc->te", y.astype(wide(x)), choice.weight).astype(x.dtype).reshape(x.shape)
        routing = Routing(
            jnp.sum(real, dtype=jnp.int32),
            load,
            load - held[:count].astype(jnp.int32),
            jnp.sum(choice.entropy * real.reshape(-1)),
            choice.margins,
        )
        return y if self.shared is None else y + self.shared(x), routing

    def choose(
        self, tokens: Float[Array, "token embed"], bias: Float[Array, " expert"], real: Bool[Array, " token"]
    ) -> Choice:
        """Return the `chosen` experts of each token; equal ones by their number."""
        logits = jnp.matmul(tokens.astype(wide(tokens)), self.router, precision="highest")
        scores = jax.nn.sigmoid(logits) if self.scores == "sigmoid" else jax.nn.softmax(logits, axis=-1)
        biased = jax.lax.stop_gradient(scores) + bias
        best, expert = jax.lax.top_k(biased, self.chosen + 1)
        expert = expert[:, : self.chosen]
        weight = jnp.take_along_axis(scores, expert, axis=1)
        margins = jnp.zeros((scores.shape[1], 0), jnp.int32)
        if self.balance == "quantile":
            threshold = (best[:, -1:] + best[:, -2:-1]) / 2
            margins = histogram(biased - threshold, real)
        share = jax.lax.stop_gradient(scores / jnp.sum(scores, axis=1, keepdims=True))
        entropy = -jnp.sum(jax.scipy.special.xlogy(share, share), axis=1)
        return Choice(expert, weight / jnp.sum(weight, axis=1, keepdims=True), entropy, margins)

    def _blocks(self, expert: Int[Array, " choice"], load: Int[Array, " expert"]) -> Blocks:
        """Return where choices lie: those of an expert one after the other, in the order of tokens."""
        count, choices = len(load), len(expert)
        order = jnp.argsort(expert, stable=True)
        start = jnp.cumsum(load) - load
        turn = jnp.arange(choices) - jnp.append(start, 0)[expert[order]]
        turn = jnp.zeros(choices, jnp.int32).at[order].set(turn.astype(jnp.int32), unique_indices=True)
        if self.capacity is not None:
            size = min(math.ceil(self.capacity * choices / count), choices // self.chosen)
            place = jnp.where((turn < size) & (expert < count), expert * size + turn, count * size)
            return Blocks(place, jnp.arange(count), size)
        size = _block_size(choices // count)
        number = choices // size + min(count, choices)
        end = jnp.cumsum(-(-load // size))
        first = jnp.append(end, number)[expert] - jnp.append(-(-load // size), 0)[expert]
        place = jnp.where(expert < count, first * size + turn, number * size)
        owner = jnp.sum(jnp.arange(number)[:, None] >= end[None, :], axis=1)
        return Blocks(place, jnp.minimum(owner, count - 1), size)

    def _through(self, blocks: Blocks, x: Float[Array, "choice embed"]) -> Float[Array, "choice embed"]:
        """Return the output of its expert for each choice, zero for those without a place."""
        number, size = len(blocks.expert), blocks.size
        inside = jnp.zeros((number * size, x.shape[1]), x.dtype).at[blocks.place].set(x, mode="drop")
        inside = inside.reshape(number, size, -1)
        if self.capacity is None:
            gate, up, down = (matrix[blocks.expert] for matrix in (self.gate, self.up, self.down))
        else:  # one block for each, in order: nothing is copied
            gate, up, down = self.gate, self.up, self.down
        y = (jax.nn.silu(inside @ gate) * (inside @ up)) @ down
        return y.reshape(number * size, -1).at[blocks.place].get(mode="fill", fill_value=0)


def _block_size(share: int) -> int:
    """Return the power of two below an expert's fair share, within bounds: few empty places and few blocks."""
    return min(LARGEST_BLOCK, max(SMALLEST_BLOCK, 1 << max(0, share.bit_length() - 1)))
