"""Spherical k-means: exact products, groups of clear clusters, the least size, the adjusted Rand index."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from transforms.spherical_kmeans import ONE, Rows, adjusted_rand, group_rows, nearest, products, unit_rows


def clusters(*sizes: int, dimension: int = 16, spread: int = 12) -> Rows:
    """Return rows around the axes: sizes[i] of them around axis i."""
    random, parts = np.random.default_rng(5), []
    for axis, size in enumerate(sizes):
        part = random.integers(-spread, spread + 1, (size, dimension))
        part[:, axis] = 100
        parts.append(part)
    return unit_rows(np.concatenate(parts).astype(np.int8))


def test_products_of_rows_are_exact() -> None:
    rows = unit_rows(np.random.default_rng(5).integers(-127, 128, (50, 64)).astype(np.int8))
    assert np.array_equal(products(rows, rows[:7]), rows.astype(np.int64) @ rows[:7].astype(np.int64).T)


def test_unit_rows_have_length_one_and_zeros_stay() -> None:
    rows = unit_rows(np.array([[3, 4], [0, 0], [-127, 0]], np.int8))
    assert rows.tolist() == [[round(0.6 * ONE), round(0.8 * ONE)], [0, 0], [-ONE, 0]]


def test_nearest_tells_similarity_and_margin() -> None:
    rows = np.array([[ONE, 0], [0, ONE]], np.int16)
    found = nearest(rows, np.array([[0, ONE], [ONE, 0]], np.int16))
    assert found.labels.tolist() == [1, 0]
    assert found.similarities.tolist() == found.margins.tolist() == [ONE * ONE, ONE * ONE]
    assert nearest(rows, rows[:1]).margins.tolist() == [ONE * ONE, 0]


@pytest.mark.parametrize("seed", [0, 1])
def test_group_rows_finds_clear_clusters_from_any_seed(seed: int) -> None:
    sizes = (300, 40, 120)
    groups = group_rows(clusters(*sizes), 3, seed=seed)
    truth = np.repeat(np.arange(3), sizes)
    assert adjusted_rand(groups.labels, truth) == 1
    assert sorted(groups.sizes.tolist()) == sorted(sizes)


def test_group_rows_below_the_least_size_are_dissolved_and_the_largest_divided() -> None:
    rows = clusters(200, 100, 3, spread=3)
    assert group_rows(rows, 3).sizes.min() == 3
    groups = group_rows(rows, 3, least=20)
    assert len(groups.centres) == 3
    assert groups.sizes.min() >= 20


def test_group_rows_that_cannot_be_divided_give_fewer_groups() -> None:
    rows = clusters(30, 30)
    assert len(group_rows(rows, 5, least=25).centres) == 2
    same = np.tile(rows[:1], (10, 1))
    assert group_rows(same, 4, least=2).sizes.tolist() == [10]
    with pytest.raises(ValueError, match="nothing to group"):
        group_rows(rows[:0], 3)


def test_adjusted_rand_of_known_groupings() -> None:
    first = np.array([0, 0, 0, 1, 1, 1])
    assert adjusted_rand(first, first[::-1].copy()) == 1
    assert adjusted_rand(first, np.zeros(6, np.int64)) == 0
    assert adjusted_rand(first, np.array([0, 0, 1, 1, 2, 2])) == Fraction(8, 33)  # by hand: (2 - 6/5) / (9/2 - 6/5)
    assert adjusted_rand(np.zeros(3, np.int64), np.zeros(3, np.int64)) == 1
