"""Random kills of drivers, workers and whole nodes; each store goes through several of them before it is whole."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.chaos_look import Outcome
from benchmarks.chaos_points import in_child, run_local, start_child
from benchmarks.chaos_processes import MARK, WORKERS, marked, start, stop, stop_all
from benchmarks.chaos_recipe import outputs
from curate.store import Store

ORPHAN_SECONDS: Final = 5.0
"""How long processes of a killed driver may still be there."""


def kill_drivers(root: Path, work: Path, expected: Mapping[str, str], kills: int, seed: int, until: float) -> Outcome:
    """Kill drivers in this process's children at seeded times, each going on in the store of the last."""
    outcome, draw, log = Outcome(), random.Random(f"{seed} drivers"), work / "driver.log"
    began = time.monotonic()
    in_child(partial(run_local, outputs(root), work / "timed"), log)
    seconds = time.monotonic() - began
    number = 0
    while outcome.hit < kills and time.monotonic() < until:
        number += 1
        store = work / f"drivers-{number}"
        while True:
            child = start_child(partial(run_local, outputs(root), store), log)
            outcome.tried += 1
            if _killed_in_time(child, draw.uniform(0.05, 0.4) * seconds):
                outcome.hit += 1
            else:
                break
            if outcome.hit >= kills:
                in_child(partial(run_local, outputs(root), store), log)
                break
        outcome.look(Store(store), expected, f"drivers killed, store {number}")
    return outcome


def _killed_in_time(child: int, delay: float) -> bool:
    """Kill `child` after `delay` seconds; return whether it was still at work."""
    time.sleep(delay)
    stop(child)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def kill_on_ray(root: Path, work: Path, expected: Mapping[str, str], kills: int, seed: int, until: float) -> Outcome:
    """Kill drivers and workers of runs on a Ray of their own, in turn."""
    outcome, draw, mark, log = Outcome(), random.Random(f"{seed} ray"), uuid.uuid4().hex, work / "ray.log"
    number = 0
    try:
        while outcome.hit < kills and time.monotonic() < until:
            number += 1
            store = work / f"ray-{number}"
            child = _start_run(root, store, log, mark)
            for victim in ("worker", "worker", "driver"):
                _wait(child, draw.uniform(0.2, 2.0))
                outcome.tried += 1
                if child.poll() is None:
                    outcome.hit += child.poll() is None and _kill(victim, child, mark)
            status = child.wait()
            if status not in (0, -signal.SIGKILL):
                outcome.failed += 1
                print(f"a run that lost workers ended with {status}:\n{log.read_text()}", flush=True)
            time.sleep(ORPHAN_SECONDS)  # what a dead driver's workers have in hand may still be published
            if left := [command for command in marked(mark).values() if command.startswith(WORKERS)]:
                outcome.left += len(left)
                print(f"processes left by a killed driver: {left}", flush=True)
            stop_all(mark)
            in_child(partial(run_local, outputs(root), store), log)
            outcome.look(Store(store), expected, f"Ray, store {number}")
    finally:
        stop_all(mark)
    return outcome


def _kill(victim: str, child: subprocess.Popen[bytes], mark: str) -> bool:
    if victim == "driver":
        return stop(child.pid)
    workers = [pid for pid, command in marked(mark).items() if command.startswith(WORKERS)]
    return any(stop(pid) for pid in workers[:1])


def _start_run(root: Path, store: Path, log: Path, mark: str, *further: str) -> subprocess.Popen[bytes]:
    """Start a driver in a process of its own and return it when its first task is done."""
    child = start(
        "benchmarks.chaos_child", ["run", str(root), str(store), "--runner", "ray", *further], log, {MARK: mark}
    )
    while not any(store.glob("shards/*/receipt.json")):
        if child.poll() is not None:
            raise RuntimeError(f"the run on Ray ended without a task:\n{log.read_text()}")
        time.sleep(0.01)
    return child


def _wait(child: subprocess.Popen[bytes], seconds: float) -> None:
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        return


def lose_nodes(root: Path, work: Path, expected: Mapping[str, str], kills: int, seed: int, until: float) -> Outcome:
    """Kill whole nodes of a cluster while runs go on there, and let new ones join."""
    outcome, draw, mark, log = Outcome(), random.Random(f"{seed} nodes"), uuid.uuid4().hex, work / "nodes.log"
    number = 0
    with _cluster(work, mark) as (address, tell):
        while outcome.hit < kills and time.monotonic() < until:
            number += 1
            store = work / f"nodes-{number}"
            child = _start_run(root, store, log, "", "--address", address)
            while child.poll() is None:
                _wait(child, draw.uniform(0.3, 1.5))
                outcome.tried += 1
                outcome.hit += child.poll() is None
                tell("lose")
                tell("join")
            if child.returncode:
                outcome.failed += 1
                print(f"a run that lost nodes ended with {child.returncode}:\n{log.read_text()}", flush=True)
                in_child(partial(run_local, outputs(root), store), log)
            outcome.look(Store(store), expected, f"nodes lost, store {number}")
    return outcome


def _is_address(line: str) -> bool:
    host, _, port = line.rpartition(":")
    return port.isdigit() and host.replace(".", "").isdigit()


@contextmanager
def _cluster(work: Path, mark: str) -> Iterator[tuple[str, Callable[[str], None]]]:
    """Yield the address of a cluster, and what tells it to lose a node or to have one join."""
    log = work / "cluster.log"
    process = start("benchmarks.chaos_child", ["cluster"], log, {MARK: mark})

    def said() -> list[str]:
        return [line for line in log.read_text().splitlines() if line == "done" or _is_address(line)]

    def wait_for(lines: int) -> list[str]:
        while len(found := said()) < lines:
            if process.poll() is not None:
                raise RuntimeError(f"the cluster is gone:\n{log.read_text()}")
            time.sleep(0.05)
        return found

    def tell(what: str) -> None:
        lines = len(said())
        if process.stdin is None:
            raise RuntimeError("the cluster cannot be told anything")
        process.stdin.write(f"{what}\n".encode())
        process.stdin.flush()
        wait_for(lines + 1)

    try:
        yield wait_for(1)[0], tell
    finally:
        stop_all(mark)
        process.wait()
