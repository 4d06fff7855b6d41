"""Windows of texts: all of a short text, the beginning, the middle and the end of a long one.

A text of at most `width` code points is one window, one of at most three times that is cut into equal parts that touch
(the first ones longer by one where it does not come out even), a longer one has the first `width` code points, the
middle ones and the last ones. So what is said of a document does not depend on its beginning alone, and the time
that it takes has a bound.

Invariants: windows lie at character borders, in order, within their text, and do not overlap; every text has one at
least. Cost: two passes over the bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transforms.kernels import kernel
from transforms.segmentation import Bytes, Int, Positions, text_buffers

MOST: Final = 3
"""Windows of a text."""


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of n texts: text t has windows[offsets[t]:offsets[t + 1]]."""

    texts: pa.LargeStringArray
    offsets: Positions


def windows_of(text: pa.LargeStringArray, width: int) -> Windows:
    """Return the windows of each of `text`, of about `width` code points."""
    data, bounds = text_buffers(text)
    starts, ends, offsets = _windows(data, bounds, np.int64(width))
    sizes = ends - starts
    borders = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    content = _gathered(data, starts, borders)
    buffers = pa.py_buffer(borders.tobytes()), pa.py_buffer(content.tobytes())
    return Windows(pa.LargeStringArray.from_buffers(len(starts), *buffers), offsets)


@kernel
def _advance(data: Bytes, position: Int, end: Int, count: Int) -> np.int64:
    """Return where the `count`-th code point after the one that begins at `position` begins, `end` at most."""
    at = np.int64(position)
    while count > 0 and at < end:
        at += 1
        while at < end and data[at] & 0xC0 == 0x80:
            at += 1
        count -= 1
    return at


@kernel
def _windows(data: Bytes, bounds: Positions, width: np.int64) -> tuple[Positions, Positions, Positions]:
    texts = len(bounds) - 1
    starts, ends = np.empty(MOST * texts, np.int64), np.empty(MOST * texts, np.int64)
    offsets = np.zeros(texts + 1, np.int64)
    count = np.int64(0)
    for t in range(texts):
        first, last = bounds[t], bounds[t + 1]
        size = np.int64(0)
        for place in range(first, last):
            size += np.int64(data[place] & 0xC0 != 0x80)
        if size <= np.int64(MOST) * width:
            parts = max(np.int64(1), (size + width - 1) // width)
            at = first
            for part in range(parts):
                until = _advance(data, at, last, (size + parts - 1 - part) // parts) if part < parts - 1 else last
                starts[count], ends[count] = at, until
                count += 1
                at = until
        else:
            middle = _advance(data, first, last, (size - width) // 2)
            tail = _advance(data, middle, last, size - width - (size - width) // 2)
            for at in (first, middle, tail):
                starts[count], ends[count] = at, _advance(data, at, last, width)
                count += 1
        offsets[t + 1] = count
    return starts[:count], ends[:count], offsets


@kernel
def _gathered(data: Bytes, starts: Positions, borders: Positions) -> npt.NDArray[np.uint8]:
    made = np.empty(borders[-1], np.uint8)
    for w in range(len(starts)):
        shift = starts[w] - borders[w]
        for place in range(borders[w], borders[w + 1]):
            made[place] = data[place + shift]
    return made
