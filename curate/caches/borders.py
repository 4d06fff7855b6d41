"""Where documents begin in the tokens of a cache, without reading all offsets.

Documents lie in the order of a keyed digest, so their lengths are mixed and offsets rise almost evenly: a guess by
proportion is near the place, and two or three inner chunks of offsets are looked at. Every third guess is the middle:
offsets of any kind take a number of looks that grows with the logarithm of their number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Offsets = npt.NDArray[Any]
Read = Callable[[int, int], Offsets]
"""(first row, row after the last) → offsets."""


def count_below(read: Read, rows: int, inner: int, token: int) -> int:
    """Return how many of the ascending offsets are below `token`.

    Args:
        read: reads rows of the offsets.
        rows: how many there are.
        inner: rows of an inner chunk, which are read together.
        token: any place, from 0.

    Raises:
        ValueError: offsets do not ascend.
    """
    low, high = 0, -(-rows // inner)  # chunks before `low` are below `token`, those from `high` on are not
    before, after, turn = 0, None, 0
    while low < high:
        chunk = (low + high) // 2 if turn % 3 == 2 else _guess(low, high, before, after, token)
        turn += 1
        values = read(chunk * inner, min((chunk + 1) * inner, rows))
        first, last = int(values[0]), int(values[-1])
        if first > last:
            raise ValueError(f"offsets {chunk * inner:,} to {chunk * inner + len(values):,} do not ascend")
        if token <= first:
            high, after = chunk, first
        elif token > last:
            low, before = chunk + 1, last
        else:
            return chunk * inner + int(np.searchsorted(values, token))
    return min(low * inner, rows)


def _guess(low: int, high: int, before: int, after: int | None, token: int) -> int:
    """Return the chunk from `low` to `high` - 1 where `token` is if offsets rise evenly from `before` to `after`."""
    if after is None:
        return high - 1
    return min(low + (high - low) * max(0, token - before) // max(1, after - before), high - 1)
