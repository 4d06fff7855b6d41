"""Semantic duplicates: the rule against a plain one in exact arithmetic, and division of clusters."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

import numpy as np
import numpy.typing as npt
import pytest

from transforms import semantic
from transforms.semantic import SCALE, STAYS, cosine_of, divided, keep_unlike, reaches

Vectors = npt.NDArray[np.int8]


def families(count: int = 120, dimension: int = 32, seed: int = 1) -> Vectors:
    """Return vectors of which many are close to an earlier one, in any order, with rows of zeros and equal ones."""
    draw = np.random.default_rng(seed)
    centres = draw.integers(-120, 121, (count // 6, dimension))
    noise = draw.integers(-40, 41, (count, dimension)) * draw.integers(0, 2, (count, 1))
    rows = np.clip(centres[draw.integers(0, len(centres), count)] + noise, -127, 127).astype(np.int8)
    rows[7] = rows[50] = 0
    return rows


def by_definition(vectors: Vectors, threshold: Fraction, frozen: int = 0) -> tuple[list[int], list[int]]:
    """Return keepers and cosines: row after row, in Python's integers."""
    rows, staying = vectors.astype(int).tolist(), list[int]()
    keeper, cosine = [STAYS] * len(rows), [0] * len(rows)
    for i, row in enumerate(rows):
        best = (Fraction(0), STAYS)
        for j in staying if i >= frozen else []:
            product = sum(x * y for x, y in zip(row, rows[j], strict=True))
            whole = sum(x * x for x in row) * sum(y * y for y in rows[j])
            if product > 0 and Fraction(product**2, whole) >= threshold**2 and Fraction(product**2, whole) > best[0]:
                best = (Fraction(product**2, whole), j)
        if best[1] == STAYS:
            staying.append(i)
        else:
            keeper[i], cosine[i] = best[1], isqrt(int(best[0] * SCALE**2))
    return keeper, cosine


@pytest.mark.parametrize("at_once", [5, 256])
@pytest.mark.parametrize(("threshold", "frozen"), [(Fraction(9, 10), 0), (Fraction(1), 0), (Fraction(4, 5), 30)])
def test_rows_go_for_the_most_similar_one_that_stays(
    monkeypatch: pytest.MonkeyPatch, at_once: int, threshold: Fraction, frozen: int
) -> None:
    monkeypatch.setattr(semantic, "_AT_ONCE", at_once)
    vectors = families()
    found = keep_unlike(vectors, threshold, np.arange(len(vectors)) < frozen)
    assert (found.keeper.tolist(), found.cosine.tolist()) == by_definition(vectors, threshold, frozen)
    assert (found.keeper != STAYS).sum() > 5
    assert found.keeper[7] == found.keeper[50] == STAYS


def test_cosine_exactly_at_the_threshold_reaches_it() -> None:
    """(3, 4) and (1, 0): 3 / 5; whatever the rounding of 0.6 in binary."""
    vectors = np.array([[1, 0], [3, 4], [30, 41]], np.int8)
    assert keep_unlike(vectors, Fraction(3, 5)).keeper.tolist() == [STAYS, 0, STAYS]
    assert reaches(3, 25, 1, Fraction(3, 5)) and not reaches(30, 900 + 41**2, 1, Fraction(3, 5))
    assert cosine_of(3, 25, 1) == 6000 and cosine_of(-3, 25, 1) == 0


def test_wide_vectors_are_compared_exactly() -> None:
    draw = np.random.default_rng(3)
    wide = draw.integers(-127, 128, (12, 1400)).astype(np.int8)
    wide[5], wide[9] = wide[2], np.where(np.arange(1400) < 40, -wide[4], wide[4])
    found = keep_unlike(wide, Fraction(9, 10))
    assert (found.keeper.tolist(), found.cosine.tolist()) == by_definition(wide, Fraction(9, 10))


@pytest.mark.parametrize("cap", [10, 40, 500])
def test_division_puts_each_row_into_one_part_and_counts_what_it_gives_up(cap: int) -> None:
    vectors = families()
    parts = list(divided(vectors, cap))
    rows = [part for part, _ in parts if len(part)]
    assert all(len(part) <= cap and (np.diff(part) > 0).all() for part in rows)
    assert sorted(np.concatenate(rows).tolist()) == list(range(len(vectors)))
    together = sum(len(part) * (len(part) - 1) // 2 for part in rows)
    assert sum(given_up for _, given_up in parts) == len(vectors) * (len(vectors) - 1) // 2 - together


def test_division_of_equal_rows_compares_each_with_the_first() -> None:
    vectors = np.tile(np.array([[1, 2, 3, 4]], np.int8), (25, 1))
    parts = list(divided(vectors, 8))
    rows = [part.tolist() for part, _ in parts if len(part)]
    assert rows[0] == list(range(8)) and all(part[0] == 0 for part in rows)
    assert sorted({row for part in rows for row in part}) == list(range(25))
    together = {(min(a, b), max(a, b)) for part in rows for a in part for b in part if a != b}
    assert sum(given_up for _, given_up in parts) == 300 - len(together)
