"""Texts without the places in which an item stands, and the way from bytes of UTF-8 to code points."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa

from transforms.unicode_tables import CLASS, COMPLEX, IDEOGRAPH, LETTER, NUMBER, PUNCTUATION

BLOCK: Final = 4096
"""Bytes of a text of which the code points are counted together."""


class CodePoints:
    """Counts the code points before a byte position of a text, which is looked through when first asked."""

    def __init__(self, text: bytes | pa.Buffer) -> None:
        """Count in `text`, UTF-8."""
        self._data = np.frombuffer(text, np.uint8)

    def before(self, position: int) -> int:
        """Return how many code points begin before `position`."""
        block = position // BLOCK
        return int(self._blocks[block]) + int(self._begins[block * BLOCK : position].sum())

    @cached_property
    def _begins(self) -> np.typing.NDArray[np.bool_]:
        return np.asarray((self._data & 0xC0) != 0x80)

    @cached_property
    def _blocks(self) -> np.typing.NDArray[np.int64]:
        """Return for each block of `BLOCK` bytes how many code points begin before it."""
        firsts = np.arange(0, len(self._data), BLOCK)
        if not len(firsts):
            return np.zeros(1, np.int64)
        sums = np.add.reduceat(self._begins, firsts, dtype=np.int64)
        return np.concatenate([[0], np.cumsum(sums)]).astype(np.int64)


def without_places(text: str, places: Iterable[tuple[int, int]]) -> tuple[str, int]:
    """Return `text` without `places` (code points) and the punctuation at their ends, and how many code points are cut.

    0 code points: nothing that could be read would be left.
    """
    classes = CLASS[np.frombuffer(text.encode("utf-32-le"), np.uint32)]
    goes = np.zeros(len(text), np.bool_)
    for start, end in set(places):
        while start > 0 and classes[start - 1] == PUNCTUATION:
            start -= 1
        while end < len(text) and classes[end] == PUNCTUATION:
            end += 1
        goes[start:end] = True
    if not np.isin(classes[~goes], (LETTER, NUMBER, IDEOGRAPH, COMPLEX)).any():
        return "", 0
    pieces, position = [], 0
    edges = np.flatnonzero(np.diff(np.concatenate([[0], goes.view(np.int8), [0]])))
    for start, end in edges.reshape(-1, 2).tolist():
        pieces.append(text[position:start])
        position = end
    return "".join([*pieces, text[position:]]), int(goes.sum())
