"""Training in Ray workers that are started again when one is lost, with as many as there is room for.

Each attempt starts a worker per host (or slice), joins them (`trainers.hosts`) and calls the same function in all. A
worker that is killed or preempted ends the attempt: the others, which wait for it in a sum, are ended, and the next
attempt goes on from the last checkpoint, with more or fewer workers as nodes come and go. What the function raises by
itself is an error of the run, and is not tried again. So a run is killed any number of times and ends the same, as far
as `trainers.train` promises it: bit for bit in strict mode.

The run's folder must be on a file system that all nodes see. Cost of a loss: the steps since the last checkpoint, and
the start of processes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from curate.configuration import ConfigurationError

Result = TypeVar("Result")

WAIT_SECONDS: Final = 2.0

LOSS_SECONDS: Final = 60.0
"""How long Ray may take to tell that a worker is gone: where a node is, health checks must be missed first."""


@dataclass(frozen=True, slots=True)
class Place:
    """Which of the processes of an attempt this is, and where they meet ("host:port")."""

    coordinator: str
    processes: int
    process: int

    def join(self) -> None:
        """Make this process one of several; with one there is nothing to do. To be called before anything of JAX."""
        from trainers.hosts import join_hosts

        if self.processes > 1:
            join_hosts(self.coordinator, self.processes, self.process)


@dataclass(frozen=True, slots=True)
class Workers:
    """How many workers there may be, what each needs, and how often they may be lost.

    An attempt takes the largest power of two of workers that there is room for, `fewest` to `most`. `settings` are
    environment variables of the workers, which JAX reads when it is imported.
    """

    fewest: int = 1
    most: int = 1
    cpus: float = 1
    gpus: float = 0
    losses: int = 1000
    settings: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            ConfigurationError: `fewest` is below 1 or above `most`.
        """
        if not 1 <= self.fewest <= self.most:
            raise ConfigurationError(f"workers from {self.fewest} to {self.most}: at least 1, in this order")


class LostWorkersError(RuntimeError):
    """Workers were lost more often than allowed."""


@dataclass(frozen=True, slots=True)
class Attempts(Generic[Result]):
    """What process 0 returned, and how many workers each attempt had."""

    result: Result
    workers: tuple[int, ...]


def supervise(
    work: Callable[[Place], Result], workers: Workers, told: Callable[[str], None] = lambda line: None
) -> Attempts[Result]:
    """Call `work` in the workers of the Ray that this process is connected to, until it returns in all of them.

    `work` is pickled; it should begin with `Place.join`. `told` is given a line for each attempt and each loss.

    Raises:
        LostWorkersError: workers were lost more than `workers.losses` times.
        Exception: what `work` raises.
    """
    import ray

    sizes: list[int] = []
    while len(sizes) <= workers.losses:
        size = _room(ray, workers, told)
        sizes.append(size)
        told(f"attempt {len(sizes)}: {size} of at most {workers.most} workers")
        actors = [_actor(ray, workers) for _ in range(size)]
        try:
            coordinator = ray.get(actors[0].meeting_point.remote())
            calls = [actor.call.remote(work, Place(coordinator, size, number)) for number, actor in enumerate(actors)]
            return Attempts(_results(ray, calls)[0], tuple(sizes))
        except ray.exceptions.RayActorError as error:
            told(f"a worker was lost: {str(error).splitlines()[0]}")
        finally:
            for actor in actors:
                with suppress(Exception):  # it may be gone already
                    ray.kill(actor)
    raise LostWorkersError(f"workers were lost {len(sizes)} times: look at the last lines of the run's log")


def _results(ray: Any, calls: list[Any]) -> list[Any]:
    """Return what all calls return, or raise what the first to fail raises: a lost worker before an error.

    The sum that a killed worker leaves fails in the others, often before Ray knows of its end.
    """
    waiting = list(calls)
    while waiting:
        ready, waiting = ray.wait(waiting, num_returns=1)
        try:
            ray.get(ready)
        except ray.exceptions.RayTaskError as error:
            _raise_loss(ray, waiting)
            raise error.as_instanceof_cause() from None
    return list(ray.get(calls))


def _raise_loss(ray: Any, waiting: list[Any]) -> None:
    """Raise that a worker of these calls was lost, if one is before all have ended or `LOSS_SECONDS` have passed."""
    end = time.monotonic() + LOSS_SECONDS
    while waiting and (left := end - time.monotonic()) > 0:
        ready, waiting = ray.wait(waiting, num_returns=1, timeout=left)
        with suppress(ray.exceptions.RayTaskError):  # it may have failed for the same reason
            ray.get(ready)


def _room(ray: Any, workers: Workers, told: Callable[[str], None]) -> int:
    """Return how many workers there is room for; waits for the fewest."""
    waited = False
    while True:
        free = ray.available_resources()
        rooms = [free.get("CPU", 0) // workers.cpus] if workers.cpus else []
        rooms += [free.get("GPU", 0) // workers.gpus] if workers.gpus else []
        size = 1 << (int(min([workers.most, *rooms])).bit_length() - 1) if min([workers.most, *rooms]) >= 1 else 0
        if size >= workers.fewest:
            return size
        if not waited:
            told(f"waiting for {workers.fewest} workers, there is room for {size}")
        waited = True
        time.sleep(WAIT_SECONDS)


def _actor(ray: Any, workers: Workers) -> Any:
    environment = {"env_vars": dict(workers.settings or {})}
    remote = ray.remote(num_cpus=workers.cpus, num_gpus=workers.gpus, max_restarts=0, runtime_env=environment)(_Worker)
    return remote.remote()


class _Worker:
    """A process of an attempt."""

    def meeting_point(self) -> str:
        """Return an address of this worker at which the others can meet it."""
        import socket

        import ray

        with socket.socket() as free:
            free.bind(("", 0))
            return f"{ray.util.get_node_ip_address()}:{free.getsockname()[1]}"

    def call(self, work: Callable[[Place], Any], place: Place) -> Any:
        """Return what `work` returns here."""
        return work(place)
