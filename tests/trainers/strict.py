"""Trains a small model with all that strict mode promises on forced devices: python -m tests.trainers.strict DEVICES…

Prints for each number of devices what three updates came to: digest of the state, losses. "fsdp" is the same by psum
on eight devices cut along data and fsdp.
"""

import json
import os
import sys
from dataclasses import replace

from tests.trainers.synthetic import MarkovLoader, sequences, tiny

UPDATES = 3


def config():
    """Muon, clipping, accumulation, a running average; `benchmarks.trainer` has the whole matrix, experts too."""
    optimizer = replace(tiny().optimizer, matrices="muon", clip=0.5)
    parts = {"batch": 16, "shards": 8, "reduction": "strict", "ema": 0.9}
    return replace(tiny(), optimizer=optimizer, **parts)


def batch(number):
    """Four batches of the source as one."""
    return sequences(np.concatenate([MarkovLoader().batch(4 * number + part).tokens for part in range(4)]), cut=10)


def states(config, mesh=None):
    """Yield the state on the host and the loss, after each update."""
    state = init_state(config) if mesh is None else on_mesh(init_state(config), mesh)
    step = make_step(config, mesh)
    for number in range(UPDATES):
        state, metrics = step(state, on_device(batch(number), mesh))
        yield jax.tree.map(jnp.copy, state), on_host(metrics).loss


def trained(config, mesh=None):
    """Return the digest of the last state, and all losses."""
    *_, (state, _) = found = list(states(config, mesh))
    return digest(state), [loss for _, loss in found]


def on(devices):
    """Return what a run on `devices` came to."""
    if devices == "fsdp":
        return trained(replace(config(), reduction="psum", shards=1), make_mesh(2, 4, 1))
    return trained(config(), make_mesh(devices=jax.devices()[: int(devices)]))


if __name__ == "__main__":
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402 - reads the number of devices
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

from trainers.mesh import make_mesh  # noqa: E402
from trainers.state import digest, init_state  # noqa: E402
from trainers.step import make_step, on_device, on_host, on_mesh  # noqa: E402

if __name__ == "__main__":
    print(json.dumps({devices: on(devices) for devices in sys.argv[1:]}))
