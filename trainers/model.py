# ruff: noqa: F722
"""The model: a Llama-like transformer (Touvron et al. 2023), dense or with experts, every array with named axes.

Axes: batch, position (in the sequence), embed, heads, kv_heads, head (within one head), hidden, expert, vocabulary;
the arrays of `Model.blocks` have `layer` before their own axes, and the layers run as one scan over it. The names are
checked at run time in the tests.

Invariants: a token sees itself and earlier tokens of its own segment, nothing else, so documents packed into one
sequence give what they give apart; norms, rotations, softmax and logits are float32, products of the type of the
parameters. Cost: 6 FLOPs per matrix parameter that a token meets, plus attention.
"""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from blake3 import blake3
from jaxtyping import Array, Bool, Float, Int

from trainers.attention import Attention, Rotation, attention_mask, rotation
from trainers.axes import gathered, rows_apart
from trainers.config import ModelConfig
from trainers.experts import Experts, Routing
from trainers.layers import HeadNorm, RMSNorm, SwiGLU, wide
from transforms.canonical import canonical_json


class Block(eqx.Module):
    """One layer: attention, then feed-forward, each on the normalised stream and added to it."""

    attention_norm: RMSNorm
    attention: Attention
    feed_forward_norm: RMSNorm
    feed_forward: SwiGLU | Experts

    def __call__(
        self,
        x: Float[Array, "batch position embed"],
        turn: Rotation,
        mask: Bool[Array, "batch position position"],
        bias: Float[Array, " expert"],
        real: Bool[Array, "batch position"],
    ) -> tuple[Float[Array, "batch position embed"], Routing | None]:
        """Return the stream after this layer, and where its tokens were routed."""
        x = x + self.attention(self.attention_norm(x), turn, mask)
        normal = self.feed_forward_norm(x)
        if isinstance(self.feed_forward, SwiGLU):
            return x + self.feed_forward(normal), None
        y, routing = self.feed_forward(normal, bias, real)
        return x + y, routing


class Model(eqx.Module):
    """The whole model. The arrays of `blocks` have a leading layer axis; `head` is None where the embedding serves."""

    embedding: Float[Array, "vocabulary embed"]
    blocks: Block
    norm: RMSNorm
    head: Float[Array, "embed vocabulary"] | None
    rope_base: float = eqx.field(static=True)
    vocabulary_chunk: int | None = eqx.field(static=True, default=None)

    def __call__(
        self,
        tokens: Int[Array, "batch position"],
        segments: Int[Array, "batch position"],
        positions: Int[Array, "batch position"],
        bias: Float[Array, "layer expert"],
    ) -> Float[Array, "batch position vocabulary"]:
        """Return the logits of the token after each position; the routers choose experts with `bias`."""
        return self.logits(self.stream(tokens, segments, positions, bias)[0])

    def stream(
        self,
        tokens: Int[Array, "batch position"],
        segments: Int[Array, "batch position"],
        positions: Int[Array, "batch position"],
        bias: Float[Array, "layer expert"],
    ) -> tuple[Float[Array, "batch position embed"], Routing | None]:
        """Return the normalised stream after the last layer, and where tokens were routed (padding: segment ≤ 0)."""
        turn = rotation(positions, self.blocks.attention.query.shape[-1], self.rope_base)
        mask, real = attention_mask(segments), segments > 0

        def layer(
            x: Float[Array, "batch position embed"], part: tuple[Block, Float[Array, " expert"]]
        ) -> tuple[Float[Array, "batch position embed"], Routing | None]:
            block, block_bias = part
            x, routing = block(x, turn, mask, block_bias, real)
            return rows_apart(x), routing

        x, routing = jax.lax.scan(layer, rows_apart(gathered(self.embedding)[tokens]), (self.blocks, bias))
        return self.norm(x), routing

    def logits(self, x: Float[Array, "batch position embed"]) -> Float[Array, "batch position vocabulary"]:
        """Return the logits at each position of the normalised stream."""
        head = self.embedding.T if self.head is None else self.head
        return jnp.matmul(x, head, preferred_element_type=wide(x))


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

    def head_norm() -> HeadNorm | None:
        gain = jnp.ones((layers, head), jnp.float32)
        return None if config.qk_norm is None else HeadNorm(gain, config.norm_epsilon)

    layers, width, head = config.layers, config.width, config.head_width
    blocks = Block(
        norm(layers),
        Attention(
            matrix("query", (layers, width, config.heads, head), width),
            matrix("key", (layers, width, config.kv_heads, head), width),
            matrix("value", (layers, width, config.kv_heads, head), width),
            matrix("output", (layers, config.heads, head, width), width * 2 * layers),
            head_norm(),
            head_norm(),
        ),
        norm(layers),
        _init_feed_forward(config, matrix),
    )
    return Model(
        matrix("embedding", (config.vocabulary, width), width),
        blocks,
        norm(),
        matrix("head", (width, config.vocabulary), width) if config.head == "own" else None,
        config.rope_base,
        config.vocabulary_chunk,
    )


def _init_feed_forward(config: ModelConfig, matrix: Callable[[str, tuple[int, ...], int], Array]) -> SwiGLU | Experts:
    """Return the feed-forward of all layers from random matrices: (name, shape, inputs) to array."""
    stack, width = config.layers, config.width

    def swiglu(prefix: str, hidden: int, *between: int) -> SwiGLU:
        return SwiGLU(
            matrix(f"{prefix}gate", (stack, *between, width, hidden), width),
            matrix(f"{prefix}up", (stack, *between, width, hidden), width),
            matrix(f"{prefix}down", (stack, *between, hidden, width), hidden * 2 * stack),
        )

    if (experts := config.experts) is None:
        return swiglu("", config.hidden)
    each = swiglu("", config.hidden, experts.count)
    return Experts(
        matrix("router", (stack, width, experts.count), width),
        each.gate,
        each.up,
        each.down,
        swiglu("shared ", experts.shared) if experts.shared else None,
        experts.chosen,
        experts.gate,
        experts.balance,
        experts.capacity,
    )


def init_bias(config: ModelConfig) -> Float[Array, "layer expert"]:
    """Return the routers' first bias: zeros, of no expert for a model without them. It is no parameter."""
    return jnp.zeros((config.layers, 0 if config.experts is None else config.experts.count), jnp.float32)


def _stream(seed: int, name: str) -> np.random.Generator:
    key = blake3(canonical_json(["curate parameters 1", seed, name]).encode()).digest(16)
    return np.random.Generator(np.random.Philox(key=int.from_bytes(key, "little")))
