"""Buckets of any size give the pairs of those that are held whole, from any batches."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from curate import Outputs, deduplicate
from curate.deduplication import buckets, pairs
from curate.deduplication.buckets import bucket_pairs
from curate.deduplication.plan import BANDS
from curate.store import Store
from tests.curate.corpus import ledger, run_on
from tests.curate.test_deduplication import THOROUGH, documents, write_sources
from tests.transforms.test_large_buckets import made_up
from transforms.duplicates import split_buckets

CAP = 32


def rows(sizes: list[int]) -> pa.RecordBatch:
    """Return buckets of these sizes, ordered by bucket; what is in one in any order."""
    found, document = [], 0
    for bucket, size in enumerate(sizes):
        for split, order, _ in made_up(size, 2, bucket):
            found.append((bucket * 7, split, order, document))
            document += 1
    draw = random.Random(3)
    found.sort(key=lambda row: (row[0], draw.random()))
    kinds = (np.uint64, np.uint64, np.uint64, np.int64)
    columns = [pa.array(np.array(column, kind)) for column, kind in zip(zip(*found, strict=True), kinds, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=BANDS)


@pytest.mark.parametrize("sizes", [[5, 200, 3, 90, 100, 1], [120], [3, 40, 2, 40]])
@pytest.mark.parametrize("size", [1, 9, 10_000])
def test_pairs_of_all_buckets_are_those_of_buckets_held_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sizes: list[int], size: int
) -> None:
    monkeypatch.setattr(buckets, "HELD", 50)
    monkeypatch.setattr(buckets, "PAIRS_AT_ONCE", 60)
    given = rows(sizes)

    def batches() -> Iterator[pa.RecordBatch]:
        return (given.slice(first, size) for first in range(0, len(given), size))

    found = list(bucket_pairs(Store(tmp_path), batches(), CAP))
    keys, splits, order, refs = (given.column(name).to_numpy() for name in BANDS.names)
    whole = split_buckets(keys, splits, order, refs, CAP)
    pairs = [(a, b) for some in found for a, b in zip(some.a.tolist(), some.b.tolist(), strict=True)]
    assert sorted(pairs) == list(zip(whole.a.tolist(), whole.b.tolist(), strict=True))
    counts = [sum(getattr(some, name) for some in found) for name in ("rows", "given_up", "buckets")]
    assert counts == [len(given), whole.given_up, whole.buckets]


def test_cuts_follow_from_the_rows_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "HELD", 50)
    monkeypatch.setattr(buckets, "PAIRS_AT_ONCE", 60)
    given, cuts = rows([5, 12, 200, 3, 90, 100, 1, 7]), []
    for size in (1, 30, 10_000):
        batches = (given.slice(first, size) for first in range(0, len(given), size))
        found = bucket_pairs(Store(tmp_path), batches, CAP)
        cuts.append([(some.a.tolist(), some.rows) for some in found if len(some.a) or some.rows])
    assert cuts[0] == cuts[1] == cuts[2]


def test_owner_of_a_pair_is_the_least_document_paired_with_its_first(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(2)
    codes = np.unique(draw.integers(0, 60 * 60, 500))
    a, b = (codes // 60)[codes // 60 < codes % 60] * 3, (codes % 60)[codes // 60 < codes % 60] * 3
    expected = [min([first, *a[b == first].tolist()]) for first in a.tolist()]
    for at_a_time in (1, 7, 1000):
        monkeypatch.setattr(pairs, "PAIRS_AT_A_TIME", at_a_time)
        assert pairs.owners(a, b).tolist() == expected
    assert pairs.owners(a[:0], b[:0]).tolist() == []


def test_large_buckets_change_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = write_sources(tmp_path / "in", documents(80), 1)
    method = replace(THOROUGH, cap=2)
    whole = run_on(Outputs(texts=deduplicate(old, new, method=method)), tmp_path / "1").outputs["texts"]
    monkeypatch.setattr(buckets, "HELD", 2)
    parts = run_on(Outputs(texts=deduplicate(old, new, method=method)), tmp_path / "2").outputs["texts"]
    assert parts.content == whole.content and ledger(parts) == ledger(whole)
    names = ("compared", "given_up", "split_buckets")  # "proposed" counts a pair once for all buckets held together
    assert [parts.statistics["duplicates"][n] for n in names] == [whole.statistics["duplicates"][n] for n in names]
    assert whole.statistics["duplicates"]["split_buckets"] > 10
