"""Memory that a worker shares with its children: the batch in hand, and what a child replies.

The batch lies in an anonymous file that grows with it and shrinks after a large one: written once by the worker, read
in place. Children get it read-only, so that one that runs wild cannot change the batch that it shares with its
successor. Each child has a tray of a fixed size for its replies, which it cannot shrink under the worker's hands;
larger ones go through the pipe. Cost: one copy of the batch, two of a reply.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import tempfile
from typing import Final

import pyarrow as pa

KEPT: Final = 64 << 20
"""Bytes of the file that stay between batches, and of a tray."""

_ADD_SEALS: Final = 1033  # F_ADD_SEALS
_SEAL_SHRINK, _SEAL_GROW = 2, 4


class Arena:
    """Shared memory for one batch at a time."""

    def __init__(self) -> None:
        self.writing, self.descriptor = _anonymous_file()
        self.map: mmap.mmap | None = None
        self.batches = 0
        self.size = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Put `batch` in the place of the one before."""
        measured = pa.MockOutputStream()
        _write(measured, batch)
        self.size = measured.size()
        self._fit(self.size)
        target = pa.FixedSizeBufferWriter(pa.py_buffer(self.map))
        target.set_memcopy_threads(1)
        _write(target, batch)
        target.close()
        self.batches += 1

    def _fit(self, size: int) -> None:
        capacity = 0 if self.map is None else len(self.map)
        if size <= capacity and (capacity <= KEPT or size > capacity // 4):
            return
        self._unmap()
        capacity = max(1 << (size - 1).bit_length(), mmap.PAGESIZE) if size <= KEPT else _pages(size)
        os.ftruncate(self.writing, capacity)
        self.map = mmap.mmap(self.writing, capacity)

    def _unmap(self) -> None:
        if self.map is not None:
            self.map.close()
            self.map = None

    def close(self) -> None:
        """Give the memory back; more than once does nothing."""
        self._unmap()
        if self.writing >= 0:
            os.close(self.writing)
            os.close(self.descriptor)
            self.writing = -1


class ArenaReader:
    """The other side of an arena: maps the file once, and again only where it has grown."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.map: mmap.mmap | None = None

    def read(self, size: int) -> pa.RecordBatch:
        """Return the batch of `size` bytes, in place: the one before must not be used any more."""
        if self.map is None or size > len(self.map):
            self.map = mmap.mmap(self.descriptor, 0, prot=mmap.PROT_READ)
        return pa.ipc.open_stream(pa.py_buffer(self.map).slice(0, size)).read_next_batch()


class Tray:
    """What a child puts its replies into; made by the worker, or by the child from the descriptor that it was given."""

    def __init__(self, descriptor: int | None = None) -> None:
        if descriptor is None:
            descriptor, reading = _anonymous_file()
            os.close(reading)
            os.ftruncate(descriptor, KEPT)
            if hasattr(os, "memfd_create"):
                fcntl.fcntl(descriptor, _ADD_SEALS, _SEAL_SHRINK | _SEAL_GROW)
        self.descriptor = descriptor
        self.map = mmap.mmap(descriptor, KEPT)

    def take(self, size: int) -> pa.Buffer:
        """Return the reply of `size` bytes."""
        return pa.py_buffer(self.map[:size])

    def file(self) -> pa.NativeFile:
        """Return a file to write a reply to."""
        writer = pa.FixedSizeBufferWriter(pa.py_buffer(self.map))
        writer.set_memcopy_threads(1)
        return writer

    def close(self) -> None:
        """Give the memory back."""
        self.map.close()
        os.close(self.descriptor)


def _write(target: pa.NativeFile, batch: pa.RecordBatch) -> None:
    with pa.ipc.new_stream(target, batch.schema) as writer:
        writer.write_batch(batch)


def _pages(size: int) -> int:
    return -(-size // mmap.PAGESIZE) * mmap.PAGESIZE


def _anonymous_file() -> tuple[int, int]:
    """Return two descriptors of a new file without a name: one to write to, one to read from only."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("curate-isolation", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        return descriptor, os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY)
    descriptor, path = tempfile.mkstemp(prefix="curate-isolation-")
    reading = os.open(path, os.O_RDONLY)
    os.unlink(path)
    return descriptor, reading
