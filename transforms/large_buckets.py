"""Candidates of a bucket that is too large to hold: its rows stream by, ordered by their split keys.

The same candidates as `transforms.duplicates.split_buckets` gives for the bucket: parts of at most cap / 16 rows that
agree in the fewest bytes of their split key that make them so small; of a run of equal split keys that is longer,
pieces of that size, each with the first of the run; and the first row of the whole bucket with all others.

Which bytes a part agrees in follows from the rows around it alone. A group that begins before the first row that is
left was larger than a part, or it would have been taken whole; so only groups that begin there are looked at, and of
the rows that follow no more than one part has.

Cost: a few searches among the rows of a part. Memory: a batch, a part, and the pairs of `at_once` or little more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from transforms.duplicates import split_buckets

Hashes = npt.NDArray[np.uint64]
Indices = npt.NDArray[np.int64]

PARTS: Final = 16
"""By which the cap is divided for the parts of a bucket above it, as in `transforms.duplicates`."""

_LEVELS: Final = 8
_PART_COST: Final = 32  # what a part costs to hold, in pairs


@dataclass(frozen=True, slots=True)
class Pairs:
    """Candidate pairs, a < b, sorted, each once in the whole bucket."""

    a: Indices
    b: Indices


def large_bucket_pairs(rows: Iterable[tuple[Hashes, Indices]], first: int, cap: int, at_once: int) -> Iterator[Pairs]:
    """Yield the candidates of one bucket above `cap` rows: split keys and documents, by split key, then in keep order.

    `first` is the document that comes first in keep order; about `at_once` pairs are yielded at a time.
    """
    held, cost = _Parts(first), 0
    for documents, lead in parts(rows, max(2, cap // PARTS)):
        held.add(documents, lead)
        cost += _PART_COST + len(documents) * (len(documents) + 1) // 2
        if cost >= at_once:
            yield held.pairs()
            held, cost = _Parts(first), 0
    yield held.pairs()


def parts(rows: Iterable[tuple[Hashes, Indices]], most: int) -> Iterator[tuple[Indices, int | None]]:
    """Yield the documents of each part, at most `most`, and the document of another part that is compared with all."""
    splits, documents = np.empty(0, np.uint64), np.empty(0, np.int64)
    last: int | None = None  # split key of the row before
    lead: tuple[int, int] | None = None  # split key and first document of a run that is longer than a part
    for more, named in rows:
        splits, documents = np.concatenate([splits, more]), np.concatenate([documents, named])
        first = 0
        while len(splits) - first > most:
            size, lead, of = _part(splits, documents, first, most, last, lead)
            yield documents[first : first + size], of
            first += size
            last = int(splits[first - 1])
        splits, documents = splits[first:], documents[first:]
    first = 0
    while first < len(splits):
        size, lead, of = _part(splits, documents, first, most, last, lead)
        yield documents[first : first + size], of
        first += size
        last = int(splits[first - 1])


def _part(
    splits: Hashes, documents: Indices, first: int, most: int, last: int | None, lead: tuple[int, int] | None
) -> tuple[int, tuple[int, int] | None, int | None]:
    """Return how many rows from `first` on are a part, the long run that these begin or continue, and its lead.

    There are more than `most` rows from `first` on, or no more to come.
    """
    split = int(splits[first])
    window = splits[first : first + most + 1]
    if lead is not None and lead[0] == split:
        return min(most, _end(window, split, _LEVELS)), lead, lead[1]
    agree = 0 if last is None else (64 - (split ^ last).bit_length()) // 8
    for level in range(max(1, agree + 1), _LEVELS + 1):
        if (size := _end(window, split, level)) <= most:
            return size, None, None
    return most, (split, int(documents[first])), None


def _end(window: Hashes, split: int, level: int) -> int:
    """Return how many rows agree with `split` in the first `level` bytes: `window` begins with such a row."""
    highest = split | ((1 << (64 - 8 * level)) - 1)
    return int(np.searchsorted(window, np.uint64(highest), side="right"))


@dataclass(slots=True)
class _Parts:
    """Parts whose pairs are found together."""

    first: int
    documents: list[Indices] = field(default_factory=list)
    leads: list[int | None] = field(default_factory=list)

    def add(self, documents: Indices, lead: int | None) -> None:
        """Add a part."""
        self.documents.append(documents)
        self.leads.append(lead)

    def pairs(self) -> Pairs:
        """Return the pairs within the parts, with their leads, and with the first row of all: each once."""
        whole = [
            rows if lead is None else np.append(rows, lead)
            for rows, lead in zip(self.documents, self.leads, strict=True)
        ]
        rows = np.concatenate([np.empty(0, np.int64), *whole])
        numbers = np.repeat(np.arange(len(whole), dtype=np.uint64), [len(part) for part in whole])
        nothing = np.zeros(len(rows), np.uint64)
        within = split_buckets(numbers, nothing, nothing, rows, max(2, len(rows)))
        others = np.concatenate([np.empty(0, np.int64), *self.documents])
        others = others[others != self.first]
        a = np.concatenate([within.a, np.minimum(others, self.first)])
        b = np.concatenate([within.b, np.maximum(others, self.first)])
        order = np.lexsort((b, a))
        a, b = a[order], b[order]
        new = np.ones(len(a), np.bool_)
        new[1:] = (a[1:] != a[:-1]) | (b[1:] != b[:-1])
        return Pairs(a[new], b[new])
