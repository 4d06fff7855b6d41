"""Measured points of a banding, held against pairs counted one by one."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from itertools import combinations

import pyarrow as pa
import pytest

from transforms.banding_curve import measured_points
from transforms.minhash import MinHash, band_keys, sets_of

METHOD = MinHash(ngram=2, bands=4, rows=3)


def family(count: int, seed: int = 1) -> list[str]:
    """Return versions of one text of 60 words, from none to all of them replaced, and a copy of the first."""
    draw = random.Random(seed)
    words = [f"w{number}" for number in range(60)]
    texts = [
        " ".join(f"x{n}{i}" if draw.random() < n / count else w for i, w in enumerate(words)) for n in range(count)
    ]
    return [*texts, texts[0]]


def one_by_one(texts: list[str], least: Fraction, width: Fraction) -> dict[Fraction, tuple[int, int]]:
    column = pa.array(texts, pa.large_string())
    sets, keys = sets_of(column, METHOD), band_keys(column, METHOD)
    members = [set(sets.values[a:b].tolist()) for a, b in zip(sets.offsets[:-1], sets.offsets[1:], strict=True)]
    pairs, found = Counter[Fraction](), Counter[Fraction]()
    for a, b in combinations(range(len(texts)), 2):
        similarity = Fraction(len(members[a] & members[b]), len(members[a] | members[b]))
        if similarity >= least:
            low = least + width * max((min(similarity, 1 - width / 1000) - least) // width, 0)
            pairs[low] += 1
            found[low] += any(one == other for one, other in zip(keys[a].tolist(), keys[b].tolist(), strict=True))
    return {low: (count, found[low]) for low, count in pairs.items()}


@pytest.mark.parametrize(("least", "width"), [("1/5", "1/20"), ("1/2", "1/10"), ("1/3", "1/4"), ("1", "1/2")])
@pytest.mark.parametrize("pairs", [1, 50, 1 << 20])
def test_points_are_the_pairs_counted_one_by_one(
    least: str, width: str, pairs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transforms.banding_curve.PAIRS", pairs)
    texts = family(40)
    points = measured_points(pa.array(texts, pa.large_string()), METHOD, Fraction(least), Fraction(width))
    expected = one_by_one(texts, Fraction(least), Fraction(width))
    assert {point.low: (point.pairs, point.candidates) for point in points} == expected
    assert points[-1].high == 1


def test_points_do_not_depend_on_the_order_of_texts() -> None:
    texts = family(30)
    points = [measured_points(pa.array(order, pa.large_string()), METHOD) for order in (texts, texts[::-1])]
    assert [(p.low, p.pairs, p.candidates) for p in points[0]] == [(p.low, p.pairs, p.candidates) for p in points[1]]


def test_points_lie_within_the_standard_errors_of_the_curve() -> None:
    texts = [text for seed in range(12) for text in family(25, seed)[1:]]
    column = pa.array([text.replace("w", f"{n // 25}w") for n, text in enumerate(texts)], pa.large_string())
    points = measured_points(column, MinHash(ngram=1, bands=10, rows=2), width=Fraction(1, 5))
    large = [point for point in points if point.pairs > 100]
    assert len(large) >= 3
    for point in large:  # pairs of one family are not independent: three standard errors, and as much again
        assert abs(point.share - point.expected) <= 6 * point.standard_error + 1e-3


@pytest.mark.parametrize("texts", [[], ["one text alone"], ["a b c", "d e f"]])
def test_texts_without_similar_pairs_have_no_points(texts: list[str]) -> None:
    assert measured_points(pa.array(texts, pa.large_string()), METHOD) == []


def test_widths_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="above 0"):
        measured_points(pa.array(["a"], pa.large_string()), METHOD, Fraction(0))
