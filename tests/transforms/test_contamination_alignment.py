"""Words as they are compared, and the alignment, against plain definitions."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.contamination_alignment import (
    MISSING,
    NAME_CHANGED,
    NUMBER_CHANGED,
    RUN,
    SAME,
    _common_runs,
    align,
)
from transforms.contamination_words import (
    BASE,
    FIGURE,
    FOLDING,
    NUMBER_WORDS,
    SINGLE,
    WORD,
    Folded,
    fold,
    hash_folded,
)
from transforms.segmentation import find_words

LETTERS = st.lists(st.integers(0, 3), max_size=14)
TEXTS = st.text("aAbéÉ1２'’-_ ,.ß中ก\u00ad\u0301I", max_size=40)


def folded(text: str) -> Folded:
    return fold(find_words(pa.array([text], pa.large_string())))


def side(text: str) -> tuple[Any, ...]:
    words = folded(text)
    return words.hashes, words.powers, words.kinds, words.capital


def hash_of(word: str) -> int:
    value = 0
    for character in word:
        if FOLDING[ord(character)] >= 0:
            value = (value * int(BASE) + int(FOLDING[ord(character)]) + 1) % 2**64
    return value


@given(TEXTS)
def test_hash_is_the_polynomial_over_what_counts(text: str) -> None:
    words = find_words(pa.array([text], pa.large_string()))
    mine = fold(words)
    strings = words.strings()[0]
    assert mine.hashes.tolist() == [hash_of(word) for word in strings]
    lengths = [sum(FOLDING[ord(c)] >= 0 for c in word) for word in strings]
    assert mine.powers.tolist() == [pow(int(BASE), int(n), 2**64) for n in lengths]
    hashes, places = hash_folded(words)
    assert places.tolist() == np.flatnonzero(mine.kinds != SINGLE).tolist() or FIGURE in mine.kinds
    assert hashes.tolist() == mine.hashes[places].tolist()


@pytest.mark.parametrize(
    ("one", "other"),
    [("Don’t", "dont"), ("1,000.5", "10005"), ("has_close", "HASCLOSE"), ("É\u00adcole", "école"), ("e.g", "EG")],
)
def test_words_that_differ_in_case_and_punctuation_are_one(one: str, other: str) -> None:
    assert folded(one).hashes.tolist() == folded(other).hashes.tolist() != []


@given(st.lists(st.text("abc1", min_size=1, max_size=6), min_size=2, max_size=5))
def test_hash_of_words_written_together_follows_from_theirs(parts: list[str]) -> None:
    words = folded(" ".join(parts))
    value = np.uint64(0)
    with np.errstate(over="ignore"):
        for i in range(len(parts)):
            value = value * words.powers[i] + words.hashes[i]
    assert [int(value)] == folded("".join(parts)).hashes.tolist()


def test_kinds_tell_numbers_single_letters_and_words_apart() -> None:
    words = folded("x 12 3x seven Anna a ２ 中 I'm")
    assert words.kinds.tolist() == [SINGLE, FIGURE, FIGURE, FIGURE, WORD, SINGLE, FIGURE, WORD, WORD]
    assert words.capital.tolist() == [False, False, False, False, True, False, False, False, True]
    assert set(folded(NUMBER_WORDS.upper()).kinds.tolist()) == {FIGURE}


def best_by_definition(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """Return the most words of `a` in runs of at least `RUN` that stand in `b` in the same order."""

    @cache
    def best(i: int, j: int) -> int:
        if i == 0 or j == 0:
            return 0
        value, size = max(best(i - 1, j), best(i, j - 1)), 0
        while size < min(i, j) and a[i - 1 - size] == b[j - 1 - size]:
            size += 1
            if size >= RUN:
                value = max(value, best(i - size, j - size) + size)
        return value

    return best(len(a), len(b))


@given(LETTERS, LETTERS)
@settings(max_examples=300)
def test_common_runs_are_as_many_words_as_can_be(a: list[int], b: list[int]) -> None:
    place = _common_runs(np.array(a, np.uint64), np.array(b, np.uint64))
    pairs = [(i, j) for i, j in enumerate(place.tolist()) if j >= 0]
    assert len(pairs) == best_by_definition(tuple(a), tuple(b))
    assert all(a[i] == b[j] for i, j in pairs)
    assert all(before[1] < after[1] for before, after in pairwise(pairs))


@given(st.text("aA1b2 .,", max_size=40), st.text("aA1b2 .,", max_size=60))
def test_alignment_places_words_in_order_within_the_stretch(a: str, b: str) -> None:
    place, marks = align(side(a), side(b))
    found = place[place >= 0].tolist()
    assert found == sorted(found) and all(j < len(side(b)[0]) for j in found)
    assert ((marks == SAME) == (place >= 0)).all()


ITEM = "The baker of Ulm sold 12 loaves and Ida bought three of them before the noon bell rang"


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        (ITEM, {}),
        (ITEM.replace("12", "30"), {4 + 1: NUMBER_CHANGED}),
        (ITEM.replace("three", "five"), {10: NUMBER_CHANGED}),
        (ITEM.replace("Ida", "Jan"), {8: NAME_CHANGED}),
        (ITEM.replace("loaves", "cakes"), {6: MISSING}),
        (ITEM.replace("12 loaves and Ida bought three", "1 loaves and Jan bought two"), {5: 2, 8: 3, 10: 2}),
        (ITEM.replace("noon bell", "noonbell"), {}),
        (ITEM.replace("sold 12 loaves", "sold12loaves"), {}),
        (ITEM.replace("noon", "no on"), {}),
        ("x " + ITEM.replace("The baker", "Thebaker") + " x", {}),
        (ITEM.replace("bell rang", "bellrang") + " and so on", {}),
        (ITEM.replace("Ida", "b Ida b").replace("noon", "b noon b"), {}),
        ("p The b baker b of " + ITEM[13:], {}),
        (ITEM.replace(" and Ida", " while an odd dozen of other words stands here and Ida"), {}),
        (ITEM.replace("The baker of ", ""), {0: MISSING, 1: MISSING, 2: MISSING}),
    ],
)
def test_differences_are_classed_and_layout_is_none(text: str, marks: dict[int, int]) -> None:
    _, found = align(side(ITEM), side(f"before all this {text} and after it"))
    assert {i: int(mark) for i, mark in enumerate(found) if mark != SAME} == marks


def test_scattered_common_words_make_nothing_up() -> None:
    place, _ = align(
        side(ITEM), side("the one of a and three of all them the two sold of and the before it the rang " * 9)
    )
    assert (place >= 0).sum() == 0
