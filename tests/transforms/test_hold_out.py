"""What is held out depends on the set of texts alone, and no text near a held-out one is missed."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transforms.test_duplicates import variants
from transforms.duplicates import text_digests
from transforms.hold_out import NONE, Limit, choose, contenders, draw_keys, index_sets, nearest
from transforms.minhash import Sets, shingle_sets

LIMITS = st.one_of(
    st.integers(1, 12).map(lambda n: Limit(documents=n)), st.integers(1, 60).map(lambda n: Limit(characters=n))
)
TEXTS = st.lists(st.text("abc", min_size=1, max_size=9), min_size=1, max_size=30)


def array(texts: list[str]) -> pa.LargeStringArray:
    return pa.array(texts, pa.large_string())


def chosen(texts: list[str], limit: Limit, ids: list[bytes] | None = None, rule: Any = choose) -> list[int]:
    digests = text_digests(array(texts))
    names = ids or [n.to_bytes(16, "big") for n in range(len(texts))]
    columns: list[Any] = [np.array(digests.to_pylist(), "S16"), np.array(names, "S16")]
    return rule(draw_keys(digests), *columns, np.array([len(text) for text in texts], np.int64), limit).tolist()


def by_definition(texts: list[str], limit: Limit) -> set[str]:
    """Return the texts that are held out: different ones in the order of their keys, while they fit."""
    order = sorted(set(texts), key=lambda text: int(draw_keys(text_digests(array([text])))[0]))
    found: list[str] = []
    for text in order:
        if limit.characters is not None and len(text) > limit.characters:
            continue
        total = sum(map(len, [*found, text])) if limit.characters is not None else len(found) + 1
        if total > (limit.characters or limit.documents or 0):
            break
        found.append(text)
    return set(found)


@given(TEXTS, LIMITS)
def test_choice_equals_its_definition_and_takes_each_text_once(texts: list[str], limit: Limit) -> None:
    found = [texts[row] for row in chosen(texts, limit)]
    assert len(found) == len(set(found))
    assert set(found) == by_definition(texts, limit)


@given(TEXTS, LIMITS, st.randoms(use_true_random=False))
def test_choice_in_any_order_is_the_same(texts: list[str], limit: Limit, draw: Any) -> None:
    shuffled = list(texts)
    draw.shuffle(shuffled)
    assert [texts[r] for r in chosen(texts, limit)] == [shuffled[r] for r in chosen(shuffled, limit)]


@given(TEXTS, LIMITS, st.integers(0, 30))
@settings(max_examples=150)
def test_choice_among_contenders_of_parts_equals_that_among_all(texts: list[str], limit: Limit, border: int) -> None:
    parts = [part for part in (texts[:border], texts[border:]) if part]
    of_parts = [part[row] for part in parts for row in chosen(part, limit, rule=contenders)]
    asked = limit.within(sum(map(len, texts)), len(texts))
    if asked is not None:
        assert by_definition(of_parts, asked) == by_definition(texts, asked)


def test_contenders_have_the_first_that_does_not_fit() -> None:
    """Without it, a part whose next text is too large would let a later one in."""
    texts = ["a", "a", "aaaaaaaa", "aa"]
    limit = Limit(characters=8)
    of_parts = [part[row] for part in (texts[:3], texts[3:]) for row in chosen(part, limit, rule=contenders)]
    assert by_definition(of_parts, limit) == by_definition(texts, limit) == {"a"}


@given(TEXTS, st.integers(1, 40), st.integers(0, 20))
def test_choice_larger_limit_of_documents_only_adds(texts: list[str], limit: int, more: int) -> None:
    small, large = (chosen(texts, Limit(documents=n)) for n in (limit, limit + more))
    assert large[: len(small)] == small


def test_choice_of_equal_texts_takes_the_lowest_id() -> None:
    ids = [bytes([9] * 16), bytes([1] * 16), bytes([5] * 16)]
    assert chosen(["same", "same", "same"], Limit(documents=3), ids) == [1]


def test_choice_text_larger_than_the_limit_is_passed_over() -> None:
    assert chosen(["x" * 100], Limit(characters=99)) == []
    assert chosen(["x" * 100], Limit(characters=100)) == [0]


def test_limit_of_a_small_stratum_is_half_of_it() -> None:
    assert Limit(characters=1000).within(300, 7) == Limit(characters=150)
    assert Limit(documents=10).within(300, 7) == Limit(documents=3)
    assert Limit(documents=10).within(300, 1) is None
    assert Limit(documents=2).within(300, 100) == Limit(documents=2)


@pytest.mark.parametrize("limit", [{}, {"characters": 1, "documents": 1}, {"documents": 0}, {"characters": -5}])
def test_limit_that_is_none_or_two_is_refused(limit: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="limit"):
        Limit(**limit)


def test_keys_differ_from_the_order_of_the_digests() -> None:
    digests = text_digests(array([f"text {n}" for n in range(2000)]))
    keys = draw_keys(digests)
    leading = np.array([digest[:8] for digest in digests.to_pylist()], "S8").argsort().argsort()
    assert abs(np.corrcoef(keys.argsort().argsort(), leading)[0, 1]) < 0.1
    assert abs(float(keys.astype(np.float64).mean()) / 2**63 - 1) < 0.05


def plain(sets: Sets) -> list[set[int]]:
    return [set(sets.values[i:j].tolist()) for i, j in pairwise(sets.offsets.tolist())]


def nearest_by_definition(held: Sets, others: Sets, threshold: Fraction) -> list[tuple[int, Fraction | None]]:
    found: list[tuple[int, Fraction | None]] = []
    for mine in plain(others):
        best: tuple[int, Fraction | None] = (NONE, None)
        for number, theirs in enumerate(plain(held)):
            value = Fraction(len(mine & theirs), max(1, len(mine | theirs)))
            if value >= threshold and (best[1] is None or value > best[1]):
                best = (number, value)
        found.append(best)
    return found


def pairs_of(held: Sets, others: Sets, threshold: Fraction) -> list[tuple[int, Fraction | None]]:
    near, intersection, union = nearest(index_sets(held, threshold), others)
    columns = zip(near.tolist(), intersection.tolist(), union.tolist(), strict=True)
    return [(n, None if n == NONE else Fraction(i, u)) for n, i, u in columns]


@given(
    st.lists(st.frozensets(st.integers(0, 12), min_size=1), max_size=12),
    st.lists(st.frozensets(st.integers(0, 12)), max_size=12),
    st.sampled_from([Fraction(1, 10), Fraction(1, 2), Fraction(4, 5), Fraction(7, 9), Fraction(1)]),
)
@settings(max_examples=150)
def test_nearest_equals_comparing_all_with_all(
    held: list[frozenset[int]], others: list[frozenset[int]], threshold: Fraction
) -> None:
    def sets(values: list[frozenset[int]]) -> Sets:
        offsets = np.concatenate([[0], np.cumsum([len(v) for v in values])]).astype(np.int64)
        spread = [n * 0x9E3779B97F4A7C15 % 2**64 for n in range(13)]
        return Sets(offsets, np.array([n for v in values for n in sorted(spread[i] for i in v)], np.uint64))

    assert pairs_of(sets(held), sets(others), threshold) == nearest_by_definition(sets(held), sets(others), threshold)


def test_nearest_finds_every_variant_of_real_like_texts() -> None:
    texts = variants(160, 3)
    held, others = (shingle_sets(array(texts[start::2]), 5) for start in (0, 1))
    for threshold in (Fraction(1, 2), Fraction(4, 5)):
        found = pairs_of(held, others, threshold)
        assert found == nearest_by_definition(held, others, threshold)
        assert sum(number != NONE for number, _ in found) > 10
