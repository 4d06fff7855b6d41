"""The named axes of a module's arrays, as their annotations have them: sharding and Muon speak of names, not places.

The annotation of a field is the one place where its axes are written, `Float[Array, "*layer embed heads head"]`; tests
check at run time that arrays are so. An axis "*layer" stands for those that an array has beyond the others.
"""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

import equinox as eqx
import jax
from jax.sharding import PartitionSpec
from jaxtyping import Array

Axes = tuple[str, ...]


def named_axes(module: eqx.Module) -> Any:
    """Return the tree of `module` with the names of its axes in place of each array.

    As the second tree of `jax.tree.map`, each array of the first one meets its names.
    """

    def named(path: tuple[Any, ...], array: Array) -> Axes:
        owner: Any = module
        for key in path[:-1]:
            owner = getattr(owner, key.name)
        return _axes(get_type_hints(type(owner))[path[-1].name], array.ndim)

    return jax.tree_util.tree_map_with_path(named, module)


def _axes(annotation: Any, count: int) -> Axes:
    """Return the names in `annotation` (or in that part of a union which is an array) of an array of `count` axes."""
    array = next(part for part in (annotation, *get_args(annotation)) if hasattr(part, "dim_str"))
    names = array.dim_str.split()
    more = count - sum(not name.startswith("*") for name in names)
    return tuple(axis for name in names for axis in ([name[1:]] * more if name.startswith("*") else [name]))


def spec(*axes: str | tuple[str, ...] | None) -> PartitionSpec:
    """Return which axes of the mesh cut the axes of an array, one after the other."""
    return PartitionSpec(*axes)  # type: ignore[no-untyped-call]


def rows_apart(x: Array) -> Array:
    """Return `x`, on a mesh cut along its first axis: without this the partitioner might cut activations elsewhere."""
    return _placed(x, spec(_axes_of_mesh()))


def gathered(x: Array) -> Array:
    """Return `x`, on a mesh whole on every device: what rows look up must be gathered, or rows would travel to it."""
    return _placed(x, spec())


def _axes_of_mesh() -> tuple[str, ...]:
    """Return the axes of the mesh that the partitioner may cut along: none in strict mode, and without a mesh."""
    mesh = jax.sharding.get_abstract_mesh()
    return tuple(axis for axis in mesh.auto_axes if mesh.shape[axis] > 1)


def _placed(x: Array, place: PartitionSpec) -> Array:
    if not _axes_of_mesh():
        return x
    placed: Array = jax.lax.with_sharding_constraint(x, place)  # type: ignore[no-untyped-call]
    return placed
