"""The constants of exchanges: numbers of partitions, sizes of blocks and groups follow from these and from the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of an exchange. They belong to its format: another value is another format.

    Attributes:
        partition_bytes: logical bytes that a partition is meant to hold.
        most_partitions: partitions per level, and so blocks at least per file; more are partitions of partitions.
        block_bytes: logical bytes at which a block closes.
        fan_in: map files that one task opens; more are merged in groups first.
        memory: bytes in flight while a file is written or read. It changes no byte of a file.
    """

    partition_bytes: int = 64 << 20
    most_partitions: int = 1024
    block_bytes: int = 1 << 20
    fan_in: int = 64
    memory: int = 256 << 20

    def partitions(self, logical_bytes: int) -> int:
        """Return how many partitions rows of this many logical bytes are regrouped into."""
        return max(1, -(-logical_bytes // self.partition_bytes))

    def radices(self, partitions: int) -> tuple[int, ...]:
        """Return into how many parts each level cuts a partition of the level before, so that all give `partitions`.

        Their product is at least `partitions`; none is above `most_partitions`.
        """
        if partitions <= self.most_partitions:
            return (max(1, partitions),)
        inner = self.radices(-(-partitions // self.most_partitions))
        return (-(-partitions // prod(inner)), *inner)

    def groups(self, files: int) -> list[range]:
        """Return which of `files` files are merged into one, in order: one level; nothing where none need be.

        Groups are as small as gets `files` down to `fan_in` in one level, and never larger than `fan_in`.
        """
        if files <= self.fan_in:
            return []
        size = min(self.fan_in, -(-files // self.fan_in))
        edges = [*range(0, files, size), files]
        return [range(first, last) for first, last in pairwise(edges)]


def spans(radices: Sequence[int]) -> tuple[int, ...]:
    """Return how many partitions one partition of each level holds; 1 at the last."""
    return tuple(prod(radices[level + 1 :]) for level in range(len(radices)))


def partition_of(hashes: npt.NDArray[np.uint64], partitions: int) -> npt.NDArray[np.int64]:
    """Return the partition of each 64-bit hash: its place among equal ranges of the upper 32 bits."""
    upper = (hashes >> np.uint64(32)).astype(np.int64)
    return np.asarray((upper * partitions) >> 32, np.int64)
