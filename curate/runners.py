"""Runners: the same tasks in this process, or as Ray tasks.

A runner decides where and when an item runs, never what it makes. Items may finish in any order. The first failed item
ends the run with an error that names it; what was published stays, and the next run goes on from there.
"""

from __future__ import annotations

import logging
import os
import resource
import socket
import sys
import time
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from curate.jobs import Item, Job, TaskError


@dataclass(frozen=True, slots=True)
class Attempt:
    """A finished task: its result, and what the journal wants to know."""

    item: Item
    result: Any
    seconds: float
    host: str
    pid: int
    peak_mb: int

    @property
    def documents(self) -> int:
        """How many documents the task read, where it says so."""
        return self.result if isinstance(self.result, int) else 0


class Runner(Protocol):
    """Runs the items of a job."""

    def run(self, job: Job, items: Sequence[Item]) -> Iterator[Attempt]:
        """Run all items, yielding each as it finishes.

        Raises:
            TaskError: an item failed.
        """
        ...


def run_item(job: Job, item: Item) -> Attempt:
    """Run one item here."""
    began = time.monotonic()
    try:
        result = job.run(item)
    except Exception as error:
        raise TaskError(f"{job.name}, {item.label}: {type(error).__name__}: {error}") from error
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peak_mb = peak // 1024 if sys.platform != "darwin" else peak >> 20
    return Attempt(item, result, time.monotonic() - began, socket.gethostname(), os.getpid(), peak_mb)


@dataclass(frozen=True, slots=True)
class LocalRunner:
    """Runs items one after the other in this process."""

    def run(self, job: Job, items: Sequence[Item]) -> Iterator[Attempt]:
        """Run all items in order."""
        for item in items:
            yield run_item(job, item)


@dataclass(frozen=True, slots=True)
class RayRunner:
    """Runs items as Ray tasks, at most `window` per worker in flight; lost workers are retried, errors are not.

    Make one with `ray_runner`, which starts and stops Ray.
    """

    workers: int
    retries: int = 5
    window: int = 2

    def run(self, job: Job, items: Sequence[Item]) -> Iterator[Attempt]:
        """Run all items; the job is shipped once."""
        import ray

        remote = ray.remote(num_cpus=1, max_retries=self.retries, retry_exceptions=False)(run_item)
        shipped = ray.put(job)
        waiting = iter(items)
        flying: dict[Any, Item] = {}
        try:
            while True:
                while len(flying) < self.workers * self.window and (item := next(waiting, None)) is not None:
                    flying[remote.remote(shipped, item)] = item
                if not flying:
                    return
                done, _ = ray.wait(list(flying), num_returns=1)
                for reference in done:
                    yield _result(ray, job, flying.pop(reference), reference)
        finally:
            for reference in flying:
                ray.cancel(reference, force=False)


def _result(ray: types.ModuleType, job: Job, item: Item, reference: Any) -> Attempt:
    try:
        attempt: Attempt = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise TaskError(str(error.cause or error)) from None
    except ray.exceptions.RayError as error:
        raise TaskError(
            f"{job.name}, {item.label}: the worker was lost again and again ({type(error).__name__})"
        ) from error
    return attempt


@contextmanager
def ray_runner(workers: int, modules: Sequence[types.ModuleType] = ()) -> Iterator[RayRunner]:
    """Start a local Ray with `workers` CPUs, yield its runner, and stop it.

    `modules` are shipped by value: the recipe's own file, which workers cannot import.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray reads this only from the environment
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    import ray
    from ray import cloudpickle

    # A line about its authentication at each start, which is on and needs no word.
    logging.getLogger("ray._private.authentication.authentication_token_setup").setLevel(logging.ERROR)

    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    ray.init(
        num_cpus=workers,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="error",
        configure_logging=False,
        object_store_memory=256 << 20,
    )
    try:
        yield RayRunner(workers)
    finally:
        ray.shutdown()
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)
