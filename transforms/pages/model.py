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

from transforms.pages.context import CONTEXT, fill_context
from transforms.pages.features import FEATURES, RANGES, fill_features
from transforms.pages.forest import Forest, Int32s, probabilities
from transforms.pages.page import Page
from transforms.pages.surroundings import Surroundings, surroundings_of
from transforms.pages.words import Weights, fill_scores

FILE: Final = Path(__file__).with_name("block_model.npz")
FIRST: Final = FEATURES + 1
"""Columns that the first stage sees: features and words' score; the second sees `CONTEXT` more."""


@dataclass(frozen=True, slots=True)
class BlockModel:
    """A trained classifier: weights of words, their bias in 1/1024, and two forests."""

    weights: Weights
    bias: int
    first: Forest
    second: Forest

    def score(self, page: Page) -> Int32s:
        """Return per block of `page` the probability, in 1/65536, that it belongs to the main text."""
        rows, around = block_rows(page)
        fill_scores(page, self.weights, np.int64(self.bias), rows[:, FEATURES])
        fill_context(around, probabilities(self.first, rows), rows[:, FIRST:])
        return probabilities(self.second, rows)


def block_rows(page: Page) -> tuple[Int32s, Surroundings]:
    """Return the rows of features, with room for words' score and context, and what stands around each block."""
    count = int(page.state[0]["blocks"])
    rows = np.zeros((count, FIRST + CONTEXT), np.int32)
    ranges, alike = np.zeros((count, RANGES, 3), np.int32), np.zeros((count, 3), np.int32)
    fill_features(page, rows, ranges, alike)
    return rows, surroundings_of(page, ranges, alike)


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
