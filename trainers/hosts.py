"""Several processes that train as one (`jax.distributed`): who writes, and how they come to one mind.

Every process runs the same program on the same plan; process 0 alone holds the lock, the log and the checkpoints, which
lie on a file system that all of them read. With one process all of this is nothing.
"""

from __future__ import annotations

import jax
import numpy as np
import numpy.typing as npt


def join_hosts(coordinator: str, processes: int, process: int) -> None:
    """Make this process number `process` of `processes` that meet at `coordinator` ("host:port" of process 0).

    To be called before anything else of JAX. On CPUs collectives go over Gloo.
    """
    jax.distributed.initialize(coordinator, processes, process)


def writes() -> bool:
    """Return whether this process writes log and checkpoints."""
    return jax.process_index() == 0


def agreed(value: int) -> int:
    """Return the `value` of process 0 in all processes."""
    if jax.process_count() == 1:
        return value
    from jax.experimental import multihost_utils

    return int(multihost_utils.broadcast_one_to_all(np.int32(value)))


def any_of(asked: bool) -> bool:
    """Return whether `asked` holds in any process: the same answer in all."""
    if jax.process_count() == 1:
        return asked
    from jax.experimental import multihost_utils

    return bool(np.any(multihost_utils.process_allgather(np.int32(asked))))


def whole(leaf: jax.Array) -> npt.NDArray[np.generic]:
    """Return a copy of `leaf` on the host, gathered from all processes that hold parts of it.

    A copy, because the next step may be given the memory of `leaf`.
    """
    if leaf.is_fully_addressable or leaf.is_fully_replicated:
        return np.array(leaf)
    from jax.experimental import multihost_utils

    return np.asarray(multihost_utils.process_allgather(leaf, tiled=True))
