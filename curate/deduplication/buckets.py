"""Candidate pairs of buckets that stream by: small ones are held whole, a large one is sorted outside of memory.

Rows come ordered by bucket. Buckets of at most `HELD` rows are paired some at a time (`whole_buckets`). A larger one is
written to a spool file ordered by split key, then read back part by part (`transforms.large_buckets`): the pairs are
the same, and what is held is a batch and the pairs of some parts, however many texts share one template.

Invariants: pairs and counts follow from the rows alone, whatever their batches. `HELD` and `PAIRS_AT_ONCE` decide which
pairs are proposed together, and with that on their owners: constants of the format.
Cost of a large bucket: its rows are written and read twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Final

import numpy as np
import pyarrow as pa

from curate import exchange
from curate.deduplication.plan import BANDS, Refs
from curate.exchange import ExchangeFile, ExchangeWriter, Shape, merged
from curate.store import Store
from transforms.duplicates import split_buckets
from transforms.large_buckets import Hashes, large_bucket_pairs

PAIRS_AT_ONCE: Final = 4 << 20
"""Cost of the buckets, or parts of one, that are paired at a time, in pairs."""

HELD: Final = 1 << 17
"""Rows of a bucket that is held whole: with its pairs 60 bytes each and 40 a pair, at most `cap` / 32 + 2 of these."""

ROW_COST: Final = 4
"""What a row costs that has few pairs."""

_ORDERED: Final = Shape(BANDS, ("split", "order", "ref"), 1)


@dataclass(frozen=True, slots=True)
class Proposed:
    """Candidate pairs (a < b), of `rows` rows; pairs that were given up, and buckets that were split."""

    a: Refs
    b: Refs
    rows: int
    given_up: int
    buckets: int


def bucket_pairs(store: Store, batches: Iterator[pa.RecordBatch], cap: int) -> Iterator[Proposed]:
    """Yield the candidate pairs of all buckets of `batches`, which are rows of `BANDS` ordered by bucket."""
    held = max(HELD, cap)
    for large, group in groupby(_marked(batches, held), itemgetter(1)):
        rows = (batch for batch, _ in group)
        if large is not None:
            yield from _large_bucket(store, rows, cap)
            continue
        for whole in whole_buckets(rows, cap, PAIRS_AT_ONCE):
            keys, splits, order, refs = (whole.column(name).to_numpy() for name in BANDS.names)
            pairs = split_buckets(keys, splits, order, refs, cap)
            yield Proposed(pairs.a, pairs.b, whole.num_rows, pairs.given_up, pairs.buckets)


def _marked(batches: Iterator[pa.RecordBatch], most: int) -> Iterator[tuple[pa.RecordBatch, int | None]]:
    """Yield the rows with the bucket that they are of where it has more than `most` rows, else None: whole buckets."""
    held: list[pa.RecordBatch] = []
    large: int | None = None  # the bucket that the last rows were of
    for batch in batches:
        if large is not None:
            count = int(np.searchsorted(batch.column("bucket").to_numpy(), np.uint64(large), side="right"))
            yield batch.slice(0, count), large
            batch, large = batch.slice(count), large if count == batch.num_rows else None
            if large is not None:
                continue
        rows = pa.concat_batches([*held, batch])
        buckets = rows.column("bucket").to_numpy()
        borders = np.flatnonzero(np.concatenate([[True], buckets[1:] != buckets[:-1], [True]]))
        first, held = 0, []
        for place in np.flatnonzero(np.diff(borders) > most).tolist():
            start, end, large = int(borders[place]), int(borders[place + 1]), int(buckets[borders[place]])
            yield rows.slice(first, start - first), None
            yield rows.slice(start, end - start), large
            first = end
        if first < rows.num_rows:  # the last bucket may go on
            start, large = int(borders[-2]), None
            yield rows.slice(first, start - first), None
            held = [rows.slice(start)]
    if held:
        yield held[0], None


def whole_buckets(batches: Iterator[pa.RecordBatch], cap: int, cost: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `batches`, which are ordered by bucket, in whole buckets that cost `cost` or little more.

    Where it is cut follows from the rows alone, whatever their batches.
    """
    held: list[pa.RecordBatch] = []
    for batch in batches:
        whole = pa.concat_batches([*held, batch])
        buckets = whole.column("bucket").to_numpy()
        ends = np.flatnonzero(buckets[1:] != buckets[:-1]) + 1  # of all but the last, which may go on
        sizes = np.diff(ends, prepend=0)
        costs = np.cumsum(sizes * np.maximum(ROW_COST, np.where(sizes > cap, cap // 32 + 2, sizes // 2)))
        start = before = 0
        while (last := int(np.searchsorted(costs, before + cost))) < len(costs):
            yield whole.slice(start, int(ends[last]) - start)
            start, before = int(ends[last]), int(costs[last])
        held = [whole.slice(start)]
    if held and held[0].num_rows:
        yield held[0]


def _large_bucket(store: Store, batches: Iterator[pa.RecordBatch], cap: int) -> Iterator[Proposed]:
    """Yield the candidate pairs of one bucket; its rows are counted, and what is given up, with the last."""
    rows = proposed = 0
    first: tuple[int, int] | None = None
    with store.spool() as path:
        with ExchangeWriter(path, _ORDERED, exchange.LIMITS, store.spool) as writer:
            for batch in batches:
                rows += batch.num_rows
                first = _first(batch, first)
                writer.add(batch, np.zeros(batch.num_rows, np.int64))
            writer.finish()
        if first is None:
            return
        with path.open("rb") as file:
            ordered = merged([ExchangeFile(file, str(path), _ORDERED)], 0, exchange.LIMITS.memory)
            for pairs in large_bucket_pairs(_columns(ordered), first[1], cap, PAIRS_AT_ONCE):
                proposed += len(pairs.a)
                yield Proposed(pairs.a, pairs.b, 0, 0, 0)
    nothing = np.empty(0, np.int64)
    yield Proposed(nothing, nothing, rows, rows * (rows - 1) // 2 - proposed, 1)


def _columns(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[Hashes, Refs]]:
    for batch in batches:
        yield batch.column("split").to_numpy(), batch.column("ref").to_numpy()


def _first(batch: pa.RecordBatch, before: tuple[int, int] | None) -> tuple[int, int] | None:
    """Return keep order and ref of what comes first in keep order, of `batch` and what was first `before`."""
    if not batch.num_rows:
        return before
    order, refs = batch.column("order").to_numpy(), batch.column("ref").to_numpy()
    least = order.min()
    mine = int(least), int(refs[order == least].min())
    return mine if before is None else min(before, mine)
