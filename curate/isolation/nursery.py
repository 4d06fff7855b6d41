"""The process that a worker's children come from, as the worker sees it: see `curate.isolation.child`.

Cost: about a second to start, of which most is imports; a few milliseconds a child.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from curate.isolation.arena import Arena, Tray
from curate.isolation.limits import Limits
from curate.isolation.pipes import CHAIN, FORK, ORDER, READY, REPLY, RESULT, WAIT, wide_pipe
from curate.isolation.process import Child, IsolationError

START_SECONDS: Final = 300.0
"""A nursery that has not loaded its chain by then never will."""

ANSWER_SECONDS: Final = 60.0
"""A nursery that has not forked or told a status by then is gone."""

_BOOT: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from curate.isolation.child import main; main(*map(int, sys.argv[2:]))"
)
_ONE_THREAD: Final = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "JE_ARROW_MALLOC_CONF": "background_thread:false",  # Arrow's second allocator would start one
}


class NurseryGone(ConnectionError):  # noqa: N818 (what happened)
    """The nursery ended: idle, or killed by somebody."""


class Nursery:
    """Forks children that have loaded a chain."""

    def __init__(self, chain: bytes, arena: Arena) -> None:
        """Start it.

        Raises:
            IsolationError: it could not load the chain, or did not start.
        """
        mine, its = socket.socketpair()
        arguments = [json.dumps([path for path in sys.path if isinstance(path, str)])]
        arguments += [str(number) for number in (os.getpid(), its.fileno(), arena.descriptor)]
        with its:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _BOOT, *arguments],
                stdin=subprocess.DEVNULL,
                pass_fds=(its.fileno(), arena.descriptor),
                env={**os.environ, **_ONE_THREAD},
                process_group=0,
            )
        self.orders, self.lock, self.is_child = mine, threading.Lock(), False
        try:
            self._load(chain)
        except BaseException:
            self.close()
            raise

    def _load(self, chain: bytes) -> None:
        self.orders.settimeout(START_SECONDS)
        try:
            self.orders.sendall(CHAIN.pack(len(chain)) + chain)
            kind, size, _ = REPLY.unpack(self._read(REPLY.size))
            said = self._read(size)
        except OSError as error:
            raise IsolationError(f"a process to apply transforms in did not start ({error})") from error
        if kind != READY:
            raise IsolationError(
                "a process to apply transforms in cannot load them; what they need must be importable there, or stand "
                f"in the recipe's own file:\n{said.decode()}"
            )
        self.orders.settimeout(ANSWER_SECONDS)

    def _read(self, size: int) -> bytes:
        parts = b""
        while len(parts) < size:
            part = self.orders.recv(size - len(parts))
            if not part:
                raise NurseryGone("it ended")
            parts += part
        return parts

    def child(self, limits: Limits) -> Child:
        """Return a new child.

        Raises:
            NurseryGone: there is no nursery any more.
        """
        if self.is_child:
            raise NurseryGone("it is a child itself")
        from_us, requests = wide_pipe()
        replies, to_us = wide_pipe()
        tray = Tray()
        try:
            pid = self._order(FORK, 0, [from_us, to_us, tray.descriptor])
        except OSError as error:
            os.close(requests)
            os.close(replies)
            tray.close()
            raise NurseryGone(str(error)) from error
        finally:
            os.close(from_us)
            os.close(to_us)
        status: Callable[[], int | None] = partial(self._status, pid)
        if pid == 0:
            self.is_child = True
            pid, status = self.process.pid, self.process.wait
        child = Child(pid, requests, replies, tray, status)
        child.make_ready(limits)
        return child

    def _status(self, pid: int) -> int | None:
        """Return how a child ended, waiting for it; None where nobody knows."""
        try:
            return self._order(WAIT, pid)
        except OSError:
            return None

    def _order(self, order: int, pid: int, descriptors: Sequence[int] = ()) -> int:
        with self.lock:  # two suspects may end at once
            try:
                socket.send_fds(self.orders, [ORDER.pack(order, pid)], list(descriptors))
                return int(RESULT.unpack(self._read(RESULT.size))[0])
            except BaseException:  # the next answer would be to this order
                self.orders.close()
                raise

    def leave(self) -> None:
        """Leave it to itself: it is a child now, and ends as one."""
        self.orders.close()

    def close(self) -> None:
        """End it, and with it its children."""
        self.orders.close()
        if self.process.poll() is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
