"""A child of this worker, as the worker sees it: started, asked for slices, watched, ended.

Between request and reply the worker looks every few milliseconds at the clock and at the child's memory. What ends a
child is a `Fall` with a reason of `curate.quarantine.REASONS`; that it was killed or stopped by somebody else is a
`Lost`, which says nothing of any document. Cost: starting one takes about a second, of which most is imports.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from curate.isolation.arena import Arena
from curate.isolation.child import IDLE_STATUS
from curate.isolation.limits import Limits, Patience
from curate.isolation.machine import INTERVAL, bound_data, memory_of
from curate.isolation.pipes import BROKEN, CHAIN, DONE, READY, REPLY, REQUEST, wide_pipe, write_all

START_SECONDS: Final = 300.0
"""A child that is not ready by then never will be."""

SLACK: Final = 2 << 30
"""Bytes beyond twice the limit that a child may ask for: allocators reserve more than they use."""

OUTSIDE: Final = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
"""Signals that come from other processes or a kernel short of memory, not from what a page does to a parser."""

_BOOT: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from curate.isolation.child import main; main(*map(int, sys.argv[2:]))"
)
_ONE_THREAD: Final = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


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
    """A running child; `start_child` makes one."""

    process: subprocess.Popen[bytes]
    requests: int
    replies: int
    base: int = 0
    slices: int = 0
    waiting: select.poll = field(default_factory=select.poll)

    def make_ready(self, limits: Limits) -> None:
        """Wait until the chain is loaded, and bound the child's memory.

        Raises:
            IsolationError: it could not load the chain, or did not start.
        """
        heard = self._hear(Limits(START_SECONDS, 1 << 60))
        if isinstance(heard, tuple) and heard[0] == READY:
            self.base = memory_of(self.process.pid)
            bound_data(self.process.pid, 2 * limits.memory + SLACK)
            return
        self.close()
        if isinstance(heard, tuple) and heard[0] == BROKEN:
            raise IsolationError(
                "a child process cannot load the transforms that are applied in it; what they need must be importable "
                f"there, or stand in the recipe's own file:\n{heard[1].decode()}"
            )
        raise IsolationError(f"a child process to apply transforms in did not start: {heard}")

    def apply(self, request: bytes, limits: Limits) -> Answer | Fall | Lost:
        """Ask for a slice and wait for its outcome."""
        try:
            write_all(self.requests, [request])
        except BrokenPipeError:
            return self._gone()
        heard = self._hear(limits)
        if not isinstance(heard, tuple):
            return heard
        kind, header, body = heard
        if self.slices == 0:
            self.base = max(self.base, memory_of(self.process.pid))  # models that load with the first document
        self.slices += 1
        return Answer(header, body) if kind == DONE else _raised(json.loads(header))

    def _hear(self, limits: Limits) -> tuple[int, bytes, pa.Buffer] | Fall | Lost:
        """Return kind, header and body of the next reply."""
        begin = self._receive(REPLY.size, limits)
        if not isinstance(begin, pa.Buffer):
            return begin
        kind, header_size, body_size = REPLY.unpack(begin)
        header = self._receive(header_size, limits)
        if not isinstance(header, pa.Buffer):
            return header
        body = self._receive(body_size, limits)
        return (kind, header.to_pybytes(), body) if isinstance(body, pa.Buffer) else body

    def _receive(self, size: int, limits: Limits) -> pa.Buffer | Fall | Lost:
        buffer = pa.allocate_buffer(size)
        view = memoryview(buffer)
        patience = Patience(limits.seconds)
        while view:
            if self.waiting.poll(INTERVAL * 1000):
                count = os.readv(self.replies, [view])
                if count == 0:
                    return self._gone()
                view = view[count:]
                patience.renew()
            elif memory_of(self.process.pid) > self.base + limits.memory:
                self.kill()
                return Fall("out of memory", {"bytes": limits.memory})
            elif patience.is_over():
                self.kill()
                return Fall("hung", {"seconds": f"{limits.seconds:g}"})
        return buffer

    def _gone(self) -> Fall | Lost:
        """Return how a child ended that closed its replies."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=10)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)  # what it started, or itself if it only closed its pipe
        self.process.wait()
        status = self.process.returncode
        if status == IDLE_STATUS or -status in OUTSIDE:
            return Lost("idle" if status == IDLE_STATUS else signal.Signals(-status).name)
        return Fall("crashed", {"signal": signal.Signals(-status).name} if status < 0 else {"exit status": status})

    def has_grown(self, limits: Limits) -> bool:
        """Return whether the child holds on to so much memory that its next document might be blamed for it."""
        return self.slices > 0 and memory_of(self.process.pid) > self.base + limits.memory // 2

    def kill(self) -> None:
        """End the child and whatever it started, and wait until it is gone."""
        if self.process.returncode is None:  # later its number may be another's
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def close(self) -> None:
        """End the child and close its pipes."""
        self.kill()
        for descriptor in (self.requests, self.replies):
            with suppress(OSError):
                os.close(descriptor)


def start_child(chain: bytes, arena: Arena) -> Child:
    """Start a child that will load `chain` and look into `arena`; `Child.make_ready` waits for it."""
    from_us, requests = wide_pipe()
    replies, to_us = wide_pipe()
    arguments = [json.dumps([path for path in sys.path if isinstance(path, str)])]
    arguments += [str(number) for number in (os.getpid(), from_us, to_us, arena.descriptor)]
    process = subprocess.Popen(
        [sys.executable, "-c", _BOOT, *arguments],
        stdin=subprocess.DEVNULL,
        pass_fds=(from_us, to_us, arena.descriptor),
        env={**os.environ, **_ONE_THREAD},
        process_group=0,
    )
    os.close(from_us)
    os.close(to_us)
    child = Child(process, requests, replies)
    child.waiting.register(replies, select.POLLIN)
    with suppress(BrokenPipeError):  # what became of it is found when it is waited for
        write_all(requests, [CHAIN.pack(len(chain)), chain])
    return child


def request(arena: Arena, step: int, start: int, stop: int) -> bytes:
    """Return the request for the outcome of rows of the batch in `arena`."""
    return REQUEST.pack(arena.batches, arena.size, step, start, stop)


def _raised(said: dict[str, Any]) -> Fall:
    evidence = {"type": said["type"], "message": said["message"]}
    return Fall("out of memory" if said["memory"] else "raised", evidence, said["where"])
