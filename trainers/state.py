# ruff: noqa: F722
"""The state of a run: model, optimizer, number of updates; its arrays by name, and its digest.

Invariants: the same (configuration, seed) gives the same first state; `arrays` names every array once, in an order that
depends on the configuration alone, and `restore` is its inverse bit for bit. An array without elements (the bias of a
model without experts) is not among them: there is nothing of it to store.
"""

from __future__ import annotations

from collections.abc import Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import optax
from jax.sharding import Mesh, Sharding
from jaxtyping import Array, Float, Int

from trainers.checkpoint import CheckpointError, digest_arrays
from trainers.config import Config
from trainers.hosts import whole
from trainers.mesh import shardings
from trainers.model import Model, init_bias, init_model
from trainers.optimizer import make_optimizer
from trainers.stored_arrays import StoredArray

NamedArrays = dict[str, npt.NDArray[np.generic]]


class State(eqx.Module):
    """All that the next update depends on, besides its batch.

    `bias` is the routers' (`trainers.balance`): no parameter, without gradient and weight decay. `average` is the
    running average of the parameters, None where the run keeps none.
    """

    model: Model
    optimizer: optax.OptState
    bias: Float[Array, "layer expert"]
    average: Model | None
    updates: Int[Array, ""]


def init_state(config: Config) -> State:
    """Return the state before the first update."""
    model = init_model(config.model, config.seed)
    optimizer = make_optimizer(config).init(model)
    average = jax.tree.map(jnp.copy, model) if config.ema else None  # memory of its own: a step gives both away
    return State(model, optimizer, init_bias(config.model), average, jnp.zeros((), jnp.int32))


def arrays(state: State) -> NamedArrays:
    """Return copies of the arrays of `state` under dotted names, on the host."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(state)
    return {_name(path): whole(leaf) for path, leaf in leaves if leaf.size}


def _name(path: tuple[object, ...]) -> str:
    return jax.tree_util.keystr(path, simple=True, separator=".")


def restore(
    config: Config, stored: Mapping[str, npt.NDArray[np.generic] | StoredArray], mesh: Mesh | None = None
) -> State:
    """Return the state whose `arrays` are `stored`, on the devices of `mesh`, which each read what they hold.

    Raises:
        CheckpointError: the names, shapes or types are not those of a state of `config`.
    """
    shapes = jax.eval_shape(lambda: init_state(config))
    leaves, tree = jax.tree_util.tree_flatten_with_path(shapes)
    expected = {_name(path): leaf for path, leaf in leaves if leaf.size}
    if missing := sorted(set(expected) ^ set(stored)):
        raise CheckpointError(f"the arrays of the checkpoint are not those of this configuration: {', '.join(missing)}")
    for name, leaf in expected.items():
        if (stored[name].shape, stored[name].dtype) != (leaf.shape, leaf.dtype):
            raise CheckpointError(
                f"{name} is stored as {stored[name].dtype}{list(stored[name].shape)}, this configuration has "
                f"{leaf.dtype}{list(leaf.shape)}"
            )
    places = [None] * len(leaves) if mesh is None else jax.tree.leaves(shardings(shapes, mesh))

    def array(name: str, leaf: jax.ShapeDtypeStruct, place: Sharding | None) -> jax.Array:
        found = stored[name] if leaf.size else np.zeros(leaf.shape, leaf.dtype)
        if place is None:
            return jnp.array(np.asarray(found))
        return jax.make_array_from_callback(leaf.shape, place, lambda index: np.array(found[index or ()]))

    values = [array(_name(path), leaf, place) for (path, leaf), place in zip(leaves, places, strict=True)]
    restored: State = jax.tree_util.tree_unflatten(tree, values)
    return restored


def digest(state: State) -> str:
    """Return the BLAKE3 digest of names, types, shapes and bytes of all arrays of `state`, in order."""
    return digest_arrays(arrays(state))
