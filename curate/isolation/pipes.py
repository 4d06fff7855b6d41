"""What a worker, its nursery and its children say to each other.

Requests are smaller than a pipe's atomic write, so a worker never waits for a child to read one. Replies may be large;
the child waits until the worker has read them.
"""

from __future__ import annotations

import fcntl
import os
import struct
import sys
from contextlib import suppress
from typing import Final

Buffer = bytes | bytearray | memoryview

CHAIN: Final = struct.Struct("<Q")
"""The first thing that a nursery reads: the bytes of the pickled chain that follow."""

ORDER: Final = struct.Struct("<Bq")
"""What a worker orders of a nursery: `FORK` (with both ends that the child needs), or `WAIT` for a process."""

RESULT: Final = struct.Struct("<q")
"""What it answers: the child's process id, 0 where it is the child itself now; or an exit status as of `Popen`."""

FORK, WAIT = range(2)

REQUEST: Final = struct.Struct("<QQIQQ")
"""A request: number of the batch, its bytes in the arena, step, first row, row after the last."""

REPLY: Final = struct.Struct("<BIQ")
"""How a reply begins: its kind, bytes of the header (JSON), bytes of the body (Arrow)."""

READY, BROKEN, DONE, IN_TRAY, RAISED = range(5)
"""Kinds of replies: the chain is loaded; it cannot be; the outcome of a slice, here or in the tray; what was raised."""

_PIPE_BYTES: Final = 1 << 20
_SET_PIPE_SIZE: Final = 1031  # F_SETPIPE_SZ


def wide_pipe() -> tuple[int, int]:
    """Return both ends of a pipe that holds 1 MiB where the system allows it."""
    reading, writing = os.pipe()
    if sys.platform.startswith("linux"):
        with suppress(OSError):  # the user's pipes may hold less in all
            fcntl.fcntl(writing, _SET_PIPE_SIZE, _PIPE_BYTES)
    return reading, writing


def write_all(descriptor: int, content: Buffer) -> None:
    """Write `content`, waiting for the reader.

    Raises:
        BrokenPipeError: the reader is gone.
    """
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


class PipeWriter:
    """A pipe as what Arrow writes to."""

    closed = False

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def write(self, content: Buffer) -> int:
        """Write all of `content`."""
        write_all(self.descriptor, content)
        return memoryview(content).nbytes

    def flush(self) -> None:
        """Do nothing: nothing is held back."""

    def close(self) -> None:
        """Leave the pipe open: more replies follow."""


def read_exactly(descriptor: int, size: int) -> bytes:
    """Read `size` bytes, waiting for the writer.

    Raises:
        EOFError: the writer is gone.
    """
    parts = []
    while size:
        part = os.read(descriptor, size)
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
