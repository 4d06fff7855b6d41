"""Filling rows of a batch: tokens, segment ids, positions, loss mask. Pure arithmetic on arrays.

The loss mask marks tokens that are predicted: those with a token of the same document before them in the row. The first
token of each document, the first of each row and padding are not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from transforms.kernels import kernel

Cells = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]


@kernel
def fill_row(
    stream: npt.NDArray[Any],
    borders: npt.NDArray[np.int64],
    start: np.int64,
    padding: np.int64,
    tokens: Cells,
    segments: Cells,
    positions: Cells,
    mask: Mask,
) -> None:
    """Write one row.

    Args:
        stream: the tokens of the sequence, as many as the row or fewer.
        borders: offsets in the component at which documents begin, ascending, from `start` on; repeats are one border.
        start: offset of stream[0] in the component.
        padding: the token that fills up the row.
        tokens: receives the stream, then padding.
        segments: receives 1 for the first document, 2 for the second …, 0 for padding.
        positions: receives 0, 1, 2 … from each document's first token in the row on; 0 for padding.
        mask: receives which tokens are predicted.
    """
    length = len(stream)
    begin, segment, border = np.int64(0), np.int32(0), np.int64(0)
    while begin < length:
        while border < len(borders) and borders[border] - start <= begin:
            border += 1
        end = np.int64(length)
        if border < len(borders) and borders[border] - start < end:
            end = borders[border] - start
        segment += np.int32(1)
        for at in range(begin, end):
            tokens[at] = np.int32(stream[at])
            segments[at] = segment
            positions[at] = np.int32(at - begin)
            mask[at] = True
        mask[begin] = False
        begin = end
    for at in range(length, len(tokens)):
        tokens[at] = np.int32(padding)
        segments[at] = np.int32(0)
        positions[at] = np.int32(0)
        mask[at] = False
