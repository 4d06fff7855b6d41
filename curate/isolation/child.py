"""What runs beside a worker: a nursery that has loaded the chain, and the children that it forks to apply it.

The nursery is a fresh interpreter with one thread that applies nothing itself, so a child forked from it is as good as
fresh, and costs milliseconds instead of a second. Where forking is not safe (more threads than one, or not Linux) the
nursery becomes the child itself, and the worker starts another for the next.

Neither outlives the worker: the kernel kills them (Linux), they read the end of what the worker sends, or (elsewhere,
while the interpreter answers) see that their parent is another. They leave by themselves when nobody asks anything of
them for a while. They write no core files and are the first that a kernel short of memory takes.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import pickle
import resource
import select
import signal
import socket
import threading
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import pyarrow as pa

from curate.isolation.arena import KEPT, ArenaReader, Tray
from curate.isolation.machine import LINUX
from curate.isolation.pipes import (
    BROKEN,
    CHAIN,
    DONE,
    FORK,
    IN_TRAY,
    ORDER,
    RAISED,
    READY,
    REPLY,
    REQUEST,
    RESULT,
    PipeWriter,
    read_exactly,
    write_all,
)
from curate.isolation.replies import encode
from transforms.outcome import Transform
from transforms.user_function import UserFunctionError

IDLE_SECONDS: Final = 60.0
"""Who is asked nothing for so long ends: the worker does something else now."""

IDLE_STATUS: Final = 75
"""Exit status of who ended because nobody asked anything of it."""

_SET_PARENT_DEATH_SIGNAL: Final = 1  # PR_SET_PDEATHSIG
_MESSAGE: Final = 2000

Chain = Sequence[Transform]


def main(parent: int, control: int, arena: int) -> None:
    """Load the chain that the worker `parent` sends over the socket `control`, and fork children as it orders."""
    _die_with(parent)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
    pa.set_cpu_count(1)
    with socket.socket(fileno=control) as orders, suppress(EOFError, BrokenPipeError, ConnectionResetError):
        try:
            chain = _load(control)
        except EOFError:
            return
        except BaseException:
            _reply(control, BROKEN, traceback.format_exc().encode("utf-8", "replace"))
            return
        _reply(control, READY, b"")
        _keep(chain, orders, arena)


def _load(control: int) -> Chain:
    """Return the transforms of the chain, with what they need loaded."""
    (size,) = CHAIN.unpack(read_exactly(control, CHAIN.size))
    chain: list[Transform] = pickle.loads(read_exactly(control, size))
    for transform in chain:
        if (ready := getattr(transform, "ready", None)) is not None:
            ready()
    gc.collect()
    gc.freeze()  # children neither look through what was loaded here nor copy it
    return chain


def _keep(chain: Chain, orders: socket.socket, arena: int) -> None:
    """Fork a child for each order to do so, and tell how children ended that the worker asks for."""
    running: set[int] = set()
    waiting = select.poll()
    waiting.register(orders, select.POLLIN)
    while True:
        if not waiting.poll(IDLE_SECONDS * 1000) and not any(map(_runs, running)):
            os._exit(IDLE_STATUS)
        elif not waiting.poll(0):
            continue
        message, descriptors, _, _ = socket.recv_fds(orders, ORDER.size, 3)
        if not message:
            return
        order, pid = ORDER.unpack(message)
        if order == FORK:
            pid = _fork(chain, descriptors, arena, orders)
            running.add(pid)
            orders.sendall(RESULT.pack(pid))
        else:
            running.discard(pid)
            orders.sendall(RESULT.pack(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])))


def _runs(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def _fork(chain: Chain, descriptors: Sequence[int], arena: int, orders: socket.socket) -> int:
    """Start a child that serves both pipes and the tray; where that is not safe, be the child."""
    nursery = os.getpid()
    if LINUX and len(os.listdir("/proc/self/task")) == 1:
        if pid := os.fork():
            for descriptor in descriptors:
                os.close(descriptor)
            return pid
        orders.close()
        _die_with(nursery)
        with suppress(OSError):
            os.setpgid(0, 0)
    else:
        orders.sendall(RESULT.pack(0))
        orders.close()
    status = 1
    try:
        requests, replies, tray = descriptors
        _serve(chain, requests, replies, Tray(tray), arena)
    except (EOFError, BrokenPipeError):
        status = 0
    finally:
        os._exit(status)


def _serve(chain: Chain, requests: int, replies: int, tray: Tray, arena: int) -> None:
    """Apply one slice after the other."""
    _reply(replies, READY, b"")
    arena_reader, seen, batch = ArenaReader(arena), 0, None
    waiting = select.poll()
    waiting.register(requests, select.POLLIN)
    while True:
        if not waiting.poll(IDLE_SECONDS * 1000):
            os._exit(IDLE_STATUS)
        number, size, step, start, stop = REQUEST.unpack(read_exactly(requests, REQUEST.size))
        if number != seen or batch is None:
            seen, batch = number, arena_reader.read(size)
        rows = batch.slice(start, stop - start)
        try:
            encoded = encode(chain[step].apply(rows), rows)
        except BaseException as error:  # a SystemExit of a user's function, too, is an answer
            _reply(replies, RAISED, json.dumps(describe_error(error)).encode())
        else:
            small = encoded.size <= KEPT
            if small:
                encoded.write(tray.file())
            kind = IN_TRAY if small else DONE
            write_all(replies, REPLY.pack(kind, len(encoded.header), encoded.size) + encoded.header)
            if not small:
                encoded.write(pa.PythonFile(PipeWriter(replies), mode="w"))


def describe_error(error: BaseException) -> dict[str, Any]:
    """Return type, message and place of what a transform raised; of a user's function, of what that raised."""
    if isinstance(error, UserFunctionError) and error.__cause__ is not None:
        error = error.__cause__
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno} in {frames[-1].name}" if frames else ""
    try:
        message = str(error)[:_MESSAGE]
    except Exception:  # an error that cannot even say what it is
        message = ""
    return {
        "type": type(error).__name__,
        "message": message.encode("utf-8", "replace").decode(),
        "where": where,
        "memory": isinstance(error, (MemoryError, pa.ArrowMemoryError)),
    }


def _reply(descriptor: int, kind: int, header: bytes) -> None:
    write_all(descriptor, REPLY.pack(kind, len(header), 0) + header)


def _die_with(parent: int) -> None:
    """Arrange that this process does not outlive `parent`."""
    if LINUX:
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)
    else:
        threading.Thread(target=_watch_parent, args=(parent,), daemon=True).start()
    if os.getppid() != parent:  # it died before we asked
        os._exit(1)


def _watch_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
