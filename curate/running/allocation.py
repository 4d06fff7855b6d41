"""How memory is taken while a task runs: what it frees is kept for what it asks for next.

A task takes and frees some megabytes for each batch. Allocators give such memory back to the system at once and take
it again a batch later, which costs a page fault for each 4 KiB: a tenth of the CPU time of a deduplication. So while a
task runs on glibc Arrow allocates with the C library, as numpy does, which keeps what is freed of blocks below
`MAPPED`; after the task what is free beyond `KEPT` is given back. Elsewhere nothing changes. What a task makes does not
depend on it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import ClassVar, Final

import pyarrow as pa

from curate.isolation.machine import memory_of

KEPT: Final = 512 << 20
"""Free bytes of the heap that are not given back: less than any task declares to need."""

MAPPED: Final = 32 << 20
"""Bytes from which on a block is taken from the system and given back by itself: the most that glibc knows."""

GROWN: Final = 64 << 20
"""Bytes that a process must have grown by since the heap was last looked through, which takes 3 ms or more."""

TRIM_THRESHOLD: Final = -1
MMAP_THRESHOLD: Final = -3
"""Names of the two in glibc's <malloc.h>."""


class _Heap(ctypes.Structure):
    """glibc's `struct mallinfo2`: ten numbers, of which the last but one is the free bytes."""

    _fields_: ClassVar = [("others", ctypes.c_size_t * 8), ("free", ctypes.c_size_t), ("end", ctypes.c_size_t)]


class _Glibc:
    """The C library of this process, from 2.33 on; `looked` is the memory it had when the heap was looked through.

    Raises:
        OSError, AttributeError, TypeError: it is another, or an older one.
    """

    def __init__(self) -> None:
        self.library = ctypes.CDLL(None)
        self.library.mallopt.argtypes = [ctypes.c_int, ctypes.c_int]
        self.library.malloc_trim.argtypes = [ctypes.c_size_t]
        self.library.mallinfo2.restype = _Heap
        self.looked = 0

    def keep(self) -> None:
        """Have it keep what is freed."""
        self.library.mallopt(TRIM_THRESHOLD, KEPT)
        self.library.mallopt(MMAP_THRESHOLD, MAPPED)

    def give_back(self) -> None:
        """Give back what is free beyond `KEPT`, if the process has grown since the last time."""
        resident = memory_of(os.getpid())
        self.looked = min(self.looked, resident)
        if resident < max(self.looked + GROWN, KEPT):
            return
        if self.library.mallinfo2().free > KEPT:
            self.library.malloc_trim(KEPT)
        self.looked = memory_of(os.getpid())


@cache
def _glibc() -> _Glibc | None:
    """Return glibc, None where there is none."""
    try:
        return _Glibc()
    except (OSError, AttributeError, TypeError):
        return None


@contextmanager
def memory_kept() -> Iterator[None]:
    """Keep freed memory meanwhile; then set Arrow's own pool back, and give back what is free beyond `KEPT`."""
    library = _glibc()
    if library is None:
        yield
        return
    library.keep()
    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)
        library.give_back()
