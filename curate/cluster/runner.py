"""Items as Ray tasks: few in flight, lost ones again, and every attempt told to the journal.

The window follows the CPUs that the cluster has now, so nodes that join are used and memory of the driver depends on
their number, not on the number of items. A job is pickled once and unpickled once per worker. Ray itself retries
nothing: a lost worker or node is seen here, named, and tried again by `Retries`; an error of the task ends the run.
"""

from __future__ import annotations

import heapq
import math
import time
import types
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

from curate.cluster.clusters import Connection, StartedRay, end_workers, exit_of, read_last_words
from curate.cluster.nodes import Node, capacity, no_room
from curate.cluster.retries import RETRIES, Retries
from curate.cluster.worker import Began, Shipped, run_shipped
from curate.running.jobs import Item, Job, Resources, TaskError, resources_of
from curate.running.progress import clock, say
from curate.running.runners import SILENT, Attempt, Failed, Log, failure

WINDOW: Final = 2
"""Tasks in flight per task that runs: the next one is there when one ends, and a failure leaves little behind."""

LOOK_SECONDS: Final = 2.0
"""How often the cluster's nodes are looked at."""

WAKE_SECONDS: Final = 0.5
"""The longest wait for a task before the driver looks around: at its nodes, at what is due again, at signals."""

MESSAGE: Final = 400
"""Characters of Ray's own words on a worker that it killed for memory."""

STOP_SECONDS: Final = 2.0
"""How long tasks that are cancelled may take to end by themselves; less than what batch systems grant."""


@dataclass(slots=True)
class _Try:
    """An item on its way: how often workers and nodes were lost under it, and where it runs now."""

    item: Item
    lost_workers: int = 0
    lost_nodes: int = 0
    sent: float = 0.0
    began: Began | None = None

    @property
    def losses(self) -> int:
        return self.lost_workers + self.lost_nodes


@dataclass(frozen=True, slots=True)
class _Loss:
    """What is known about a lost attempt."""

    node: bool
    exit: str
    log: str | None


@dataclass(order=True, slots=True)
class _Due:
    """An item that is tried again at a time."""

    at: float
    place: int
    attempt: _Try = field(compare=False)


class RayRunner:
    """Runs items as Ray tasks.

    Make one with `ray_runner`, which leaves the cluster at the end.
    """

    def __init__(
        self,
        connection: Connection,
        most: int | None = None,
        log: Log = SILENT,
        retries: Retries = RETRIES,
    ) -> None:
        """`most` limits how many tasks run at once; None: as many as the cluster has room for."""
        self.connection, self.most, self.log, self.retries = connection, most, log, retries

    def run(self, job: Job, items: Sequence[Item]) -> Iterator[Attempt]:
        """Run all items.

        Raises:
            TaskError: an item failed, lost its worker again and again, or needs more than any node has.
            ConfigurationError: there is no such cluster, or a node of it must not take part.
        """
        self.connection.open()
        flight = _Flight(self, job, iter(items))
        try:
            while flight.send():
                yield from flight.land()
        finally:
            flight.stop()


class _Flight:
    """The items of one job on their way."""

    def __init__(self, runner: RayRunner, job: Job, items: Iterator[Item]) -> None:
        import ray

        self.runner, self.job, self.log = runner, job, runner.log
        self.need = resources_of(job)
        self.waiting = items
        self.again: list[_Due] = []
        self.flying: dict[Any, _Try] = {}
        self.nodes: tuple[Node, ...] | None = None
        self.told = False
        self.looked = self.roomy = time.monotonic()
        self.remote = _remote(ray, job, self.need)
        self.shipped = _ship(ray, job, runner.connection)

    # --- sending ---------------------------------------------------------------------------------------------------

    def send(self) -> bool:
        """Send what there is room for; return whether anything is left to do."""
        window = self._window()
        while len(self.flying) < window and (attempt := self._next()) is not None:
            attempt.sent, attempt.began = time.time(), None
            self.flying[self.remote.remote(self.shipped, attempt.item)] = attempt
        return bool(self.flying or self.again) or self._peek()

    def _next(self) -> _Try | None:
        if self.again and self.again[0].at <= time.monotonic():
            return heapq.heappop(self.again).attempt
        item = next(self.waiting, None)
        return None if item is None else _Try(item)

    def _peek(self) -> bool:
        """Return whether items are left when nothing flies, as on a cluster without room."""
        item = next(self.waiting, None)
        if item is not None:
            heapq.heappush(self.again, _Due(0.0, id(item), _Try(item)))
        return item is not None

    def _window(self) -> int:
        now = time.monotonic()
        if self.nodes is None or now - self.looked >= LOOK_SECONDS:
            self._look()
            self.looked = now
        room = self._room(now)
        most = self.runner.most
        return room * WINDOW if most is None else min(room * WINDOW, most)

    def _room(self, now: float) -> int:
        """Return how many tasks run at once; 0 for a while, in which a node with room may join."""
        nodes = self.nodes or ()
        room = capacity(nodes, self.need)
        if room:
            self.roomy, self.told = now, False
        elif now - self.roomy >= self.runner.connection.cluster.patience:
            raise TaskError(no_room(self.job.name, nodes, self.need))
        elif not self.told:
            self.told = True
            self.log.write("waiting", job=self.job.name, needs=str(self.need), nodes=[str(node) for node in nodes])
            say(f"{self.job.name}: no node has {self.need}; waiting for one")
        return room

    def _look(self) -> None:
        """Look at the nodes, and tell which came and which went."""
        nodes = self.runner.connection.nodes()
        if self.nodes is not None:
            for node in set(nodes) - set(self.nodes):
                self.log.write("node", change="joined", node=node.id, host=node.host, has=str(node))
                say(f"a node joined: {node}")
                self.runner.connection.greet(node)
            for node in set(self.nodes) - set(nodes):
                self.log.write("node", change="left", node=node.id, host=node.host, has=str(node))
                say(f"a node was lost: {node}; what it ran is run again")
        self.nodes = nodes

    # --- landing ---------------------------------------------------------------------------------------------------

    def land(self) -> Iterator[Attempt]:
        """Wait a moment; yield what finished."""
        import ray

        if not self.flying:
            time.sleep(WAKE_SECONDS / 5)
            return
        first, _ = ray.wait(list(self.flying), num_returns=1, timeout=WAKE_SECONDS)
        if first:  # all that is ready, or each finished task would look through all in flight
            ready, _ = ray.wait(list(self.flying), num_returns=len(self.flying), timeout=0)
            for stream in ready:
                if (attempt := self._advance(ray, stream)) is not None:
                    yield attempt

    def _advance(self, ray: types.ModuleType, stream: Any) -> Attempt | None:
        """Take the next word of a task: where it began, or what became of it."""
        attempt = self.flying[stream]
        try:
            word: Began | Attempt | Failed = ray.get(next(stream))
        except ray.exceptions.RayTaskError as error:
            del self.flying[stream]
            raise TaskError(f"{self._place(attempt)}: {error.cause or error}", **self._details(attempt)) from None
        except ray.exceptions.RayError as error:
            del self.flying[stream]
            self._lost(ray, attempt, error)
            return None
        if isinstance(word, Began):
            attempt.began = word
            self.log.write("began", **self._details(attempt))
            return None
        del self.flying[stream]
        if isinstance(word, Failed):
            raise failure(self.job, attempt.item, attempt.losses + 1, word, self.log)
        return replace(word, item=attempt.item, number=attempt.losses + 1)

    def _place(self, attempt: _Try) -> str:
        return f"{self.job.name}, {attempt.item.label}"

    def _details(self, attempt: _Try) -> dict[str, Any]:
        item = attempt.item
        details: dict[str, Any] = {"job": self.job.name, "key": item.key, "label": item.label}
        details |= {"attempt": attempt.losses + 1, "start": attempt.began.start if attempt.began else attempt.sent}
        began = attempt.began
        return details | ({} if began is None else {"host": began.host, "node": began.node, "pid": began.pid})

    # --- losing ----------------------------------------------------------------------------------------------------

    def _lost(self, ray: types.ModuleType, attempt: _Try, error: Exception) -> None:
        """Have a lost attempt tried again, or raise when that was often enough."""
        if not isinstance(error, _losses(ray)):
            raise TaskError(
                f"{self._place(attempt)}: {type(error).__name__}: {error}", **self._details(attempt)
            ) from error
        loss = self._what_is_known(ray, attempt, error)
        details = self._details(attempt) | {"exit": loss.exit, "log": loss.log}
        details["seconds"] = round(time.time() - details["start"], 3)
        attempt.lost_nodes += loss.node
        attempt.lost_workers += not loss.node
        retries = self.runner.retries
        if attempt.lost_workers > retries.workers or attempt.lost_nodes > retries.nodes:
            raise TaskError(self._gave_up(attempt, loss), **details) from error
        wait = retries.wait(attempt.losses)
        self.log.write("lost", **details, again_in=wait)
        if loss.node:  # told once when it is seen to be gone, not for each of its tasks
            self.looked = -math.inf
        else:
            say(f"{self._place(attempt)}: lost its worker ({loss.exit}), again in {clock(wait)}")
        heapq.heappush(self.again, _Due(time.monotonic() + wait, attempt.losses, attempt))

    def _what_is_known(self, ray: types.ModuleType, attempt: _Try, error: Exception) -> _Loss:
        began, how = attempt.began, _how(ray, attempt.began, error)
        if began is None or isinstance(error, ray.exceptions.NodeDiedError):
            return _Loss(isinstance(error, ray.exceptions.NodeDiedError), how, None)
        words = read_last_words(began.node, began.logs)
        if words is None:
            return _Loss(False, how, f"{' and '.join(began.logs)} on {began.host}, which does not answer")
        name = f"lost-{attempt.item.key[:16] or 'task'}-{attempt.losses + 1}.txt"
        return _Loss(False, how, self.log.keep(name, f"{how}\n{words}") or None)

    def _gave_up(self, attempt: _Try, loss: _Loss) -> str:
        what = f"its node was lost {attempt.lost_nodes} times" if loss.node else (
            f"its worker was lost {attempt.lost_workers} times"
        )  # fmt: skip
        where = f", the last time on {attempt.began.host} (process {attempt.began.pid})" if attempt.began else ""
        log = f"; its last words: {loss.log}" if loss.log else ""
        return f"{self._place(attempt)}: {what}{where}: {loss.exit}{log}"

    # --- stopping --------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Cancel what flies, wait shortly for it to end, and end the workers of the rest.

        A run that was given up may come here when its connection is closed already, which ended all of it; any word to
        Ray would then start another one.
        """
        if not self.runner.connection.opened:
            self.flying.clear()
        if not self.flying:
            return
        import ray

        for stream in self.flying:
            ray.cancel(stream, force=False)
        ends = {stream.completed(): stream for stream in self.flying}
        ended, _ = ray.wait(list(ends), num_returns=len(ends), timeout=STOP_SECONDS)
        for reference in ended:
            del self.flying[ends[reference]]
        # Ray does not force what it has been asked to cancel before.
        deaf = [attempt.began for attempt in self.flying.values() if attempt.began is not None]
        end_workers({node: [began.pid for began in deaf if began.node == node] for node in {b.node for b in deaf}})
        self.flying.clear()


def _how(ray: types.ModuleType, began: Began | None, error: Exception) -> str:
    """Return how an attempt was lost, as far as Ray tells."""
    name, text = type(error).__name__, " ".join(str(error).split())
    if isinstance(error, ray.exceptions.NodeDiedError):
        return f"{name}: {text.partition(' This can happen')[0]}"
    if isinstance(error, ray.exceptions.OutOfMemoryError):
        return f"{name}: {text[:MESSAGE]} (fewer tasks at once by --workers, or larger nodes, leave each more)"
    return f"{name}: {exit_of(began.worker)}" if began is not None else f"{name}, before the task said where it was"


def _losses(ray: types.ModuleType) -> tuple[type[Exception], ...]:
    errors = ray.exceptions
    return (
        errors.WorkerCrashedError, errors.NodeDiedError, errors.OutOfMemoryError, errors.ObjectLostError,
        errors.LocalRayletDiedError,
    )  # fmt: skip


def _remote(ray: types.ModuleType, job: Job, need: Resources) -> Any:
    options: dict[str, Any] = {"num_cpus": need.cpus, "max_retries": 0, "num_returns": "streaming"}
    options |= {"memory": need.memory} if need.memory else {}
    options |= {"num_gpus": need.gpus} if need.gpus else {}
    return ray.remote(**options)(run_shipped).options(name=f"run_item {job.name}")


def _ship(ray: types.ModuleType, job: Job, connection: Connection) -> Shipped:
    try:
        pickled = ray.cloudpickle.dumps(job)
    except Exception as error:  # whatever a foreign object's pickling raises
        raise TaskError(
            f"{job.name}: cannot be sent to workers: {type(error).__name__}: {error}. A function of the recipe holds "
            "on to something that lives in this process only, as an open file or a lock"
        ) from error
    return Shipped(uuid.uuid4().hex, (ray.put(pickled),), connection.agreement)


@contextmanager
def ray_runner(
    workers: int, modules: Sequence[types.ModuleType] = (), before: Callable[[], None] = lambda: None, log: Log = SILENT
) -> Iterator[RayRunner]:
    """Yield a runner on a Ray of its own with `workers` CPUs; it starts with the first item and is stopped on leaving.

    `modules` are shipped by value: the recipe's own file, which workers cannot import. `before` is called once, just
    before Ray starts.
    """
    with connected(Connection(StartedRay(workers), modules, before), log=log) as runner:
        yield runner


@contextmanager
def connected(connection: Connection, most: int | None = None, log: Log = SILENT) -> Iterator[RayRunner]:
    """Yield a runner on a connection, which is closed on leaving."""
    try:
        yield RayRunner(connection, most, log)
    finally:
        connection.close()
