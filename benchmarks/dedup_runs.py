"""Runs of a recipe, as `curate run` makes them, each in a process of its own: what they cost and what they decided.

Such a process has curate loaded and is forked, so that it has no memory of earlier ones; it keeps to one core, calls
the kernels once on a few texts, and then runs, once or in several turns. CPU seconds are of one run, all threads;
memory of a task is the largest resident memory of the process while it ran (some 200 MB of it libraries), as the
journal has it. The clock of a task stretches on a busy machine, its CPU time less so; the journal has the clock.
"""

from __future__ import annotations

import cProfile
import json
import os
import resource
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext, redirect_stderr
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import dedup_recipe
from curate.datasets import Dataset, datasets_in
from curate.run import run
from curate.running.journal import events_of, runs_in
from curate.store import Store

CORE: Final = max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
"""The one core that everything that is measured keeps to, other tools as well."""


@dataclass(frozen=True, slots=True)
class Spec:
    """A run of `recipe` of `benchmarks.dedup_recipe` on the Parquet files below `root`, into `store`.

    Stages that are there already are not made again.

    `turns` is how often it runs, of which the fastest counts; all but the last into stores that go again. Tasks of all
    but the first find memory that earlier ones freed, as in a worker with more than one task. `profile` is where a
    profile of the last goes; it slows everything down.
    """

    recipe: str
    root: Path
    store: Path
    profile: Path | None = None
    turns: int = 1


@dataclass(frozen=True, slots=True)
class Spent:
    """What tasks of one kind took: how many, seconds of the clock in all, and MB of the one that took most."""

    tasks: int
    seconds: float
    peak_mb: int


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run took and found.

    Attributes:
        cpu: seconds, of the fastest turn; all else is of the last.
        peak_mb: of the process, texts and libraries included.
        jobs: by kind of task, in the order in which they began.
        disk: bytes of all files of the store.
        documents: that came in, and `kept` of these.
        characters: code points that came in, and `left` of these.
        counts: of near duplicates: pairs proposed, given up, compared; edges.
    """

    cpu: float
    peak_mb: int
    jobs: Mapping[str, Spent]
    disk: int
    documents: int
    kept: int
    characters: int
    left: int
    counts: Mapping[str, int]

    @property
    def task_mb(self) -> int:
        """MB of the task that took most."""
        return max(spent.peak_mb for spent in self.jobs.values())


def measure(spec: Spec) -> Measured:
    """Run in a process of its own.

    Raises:
        Exception: what the run raised.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    with ProcessPoolExecutor(1, context) as pool:
        return pool.submit(_measure, spec).result()


def keep_to_core() -> None:
    """Let this process, and what it starts, run on `CORE` alone, where the system can do that."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {CORE})


def _measure(spec: Spec) -> Measured:
    keep_to_core()
    with TemporaryDirectory(dir=spec.store.parent) as few:
        _write_few(Path(few) / "in")
        _run(spec, Path(few) / "in", Path(few) / "store")
    taken = []
    for _ in range(spec.turns - 1):
        with TemporaryDirectory(dir=spec.store.parent) as store:
            taken.append(_run(spec, spec.root, Path(store))[0])
    profile = cProfile.Profile() if spec.profile else None
    with profile or nullcontext():
        cpu, made = _run(spec, spec.root, spec.store)
    if profile is not None and spec.profile is not None:
        profile.dump_stats(spec.profile)
    return _measured(min([*taken, cpu]), made)


def _run(spec: Spec, root: Path, store: Path) -> tuple[float, Dataset]:
    """Run once; return seconds of CPU, and what it made."""
    function = getattr(dedup_recipe, spec.recipe).function
    began = time.process_time()
    with open(os.devnull, "w") as nowhere, redirect_stderr(nowhere):
        result = run(function(str(root)), store, runner="local")
    return time.process_time() - began, result.outputs["unique"]


def _measured(cpu: float, made: Dataset) -> Measured:
    store = made.store
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "linux" else 1 << 20)
    disk = sum(path.stat().st_size for path in Path(store.root).rglob("*") if path.is_file())
    statistics = made.statistics
    flows = [flow for step in statistics["steps"].values() for flow in step["sources"].values()]
    came, characters, left = (
        sum(flow[name] for flow in flows) for name in ("documents_in", "characters_in", "characters_out")
    )
    counts = statistics.get("duplicates", {})
    return Measured(cpu, peak, jobs_of(store), disk, came, made.rows, characters, left, counts)


def jobs_of(store: Store) -> dict[str, Spent]:
    """Return what the tasks of the last run of a store took, by kind."""
    jobs: dict[str, Spent] = {}
    for event in events_of(store, runs_in(store)[-1]):
        if event["event"] == "task":
            had = jobs.get(event["job"], Spent(0, 0.0, 0))
            seconds, peak = had.seconds + event["seconds"], max(had.peak_mb, event["peak_mb"])
            jobs[event["job"]] = Spent(had.tasks + 1, seconds, peak)
    return jobs


def _write_few(root: Path) -> None:
    """Write a few texts of which some resemble each other."""
    root.mkdir(parents=True)
    page = " ".join(f"word{n}" for n in range(100))
    texts = [page, page + " more", page, "other words", ""]
    table = {"id": [f"n{n}" for n in range(5)], "text": texts, "place": list(range(5))}
    pq.write_table(pa.table(table), root / "few.parquet")


@dataclass(frozen=True, slots=True)
class Gone:
    """Why a document went: its own name does not stand here. `survivor` is the id of the one that it goes for."""

    reason: str
    survivor: bytes | None
    shared: int | None
    whole: int | None


def verdicts_of(store: Path) -> tuple[list[str], dict[bytes, str], dict[bytes, Gone]]:
    """Return what a run with the recipe `unique_by_place` decided, from its store alone.

    Names of the documents that stay, in order; id → name of all that were read; id → why it went.
    """
    datasets = {made.name: made for made in datasets_in(Store(store))}
    unique = datasets["deduplicate"]
    stays = [name for batch in unique.batches(["name"]) for name in batch.column("name").to_pylist()]
    names: dict[bytes, str] = {}
    for batch in datasets["read texts"].batches(["id", "name"]):
        names.update(zip(batch.column("id").to_pylist(), batch.column("name").to_pylist(), strict=True))
    gone = {}
    for batch in unique.ledger():
        for row in batch.select(["id", "reason", "numerator", "denominator", "evidence"]).to_pylist():
            evidence = json.loads(row["evidence"]) if row["evidence"] else {}
            survivor = bytes.fromhex(evidence["survivor"]) if "survivor" in evidence else None
            gone[row["id"]] = Gone(row["reason"], survivor, row["numerator"], row["denominator"])
    return stays, names, gone


def stays_of(store: Path) -> npt.NDArray[np.bool_]:
    """Return which documents stay, in the order in which they were read."""
    datasets = {made.name: made for made in datasets_in(Store(store))}
    kept = {name for batch in datasets["deduplicate"].batches(["id"]) for name in batch.column("id").to_pylist()}
    read = (name for batch in datasets["read texts"].batches(["id"]) for name in batch.column("id").to_pylist())
    return np.fromiter((name in kept for name in read), np.bool_)
