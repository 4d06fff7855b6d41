"""What runs inside a Ray worker: one item at a time, of a job that each worker unpickles once.

A task tells three things: that it began, and where; then what became of it. So the driver can name the place of a task
whose worker is lost, and `curate status` can say what runs now.
"""

from __future__ import annotations

import os
import pickle
import platform
import signal
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from curate.cluster.versions import differences, versions_here
from curate.running.jobs import Item, Job
from curate.running.measuring import tail
from curate.running.runners import NOT_SENT, Attempt, Failed, in_words, try_item
from curate.store import Store


class NodeError(RuntimeError):
    """A node that must not take part: another version of something, or it does not see the store."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """What a node must have before it runs anything.

    Attributes:
        store: that it must see.
        name: of a file in it.
        token: the file's content.
        versions: those of the driver.
    """

    store: Store
    name: str
    token: bytes
    versions: Mapping[str, str]

    def check(self) -> None:
        """Check this node.

        Raises:
            NodeError: what is wrong with it.
        """
        host = socket.gethostname()
        if different := differences(self.versions, versions_here()):
            raise NodeError(
                f"{host} has other versions than the driver, so its output might differ: {'; '.join(different)}. "
                "Install the same requirements.lock and the same curate on every node"
            )
        try:
            seen = self.store.read_bytes(self.name) == self.token
            problem = "it sees another store in that place"
        except Exception as error:  # whatever a file system or a store's client raises
            seen, problem = False, f"{type(error).__name__}: {error}"
        if not seen:
            raise NodeError(
                f"{host} cannot see the store {self.store.url('')} ({problem}): use a folder that every node mounts at "
                "the same path, or a URL"
            )


@dataclass(frozen=True, slots=True)
class Shipped:
    """A job on its way: known by its token, so that a worker that has it need not unpickle it again.

    Attributes:
        token: of this job in this run.
        pickled: reference to its bytes in Ray's object store, in a tuple, which Ray leaves for us to fetch.
        agreement: what a node must have first; None where driver and workers share one machine.
    """

    token: str
    pickled: tuple[Any, ...] = field(compare=False)
    agreement: Agreement | None = field(compare=False)


@dataclass(frozen=True, slots=True)
class Began:
    """A task began here.

    Attributes:
        logs: paths of the files that the worker's standard output and error go to, on its host.
    """

    host: str
    pid: int
    node: str
    worker: str
    start: float
    logs: tuple[str, ...]


def run_shipped(shipped: Shipped, item: Item) -> Iterator[Began | Attempt | Failed]:
    """Run one item in this worker: yield where, then what became of it."""
    began = began_here()
    yield began
    try:
        job = _unpickled(shipped)
    except Exception as error:
        yield Failed(in_words(error), "", time.time() - began.start, began.host, began.pid, began.start)
        return
    outcome = try_item(job, item)
    yield replace(outcome, item=NOT_SENT) if isinstance(outcome, Attempt) else outcome


@lru_cache(maxsize=1)
def _unpickled(shipped: Shipped) -> Job:
    import ray

    if shipped.agreement is not None:
        shipped.agreement.check()
    job: Job = pickle.loads(ray.get(shipped.pickled[0]))
    return job


def began_here() -> Began:
    """Return where this worker is."""
    import ray

    context = ray.get_runtime_context()
    return Began(
        socket.gethostname(), os.getpid(), context.get_node_id(), context.get_worker_id(), time.time(), _own_logs()
    )


@lru_cache(maxsize=1)
def _own_logs() -> tuple[str, ...]:
    paths = []
    for descriptor in (1, 2):
        with suppress(OSError):
            paths.append(os.readlink(f"/proc/self/fd/{descriptor}"))
    return tuple(path for path in paths if path.startswith("/") and os.path.isfile(path))


@dataclass(frozen=True, slots=True)
class NodeReport:
    """What a node says of itself before a run: its problem, if there is one."""

    host: str
    machine: str
    problem: str | None


def probe(agreement: Agreement, mark: str, prepare: bytes | None) -> NodeReport:
    """Check this node, write `mark` into the store, and prepare the node, as by compiling kernels."""
    host = f"{socket.gethostname()}"
    try:
        agreement.check()
        agreement.store.put(mark, agreement.token)
        if prepare is not None:
            pickle.loads(prepare)()
    except Exception as error:  # the driver lists it with those of other nodes
        return NodeReport(host, platform.machine(), str(error) if isinstance(error, NodeError) else in_words(error))
    return NodeReport(host, platform.machine(), None)


def last_words(paths: tuple[str, ...]) -> str:
    """Return the ends of a dead worker's log files on this node."""
    return "".join(f"--- {path}\n{tail(path)}\n" for path in paths)


def kill_workers(pids: tuple[int, ...]) -> None:
    """Kill workers of this node whose tasks were cancelled and go on."""
    for pid in pids:
        with suppress(OSError):
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ray::"):  # and no other process by now
                os.kill(pid, signal.SIGKILL)
