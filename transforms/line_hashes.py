"""A 64-bit hash of each line, by which duplicates within a text are found.

Invariants: a hash depends on the line's bytes without White_Space at both ends; no byte outside `data` decides. Not
cryptographic: a collision shifts a count and decides about no identity. Cost: one pass, 1 to 2 GB/s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transforms.eight_bytes import BYTE, load, load_some
from transforms.kernels import kernel
from transforms.lines import Lines
from transforms.segmentation import Bytes, Flags, Positions
from transforms.word_hashes import FACTOR, HALF, START, Hashes, mix


@dataclass(frozen=True, slots=True)
class LineHashes:
    """A hash and the code points of each line of n texts; document d owns documents[d]:documents[d + 1] of them."""

    documents: Positions
    hashes: Hashes
    characters: Positions
    blank: Flags


def hash_lines(lines: Lines, trimmed: tuple[Positions, Positions], lengths: Positions) -> LineHashes:
    """Return what duplicates are found by: each line as `trimmed`, of `lengths` code points."""
    return LineHashes(lines.documents, _hash_bytes(lines.data, *trimmed), lengths, lines.blank)


@kernel
def _hash_bytes(data: Bytes, starts: Positions, ends: Positions) -> Hashes:
    """Return a 64-bit hash of the bytes of each span."""
    hashes = np.empty(len(starts), np.uint64)
    for span in range(len(starts)):
        position, end, value = np.uint64(starts[span]), np.uint64(ends[span]), START
        while end - position >= BYTE:
            value = (value ^ load(data, position)) * FACTOR
            value ^= value >> HALF
            position += BYTE
        rest = end - position
        hashes[span] = mix((value ^ load_some(data, position, rest)) * FACTOR ^ rest)
    return hashes
