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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol

from curate.jobs import Item, Job, TaskError

RETRIES: Final = 5
"""How often a task is tried again after its worker or node was lost."""

WINDOW: Final = 2
"""Tasks in flight per worker: the next one is there when one ends, and a failure leaves little behind."""

OBJECT_STORE_BYTES: Final = 256 << 20
"""Ray's object store: only jobs and items pass through it."""


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


class RayRunner:
    """Runs items as Ray tasks, at most `window` per worker in flight; lost workers are retried, errors are not.

    Ray starts with the first item that there is to run, unless this process is connected to one already. Make a runner
    with `ray_runner`, which stops what was started.
    """

    def __init__(
        self,
        workers: int,
        modules: Sequence[types.ModuleType] = (),
        before: Callable[[], None] = lambda: None,
        window: int = WINDOW,
    ) -> None:
        """`modules` are shipped by value; `before` is called once, just before Ray starts."""
        self.workers, self.modules, self.before, self.window = workers, modules, before, window
        self.started = False

    def run(self, job: Job, items: Sequence[Item]) -> Iterator[Attempt]:
        """Run all items; the job is shipped once."""
        import ray

        self._start()
        remote = ray.remote(num_cpus=1, max_retries=RETRIES, retry_exceptions=False)(run_item)
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

    def _start(self) -> None:
        import ray

        if not ray.is_initialized():
            self.before()
            _start_ray(self.workers, self.modules)
            self.started = True

    def stop(self) -> None:
        """Stop Ray, if it was started."""
        if self.started:
            import ray

            ray.shutdown()
            for module in self.modules:
                ray.cloudpickle.unregister_pickle_by_value(module)
            self.started = False


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


def _start_ray(workers: int, modules: Sequence[types.ModuleType]) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray reads these only from the environment
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    import ray

    # A line about its authentication at each start, which is on and needs no word.
    logging.getLogger("ray._private.authentication.authentication_token_setup").setLevel(logging.ERROR)
    for module in modules:
        ray.cloudpickle.register_pickle_by_value(module)
    ray.init(
        num_cpus=workers,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="error",
        configure_logging=False,
        object_store_memory=OBJECT_STORE_BYTES,
    )


@contextmanager
def ray_runner(
    workers: int, modules: Sequence[types.ModuleType] = (), before: Callable[[], None] = lambda: None
) -> Iterator[RayRunner]:
    """Yield a runner on a local Ray with `workers` CPUs, which starts with its first item and is stopped on leaving.

    `modules` are shipped by value: the recipe's own file, which workers cannot import. `before` is called once, just
    before Ray starts.
    """
    runner = RayRunner(workers, modules, before)
    try:
        yield runner
    finally:
        runner.stop()
