"""Pairs of similar texts of a corpus of any size, drawn so that a banding can be held against them without bias.

Pairs that a banding proposed say nothing of those that it missed, and pairs at random are never similar. So further
hashes of shingles are computed of each text, which are independent of the banding's: two texts share the minimum of one
with their Jaccard similarity as probability (Broder 1997), whatever the bands do. Texts that share it are a group; of
each group, in the order of a hash of its minimum, the two texts with the lowest digests are a pair. What is in no pair
is grouped once more by the next hash. So similar pairs stand in the sample, no text stands in two pairs, and the share
of them that the banding proposes estimates its recall.

Invariants: the pairs depend on the set of texts and the method alone, not on their order, and a larger number only adds
pairs; equal texts count once, also those of several groups. Memory: 40 bytes a text are kept, 130 while pairs are made.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transforms.duplicates import text_digests
from transforms.minhash import MinHash, signatures
from transforms.word_hashes import Hashes

SALT: Final = 1 << 63
"""What tells the seed of the further hashes from that of the bands."""

ROUNDS: Final = 4
"""Further hashes, as many as are evaluated together."""


def meeting_hashes(text: pa.LargeStringArray, method: MinHash, groups: Hashes | None = None) -> Hashes:
    """Return hashes, texts × `ROUNDS`: each is shared by two texts with their similarity as probability.

    With `groups`, a number per text, texts of different groups share none.
    """
    further = replace(method, bands=1, rows=ROUNDS, seed=method.seed ^ SALT)
    found = signatures(text, further).astype(np.uint64)
    return _mixed(found if groups is None else found ^ groups[:, None])


def text_keys(text: pa.LargeStringArray) -> Hashes:
    """Return the first 8 bytes of the digest of each text: what names it in a sample."""
    digests = text_digests(text)
    if not len(digests):
        return np.zeros(0, np.uint64)
    rows = np.frombuffer(digests.buffers()[1], np.uint8, 16 * len(digests), 16 * digests.offset).reshape(-1, 16)
    return np.ascontiguousarray(rows[:, :8]).view("<u8").reshape(-1).astype(np.uint64)


@dataclass(slots=True)
class Meetings:
    """What is kept of the texts that were seen: hash and key."""

    _hashes: list[Hashes] = field(default_factory=list)
    _keys: list[Hashes] = field(default_factory=list)

    def add(self, hashes: Hashes, keys: Hashes) -> None:
        """Add texts by their `meeting_hashes` and `text_keys`."""
        self._hashes.append(hashes)
        self._keys.append(keys)

    def pairs(self, most: int) -> Hashes:
        """Return the keys of the two texts of each pair, pairs × 2, at most `most` pairs."""
        if not self._hashes:
            return np.zeros((0, 2), np.uint64)
        hashes, keys = np.concatenate(self._hashes), np.concatenate(self._keys)
        order = np.lexsort((hashes[:, 0], keys))
        hashes, keys = hashes[order], keys[order]
        is_new = np.ones(len(keys), np.bool_)
        is_new[1:] = keys[1:] != keys[:-1]  # of a text in several groups the one where its first hash is lowest
        hashes, keys = hashes[is_new], keys[is_new]
        found: list[Hashes] = []
        left = most
        for number in range(ROUNDS):
            first, second = _two_of_each(hashes[:, number], keys)
            first, second = first[:left], second[:left]
            found.append(np.column_stack([keys[first], keys[second]]))
            left -= len(first)
            is_free = np.ones(len(keys), np.bool_)
            is_free[first] = is_free[second] = False
            hashes, keys = hashes[is_free], keys[is_free]
        return np.concatenate(found)


def _two_of_each(hashes: Hashes, keys: Hashes) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the rows with the two lowest keys of each group of equal hashes, groups in ascending order."""
    order = np.lexsort((keys, hashes))
    ordered = hashes[order]
    begins = np.ones(len(ordered), np.bool_)
    begins[1:] = ordered[1:] != ordered[:-1]
    first = np.flatnonzero(begins[:-1] & ~begins[1:])
    return order[first], order[first + 1]


def _mixed(values: Hashes) -> Hashes:
    """Return `values` well mixed (finaliser of MurmurHash3)."""
    values = values ^ (values >> np.uint64(33))
    values = values * np.uint64(0xFF51AFD7ED558CCD)
    values = values ^ (values >> np.uint64(33))
    values = values * np.uint64(0xC4CEB9FE1A85EC53)
    return values ^ (values >> np.uint64(33))
