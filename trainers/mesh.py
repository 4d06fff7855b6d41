"""Devices as a mesh of three named axes, and where the arrays of a state lie on it.

`data` holds copies of the state, which see different rows of a batch; `fsdp` cuts each array of the state along its
axis `embed`, and `expert` those of experts along `expert` (`PARTITIONED`), both see different rows too.

For speed XLA's partitioner places all exchanges, those of parameters layer by layer within the scan, by the shardings
given here: no line of the model speaks of devices but `trainers.axes.rows_apart`. Strict mode is written for one device
(`shard_map`), and every sum that crosses devices stands in the code (`trainers.reduction`). The two are not mixed in
one program: `shard_map` along `data` alone, with the rest left to the partitioner, ended XLA 0.10.2's compiler on a
model with experts. An abstract mesh lowers a step for devices that are not there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar

import jax
import numpy as np
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding
from jaxtyping import Array

from curate.configuration import ConfigurationError
from trainers.axes import named_axes, spec
from trainers.config import Config
from trainers.model import Model

Tree = TypeVar("Tree")

AXES: Final = ("data", "fsdp", "expert")
ROWS: Final = spec(AXES)
"""Rows of a batch are cut along all three axes."""

PARTITIONED: Final = {"embed": "fsdp", "expert": "expert"}
"""Which axis of an array is cut along which axis of the mesh."""


def make_mesh(
    data: int | None = None, fsdp: int = 1, expert: int = 1, *, devices: Sequence[jax.Device] | None = None
) -> Mesh:
    """Return a mesh of `devices` (default: all) with the sizes given; `data` takes what the others leave.

    Raises:
        ConfigurationError: the sizes do not make up the number of devices.
    """
    found = jax.devices() if devices is None else devices
    data = max(1, len(found) // (fsdp * expert)) if data is None else data
    if data * fsdp * expert != len(found):
        raise ConfigurationError(f"data {data} × fsdp {fsdp} × expert {expert} are not {len(found)} devices")
    return Mesh(np.array(found).reshape(data, fsdp, expert), AXES, axis_types=(AxisType.Auto,) * 3)


def abstract_mesh(data: int, fsdp: int = 1, expert: int = 1) -> AbstractMesh:
    """Return a mesh of no devices, for lowering only."""
    return AbstractMesh((data, fsdp, expert), AXES, axis_types=(AxisType.Auto,) * 3)


def check_mesh(config: Config, mesh: Mesh | AbstractMesh) -> None:
    """Check that a run can be cut along the axes of `mesh`.

    Raises:
        ConfigurationError: an axis does not divide what it cuts, or strict mode has other axes than data.
    """
    data, fsdp, expert = (mesh.shape[axis] for axis in AXES)
    experts = getattr(getattr(config.model, "experts", None), "count", 1)
    if config.model.width % fsdp or experts % expert:
        raise ConfigurationError(
            f"width {config.model.width} and {experts} experts cannot be cut along fsdp {fsdp}, expert {expert}"
        )
    if config.batch % (max(config.shards, data) * fsdp * expert):
        raise ConfigurationError(
            f"a batch of {config.batch} in {config.shards} shards does not fill data {data} × fsdp {fsdp} × expert "
            f"{expert}: take a multiple of {max(config.shards, data) * fsdp * expert}"
        )
    if config.reduction == "strict" and (fsdp * expert > 1 or config.shards % data or data & (data - 1)):
        raise ConfigurationError(
            f"strict mode is data parallel on a power of two of at most {config.shards} devices (the shards), "
            f"not on data {data} × fsdp {fsdp} × expert {expert}"
        )


def shardings(tree: Any, mesh: Mesh | AbstractMesh) -> Any:
    """Return the tree of shardings of a state, or a part of one: models in it are cut, all else is copied."""

    def cut(array: Array, axes: tuple[str, ...]) -> NamedSharding:
        return NamedSharding(mesh, spec(*(PARTITIONED.get(axis) for axis in axes)))

    def placed(node: Any) -> Any:
        whole = NamedSharding(mesh, spec())
        return jax.tree.map(cut, node, named_axes(node)) if isinstance(node, Model) else whole

    return jax.tree.map(placed, tree, is_leaf=lambda node: isinstance(node, Model))


def place(tree: Tree, places: Any) -> Tree:
    """Return `tree` on the devices of its shardings `places`; each process brings its own part of what all hold."""

    def put(array: Any, sharding: NamedSharding) -> jax.Array:
        values = np.asarray(array)
        return jax.make_array_from_callback(values.shape, sharding, lambda index: values[index])

    placed: Tree = jax.tree.map(put, tree, places)
    return placed
