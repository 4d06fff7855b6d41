"""What runs in a child: load the chain, then one slice after the other, until the worker is gone.

A child dies with its worker: the kernel kills it (Linux), it reads the end of its requests, or (elsewhere, while the
interpreter answers) it sees that its parent is another. It leaves by itself when nobody asks anything of it for a
while. It writes no core files, is the first that a kernel short of memory takes, and uses one thread.
"""

from __future__ import annotations

import ctypes
import json
import os
import pickle
import resource
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import pyarrow as pa

from curate.isolation.arena import read_arena
from curate.isolation.pipes import BROKEN, CHAIN, DONE, RAISED, READY, REPLY, REQUEST, read_exactly, write_all
from curate.isolation.replies import encode
from transforms.outcome import Transform
from transforms.user_function import UserFunctionError

IDLE_SECONDS: Final = 60.0
"""A child that is asked nothing for so long ends: its worker does something else now."""

IDLE_STATUS: Final = 75
"""Exit status of a child that ended because nobody asked anything of it."""

_SET_PARENT_DEATH_SIGNAL: Final = 1  # PR_SET_PDEATHSIG
_MESSAGE: Final = 2000


def main(parent: int, requests: int, replies: int, arena: int) -> None:
    """Serve the worker `parent` over the descriptors of both pipes and of the arena."""
    _die_with(parent)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
    pa.set_cpu_count(1)
    try:
        (size,) = CHAIN.unpack(read_exactly(requests, CHAIN.size))
        chain = _load(read_exactly(requests, size))
    except EOFError:
        return
    except BaseException:
        _reply(replies, BROKEN, traceback.format_exc().encode("utf-8", "replace"))
        return
    _reply(replies, READY, b"")
    with suppress(EOFError, BrokenPipeError):
        _serve(chain, requests, replies, arena)


def _load(shipped: bytes) -> list[Transform]:
    """Return the transforms of the chain, with what they need loaded."""
    chain: list[Transform] = pickle.loads(shipped)
    for transform in chain:
        if (ready := getattr(transform, "ready", None)) is not None:
            ready()
    return chain


def _serve(chain: Sequence[Transform], requests: int, replies: int, arena: int) -> None:
    seen, batch = 0, None
    waiting = select.poll()
    waiting.register(requests, select.POLLIN)
    while True:
        if not waiting.poll(IDLE_SECONDS * 1000):
            os._exit(IDLE_STATUS)
        number, size, step, start, stop = REQUEST.unpack(read_exactly(requests, REQUEST.size))
        if number != seen or batch is None:
            seen, batch = number, read_arena(arena, size)
        rows = batch.slice(start, stop - start)
        try:
            header, body = encode(chain[step].apply(rows), rows)
        except BaseException as error:  # a SystemExit of a user's function, too, is an answer
            _reply(replies, RAISED, json.dumps(describe_error(error)).encode())
        else:
            _reply(replies, DONE, header, body)


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


def _reply(descriptor: int, kind: int, header: bytes, body: Sequence[pa.Buffer] = ()) -> None:
    size = sum(part.size for part in body)
    write_all(descriptor, [REPLY.pack(kind, len(header), size), header, *body])


def _die_with(parent: int) -> None:
    """Arrange that this process does not outlive `parent`."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)
    else:
        threading.Thread(target=_watch_parent, args=(parent,), daemon=True).start()
    if os.getppid() != parent:  # it died before we asked
        os._exit(1)


def _watch_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
