"""Who is a duplicate of whom, and who stays: the arithmetic of deduplication, without any choreography over shards.

The order of calls: `text_digests` and keep-order keys → `EqualTexts`; band keys → `split_buckets` gives candidate
pairs; shingle sets → `transforms.similarity.edges` → `transforms.components` → `survivors` per component of edges.

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
from transforms.schema import ID
from transforms.segmentation import text_buffers
from transforms.shingles import Sets
from transforms.similarity import intersections

Hashes = npt.NDArray[np.uint64]
Indices = npt.NDArray[np.int64]

STAYS: Final = -1
"""In an array of keepers: this row stays."""

_LEVELS: Final = 8  # bytes of a split key
_PARTS: Final = 16  # by which the cap is divided for the parts of a bucket above it


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
    into parts of at most cap / 16 rows (two at least), whose pairs are candidates: by the next band's hash (the highest
    byte of `splits`, see `minhash.split_keys`), a part that is still larger by the one after, and so on. A part that no
    byte splits (texts alike in nine bands) is cut into runs in order of `order`, then `documents`. The first row of
    such a part, and of the whole bucket, is also paired with all others there, so that copies of one text in a
    thousand wrappings do not survive once per run. Best for `order` is the keep order (`order_prefixes`): then that
    first row is the one that stays; else take the first 8 bytes of the text digest. It must not depend on arrival.

    All rows of a bucket must be here; several calls may share the buckets, and their pairs are to be made unique.
    Memory: 60 bytes per row and 40 per pair, repeats included. A row of a bucket of `cap` rows has cap / 2 pairs on the
    average and one of a larger bucket cap / 32 + 2 at most.

    Raises:
        ValueError: the arrays differ in length, or `cap` is below 2.
    """
    lengths = [len(keys), len(splits), len(order), len(documents)]
    if len(set(lengths)) > 1 or cap < 2:
        raise ValueError(f"split_buckets needs four arrays of one length and cap ≥ 2: got {lengths} and cap {cap}")
    if (keys[1:] >= keys[:-1]).all():  # as they come from an exchange
        sizes = np.diff(_borders(keys))
        rows = np.flatnonzero(np.repeat(sizes > 1, sizes))  # most rows are alone in their bucket
    else:
        rows = np.argsort(keys, kind="stable")
        sizes = np.diff(_borders(keys[rows]))
        rows = rows[np.repeat(sizes > 1, sizes)]
    several = sizes > 1
    largest, sizes = int(sizes.max(initial=0)), sizes[several]
    borders = np.concatenate([[0], np.cumsum(sizes)])
    names, local = np.unique(documents[rows], return_inverse=True)
    local = local.reshape(-1).astype(np.int64)
    small = sizes <= cap
    runs = np.stack([borders[:-1][small], borders[1:][small], borders[:-1][small]], axis=1)
    codes = [_pairs(local, runs, np.int64(len(names)))]
    for first, last in zip(borders[:-1][~small].tolist(), borders[1:][~small].tolist(), strict=True):
        bucket = rows[first:last]
        codes.append(_large_bucket(splits[bucket], order[bucket], local[first:last], max(2, cap // _PARTS), len(names)))
    proposed = sum(map(len, codes))
    a, b = _distinct_pairs(names, np.concatenate(codes))
    possible = int((sizes * (sizes - 1) // 2).sum())
    return Candidates(a, b, possible - proposed, int((~small).sum()), largest)


def order_prefixes(orders: pa.LargeBinaryArray, skipped: int, digests: pa.FixedSizeBinaryArray) -> Hashes:
    """Return 8 bytes per row in keep order, for `split_buckets`: three of its order key from byte `skipped` on, and
    five of its text digest, which tell equals apart in a way that depends on no arrival (40 bits: of a million rows
    that are equal so far, one pair every other time).

    `skipped` is the length of what all order keys begin with: `common_prefix` of the lowest and the highest.
    """
    numbers = leading_bits(digests) >> np.uint64(24)
    _, offsets, content = orders.buffers()
    if content is None or not len(orders):
        return numbers
    data = np.frombuffer(content, np.uint8)
    bounds = np.frombuffer(offsets, np.int64, len(orders) + 1, 8 * orders.offset)
    for byte in range(3):
        places = bounds[:-1] + (skipped + byte)
        there = places < bounds[1:]
        values = np.where(there, data[np.where(there, places, 0)], 0).astype(np.uint64)
        numbers |= values << np.uint64(56 - 8 * byte)
    return numbers


def common_prefix(lowest: bytes, highest: bytes) -> int:
    """Return how many bytes two keys begin with in common: as many as all keys between them."""
    return next(
        (i for i, (x, y) in enumerate(zip(lowest, highest, strict=False)) if x != y), min(len(lowest), len(highest))
    )


def jaccard_pairs(sets: Sets, a: Indices, b: Indices) -> tuple[Indices, Indices]:
    """Return the sizes of intersection and union of sets a[i] and b[i], for each i.

    Jaccard similarity is their ratio; keep it as two integers. Where only pairs at or above a threshold matter,
    `transforms.similarity.edges` is faster.
    """
    shared = intersections(sets, a, b, np.zeros(len(a), np.int64))
    sizes = np.diff(sets.offsets)
    return shared, sizes[a] + sizes[b] - shared


def survivors(
    rank: Indices,
    a: Indices,
    b: Indices,
    shared: Indices,
    whole: Indices,
    *,
    keep: int = 1,
    before: npt.NDArray[np.int8] | None = None,
) -> Survivors:
    """Apply the sequential rule: in keep order a document stays unless it has an edge to one that stays already.

    Documents are 0 … len(rank) - 1; `rank` orders them (lower stays, no two equal). Edges are verified pairs
    (a[i], b[i]) in any order and direction, of similarity shared[i] / whole[i]. The keeper of a dropped document is the
    surviving neighbour of highest similarity before it in keep order; of equals the first in keep order.

    With `keep` = n it stays unless it has n edges to documents that stay. So each dropped document has n survivors that
    it resembles, and the keeper is one of them, whatever n is; but only n = 1 promises that no two survivors that were
    compared are similar.

    The result is that of one pass over all documents, whether called with all edges or per connected component. A
    component too large for one task is cut into ranges of the keep order, one call after the other: `before` has what
    was decided by earlier calls (1 stays, 0 goes, -1: to be decided here). A call needs the edges whose later end is in
    its range, and says nothing about documents that were decided before.

    Linear in documents and edges (no rounds: a chain of n versions costs n), but for one sort of `rank`. Sizes below
    2^31.
    """
    keeper, edge = np.full(len(rank), STAYS, np.int64), np.full(len(rank), STAYS, np.int64)
    starts, neighbours, edges = _adjacency(np.int64(len(rank)), a, b)
    decided = np.full(len(rank), -1, np.int8) if before is None else before.astype(np.int8)
    visit = np.argsort(rank, kind="stable")
    _keep(visit, starts, neighbours, edges, rank, shared, whole, np.int64(keep), decided, keeper, edge)
    return Survivors(keeper, edge)


def numbered(digests: pa.FixedSizeBinaryArray) -> tuple[Indices, Indices]:
    """Number the distinct digests: the number of each row, and how many rows each number has."""
    halves = _halves(digests)
    rows = np.lexsort((halves[:, 1], halves[:, 0]))
    new = np.zeros(len(rows), np.bool_)
    new[1:] = (halves[rows[1:]] != halves[rows[:-1]]).any(axis=1)
    numbers = np.empty(len(rows), np.int64)
    numbers[rows] = np.cumsum(new)
    return numbers, np.bincount(numbers).astype(np.int64)


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


def _distinct_pairs(names: Indices, codes: Indices) -> tuple[Indices, Indices]:
    """Return the pairs of documents that `codes` stand for, sorted, each once."""
    codes.sort()  # np.unique would hash them first, which is five times slower
    a, b = np.divmod(codes[_borders(codes)[:-1]], max(len(names), 1))
    other = a != b  # a document twice in one bucket is no pair
    return names[a[other]], names[b[other]]


def _large_bucket(splits: Hashes, order: Hashes, documents: Indices, most: int, total: int) -> Indices:
    """Return lower · total + higher for the candidates of a bucket that is split into parts of at most `most` rows."""
    rows = np.lexsort((documents, order, splits))
    runs = np.array(list(_parts(splits[rows], most, 0, 0, len(rows))), np.int64)
    first = np.lexsort((documents, order))[0]
    others = np.delete(documents, first)
    star = np.minimum(others, documents[first]) * total + np.maximum(others, documents[first])
    codes = np.concatenate([_pairs(documents[rows], runs, np.int64(total)), star])
    codes.sort()
    return codes[_borders(codes)[:-1]]


def _parts(splits: Hashes, most: int, level: int, first: int, last: int) -> Iterator[tuple[int, int, int]]:
    """Yield runs (start, end, centre) of at most `most` rows of sorted `splits`; the centre is paired with each row."""
    if last - first <= most:
        yield first, last, first
    elif level == _LEVELS:
        for start in range(first, last, most):
            yield start, min(start + most, last), first
    else:
        borders = _borders(splits[first:last] >> np.uint64(56 - 8 * level)) + first
        for start, end in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
            yield from _parts(splits, most, level + 1, start, end)


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
    shared: Indices,
    whole: Indices,
    keep: np.int64,
    decided: npt.NDArray[np.int8],
    keeper: Indices,
    edge: Indices,
) -> None:
    for d in visit:
        if decided[d] >= 0:
            continue
        best, staying = np.int64(-1), np.int64(0)
        for at in range(starts[d], starts[d + 1]):
            other, e = neighbours[at], edges[at]
            if decided[other] != 1:
                continue
            staying += 1
            gain = np.int64(1)
            if best >= 0:
                gain = shared[e] * whole[best] - shared[best] * whole[e]
            if gain > 0 or (gain == 0 and rank[other] < rank[keeper[d]]):
                best, keeper[d], edge[d] = e, other, e
        decided[d] = staying < keep
        if staying < keep:
            keeper[d], edge[d] = STAYS, STAYS
