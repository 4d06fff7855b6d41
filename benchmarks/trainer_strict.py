"""Strict mode on forced devices of one CPU: what a few updates of each case come to, as digests of the whole state.

`python -m benchmarks.trainer_strict DEVICES CASE…` prints one line of JSON, case → digest. Cases are words joined by
"+": float32 or bfloat16, dense or experts, adamw or muon. All clip, accumulate and keep a running average. XLA is given
two threads, though the process may have one core: for one thread alone it makes other code, which other bits come from.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from trainers.config import Config, ExpertsConfig, ModelConfig, OptimizerConfig

CASES = tuple(map("+".join, product(("float32", "bfloat16"), ("dense", "experts"), ("adamw", "muon"))))
SHARDS, ROWS, LENGTH, UPDATES = 8, 2, 64, 4


def config_of(case: str) -> Config:
    """Return the configuration of a case: 8 shards of 2 sequences."""
    compute, feed, matrices = case.split("+")
    experts = ExpertsConfig(count=4, chosen=2) if feed == "experts" else None
    model = ModelConfig(128, 64, layers=2, heads=4, kv_heads=2, hidden=96, qk_norm="head", experts=experts)
    optimizer = OptimizerConfig(0.003, warmup=1, decay=1, clip=0.5, matrices=matrices)  # type: ignore[arg-type]
    config = Config(model, optimizer, UPDATES, SHARDS * ROWS, LENGTH, shards=SHARDS, reduction="strict", ema=0.9)
    return replace(config, compute="bfloat16") if compute == "bfloat16" else config


def digest_of(config: Config, devices: int) -> str:
    """Return the digest of the state after the updates."""
    import jax
    import numpy as np

    from trainers.batches import Sequences
    from trainers.mesh import make_mesh
    from trainers.state import digest, init_state
    from trainers.step import make_step, on_device, on_mesh

    def batches() -> Iterator[Sequences]:
        rng = np.random.Generator(np.random.Philox(7))
        for _ in range(config.steps):
            tokens = rng.integers(0, 128, (config.batch, LENGTH), dtype=np.int32)
            segments = 1 + np.cumsum(rng.random(tokens.shape) < 0.05, axis=1, dtype=np.int32)
            positions = np.broadcast_to(np.arange(LENGTH, dtype=np.int32), tokens.shape)
            yield Sequences(tokens, segments, positions, np.ones(tokens.shape, np.bool_))

    mesh = make_mesh(devices=jax.devices()[:devices])
    state, step = on_mesh(init_state(config), mesh), make_step(config, mesh)
    for batch in batches():
        state, _ = step(state, on_device(batch, mesh))
    return digest(state)


def main(arguments: list[str]) -> None:
    """Print case → digest."""
    devices = int(arguments[0])
    print(json.dumps({case: digest_of(config_of(case), devices) for case in arguments[1:]}))


if __name__ == "__main__":
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={sys.argv[1]}"
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["NPROC"] = "2"
    main(sys.argv[1:])
