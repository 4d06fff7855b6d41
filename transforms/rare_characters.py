"""Which texts of a column hold a character of a set. Cost: 1-3 GB/s; 1.1 MB for the set."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transforms.eight_bytes import FLAGS, load
from transforms.kernels import kernel
from transforms.segmentation import text_buffers

Bytes = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.int64]
Table = npt.NDArray[np.bool_]


def rows_with(texts: pa.LargeStringArray, table: Table) -> Table:
    """Return which rows of `texts` hold a code point at or above U+0800 that `table`, one entry each, marks."""
    data, bounds = text_buffers(texts)
    found = np.zeros(len(texts), np.bool_)
    _find(data, bounds, table, found)
    return found


@kernel
def _find(data: Bytes, bounds: Positions, table: Table, found: Any) -> None:
    for row in range(len(bounds) - 1):
        place, end = bounds[row], bounds[row + 1]
        while place < end:
            while place + 8 <= end:  # past chunks without a first byte of three or four
                chunk = load(data, np.uint64(place))
                if chunk & chunk << np.uint64(1) & chunk << np.uint64(2) & FLAGS:
                    break
                place += 8
            if place >= end:
                break
            first = np.int64(data[place])
            if first < 0xE0:  # ends, continues or begins a character below U+0800
                place += 1
                continue
            point = ((first & 15) << 12) | ((np.int64(data[place + 1]) & 63) << 6) | (np.int64(data[place + 2]) & 63)
            if first < 0xF0:
                place += 3
            else:
                point = ((first & 7) << 18) | ((point & 0xFFF) << 6) | (np.int64(data[place + 3]) & 63)
                place += 4
            if table[point]:
                found[row] = True
                break
