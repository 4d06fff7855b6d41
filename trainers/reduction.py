"""Adding up what the shards of a batch give: the same code for speed and for equal bits on any number of devices.

A batch is cut into shards of consecutive rows, and `data` devices hold consecutive shards. With "psum" a device adds
its shards one after the other and XLA adds the devices, in an order that depends on how many they are. With "strict"
all is one binary tree over the shards, neighbours first: its lower levels are computed within a device, its upper ones
across devices by exchanging halves (recursive doubling), where a + b = b + a makes all devices agree.

Invariant of "strict": the same additions of the same numbers for 1, 2, 4 … devices, so equal bits, given that a shard
is computed by the same code everywhere: same XLA, instruction set, number of threads (`trainers.environment`), data
parallel, nothing recomputed. Cost: 2 log2(shards on a device) copies of the gradients at a time, each exchange a whole
copy instead of a psum's two halves; docs/training.md has the figures.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, Mesh

from trainers.axes import spec
from trainers.config import Config

Total = TypeVar("Total")

Part = Callable[[Any, Any], Total]
"""Gives the sums of a shard: (what all shards share, the shard's rows) → a tree of arrays."""


def over_shards(part: Part[Total], config: Config, mesh: Mesh | AbstractMesh | None) -> Part[Total]:
    """Return the function that gives the sums of `part` over all shards of a batch, on each device of `mesh`."""
    data = 1 if mesh is None else mesh.shape["data"]
    on_device = partial(_on_device, part, max(1, config.shards // data), _ADDED[config.reduction])
    if mesh is None:
        return on_device

    def local(shared: Any, rows: Any) -> Total:
        return _ACROSS[config.reduction](on_device(shared, rows), data)

    across: Part[Total] = jax.shard_map(
        local,
        mesh=mesh,
        axis_names={"data"},
        in_specs=(spec(), spec("data")),
        out_specs=spec(),
        check_vma=False,  # that an exchange makes devices agree is beyond it
    )
    return across


def _on_device(part: Part[Total], shards: int, added: Any, shared: Any, rows: Any) -> Total:
    """Return the sums of `part` over the `shards` of a device's rows."""
    if shards == 1:
        return part(shared, rows)
    cut = jax.tree.map(lambda array: array.reshape(shards, -1, *array.shape[1:]), rows)
    total: Total = added(partial(part, shared), cut)
    return total


def _one_by_one(part: Callable[[Any], Total], shards: Any) -> Total:
    """Return the sum over shards (first axis), each added to those before it."""
    first = jax.tree.map(lambda array: array[0], shards)
    nothing = jax.tree.map(lambda shape: jnp.zeros(shape.shape, shape.dtype), jax.eval_shape(part, first))
    total: Total = jax.lax.scan(lambda total, shard: (_add(total, part(shard)), None), nothing, shards)[0]
    return total


def _tree(part: Callable[[Any], Total], shards: Any) -> Total:
    """Return the sum over shards (first axis, a power of two) in a binary tree, neighbours first."""
    count = jax.tree.leaves(shards)[0].shape[0]
    if count == 1:
        return part(jax.tree.map(lambda array: array[0], shards))
    halves = jax.tree.map(lambda array: array.reshape(2, count // 2, *array.shape[1:]), shards)
    _, both = jax.lax.scan(lambda _, half: (None, _tree(part, half)), None, halves)
    total: Total = jax.tree.map(lambda array: array[0] + array[1], both)
    return total


def _exchange(total: Total, devices: int) -> Total:
    """Return the sum over devices in a binary tree, neighbours first, the same bits on each."""
    distance = 1
    while distance < devices:
        pairs = [(device, device ^ distance) for device in range(devices)]
        total = _add(total, jax.tree.map(partial(jax.lax.ppermute, axis_name="data", perm=pairs), total))
        distance *= 2
    return total


def _psum(total: Total, devices: int) -> Total:
    summed: Total = jax.lax.psum(total, "data")  # type: ignore[no-untyped-call]
    return summed


def _add(first: Total, second: Total) -> Total:
    total: Total = jax.tree.map(lambda one, other: one + other, first, second)
    return total


_ADDED = {"psum": _one_by_one, "strict": _tree}
_ACROSS = {"psum": _psum, "strict": _exchange}
