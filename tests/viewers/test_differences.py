from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from viewers.differences import MOST_CHANGES, Pieces, compare

letters = st.text("ab \n", max_size=30)


def changed(pieces: Pieces) -> int:
    return sum(len(piece.text) for piece in pieces if piece.changed)


def longest_common(before: str, after: str) -> int:
    """Reference: length of the longest common subsequence by the textbook table."""
    row = [0] * (len(after) + 1)
    for left in before:
        above = row[:]
        for j, right in enumerate(after):
            row[j + 1] = above[j] + 1 if left == right else max(above[j + 1], row[j])
    return row[-1]


@given(letters, letters)
def test_compare_pieces_join_to_their_side(before: str, after: str) -> None:
    for window in (1000, max(len(before), len(after))):
        left, right = compare(before, after, window)
        assert "".join(piece.text for piece in left) == before
        assert "".join(piece.text for piece in right) == after
        assert all(piece.text for piece in (*left, *right))


@given(letters, letters)
def test_compare_unchanged_text_is_the_same_on_both_sides(before: str, after: str) -> None:
    left, right = compare(before, after, 1000)
    assert "".join(p.text for p in left if not p.changed) == "".join(p.text for p in right if not p.changed)


@given(letters, letters)
def test_compare_marks_no_less_than_the_shortest_edit(before: str, after: str) -> None:
    left, right = compare(before, after, 1000)
    common = longest_common(before, after)
    assert changed(left) >= len(before) - common
    assert changed(right) >= len(after) - common


@given(st.text("abcdef", min_size=20, max_size=60), st.integers(0, 19), st.text("xyz", min_size=1, max_size=4))
def test_compare_one_replacement_is_marked_alone(base: str, place: int, new: str) -> None:
    left, right = compare(base, base[:place] + new + base[place + 1 :], 1000)
    assert [p.text for p in left if p.changed] == [base[place]]
    assert [p.text for p in right if p.changed] == [new]


def test_compare_two_changes_apart_are_marked_apart() -> None:
    left, right = compare("some Xtext that stays Yin between", "some text that stays in betweenZ ", 1000)
    assert [p.text for p in left if p.changed] == ["X", "Y"]
    assert [p.text for p in right if p.changed] == ["Z "]


def test_compare_full_windows_leave_what_hangs_over_unmarked() -> None:
    text = "".join(chr(97 + i * i % 26) for i in range(140))
    left, right = compare(("ab  cd" + text)[:100], ("ab cd" + text)[:100], 100)
    assert [p.text for p in left if p.changed] == [" "]
    assert changed(right) == 0
    assert right[-1].text.endswith(text[94:95])


def test_compare_texts_with_nothing_in_common_is_bounded() -> None:
    before, after = "a" * 1200, "b" * 1200
    began = time.process_time()
    left, right = compare(before, after, 2000)
    assert time.process_time() - began < 2
    assert (changed(left), changed(right)) == (1200, 1200)
    assert MOST_CHANGES < 1200


def test_compare_equal_texts_marks_nothing() -> None:
    left, right = compare("same", "same", 1000)
    assert [(p.text, p.changed) for p in (*left, *right)] == [("same", False)] * 2
