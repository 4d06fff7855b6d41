"""The batch in hand, in memory that a worker shares with its children: written once, read in place.

An anonymous file that grows with the batch and shrinks after a large one. The writer is the worker; children map it
read-only, so that one that runs wild cannot change the batch that it shares with its successor. Cost: one copy.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from typing import Final

import pyarrow as pa

KEPT: Final = 64 << 20
"""Bytes of the file that stay between batches."""


class Arena:
    """Shared memory for one batch at a time."""

    def __init__(self) -> None:
        self.descriptor = _anonymous_file()
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
        os.ftruncate(self.descriptor, capacity)
        self.map = mmap.mmap(self.descriptor, capacity)

    def _unmap(self) -> None:
        if self.map is not None:
            self.map.close()
            self.map = None

    def close(self) -> None:
        """Give the memory back."""
        self._unmap()
        os.close(self.descriptor)


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


def _write(target: pa.NativeFile, batch: pa.RecordBatch) -> None:
    with pa.ipc.new_stream(target, batch.schema) as writer:
        writer.write_batch(batch)


def _pages(size: int) -> int:
    return -(-size // mmap.PAGESIZE) * mmap.PAGESIZE


def _anonymous_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("curate-isolation")
    descriptor, path = tempfile.mkstemp(prefix="curate-isolation-")
    os.unlink(path)
    return descriptor
