"""Saves checkpoints 1, 2, 3 in the folder given, and kills itself at the point given: python … FOLDER COUNT POINT."""

import os
import signal
import sys
from pathlib import Path

import numpy as np

from trainers.checkpoint import Checkpoint, Checkpoints, digest_arrays


def example(step):
    """Return a checkpoint with arrays of several types that depend on `step`."""
    values = np.random.Generator(np.random.Philox(key=[7, step])).normal(size=(3, 5))
    arrays = {
        "model.matrix": values.astype(np.float32),
        "model.turned": values.T.astype(np.float32),
        "updates": np.array(step, np.int32),
        "empty": np.zeros((0, 4), np.float32),
    }
    return Checkpoint(step, "plan", {"model.width": 3}, {"jax": "1"}, arrays, digest_arrays(arrays))


def main(folder, count, point):
    """Save all three; at the `count`-th time that `point` is reached, die."""
    left = [int(count)]

    def failpoint(reached):
        left[0] -= reached == point
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)

    checkpoints = Checkpoints(Path(folder), keep=2, failpoint=failpoint)
    with checkpoints.locked():
        begin = max(checkpoints.steps(), default=0)
        for step in range(begin + 1, 4):
            checkpoints.save(example(step))


if __name__ == "__main__":
    main(*sys.argv[1:])
