"""A child, as the worker sees it: asked for slices, watched, ended.

Between request and reply the worker looks every few milliseconds at the clock and at the child's memory. What ends a
child is a `Fall`, with a reason of the quarantine's `REASONS`; that it was killed or stopped by somebody else is a
`Lost`, which says nothing of any document. Cost: 0.1 ms a request.
"""

from __future__ import annotations

import json
import os
import select
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import pyarrow as pa

from curate.isolation.arena import Arena, Tray
from curate.isolation.child import IDLE_STATUS
from curate.isolation.limits import Limits, Patience
from curate.isolation.machine import INTERVAL, bound_data, memory_of, starved_seconds
from curate.isolation.pipes import IN_TRAY, RAISED, READY, REPLY, REQUEST, write_all

START_SECONDS: Final = 60.0
"""A child that has not begun to serve by then never will."""

SLACK: Final = 2 << 30
"""Bytes beyond twice the limit that a child may ask for: allocators reserve more than they use."""

OUTSIDE: Final = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
"""Signals that come from other processes or a kernel short of memory, not from what a page does to a parser."""


class IsolationError(RuntimeError):
    """Children cannot be started, or are killed again and again by somebody else."""


@dataclass(frozen=True, slots=True)
class Fall:
    """A slice that a child did not survive or did not finish: why, and what there is to say about it.

    `detail` is for people and stands in no list: where in the code it was.
    """

    reason: str
    evidence: dict[str, Any]
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Lost:
    """The child went for a reason that has nothing to do with the slice."""

    how: str


@dataclass(frozen=True, slots=True)
class Answer:
    """Header and body of the outcome of a slice."""

    header: bytes
    body: pa.Buffer


@dataclass(slots=True)
class Child:
    """A running child; `Nursery.child` makes one.

    Attributes:
        pid: its process id.
        requests, replies: our ends of its pipes.
        tray: where its replies lie.
        reap: waits for its end and returns its exit status, None where nobody can tell.
        base: memory that it needs for itself.
        slices: how many it has answered for.
    """

    pid: int
    requests: int
    replies: int
    tray: Tray
    reap: Callable[[], int | None]
    base: int = 0
    slices: int = 0
    is_running: bool = True
    waiting: select.poll = field(default_factory=select.poll)

    def make_ready(self, limits: Limits) -> None:
        """Wait until it serves, and bound its memory.

        Raises:
            IsolationError: it does not.
        """
        self.waiting.register(self.replies, select.POLLIN)
        heard = self._hear(Limits(START_SECONDS, 1 << 60))
        if not isinstance(heard, tuple) or heard[0] != READY:
            self.close()
            raise IsolationError(f"a process to apply transforms in did not start: {heard}")
        self.base = memory_of(self.pid)
        bound_data(self.pid, 2 * limits.memory + SLACK)

    def apply(self, request: bytes, limits: Limits) -> Answer | Fall | Lost:
        """Ask for a slice and wait for its outcome."""
        try:
            write_all(self.requests, request)
        except BrokenPipeError:
            return self._gone()
        heard = self._hear(limits)
        if not isinstance(heard, tuple):
            return heard
        kind, header, body = heard
        if self.slices == 0:
            self.base = max(self.base, memory_of(self.pid))  # models that load with the first document
        self.slices += 1
        return _raised(json.loads(header)) if kind == RAISED else Answer(header, body)

    def _hear(self, limits: Limits) -> tuple[int, bytes, pa.Buffer] | Fall | Lost:
        """Return kind, header and body of the next reply."""
        begin = self._receive(REPLY.size, limits)
        if not isinstance(begin, pa.Buffer):
            return begin
        kind, header_size, body_size = REPLY.unpack(begin)
        header = self._receive(header_size, limits)
        if not isinstance(header, pa.Buffer):
            return header
        body = self.tray.take(body_size) if kind == IN_TRAY else self._receive(body_size, limits)
        return (kind, header.to_pybytes(), body) if isinstance(body, pa.Buffer) else body

    def _receive(self, size: int, limits: Limits) -> pa.Buffer | Fall | Lost:
        buffer = pa.allocate_buffer(size)
        view = memoryview(buffer)
        patience = Patience(limits.seconds, partial(starved_seconds, self.pid))
        while view:
            if self.waiting.poll(INTERVAL * 1000):
                count = os.readv(self.replies, [view])
                if count == 0:
                    return self._gone()
                view = view[count:]
                patience.renew()
            elif memory_of(self.pid) > self.base + limits.memory:
                self.kill()
                return Fall("out of memory", {"bytes": limits.memory})
            elif patience.is_over():
                return self._hung(limits)
        return buffer

    def _hung(self, limits: Limits) -> Fall:
        grown = memory_of(self.pid) - self.base
        self.kill()
        seconds = f"{limits.seconds:g}"
        if limits.usual is not None and grown > limits.usual:
            return Fall("out of memory", {"bytes": limits.usual, "seconds": seconds})
        return Fall("hung", {"seconds": seconds})

    def _gone(self) -> Fall | Lost:
        """Return how a child ended that closed its replies."""
        status = self.kill()  # which finds it ended by something else before
        if status is None or status == IDLE_STATUS:
            return Lost("idle" if status else "end of its nursery")
        if -status in OUTSIDE:
            return Lost(_signal(status))
        return Fall("crashed", {"signal": _signal(status)} if status < 0 else {"exit status": status})

    def has_grown(self, limits: Limits) -> bool:
        """Return whether the child holds on to so much memory that its next document might be blamed for it."""
        return self.slices > 0 and memory_of(self.pid) > self.base + limits.memory // 2

    def kill(self) -> int | None:
        """End the child and whatever it started, wait until it is gone, and return its exit status."""
        if not self.is_running:  # its number may be another's by now
            return None
        self.is_running = False
        for end in (os.killpg, os.kill):  # it may not have a group of its own yet
            with suppress(ProcessLookupError, PermissionError):
                end(self.pid, signal.SIGKILL)
        return self.reap()

    def close(self) -> None:
        """End the child and close what was shared with it."""
        self.kill()
        if self.requests < 0:
            return
        self.tray.close()
        for descriptor in (self.requests, self.replies):
            os.close(descriptor)
        self.requests = self.replies = -1


def _signal(status: int) -> str:
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"


def request(arena: Arena, step: int, start: int, stop: int) -> bytes:
    """Return the request for the outcome of rows of the batch in `arena`."""
    return REQUEST.pack(arena.batches, arena.size, step, start, stop)


def _raised(said: dict[str, Any]) -> Fall:
    evidence = {"type": said["type"], "message": said["message"]}
    return Fall("out of memory" if said["memory"] else "raised", evidence, said["where"])
