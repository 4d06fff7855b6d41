"""Kills at points: for each kind of published file and each moment of its publishing, one process is stopped there."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from benchmarks.chaos_look import Outcome
from benchmarks.chaos_recipe import documents, outputs
from curate import Outputs
from curate.run import run
from curate.store import POINTS, PUT_POINTS, Store


def record_points(root: Path, store: Path, log: Path) -> list[str]:
    """Run undisturbed and return every point that was passed, in order.

    In a child, because TensorStore allows no fork of a process that has used it. This process makes the documents
    first, so that its children find the kernels loaded.
    """
    with tempfile.TemporaryDirectory(dir=store.parent) as aside:
        run_local(Outputs(*documents(root)), Path(aside))
    passed = store.parent / "passed"

    def record(point: str) -> None:
        with passed.open("a") as lines:
            lines.write(point + "\n")

    if status := in_child(partial(run_local, outputs(root), store, record), log):
        raise RuntimeError(f"the undisturbed run ended with status {status}:\n{log.read_text()}")
    return passed.read_text().splitlines()


def kind_of(name: str, store: Path) -> tuple[str, str]:
    """Return (stage, file) of the published file `name`: kinds, not single shards or datasets."""
    folder, _, file = name.rpartition("/")
    if folder.startswith("shards/"):
        task = str(json.loads((store / folder / "receipt.json").read_bytes())["task"])
        return task if ": " in task else "documents", file
    top = folder.partition("/")[0]
    manifest = store / top / "manifest.json"
    return str(json.loads(manifest.read_bytes())["kind"]) if manifest.exists() else top, file


def choose_points(passed: Sequence[str], store: Path, point: str, draw: random.Random) -> list[str]:
    """Return one occurrence of each kind of file at `point`, in the order in which a run passes them."""
    by_kind: dict[tuple[str, str], list[int]] = {}
    for place, entry in enumerate(passed):
        name, _, moment = entry.rpartition(":")
        if moment == point:
            by_kind.setdefault(kind_of(name, store), []).append(place)
    return [passed[place] for place in sorted(draw.choice(places) for places in by_kind.values())]


def kill_everywhere(
    root: Path, work: Path, expected: Mapping[str, str], passed: Sequence[str], seed: int, every: int = 1
) -> Outcome:
    """Kill one process at each kind of point, each going on where the last was stopped, and compare the stores.

    `every` > 1 takes only one kind in so many, the seed says which.
    """
    outcome = Outcome()
    for point in (*POINTS, *PUT_POINTS):
        store, log = work / f"killed-{point}", work / f"{point}.log"
        targets = choose_points(passed, work / "undisturbed", point, random.Random(f"{seed} {point}"))
        for target in targets[seed % every :: every]:
            outcome.tried += 1
            status = in_child(partial(run_local, outputs(root), store, killer(target)), log)
            if status == -signal.SIGKILL:
                outcome.hit += 1
            else:
                outcome.missed.append(target)
                print(f"{target}: not killed, exit status {status}\n{log.read_text()}", flush=True)
        if in_child(partial(run_local, outputs(root), store), log):
            print(f"{point}: the last run failed\n{log.read_text()}", flush=True)
        outcome.look(Store(store), expected, f"killed at {point}")
    return outcome


def killer(target: str) -> Callable[[str], None]:
    """Return a failpoint that stops its process, as by a power cut, at `target`."""

    def fail(passed: str) -> None:
        if passed == target:
            os.kill(os.getpid(), signal.SIGKILL)

    return fail


def in_child(work: Callable[[], object], log: Path) -> int:
    """Do `work` in a forked process and return its exit status, negative for a signal."""
    child = start_child(work, log)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def start_child(work: Callable[[], object], log: Path) -> int:
    """Begin `work` in a forked process, its standard error in `log`, and return its pid."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
            work()
            status = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        finally:
            os._exit(status)
    return child


def run_local(made: Outputs, store: Path | Store, failpoint: Callable[[str], None] | None = None) -> None:
    """Run in this process."""
    run(made, store, runner="local", failpoint=failpoint)
