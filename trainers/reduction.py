"""Adding up what the shards of a batch give: for speed, or with equal bits on any number of devices.

With "psum" shards are computed one after the other, each spread over all devices: shard s has rows s, s + shards, …,
and XLA's partitioner adds up what the devices have, in an order that depends on how many they are.

With "strict" a shard has consecutive rows and is computed whole on one device; `data` devices hold consecutive shards.
All is one binary tree over the shards, neighbours first: its lower levels are computed within a device, its upper ones
across devices by exchanging copies (recursive doubling), where a + b = b + a makes all devices agree.

Invariant of "strict": the same additions of the same numbers for 1, 2, 4 … devices, so equal bits, given that the same
code is made for them everywhere: same XLA, instruction set, number of threads (`trainers.environment`), data parallel,
nothing recomputed. For that the compiler must not fuse across the borders of a shard and of the sum: fused with the
last addition, the squares that a gradient's norm sums up were seen to differ in their last bit between one device and
two. So a shard that is alone on its device, and the last addition, stand in loops of one turn, which the compiler
cannot know. Cost: 2 log2(shards on a device) copies of the gradients at a time, each exchange a whole copy instead of a
psum's two halves; docs/devices.md has the figures.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, Mesh
from jaxtyping import Array

from trainers.axes import spec
from trainers.config import Config

Total = TypeVar("Total")

Part = Callable[[Any, Any], Total]
"""Gives the sums of a shard: (what all shards share, the shard's rows) → a tree of arrays."""


def over_shards(part: Part[Total], config: Config, mesh: Mesh | AbstractMesh | None) -> Part[Total]:
    """Return the function that gives the sums of `part` over all shards of a batch, the same on each device."""
    if config.reduction == "psum":
        return partial(_one_by_one, part, config.shards)
    data = 1 if mesh is None else mesh.shape["data"]
    on_device = partial(_on_device, part, config.shards // data)
    if mesh is None:
        return on_device

    def local(shared: Any, rows: Any) -> Total:
        return _exchanged(on_device(shared, rows), data, _once(rows))

    across: Part[Total] = jax.shard_map(
        local,
        mesh=mesh,
        in_specs=(spec(), spec("data")),
        out_specs=spec(),
        check_vma=False,  # that an exchange makes devices agree is beyond it
    )
    return across


def _one_by_one(part: Part[Total], shards: int, shared: Any, rows: Any) -> Total:
    """Return the sum over shards, each added to those before it."""
    if shards == 1:
        return part(shared, rows)
    cut = jax.tree.map(lambda array: array.reshape(-1, shards, *array.shape[1:]).swapaxes(0, 1), rows)
    first = jax.tree.map(lambda array: array[0], cut)
    nothing = jax.tree.map(lambda one: jnp.zeros(one.shape, one.dtype), jax.eval_shape(part, shared, first))
    total: Total = jax.lax.scan(lambda total, shard: (_add(total, part(shared, shard)), None), nothing, cut)[0]
    return total


def _on_device(part: Part[Total], shards: int, shared: Any, rows: Any) -> Total:
    """Return the sum over the shards of a device in a binary tree, neighbours first."""
    cut = jax.tree.map(lambda array: array.reshape(shards, -1, *array.shape[1:]), rows)
    of_shard = partial(part, shared)
    return _alone(of_shard, cut) if shards == 1 else _add_apart(*_halves(of_shard, cut), _once(rows))


def _halves(part: Callable[[Any], Total], shards: Any) -> tuple[Total, Total]:
    """Return the sums over both halves of `shards` (first axis, a power of two above 1)."""
    count = jax.tree.leaves(shards)[0].shape[0]
    halves = jax.tree.map(lambda array: array.reshape(2, count // 2, *array.shape[1:]), shards)

    def of_half(_: None, half: Any) -> tuple[None, Total]:
        only = count == 2
        return None, part(jax.tree.map(lambda array: array[0], half)) if only else _add(*_halves(part, half))

    _, both = jax.lax.scan(of_half, None, halves)
    first: Total = jax.tree.map(lambda array: array[0], both)
    second: Total = jax.tree.map(lambda array: array[1], both)
    return first, second


def _alone(part: Callable[[Any], Total], shards: Any) -> Total:
    """Return `part` of the only shard, in a loop as several are."""
    shape = jax.eval_shape(part, jax.tree.map(lambda array: array[0], shards))
    nothing = jax.tree.map(lambda one: jnp.zeros((1, *one.shape), one.dtype), shape)

    def body(number: Array, found: Total) -> Total:
        given = part(jax.tree.map(lambda array: array[number], shards))
        kept: Total = jax.tree.map(lambda whole, one: whole.at[number].set(one), found, given)
        return kept

    found = jax.lax.fori_loop(0, _once(shards), body, nothing)
    total: Total = jax.tree.map(lambda array: array[0], found)
    return total


def _exchanged(total: Total, devices: int, once: Array) -> Total:
    """Return the sum over devices in a binary tree, neighbours first, the same bits on each."""
    distance = 1
    while distance < devices:
        pairs = [(device, device ^ distance) for device in range(devices)]
        other = jax.tree.map(partial(jax.lax.ppermute, axis_name="data", perm=pairs), total)
        total = _add_apart(total, other, once)
        distance *= 2
    return total


def _once(rows: Any) -> Array:
    """Return 1, as a number that the compiler cannot know."""
    first = jax.tree.leaves(rows)[0].reshape(-1)[0]
    return 1 + jnp.isnan(first.astype(jnp.float32)).astype(jnp.int32)


def _add_apart(first: Total, second: Total, once: Array) -> Total:
    """Return the sum, in a loop of one turn: nothing that comes after is fused with it."""
    total: Total = jax.lax.fori_loop(0, once, lambda _, total: _add(first, total), second)
    return total


def _add(first: Total, second: Total) -> Total:
    total: Total = jax.tree.map(lambda one, other: one + other, first, second)
    return total
