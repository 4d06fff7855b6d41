"""Memory for the arrays of batches, used again once nobody holds them.

A batch of 8 × 4,096 tokens is 426 kB. Asked of the system anew, that memory is given and taken back page by page, which
takes longer than filling it. So a loader keeps the memory of its last batches and looks whether it is free.

Invariant: memory is used again only when no array over it is left, as counted by Python: a batch, a slice of it, and
whatever was made of it without a copy (a tensor, a JAX array) keep it from being used again. Safe to use from many
threads. Cost: `kept` batches of memory at most.
"""

from __future__ import annotations

import sys
from collections import deque
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mixtures.rows import Cells, Mask

TOKEN_BYTES: Final = 13
"""Bytes per token of a batch: three int32 arrays and a mask."""

_FREE: Final = 2
"""References to memory that nobody uses: that of the list below, and the one that is counted."""


@dataclass(frozen=True, slots=True)
class Buffers:
    """The memory of up to `kept` batches."""

    kept: int
    _memory: deque[npt.NDArray[np.uint8]] = field(default_factory=deque, repr=False, compare=False)
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return Buffers, (self.kept,)

    def take(self, rows: int, length: int) -> tuple[Cells, Cells, Cells, Mask]:
        """Return tokens, segments, positions and mask of a batch, shape (rows, length), whatever stands in them."""
        cells, shape = rows * length, (rows, length)
        with self._lock:
            memory = self._free(cells * TOKEN_BYTES)
            numbers = memory[: 12 * cells].view(np.int32).reshape(3, rows, length)
            return numbers[0], numbers[1], numbers[2], memory[12 * cells :].view(np.bool_).reshape(shape)

    def _free(self, size: int) -> npt.NDArray[np.uint8]:
        for at in range(len(self._memory)):
            if len(self._memory[at]) == size and sys.getrefcount(self._memory[at]) == _FREE:
                return self._memory[at]
        made = np.empty(size, np.uint8)
        self._memory.append(made)
        if len(self._memory) > self.kept:
            self._memory.popleft()
        return made
