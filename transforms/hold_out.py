"""Holding texts out for validation: which ones, and which training texts are too near to them. The arithmetic.

Choice: within a stratum, different texts are ordered by a keyed digest of the text; the longest beginning of that order
that fits the limit is held out. It depends on the set of texts and the limit alone, not on files, ids or the order of
arrival, and a larger limit only adds. A text of more characters than the limit is passed over. Of a stratum at most
`LARGEST_SHARE` is held out, in characters and in documents, so that a small one does not leave training.

Nearness: every text whose Jaccard similarity with a held-out one reaches the threshold is found, none is missed. Of two
such sets, x held out, at least ⌈t·|x|⌉ shingles of x are in the other, so each choice of |x| - ⌈t·|x|⌉ + 1 shingles of
x has one of them (prefix filtering: Bayardo, Ma, Srikant 2007, "Scaling up all pairs similarity search"): those that
are rarest among the held-out texts are indexed, whoever has one of them is compared. Held-out sets are small, so this
costs less than banding all documents, and needs no luck.

Cost: choosing sorts; finding takes one look-up per shingle (some 10 ns), plus a merge of both sets per candidate.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from blake3 import blake3

from transforms.kernels import kernel
from transforms.minhash import Sets

Hashes = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]

KEY: Final = blake3(b"curate hold out 1").digest()
"""Key of the digest that decides; a constant of the format."""

LARGEST_SHARE: Final = Fraction(1, 2)
NONE: Final = -1
"""In an array of held-out texts: none is near enough."""


def draw_keys(digests: pa.FixedSizeBinaryArray) -> Hashes:
    """Return 64 bits of a keyed digest for each text digest: the order in which texts are held out."""
    drawn = b"".join([blake3(digest, key=KEY).digest(8) for digest in digests.to_pylist()])
    return np.frombuffer(drawn, ">u8").astype(np.uint64)


@dataclass(frozen=True, slots=True)
class Limit:
    """How much of each stratum is held out: so many code points, or so many documents."""

    characters: int | None = None
    documents: int | None = None

    def __post_init__(self) -> None:
        if (self.characters is None) == (self.documents is None) or (self.characters or self.documents or 0) < 1:
            raise ValueError(f"a limit is a positive number of characters or of documents, got {self}")

    def within(self, characters: int, documents: int) -> Limit | None:
        """Return this limit for a stratum of that size: at most `LARGEST_SHARE`; None where nothing is left."""
        total = characters if self.documents is None else documents
        least = min(self.characters or self.documents or 0, int(total * LARGEST_SHARE))
        if least < 1:
            return None
        return Limit(least, None) if self.documents is None else Limit(None, least)


def choose(keys: Hashes, digests: npt.NDArray[Any], ids: npt.NDArray[Any], sizes: Integers, limit: Limit) -> Integers:
    """Return which rows of one stratum are held out, in the order of the choice: of equal texts the lowest id.

    `keys` are those of `draw_keys`, `digests` and `ids` bytes, `sizes` code points.
    """
    rows = _in_order(keys, digests, ids, sizes, limit)
    if limit.characters is None:
        return rows[: limit.documents]
    return rows[np.cumsum(sizes[rows]) <= limit.characters]


def contenders(
    keys: Hashes, digests: npt.NDArray[Any], ids: npt.NDArray[Any], sizes: Integers, limit: Limit
) -> Integers:
    """Return the rows of a part of a stratum that decide about the whole.

    Choosing among the contenders of all parts, under this limit or the lower one of a small stratum (`Limit.within`),
    gives what choosing among all gives: the first text that does not fit is among them, and all of a stratum that is
    small enough for a lower limit.
    """
    rows = _in_order(keys, digests, ids, sizes, limit)
    if limit.characters is None:
        return rows[: limit.documents]
    before = np.cumsum(sizes[rows]) - sizes[rows]
    return rows[before * LARGEST_SHARE.numerator <= limit.characters * LARGEST_SHARE.denominator]


def _in_order(
    keys: Hashes, digests: npt.NDArray[Any], ids: npt.NDArray[Any], sizes: Integers, limit: Limit
) -> Integers:
    """Return a row of each text that fits the limit alone, in the order of the choice."""
    rows = np.lexsort((ids, digests, keys))
    if limit.characters is not None:
        rows = rows[sizes[rows] <= limit.characters]
    new = np.ones(len(rows), np.bool_)
    new[1:] = digests[rows[1:]] != digests[rows[:-1]]
    return np.asarray(rows[new], np.int64)


@dataclass(frozen=True, slots=True)
class Nearness:
    """Held-out shingle sets with an index of the rarest shingles of each.

    `shingles` is sorted; `owner[i]` has shingles[i]; `directory[p]:directory[p + 1]` begin with the bits of p.
    """

    sets: Sets
    threshold: Fraction
    shingles: Hashes
    owner: Integers
    directory: Integers


def index_sets(sets: Sets, threshold: Fraction) -> Nearness:
    """Return the index of held-out `sets` for Jaccard similarities of at least `threshold`."""
    sizes = np.diff(sets.offsets)
    owner = np.repeat(np.arange(len(sets)), sizes)
    _, place, count = np.unique(sets.values, return_inverse=True, return_counts=True)
    order = np.lexsort((sets.values, count[place] if len(place) else place, owner))
    rank = np.arange(len(order)) - np.repeat(sets.offsets[:-1], sizes)
    needed = -(-sizes * threshold.numerator // threshold.denominator)  # ⌈t·|x|⌉
    chosen = order[rank < np.repeat(sizes - needed + 1, sizes)]
    chosen = chosen[np.lexsort((owner[chosen], sets.values[chosen]))]
    shingles = sets.values[chosen]
    bits = max(1, len(shingles).bit_length() + 2)
    directory = np.searchsorted(shingles >> np.uint64(64 - bits), np.arange((1 << bits) + 1, dtype=np.uint64))
    return Nearness(sets, threshold, shingles, owner[chosen], directory.astype(np.int64))


def nearest(index: Nearness, sets: Sets) -> tuple[Integers, Integers, Integers]:
    """Return for each of `sets` the most similar held-out set that reaches the threshold, or `NONE`.

    With it the sizes of intersection and union. Of equally similar ones the first in the index.
    """
    held, intersection, union = (np.full(len(sets), NONE, np.int64) for _ in range(3))
    ratio = np.int64(index.threshold.numerator), np.int64(index.threshold.denominator)
    _nearest(
        index.sets.offsets, index.sets.values, index.shingles, index.owner, index.directory,
        sets.offsets, sets.values, ratio, held, intersection, union,
    )  # fmt: skip
    return held, intersection, union


@kernel
def _shared(a: Hashes, b: Hashes) -> np.int64:
    """Return how many values two sorted sets share."""
    i, j, both = 0, 0, np.int64(0)
    while i < len(a) and j < len(b):
        x, y = a[i], b[j]
        both += x == y
        i += x <= y
        j += y <= x
    return both


@kernel
def _nearest(
    held_offsets: Integers,
    held_values: Hashes,
    shingles: Hashes,
    owner: Integers,
    directory: Integers,
    offsets: Integers,
    values: Hashes,
    ratio: tuple[np.int64, np.int64],
    held: Integers,
    intersection: Integers,
    union: Integers,
) -> None:
    shift, size = np.uint64(64), len(directory) - 1
    while size > 1:
        size >>= 1
        shift -= np.uint64(1)
    stamps = np.full(len(held_offsets) - 1, np.int64(-1), np.int64)
    for d in range(len(offsets) - 1):
        mine = values[offsets[d] : offsets[d + 1]]
        for shingle in mine:
            bucket = shingle >> shift
            for at in range(directory[bucket], directory[bucket + np.uint64(1)]):
                other = owner[at]
                if shingles[at] != shingle or stamps[other] == d:
                    continue
                stamps[other] = d
                theirs = held_values[held_offsets[other] : held_offsets[other + 1]]
                smaller, larger = min(len(mine), len(theirs)), max(len(mine), len(theirs))
                if smaller * ratio[1] < larger * ratio[0]:
                    continue
                both = _shared(mine, theirs)
                total = len(mine) + len(theirs) - both
                if both * ratio[1] < total * ratio[0]:
                    continue
                gain = both * union[d] - intersection[d] * total
                if held[d] < 0 or gain > 0 or (gain == 0 and other < held[d]):
                    held[d], intersection[d], union[d] = other, both, total
