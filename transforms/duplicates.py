"""Who is a duplicate of whom, and who stays: the arithmetic of deduplication, without any choreography over shards.

The order of calls: `text_digests` and keep-order keys → `EqualTexts`; band keys → `split_buckets` gives candidate
pairs; shingle sets → `jaccard_pairs`; pairs at or above the threshold are edges → `survivors` per component of edges.

Invariants: every result depends on the content of the rows, not on their order of arrival or their partition. Each
document that `survivors` drops has an edge to one that it keeps; no two that it keeps share an edge.
Cost: linear in rows, candidate pairs, shingles of both sides and edges, but for sorting. A bucket of any size gives at
most `cap` pairs per row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transforms.kernels import kernel
from transforms.many_digests import short_digests
from transforms.minhash import Sets
from transforms.schema import ID
from transforms.segmentation import text_buffers

Hashes = npt.NDArray[np.uint64]
Indices = npt.NDArray[np.int64]

STAYS: Final = -1
"""In an array of keepers: this row stays."""

_LEVELS: Final = 8  # bytes of a split key


@dataclass(frozen=True, slots=True)
class Candidates:
    """Pairs of documents to compare: a < b, each pair once, sorted, and what splitting large buckets gave up.

    `given_up` counts pairs per bucket: another band may still propose the same pair. `largest` is the number of rows of
    the largest bucket, `buckets` how many were split.
    """

    a: Indices
    b: Indices
    given_up: int
    buckets: int
    largest: int


@dataclass(frozen=True, slots=True)
class Survivors:
    """Per document: `keeper`, the document because of which it goes, or `STAYS`; `edge`, index of their edge, or -1."""

    keeper: Indices
    edge: Indices


def text_digests(text: pa.LargeStringArray) -> pa.FixedSizeBinaryArray:
    """Return 16 bytes of BLAKE3 of each text's UTF-8 bytes: equal digests, equal texts. A null counts as empty."""
    return short_digests(*text_buffers(text))


def leading_bits(digests: pa.FixedSizeBinaryArray) -> Hashes:
    """Return the first 8 bytes of each digest, big-endian: numbers in the order of the digests."""
    return _halves(digests)[:, 0].astype(np.uint64)


@dataclass(frozen=True, slots=True)
class Equal:
    """Rows whose text stays elsewhere: their places, and for each the document that stays and its id."""

    rows: Indices
    keepers: Indices
    ids: pa.FixedSizeBinaryArray


class EqualTexts:
    """Finds equal texts in a stream that is ordered by (digest, group, order key): of each group the first row stays.

    Whatever the batches, and however many rows have one text: what is carried from one batch to the next is one row.
    """

    def __init__(self) -> None:
        self._last: tuple[Any, Any, int, bytes] | None = None  # digest and group, then who stays of these

    def find(
        self,
        digests: pa.FixedSizeBinaryArray,
        groups: pa.LargeBinaryArray,
        order_keys: pa.LargeBinaryArray,
        documents: Indices,
    ) -> Equal:
        """Return which of the next rows equal one that stays; there is one row at least.

        `groups` is the column of `within=`, encoded (see `order_key.encode_column`): only rows of one group are
        compared. `order_keys` end with the id of the document.
        """
        ids = pc.binary_slice(order_keys, -16).cast(ID)
        new = np.concatenate([[True], _differs(digests) | _differs(groups)])
        new[0] = self._last is None or (digests[0].as_py(), groups[0].as_py()) != self._last[:2]
        starts, group = np.flatnonzero(new), np.cumsum(new)  # 0: the group that the last batch ended with
        carried = (0, bytes(16)) if self._last is None else self._last[2:]
        keepers = np.concatenate([[carried[0]], documents[starts]])
        keeper_ids = pa.concat_arrays([pa.array([carried[1]], ID), ids.take(pa.array(starts))])
        stays = (int(keepers[group[-1]]), keeper_ids[int(group[-1])].as_py())
        self._last = (digests[-1].as_py(), groups[-1].as_py(), *stays)
        rows = np.flatnonzero(~new)
        return Equal(rows, keepers[group[rows]], keeper_ids.take(pa.array(group[rows])))


def split_buckets(keys: Hashes, splits: Hashes, order: Hashes, documents: Indices, cap: int) -> Candidates:
    """Return the candidate pairs of whole buckets: rows (bucket key, split key, order, document), in any order.

    Rows with one key are a bucket: all its pairs are candidates when it has at most `cap` rows. A larger one is split
    by the next band's hash (the highest byte of `splits`, see `minhash.split_keys`), a part that is still larger by the
    one after, and so on. A part that no byte splits (texts alike in nine bands) is taken in order of `order`, then
    `documents`, in runs of `cap`; its first row is also paired with all others, so that copies of one text in a
    thousand wrappings do not survive once per run. Best for `order` is the position in keep order: then that first row
    is the one that stays; else take the first 8 bytes of the text digest. It must not depend on arrival.

    All rows of a bucket must be here; several calls may share the buckets, and their pairs are to be made unique.
    Memory: 60 bytes per row and 40 per pair, repeats included.

    Raises:
        ValueError: the arrays differ in length, or `cap` is below 2.
    """
    lengths = [len(keys), len(splits), len(order), len(documents)]
    if len(set(lengths)) > 1 or cap < 2:
        raise ValueError(f"split_buckets needs four arrays of one length and cap ≥ 2: got {lengths} and cap {cap}")
    rows = np.argsort(keys, kind="stable")
    borders = _borders(keys[rows])
    sizes = np.diff(borders)
    small = sizes <= cap
    runs = [np.stack([borders[:-1][small], borders[1:][small], borders[:-1][small]], axis=1)]
    for first, last in zip(borders[:-1][~small].tolist(), borders[1:][~small].tolist(), strict=True):
        bucket = rows[first:last]
        bucket = bucket[np.lexsort((documents[bucket], order[bucket], splits[bucket]))]
        rows[first:last] = bucket
        runs.append(np.array(list(_parts(splits[bucket], cap, 0, 0, last - first)), np.int64) + np.int64(first))
    a, b, proposed = _distinct_pairs(documents[rows], np.concatenate(runs))
    possible = int((sizes * (sizes - 1) // 2).sum())
    return Candidates(a, b, possible - proposed, int((~small).sum()), int(sizes.max(initial=0)))


def jaccard_pairs(sets: Sets, a: Indices, b: Indices) -> tuple[Indices, Indices]:
    """Return the sizes of intersection and union of sets a[i] and b[i], for each i.

    Jaccard similarity is their ratio; keep it as two integers. One merge per pair: linear in the two sets, about
    1.5 µs for two of 500 shingles.
    """
    intersection = np.empty(len(a), np.int64)
    union = np.empty(len(a), np.int64)
    _jaccard(sets.offsets, sets.values, a, b, intersection, union)
    return intersection, union


def survivors(rank: Indices, a: Indices, b: Indices, intersection: Indices, union: Indices) -> Survivors:
    """Apply the sequential rule: in keep order a document stays unless it has an edge to one that stays already.

    Documents are 0 … len(rank) - 1; `rank` orders them (lower stays, no two equal). Edges are verified pairs
    (a[i], b[i]) in any order and direction, with the sizes of `jaccard_pairs`. The keeper of a dropped document is the
    surviving neighbour of highest similarity before it in keep order; of equals the first in keep order.

    The result is that of one pass over all documents, whether called with all edges or per connected component. Linear
    in documents and edges (no rounds: a chain of n versions costs n), but for one sort of `rank`. Sizes below 2^31.
    """
    keeper, edge = np.full(len(rank), STAYS, np.int64), np.full(len(rank), STAYS, np.int64)
    starts, neighbours, edges = _adjacency(np.int64(len(rank)), a, b)
    _keep(np.argsort(rank, kind="stable"), starts, neighbours, edges, rank, intersection, union, keeper, edge)
    return Survivors(keeper, edge)


def _halves(digests: pa.FixedSizeBinaryArray) -> npt.NDArray[Any]:
    """Return the two big-endian halves of each digest."""
    content: Any = digests.buffers()[1]
    return np.frombuffer(content, ">u8", 2 * len(digests), digests.offset * 16).reshape(-1, 2)


def _differs(column: pa.Array[Any]) -> npt.NDArray[np.bool_]:
    """Return for each value but the first whether it differs from the one before."""
    differs: Any = pc.not_equal(column[1:], column[:-1])
    return np.asarray(differs.to_numpy(zero_copy_only=False), np.bool_)


def _borders(ordered: npt.NDArray[Any]) -> Indices:
    """Return where runs of equal values begin, and the end."""
    if len(ordered) == 0:
        return np.zeros(1, np.int64)
    return np.concatenate([[0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1, [len(ordered)]]).astype(np.int64)


def _distinct_pairs(documents: Indices, runs: Indices) -> tuple[Indices, Indices, int]:
    """Return the pairs of all runs, sorted, each once, and how many there are with repeats."""
    names, local = np.unique(documents, return_inverse=True)
    codes = _pairs(local.astype(np.int64), runs, np.int64(len(names)))
    codes.sort()  # np.unique would hash them first, which is five times slower
    a, b = np.divmod(codes[_borders(codes)[:-1]], max(len(names), 1))
    other = a != b  # a document twice in one bucket is no pair
    return names[a[other]], names[b[other]], len(codes)


def _parts(splits: Hashes, cap: int, level: int, first: int, last: int) -> Iterator[tuple[int, int, int]]:
    """Yield runs (start, end, centre) of at most `cap` rows of sorted `splits`; the centre is paired with each row."""
    if last - first <= cap:
        yield first, last, first
    elif level == _LEVELS:
        for start in range(first, last, cap):
            yield start, min(start + cap, last), first
    else:
        borders = _borders(splits[first:last] >> np.uint64(56 - 8 * level)) + first
        for start, end in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
            yield from _parts(splits, cap, level + 1, start, end)


@kernel
def _pairs(documents: Indices, runs: Indices, total: np.int64) -> Indices:
    """Return lower · total + higher for all pairs of each run, and of its centre, if that lies outside, with it."""
    count = np.int64(0)
    for r in range(runs.shape[0]):
        size = runs[r, 1] - runs[r, 0]
        count += size * (size - 1) // 2 + (size if runs[r, 2] < runs[r, 0] else 0)
    codes, at = np.empty(count, np.int64), np.int64(0)
    for r in range(runs.shape[0]):
        start, end, centre = runs[r, 0], runs[r, 1], runs[r, 2]
        for j in range(start, end):
            if centre < start:
                x, y = documents[centre], documents[j]
                codes[at] = min(x, y) * total + max(x, y)
                at += 1
            for i in range(start, j):
                x, y = documents[i], documents[j]
                codes[at] = min(x, y) * total + max(x, y)
                at += 1
    return codes


@kernel
def _jaccard(offsets: Indices, values: Hashes, a: Indices, b: Indices, intersection: Indices, union: Indices) -> None:
    for p in range(a.shape[0]):
        i, last_i = np.uint64(offsets[a[p]]), np.uint64(offsets[a[p] + 1])  # unsigned: no test for negative indices
        j, last_j = np.uint64(offsets[b[p]]), np.uint64(offsets[b[p] + 1])
        both, total = np.int64(0), np.int64((last_i - i) + (last_j - j))
        while i < last_i and j < last_j:
            x, y = values[i], values[j]
            both += np.int64(x == y)
            i += np.uint64(x <= y)
            j += np.uint64(y <= x)
        intersection[p], union[p] = both, total - both


@kernel
def _adjacency(documents: np.int64, a: Indices, b: Indices) -> tuple[Indices, Indices, Indices]:
    """Return the neighbours of each document, with the index of the edge: both directions, by counting."""
    starts = np.zeros(documents + 1, np.int64)
    for e in range(a.shape[0]):
        starts[a[e] + 1] += 1
        starts[b[e] + 1] += 1
    for d in range(documents):
        starts[d + 1] += starts[d]
    neighbours, edges, at = np.empty(2 * a.shape[0], np.int64), np.empty(2 * a.shape[0], np.int64), starts.copy()
    for e in range(a.shape[0]):
        neighbours[at[a[e]]], edges[at[a[e]]] = b[e], e
        at[a[e]] += 1
        neighbours[at[b[e]]], edges[at[b[e]]] = a[e], e
        at[b[e]] += 1
    return starts, neighbours, edges


@kernel
def _keep(
    visit: Indices,
    starts: Indices,
    neighbours: Indices,
    edges: Indices,
    rank: Indices,
    intersection: Indices,
    union: Indices,
    keeper: Indices,
    edge: Indices,
) -> None:
    stays = np.zeros(visit.shape[0], np.bool_)
    for d in visit:
        best = np.int64(-1)
        for at in range(starts[d], starts[d + 1]):
            other, e = neighbours[at], edges[at]
            if not stays[other]:
                continue
            gain = np.int64(1)
            if best >= 0:
                gain = intersection[e] * union[best] - intersection[best] * union[e]
            if gain > 0 or (gain == 0 and rank[other] < rank[keeper[d]]):
                best, keeper[d], edge[d] = e, other, e
        stays[d] = best < 0
