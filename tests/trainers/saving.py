"""Saves checkpoints 1, 2, 3 and kills itself, once for each point count given: python … FOLDER POINT COUNT …"""

import os
import signal
import sys
from pathlib import Path

import ml_dtypes
import numpy as np

from trainers.checkpoint import Checkpoint, Checkpoints


def example(step):
    """Return a checkpoint with arrays of several types that depend on `step`."""
    values = np.random.Generator(np.random.Philox(key=[7, step])).normal(size=(3, 5))
    arrays = {
        "model.matrix": values.astype(np.float32),
        "model.turned": values.T.astype(np.float32),
        "model.half": values.astype(ml_dtypes.bfloat16),
        "updates": np.array(step, np.int32),
        "empty": np.zeros((0, 4), np.float32),
    }
    return Checkpoint(step, "plan", {"model.width": 3}, {"jax": "1"}, arrays)


def save_all(folder, point, count):
    """Save all three in `folder`; at the `count`-th time that `point` is reached, die."""
    left = [count]

    def failpoint(reached):
        left[0] -= reached == point
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)

    checkpoints = Checkpoints(folder, keep=2, failpoint=failpoint)
    with checkpoints.locked():
        for step in range(1, 4):
            checkpoints.save(example(step))


def main(folder, *kills):
    """Save in a process for each kill, in a folder of its own, and print how each ended."""
    for point, count in zip(kills[::2], kills[1::2], strict=True):
        child = os.fork()
        if not child:
            save_all(Path(folder) / f"{point}{count}", point, int(count))
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


if __name__ == "__main__":
    main(*sys.argv[1:])
