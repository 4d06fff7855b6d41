# ruff: noqa: F722
"""The model: a Llama-like transformer (Touvron et al. 2023) in Equinox, every array with named axes.

Axes: batch, position (in the sequence), embed, heads, kv_heads, head (within one head), hidden, vocabulary; the
arrays of `Model.blocks` have `layer` before their own axes, and the layers run as one scan over it. The names are
checked at run time in the tests.

Invariants: a token sees itself and earlier tokens of its own segment, nothing else, so documents packed into one
sequence give what they give apart; all arithmetic is float32. Cost: 6 FLOPs per matrix parameter and trained token,
plus attention; memory for scores is batch · heads · position² floats per layer.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from blake3 import blake3
from jaxtyping import Array, Bool, Float, Int

from trainers.config import ModelConfig
from trainers.experts import Routing
from transforms.outcome import canonical_json


class RMSNorm(eqx.Module):
    """Root-mean-square normalisation over the embed axis (Zhang and Sennrich 2019) with a learned gain."""

    gain: Float[Array, "*layer embed"]
    epsilon: float = eqx.field(static=True)

    def __call__(self, x: Float[Array, "batch position embed"]) -> Float[Array, "batch position embed"]:
        """Return `x` divided by its root mean square, times the gain."""
        return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + self.epsilon) * self.gain


class Rotation(eqx.Module):
    """Rotary positions (Su et al. 2021), halves paired: dimension i turns with dimension i + head / 2."""

    cos: Float[Array, "batch position half"]
    sin: Float[Array, "batch position half"]

    def __call__(self, x: Float[Array, "batch position heads head"]) -> Float[Array, "batch position heads head"]:
        """Return `x` with each pair of dimensions turned by its position's angle."""
        first, second = jnp.split(x, 2, axis=-1)
        cos, sin = self.cos[:, :, None], self.sin[:, :, None]
        return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


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
    """Grouped-query attention (Ainslie et al. 2023): consecutive query heads share a key and value head."""

    query: Float[Array, "*layer embed heads head"]
    key: Float[Array, "*layer embed kv_heads head"]
    value: Float[Array, "*layer embed kv_heads head"]
    output: Float[Array, "*layer heads head embed"]

    def __call__(
        self,
        x: Float[Array, "batch position embed"],
        turn: Rotation,
        mask: Bool[Array, "batch position position"],
    ) -> Float[Array, "batch position embed"]:
        """Return what each position gathers from those that it sees."""
        batch, position, _ = x.shape
        (_, heads, head), kv_heads = self.query.shape, self.key.shape[-2]
        q = turn(jnp.einsum("bpe,enh->bpnh", x, self.query)) * head**-0.5
        k = turn(jnp.einsum("bpe,ekh->bpkh", x, self.key))
        v = jnp.einsum("bpe,ekh->bpkh", x, self.value)
        # The queries that share a key head stand below each other: one large product each, not many small ones.
        stacked = q.reshape(batch, position, kv_heads, -1, head).transpose(0, 2, 3, 1, 4)
        scores = stacked.reshape(batch, kv_heads, -1, head) @ k.transpose(0, 2, 3, 1)
        scores = scores.reshape(batch, kv_heads, -1, position, position)
        weights = jax.nn.softmax(jnp.where(mask[:, None, None], scores, -jnp.inf), axis=-1)
        gathered = weights.reshape(batch, kv_heads, -1, position) @ v.transpose(0, 2, 1, 3)
        gathered = gathered.reshape(batch, kv_heads, -1, position, head).transpose(0, 3, 1, 2, 4)
        return jnp.einsum("bpnh,nhe->bpe", gathered.reshape(batch, position, heads, head), self.output)


class SwiGLU(eqx.Module):
    """The gated feed-forward: down(silu(gate(x)) · up(x)) (Shazeer 2020)."""

    gate: Float[Array, "*layer embed hidden"]
    up: Float[Array, "*layer embed hidden"]
    down: Float[Array, "*layer hidden embed"]

    def __call__(self, x: Float[Array, "batch position embed"]) -> Float[Array, "batch position embed"]:
        """Return the feed-forward of each position."""
        return (jax.nn.silu(x @ self.gate) * (x @ self.up)) @ self.down


class Block(eqx.Module):
    """One layer: attention, then feed-forward, each on the normalised stream and added to it."""

    attention_norm: RMSNorm
    attention: Attention
    feed_forward_norm: RMSNorm
    feed_forward: SwiGLU

    def __call__(
        self,
        x: Float[Array, "batch position embed"],
        turn: Rotation,
        mask: Bool[Array, "batch position position"],
        bias: Float[Array, " expert"],
    ) -> tuple[Float[Array, "batch position embed"], Routing | None]:
        """Return the stream after this layer, and where its tokens were routed."""
        x = x + self.attention(self.attention_norm(x), turn, mask)
        return x + self.feed_forward(self.feed_forward_norm(x)), None


class Model(eqx.Module):
    """The whole model. The arrays of `blocks` have a leading layer axis; `head` is None where the embedding serves."""

    embedding: Float[Array, "vocabulary embed"]
    blocks: Block
    norm: RMSNorm
    head: Float[Array, "embed vocabulary"] | None
    rope_base: float = eqx.field(static=True)

    def __call__(
        self,
        tokens: Int[Array, "batch position"],
        segments: Int[Array, "batch position"],
        positions: Int[Array, "batch position"],
        bias: Float[Array, "layer expert"],
    ) -> tuple[Float[Array, "batch position vocabulary"], Routing | None]:
        """Return the logits of the token after each position, and where tokens were routed with `bias`."""
        turn = rotation(positions, self.blocks.attention.query.shape[-1], self.rope_base)
        mask = attention_mask(segments)

        def layer(
            x: Float[Array, "batch position embed"], part: tuple[Block, Float[Array, " expert"]]
        ) -> tuple[Float[Array, "batch position embed"], Routing | None]:
            block, block_bias = part
            return block(x, turn, mask, block_bias)

        x, routing = jax.lax.scan(layer, self.embedding[tokens], (self.blocks, bias))
        x = self.norm(x)
        return x @ self.embedding.T if self.head is None else x @ self.head, routing


def init_model(config: ModelConfig, seed: int) -> Model:
    """Return a model with random parameters.

    Matrices are normal with deviation 1/√(inputs), those that write into the stream smaller by √(2 layers) (Radford et
    al. 2019, §2.3). Gains are one. Each array has a random stream of its own, named by `seed` and the array's name, so
    that its values depend on nothing else of the configuration than its shape and deviation. Drawn by NumPy on the
    host: nothing to compile, and the same for any number of devices.
    """

    def matrix(name: str, shape: tuple[int, ...], inputs: int) -> Array:
        return jnp.asarray(_stream(seed, name).standard_normal(shape, np.float32) * np.float32(inputs**-0.5))

    def norm(*stack: int) -> RMSNorm:
        return RMSNorm(jnp.ones((*stack, width), jnp.float32), config.norm_epsilon)

    layers, width, hidden, head = config.layers, config.width, config.hidden, config.head_width
    blocks = Block(
        norm(layers),
        Attention(
            matrix("query", (layers, width, config.heads, head), width),
            matrix("key", (layers, width, config.kv_heads, head), width),
            matrix("value", (layers, width, config.kv_heads, head), width),
            matrix("output", (layers, config.heads, head, width), width * 2 * layers),
        ),
        norm(layers),
        SwiGLU(
            matrix("gate", (layers, width, hidden), width),
            matrix("up", (layers, width, hidden), width),
            matrix("down", (layers, hidden, width), hidden * 2 * layers),
        ),
    )
    return Model(
        matrix("embedding", (config.vocabulary, width), width),
        blocks,
        norm(),
        matrix("head", (width, config.vocabulary), width) if config.head == "own" else None,
        config.rope_base,
    )


def init_bias(config: ModelConfig) -> Float[Array, "layer expert"]:
    """Return the routers' first bias: zeros, of no expert for a model without them. It is no parameter."""
    return jnp.zeros((config.layers, 0), jnp.float32)


def _stream(seed: int, name: str) -> np.random.Generator:
    key = blake3(canonical_json(["curate parameters 1", seed, name]).encode()).digest(16)
    return np.random.Generator(np.random.Philox(key=int.from_bytes(key, "little")))
