"""What workers do in the tests of several hosts: train strictly together; one of them dies once."""

import os
import signal
from pathlib import Path


def work(place, folder):
    """Train in `folder` with the others of `place`; the last process dies at its sixth step if it was never done."""
    place.join()
    from tests.trainers.training import STRICT, run
    from trainers.mesh import make_mesh

    died, left = Path(folder) / "died", [6]

    def failpoint(point):
        left[0] -= point == "step"
        if place.process == place.processes - 1 and not left[0] and not died.exists():
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    return run(folder, failpoint, config=STRICT, mesh=make_mesh(), validation={}).digest
