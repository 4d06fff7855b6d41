"""The classifier of blocks: a file of numbers, and how a page's blocks get their probabilities from it.

Two stages of trees: the first sees a block's features and its words' score, the second also what the first said of
the blocks around it. `block_model.npz` is made by `python -m benchmarks.train_extractor`; docs/extraction.md is its
card. Invariant: integers from bytes to verdict. Cost: .6 ms for a page of 170 blocks; the file is read once a process.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np

from transforms.kernels import kernel
from transforms.pages.compiled import Int
from transforms.pages.features import FEATURES, RANGES, Ints, fill_features, log
from transforms.pages.forest import CERTAIN, Forest, Int32s, probabilities
from transforms.pages.page import Page
from transforms.pages.words import Weights, fill_scores

FILE: Final = Path(__file__).with_name("block_model.npz")
CONTEXT: Final = 17
"""Columns that the second stage sees beside the first stage's."""

_CONTEXT_AT: Final = FEATURES + 1
_WINDOWS: Final = (4, 12)


@dataclass(frozen=True, slots=True)
class BlockModel:
    """A trained classifier: weights of words, their bias in 1/1024, and two forests."""

    weights: Weights
    bias: int
    first: Forest
    second: Forest

    def score(self, page: Page) -> Int32s:
        """Return per block of `page` the probability, in 1/65536, that it belongs to the main text."""
        rows, ranges = block_rows(page)
        fill_scores(page, self.weights, np.int64(self.bias), rows[:, FEATURES])
        first = probabilities(self.first, rows)
        fill_context(page.blocks["words"][: len(rows)].astype(np.int64), first, ranges, rows)
        return probabilities(self.second, rows)


def block_rows(page: Page) -> tuple[Int32s, Int32s]:
    """Return the rows of features, with room for words' score and context, and the ranges around each block."""
    count = int(page.state[0]["blocks"])
    rows = np.zeros((count, FEATURES + 1 + CONTEXT), np.int32)
    ranges = np.zeros((count, RANGES, 3), np.int32)
    fill_features(page, rows, ranges)
    return rows, ranges


@kernel
def fill_context(words: Ints, found: Int32s, ranges: Int32s, rows: Int32s) -> None:
    """Set what the first stage found: of the block, three on each side, the ranges around it, windows, the page."""
    count = found.size
    sums = np.zeros((count + 1, 2), np.int64)
    for at in range(count):
        sums[at + 1, 0] = sums[at, 0] + found[at] * max(1, words[at])
        sums[at + 1, 1] = sums[at, 1] + max(1, words[at])
    total = sums[count, 0]
    for at in range(count):
        row = rows[at, _CONTEXT_AT:]
        row[0] = found[at]
        for step in range(1, 4):
            row[2 * step - 1] = found[at - step] if at >= step else -1
            row[2 * step] = found[at + step] if at + step < count else -1
        for level in range(RANGES):
            row[7 + level] = _mean(sums, ranges[at, level, 0], ranges[at, level, 1])
        row[11] = _mean(sums, max(0, at - _WINDOWS[0]), min(count, at + _WINDOWS[0] + 1))
        row[12] = _mean(sums, max(0, at - _WINDOWS[1]), min(count, at + _WINDOWS[1] + 1))
        row[13], row[14], row[15] = _mean(sums, 0, count), log(total // CERTAIN), found.max()
        row[16] = sums[at + 1, 0] * 1024 // max(np.int64(1), total)


@kernel
def _mean(sums: Ints, first: Int, last: Int) -> Int:
    mean: Int = (sums[last, 0] - sums[first, 0]) // max(np.int64(1), sums[last, 1] - sums[first, 1])
    return mean


def read_model(path: Path = FILE) -> BlockModel:
    """Return the model of a file that `write_model` wrote."""
    with np.load(path) as file:
        forests = [Forest(*(file[f"{stage} {name}"] for name in Forest.__slots__)) for stage in ("first", "second")]
        return BlockModel(file["weights"], int(file["bias"]), *forests)


def write_model(model: BlockModel, path: Path) -> None:
    """Write `model` as a compressed file of arrays; the same model gives the same bytes."""
    arrays = {"weights": model.weights, "bias": np.int64(model.bias)}
    for stage, forest in (("first", model.first), ("second", model.second)):
        arrays |= {f"{stage} {name}": getattr(forest, name) for name in Forest.__slots__}
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


@cache
def packaged_model() -> BlockModel:
    """Return the model of the package."""
    return read_model()
