"""Ray: one that is started here for a run, or one that runs already.

A Ray started here is private to its run: nothing is sent anywhere, no file is left in the user's home, and it stops
with the run. A running cluster is joined and left as it was. All its nodes are looked at first: their versions must be
the driver's, and they must see the store (`curate.cluster.worker.Agreement`).
"""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import signal
import socket
import subprocess
import threading
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from curate.cluster.nodes import Node, nodes_of
from curate.cluster.worker import Agreement, NodeReport, kill_workers, last_words, probe
from curate.configuration import ConfigurationError
from curate.running.progress import say

OBJECT_STORE_BYTES: Final = 256 << 20
"""The object store of a Ray started here: only jobs and items pass through it."""

NODE_SECONDS: Final = 300.0
"""How long a node may take to answer before a run, which includes starting a worker and compiling kernels."""

CONNECT_SECONDS: Final = 5.0
"""How long an address may take to answer."""


class Cluster(Protocol):
    """A Ray to connect to."""

    @property
    def shared(self) -> bool:
        """Whether it may have nodes that are other machines, which are checked."""
        ...

    @property
    def patience(self) -> float:
        """Seconds to wait for a node that has room, when none has."""
        ...

    def connect(self) -> None:
        """Connect this process.

        Raises:
            ConfigurationError: there is no such Ray.
        """
        ...

    def disconnect(self) -> None:
        """Leave, and stop what `connect` started."""
        ...


@dataclass(frozen=True, slots=True)
class StartedRay:
    """A Ray on this machine with so many CPUs, for one run."""

    workers: int
    patience: float = 0.0
    shared: bool = False

    def __str__(self) -> str:
        return f"a Ray that is started here, {self.workers} workers"

    def connect(self) -> None:
        """Start it."""
        import ray

        with _signals_kept(), _own_token():
            _init(
                ray,
                address="local",
                num_cpus=self.workers,
                include_dashboard=False,
                object_store_memory=OBJECT_STORE_BYTES,
            )

    def disconnect(self) -> None:
        """Stop it, and remove its logs: those of lost workers have been kept."""
        import ray

        node = ray._private.worker._global_node
        folder = None if node is None else node.get_session_dir_path()
        processes = () if node is None else processes_of(node)
        ray.shutdown()
        wait_for_end(processes)
        _read_environment()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class RunningRay:
    """A cluster that this machine is a node of: "auto", or "host:port" of its head."""

    address: str
    patience: float = 60.0
    shared: bool = True

    def __post_init__(self) -> None:
        """Check the form of the address.

        Raises:
            ConfigurationError: it is another.
        """
        if self.address.startswith("ray://"):
            raise ConfigurationError(
                f"--address {self.address}: a run of days must not hang on a client's connection. Run curate on a node "
                "of the cluster with --address auto, or send it there: ray job submit (see docs/cluster.md)"
            )
        host, colon, port = self.address.rpartition(":")
        if self.address != "auto" and not (host and colon and port.isdigit()):
            raise ConfigurationError(f"--address {self.address}: give auto, or HOST:PORT of the cluster's head node")

    def __str__(self) -> str:
        return f"the Ray cluster at {self.address}"

    def connect(self) -> None:
        """Join it."""
        import ray

        if self.address != "auto":
            host, _, port = self.address.rpartition(":")
            try:
                socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
            except OSError as error:
                raise ConfigurationError(f"--address {self.address}: nobody answers there ({error})") from error
        try:
            with _signals_kept():
                _init(ray, address=self.address)
        except (ray.exceptions.RayError, ConnectionError, RuntimeError, ValueError, AssertionError) as error:
            raise ConfigurationError(
                f"--address {self.address}: {error}\nThis machine must be a node of the cluster (ray start --address), "
                "with the same RAY_AUTH_MODE and token as its other nodes; from elsewhere use ray job submit. See "
                "docs/cluster.md"
            ) from error

    def disconnect(self) -> None:
        """Leave it as it is."""
        import ray

        ray.shutdown()


def _init(ray: types.ModuleType, **options: Any) -> None:
    # A line about its authentication at each start, which is on and needs no word.
    logging.getLogger("ray._private.authentication.authentication_token_setup").setLevel(logging.ERROR)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray reads these only from the environment
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_gcs_server_port_wait_time_s", "120")  # a busy machine needs more than Ray's 30
    ray.init(log_to_driver=False, logging_level="error", configure_logging=False, **options)


def processes_of(node: Any) -> tuple[subprocess.Popen[bytes], ...]:
    """Return the processes that Ray has started for a node on this machine."""
    return tuple(info.process for started in node.all_processes.values() for info in started)


def wait_for_end(processes: Sequence[subprocess.Popen[bytes]], seconds: float = 30.0) -> None:
    """Wait for processes that Ray has killed: it waits a second itself, which a busy machine may need for one alone."""
    for process in processes:
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Put back the handlers that Ray replaces: what a signal does is the driver's decision."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


@contextmanager
def _own_token() -> Iterator[None]:
    """Give a Ray of our own a token where the user has none: Ray would write one into the home, which may be read-only.

    Driver and workers go on with what they read at the start. The environment is left as it was, also where Ray itself
    turns the mode on: commands that this process starts know nothing of this token.
    """
    from ray._raylet import AuthenticationTokenLoader

    kept = {name: os.environ.get(name) for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN")}
    if not ({"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & set(os.environ) or _has_token_file()):
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
        AuthenticationTokenLoader.instance().reset_cache()
    try:
        yield
    finally:
        for name, value in kept.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _read_environment() -> None:
    """Have Ray read mode and token again: a cluster that is joined next has others than a Ray of our own."""
    from ray._raylet import AuthenticationTokenLoader, Config

    Config.initialize("")
    AuthenticationTokenLoader.instance().reset_cache()


def _has_token_file() -> bool:
    with suppress(OSError, RuntimeError):
        return (Path.home() / ".ray" / "auth_token").is_file()
    return False


class Connection:
    """The connection of a run to a Ray, made with the first item that there is to run.

    Attributes:
        agreement: what nodes must have, made when a running cluster is joined; None where all is one machine.
    """

    def __init__(
        self,
        cluster: Cluster,
        modules: Sequence[types.ModuleType] = (),
        before: Callable[[], None] = lambda: None,
        agree: Callable[[], Agreement | None] = lambda: None,
    ) -> None:
        """`modules` are shipped by value. `before` prepares a machine: it is called once on each, before its workers.

        `agree` makes what the nodes of a running cluster are checked against.
        """
        self.cluster, self.modules, self.before, self.agree = cluster, modules, before, agree
        self.agreement: Agreement | None = None
        self.opened = self.connected = False
        self._registered: list[types.ModuleType] = []
        self._greeted: dict[Any, Node] = {}

    def open(self) -> None:
        """Connect, unless that is done; a Ray that this process is connected to already is used, and left as it is.

        Raises:
            ConfigurationError: there is no such Ray, or a node must not take part.
        """
        import ray

        if self.opened:
            return
        foreign = ray.is_initialized()
        if foreign and self.cluster.shared:
            raise ConfigurationError("this process is connected to a Ray already: leave the address out")
        if foreign or self.cluster.shared:
            self.agreement = self.agree()
        else:
            self.before()
        there = ray.cloudpickle.list_registry_pickle_by_value()
        self._registered = [module for module in self.modules if module.__name__ not in there]
        for module in self._registered:
            ray.cloudpickle.register_pickle_by_value(module)
        self.opened = True
        if not foreign:
            say(f"connecting to {self.cluster}")
            self.connected = True  # before it is true: a start that is interrupted leaves processes, too
            self.cluster.connect()
        self._check_nodes()

    def close(self) -> None:
        """Leave, if `open` connected."""
        if not self.opened:
            return
        import ray

        if self.connected:
            self.cluster.disconnect()
        for module in self._registered:
            ray.cloudpickle.unregister_pickle_by_value(module)
        self.opened = self.connected = False

    def nodes(self) -> tuple[Node, ...]:
        """Return the live nodes."""
        import ray

        return nodes_of(ray.nodes())

    def _check_nodes(self) -> None:
        import ray

        asked = {reference: node for node in self.nodes() if (reference := self._probe(node)) is not None}
        ready, late = ray.wait(list(asked), num_returns=len(asked), timeout=NODE_SECONDS) if asked else ([], [])
        problems = {asked[reference].id: _problem(reference, asked[reference]) for reference in ready}
        problems |= {asked[one].id: f"{asked[one]} gave no answer within {NODE_SECONDS:.0f} s" for one in late}
        there = {node.id for node in self.nodes()}  # one that was lost meanwhile is no problem
        wrong = sorted({problem for node, problem in problems.items() if problem is not None and node in there})
        if wrong:
            raise ConfigurationError("the cluster cannot run this: " + "\n".join(wrong))

    def _probe(self, node: Node) -> Any:
        """Ask a node that runs tasks whether it may take part; return a reference to its answer."""
        import ray

        if self.agreement is None or node.cpus < 1:
            return None
        mark = f"{self.agreement.name}.{node.id[:16]}"
        return on_node(probe, node.id).remote(self.agreement, mark, ray.cloudpickle.dumps(self.before))

    def greet(self, node: Node) -> None:
        """Prepare a node that joined; its workers check themselves."""
        if (reference := self._probe(node)) is not None:
            self._greeted[reference] = node


def on_node(function: Callable[..., Any], node: str) -> Any:
    """Return `function` as a remote function that runs on the node of this id or nowhere, and takes no CPU."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    where = NodeAffinitySchedulingStrategy(node, soft=False)
    return ray.remote(num_cpus=0, max_retries=0, scheduling_strategy=where)(function)


def _problem(reference: Any, node: Node) -> str | None:
    """Return what a node that was asked says of itself, or why it cannot; None when it may take part."""
    import ray

    try:
        report: NodeReport = ray.get(reference)
    except ray.exceptions.RayError as error:
        return (
            f"{node} cannot run a task of curate ({type(error).__name__}: {str(error).strip().splitlines()[-1]}). "
            "Install the same requirements.lock and the same curate on every node"
        )
    return report.problem


def read_last_words(node: str, logs: tuple[str, ...], seconds: float = 20.0) -> str | None:
    """Return the ends of a dead worker's log files, which lie on its node; None when the node does not answer."""
    import ray

    try:
        text: str = ray.get(on_node(last_words, node).remote(logs), timeout=seconds)
    except ray.exceptions.RayError:
        return None
    return text


def end_workers(pids: Mapping[str, Sequence[int]], seconds: float = 1.0) -> None:
    """End workers that do not listen, by node; Ray ends those of a node that does not answer with the driver."""
    import ray

    asked = [on_node(kill_workers, node).remote(tuple(there)) for node, there in pids.items()]
    if asked:
        ray.wait(asked, num_returns=len(asked), timeout=seconds)


def exit_of(worker: str, seconds: float = 5.0) -> str:
    """Return how a worker ended, as Ray knows it: "SYSTEM_ERROR: Worker unexpectedly exits …"."""
    import time

    import ray
    from ray._raylet import WorkerID
    from ray.core.generated import common_pb2, gcs_pb2

    until = time.monotonic() + seconds
    while True:
        raw = ray._private.state.state._connect_and_get_accessor().get_worker_info(WorkerID.from_hex(worker))
        told = gcs_pb2.WorkerTableData.FromString(raw) if raw else None
        if told is not None and not told.is_alive:
            detail = str(told.exit_detail).partition(" Some common causes")[0]
            return f"{common_pb2.WorkerExitType.Name(told.exit_type)}: {detail}"
        if time.monotonic() > until:
            return "Ray does not say how"
        time.sleep(0.1)
