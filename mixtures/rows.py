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
    start: int,
    padding: int,
    row: int,
    tokens: Cells,
    segments: Cells,
    positions: Cells,
    mask: Mask,
) -> None:
    """Write one row of a batch. Each array is filled in a loop of its own, which the compiler vectorises.

    Args:
        stream: the tokens of the sequence, as many as a row holds or fewer.
        borders: offsets in the component at which documents begin, ascending, from `start` on; repeats are one border.
        start: offset of stream[0] in the component.
        padding: the token that fills up the row.
        row: which row of the following arrays.
        tokens: receives the stream, then padding.
        segments: receives 1 for the first document, 2 for the second …, 0 for padding.
        positions: receives 0, 1, 2 … from each document's first token in the row on; 0 for padding.
        mask: receives which tokens are predicted.
    """
    length = len(stream)
    for at in range(length):
        tokens[row, at] = np.int32(stream[at])
    begin, border, segment = 0, 0, np.int32(0)
    while begin < length:
        while border < len(borders) and borders[border] - start <= begin:
            border += 1
        end = length
        if border < len(borders) and borders[border] - start < end:
            end = borders[border] - start
        segment += np.int32(1)
        segments[row, begin:end] = segment
        document = positions[row, begin:end]
        for at in range(len(document)):
            document[at] = np.int32(at)
        mask[row, begin:end] = True
        mask[row, begin] = False
        begin = end
    tokens[row, length:] = np.int32(padding)
    segments[row, length:] = np.int32(0)
    positions[row, length:] = np.int32(0)
    mask[row, length:] = False
