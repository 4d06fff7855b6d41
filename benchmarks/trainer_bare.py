"""The same model as `trainers.model` as one would write it in bare JAX: a dict of arrays, one jitted step, one loop.

No classes, no checks, no log, no checkpoints, batches already on the device: what `benchmarks.trainer` measures the
bundled trainer against. It starts from the trainer's first parameters, so both must come to the same losses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import optax

from trainers.config import Config
from trainers.loss import Inputs
from trainers.optimizer import schedule
from trainers.state import init_state

Parameters = dict[str, Any]


def first_parameters(config: Config) -> Parameters:
    """Return the trainer's first parameters under plain names."""
    model = init_state(config).model
    blocks = model.blocks
    attention, inner = blocks.attention, blocks.feed_forward
    layers = {
        "a": blocks.attention_norm.gain,
        "f": blocks.feed_forward_norm.gain,
        "q": attention.query,
        "k": attention.key,
        "v": attention.value,
        "o": attention.output,
        "g": inner.gate,
        "u": inner.up,
        "d": inner.down,
    }
    return {"e": model.embedding, "n": model.norm.gain, "layers": layers}


def loss_of(p: Parameters, batch: Inputs, epsilon: float, base: float, z_loss: float) -> tuple[Any, Any]:
    """Return the objective and the loss."""
    head = p["layers"]["q"].shape[-1]
    groups = p["layers"]["q"].shape[-2] // p["layers"]["k"].shape[-2]
    length = batch.tokens.shape[1]

    def norm(x: Any, gain: Any) -> Any:
        return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + epsilon) * gain

    angles = batch.positions[..., None] * base ** (-jnp.arange(0, head, 2) / head)
    cos, sin = jnp.cos(angles)[:, :, None], jnp.sin(angles)[:, :, None]

    def turn(x: Any) -> Any:
        a, b = jnp.split(x, 2, -1)
        return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    order = jnp.arange(length)
    mask = (order[:, None] >= order) & (batch.segments[:, :, None] == batch.segments[:, None])

    def layer(x: Any, w: Parameters) -> tuple[Any, None]:
        y = norm(x, w["a"])
        q, k = turn(jnp.einsum("bpe,enh->bpnh", y, w["q"])), turn(jnp.einsum("bpe,enh->bpnh", y, w["k"]))
        v = jnp.einsum("bpe,enh->bpnh", y, w["v"])
        q = q.reshape(*q.shape[:2], -1, groups, head)
        scores = jnp.einsum("bpkgh,bskh->bkgps", q, k) * head**-0.5
        weights = jax.nn.softmax(jnp.where(mask[:, None, None], scores, -jnp.inf), -1)
        seen = jnp.einsum("bkgps,bskh->bpkgh", weights, v)
        x = x + jnp.einsum("bpnh,nhe->bpe", seen.reshape(*x.shape[:2], -1, head), w["o"])
        y = norm(x, w["f"])
        return x + (jax.nn.silu(y @ w["g"]) * (y @ w["u"])) @ w["d"], None

    x, _ = jax.lax.scan(layer, p["e"][batch.tokens], p["layers"])
    logits = (norm(x, p["n"]) @ p["e"].T)[:, :-1]
    counts = batch.loss_mask[:, 1:] & (batch.segments[:, 1:] == batch.segments[:, :-1])
    normaliser = jax.nn.logsumexp(logits, -1)
    chosen = jnp.take_along_axis(logits, batch.tokens[:, 1:, None], -1)[..., 0]
    total = jnp.maximum(counts.sum(), 1)
    loss = jnp.where(counts, normaliser - chosen, 0).sum() / total
    return loss + z_loss * jnp.where(counts, normaliser**2, 0).sum() / total, loss


def make_loop(config: Config) -> Callable[[Sequence[Inputs]], list[float]]:
    """Return the loop over batches on the device, from the first parameters; it returns the losses."""
    adam = config.optimizer
    decayed = {"e": False, "n": False, "layers": {name: name not in "af" for name in "afqkvogud"}}
    optimizer = optax.chain(
        optax.clip_by_global_norm(adam.clip),
        optax.adamw(
            schedule(adam, config.steps),
            adam.beta1,
            adam.beta2,
            adam.epsilon,
            weight_decay=adam.weight_decay,
            mask=decayed,
        ),
    )
    model = config.model

    def step(p: Parameters, state: Any, batch: Inputs) -> tuple[Parameters, Any, Any]:
        gradients, loss = jax.grad(loss_of, has_aux=True)(p, batch, model.norm_epsilon, model.rope_base, config.z_loss)
        updates, state = optimizer.update(gradients, state, p)
        return optax.apply_updates(p, updates), state, loss

    compiled = jax.jit(step, donate_argnums=(0, 1))

    def loop(batches: Sequence[Inputs]) -> list[float]:
        p = jax.tree.map(jnp.copy, first_parameters(config))
        state, losses = optimizer.init(p), []
        for batch in batches:
            p, state, loss = compiled(p, state, batch)
            losses.append(loss)
        return [float(loss) for loss in losses]

    return loop
