"""A program: runs the road in child processes that are stopped by SIGKILL at given points, then once undisturbed.

    python -m tests.road.kills RAW STORE POINT…

A process of its own, because TensorStore allows no fork of a process that has used it. Prints how many children were
stopped; exit status 1: a child ended otherwise, or the last one failed.
"""

from __future__ import annotations

import signal
import sys
from functools import partial
from pathlib import Path

from benchmarks.chaos_points import in_child, killer
from tests.road.corpus import run_road


def main(raw: str, store: str, *points: str) -> int:
    """Kill a run at each of `points`, each going on where the last was stopped; return the exit status."""
    log = Path(f"{store}.log")
    for point in points:
        status = in_child(partial(run_road, Path(raw), Path(store), failpoint=killer(point)), log)
        if status != -signal.SIGKILL:
            print(f"{point}: exit status {status}\n{log.read_text()}")
            return 1
    print(f"{len(points)} killed")
    return in_child(partial(run_road, Path(raw), Path(store)), log)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
