"""How memory is taken while a task runs: what it frees is kept for what it asks for next.

A task takes and frees some megabytes for each batch. Allocators give such memory back to the system at once and take
it again a batch later, which costs a page fault for each 4 KiB: a tenth of the CPU time of a deduplication. So while a
task runs on glibc Arrow allocates with the C library, as numpy does, which keeps what is freed of blocks below
`MAPPED`; after the task what is free beyond `KEPT` is given back. Elsewhere nothing changes. What a task makes does not
depend on it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import ClassVar, Final

import pyarrow as pa

KEPT: Final = 512 << 20
"""Free bytes of the heap that are not given back: less than any task declares to need."""

MAPPED: Final = 32 << 20
"""Bytes from which on a block is taken from the system and given back by itself: the most that glibc knows."""

TRIM_THRESHOLD: Final = -1
MMAP_THRESHOLD: Final = -3
"""Names of the two in glibc's <malloc.h>."""


class _Heap(ctypes.Structure):
    """glibc's `struct mallinfo2`: ten numbers, of which the last but one is the free bytes."""

    _fields_: ClassVar = [("others", ctypes.c_size_t * 8), ("free", ctypes.c_size_t), ("end", ctypes.c_size_t)]


@cache
def _glibc() -> ctypes.CDLL | None:
    """Return glibc from 2.33 on, None where there is none."""
    try:
        library = ctypes.CDLL(None)
        library.mallopt.argtypes = [ctypes.c_int, ctypes.c_int]
        library.malloc_trim.argtypes = [ctypes.c_size_t]
        library.mallinfo2.restype = _Heap
    except (OSError, AttributeError, TypeError):
        return None
    return library


@contextmanager
def memory_kept() -> Iterator[None]:
    """Keep freed memory meanwhile; then set Arrow's own pool back, and give back what is free beyond `KEPT`."""
    library = _glibc()
    if library is None:
        yield
        return
    library.mallopt(TRIM_THRESHOLD, KEPT)
    library.mallopt(MMAP_THRESHOLD, MAPPED)
    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)
        if library.mallinfo2().free > KEPT:
            library.malloc_trim(KEPT)
