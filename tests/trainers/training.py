"""Trains the tiny model strictly on all devices, and kills itself where told: python … FOLDER [POINT COUNT]."""

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import jax

from tests.trainers.synthetic import MarkovLoader, held_out, tiny
from trainers.mesh import make_mesh
from trainers.train import train

STRICT = replace(tiny(10), shards=4, reduction="strict")


def run(folder, failpoint=lambda point: None, **changed):
    """Train as all these tests do: checkpoints every 4 of 10 updates, validation every 5."""
    arguments = {
        "loader": MarkovLoader(),
        "config": tiny(10),
        "validation": {"markov": held_out(2), "other": held_out(2, salt=7)},
        "validate_every": 5,
        "checkpoint_every": 4,
    }
    return train(folder=Path(folder), failpoint=failpoint, **(arguments | changed))


def main(folder, *kill):
    """Run; at the time that the point is reached as often as told, die."""
    left = [int(kill[1]) if kill else 0]

    def failpoint(reached):
        left[0] -= bool(kill) and reached == kill[0]
        if kill and not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)

    mesh = make_mesh() if jax.device_count() > 1 else None
    print(run(folder, failpoint, config=STRICT, mesh=mesh).digest)


if __name__ == "__main__":
    main(*sys.argv[1:])
