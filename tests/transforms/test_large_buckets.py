"""A bucket that streams by gives the candidates of one that is held whole."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.duplicates import split_buckets
from transforms.large_buckets import Hashes, Indices, large_bucket_pairs, parts

Rows = list[tuple[int, int, int]]
"""Split key, keep order, document."""


def made_up(count: int, kinds: int, seed: int) -> Rows:
    """Return rows whose split keys agree in few or many bytes, some in all."""
    draw = random.Random(seed)
    byte = [[draw.randrange(kinds) * 37 % 256 for _ in range(8)] for _ in range(max(1, count // 3))]
    rows = []
    for document in draw.sample(range(10 * count), count):
        bytes_ = [value if draw.random() < 0.97 else draw.randrange(256) for value in draw.choice(byte)]
        rows.append((int.from_bytes(bytes(bytes_), "big"), draw.randrange(5), document))
    return rows


def whole(rows: Rows, cap: int) -> tuple[list[tuple[int, int]], int]:
    split, order, document = zip(*rows, strict=True)
    keys = np.zeros(len(rows), np.uint64), np.array(split, np.uint64), np.array(order, np.uint64)
    found = split_buckets(*keys, np.array(document, np.int64), cap)
    return list(zip(found.a.tolist(), found.b.tolist(), strict=True)), found.given_up


def streamed(rows: Rows, cap: int, size: int, at_once: int) -> list[tuple[int, int]]:
    rows = sorted(rows)
    first = min((order, document) for _, order, document in rows)[1]

    def batches() -> Iterator[tuple[Hashes, Indices]]:
        for start in range(0, len(rows), size):
            part = rows[start : start + size]
            yield np.array([row[0] for row in part], np.uint64), np.array([row[2] for row in part], np.int64)

    found = list(large_bucket_pairs(batches(), first, cap, at_once))
    return [pair for some in found for pair in zip(some.a.tolist(), some.b.tolist(), strict=True)]


@pytest.mark.parametrize(("size", "at_once"), [(1, 1), (7, 100), (1000, 1 << 20)])
@settings(max_examples=40)
@given(st.integers(1, 1 << 30), st.integers(40, 200), st.sampled_from([1, 2, 3, 200]), st.sampled_from([2, 32, 39]))
def test_streamed_bucket_gives_the_pairs_of_a_held_one(
    size: int, at_once: int, seed: int, count: int, kinds: int, cap: int
) -> None:
    rows = made_up(count, kinds, seed)
    pairs, given_up = whole(rows, cap)
    found = streamed(rows, cap, size, at_once)
    assert sorted(found) == pairs and len(found) == len(pairs)
    assert given_up == count * (count - 1) // 2 - len(found)


def test_long_run_of_equal_split_keys_is_cut_and_led_by_its_first_row() -> None:
    rows = [(np.full(7, 5, np.uint64), np.arange(7)), (np.array([5, 5, 5, 9], np.uint64), np.arange(7, 11))]
    found = [(part.tolist(), lead) for part, lead in parts(rows, 4)]
    assert found == [([0, 1, 2, 3], None), ([4, 5, 6, 7], 0), ([8, 9], 0), ([10], None)]
