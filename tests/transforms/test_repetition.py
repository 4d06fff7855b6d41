from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms import repetition
from transforms.findings import Findings
from transforms.repetition import (
    LONGEST,
    MOST_WORDS,
    Duplicates,
    Grams,
    LineHashes,
    find_duplicate_lines,
    find_duplicate_paragraphs,
    find_repeated_grams,
)


def lines_of(*texts: str) -> Duplicates:
    return find_duplicate_lines(Findings(pa.array(texts, pa.large_string())).line_hashes)


def paragraphs_of(*texts: str) -> Duplicates:
    return find_duplicate_paragraphs(Findings(pa.array(texts, pa.large_string())).line_hashes)


def grams_of(*texts: str) -> Grams:
    return find_repeated_grams(Findings(pa.array(texts, pa.large_string())))


def row(found: Duplicates, text: int = 0) -> tuple[int, int, int, int]:
    """Items, duplicates, characters, characters of duplicates."""
    counts = (found.items, found.duplicates, found.characters, found.duplicate_characters)
    return tuple(int(values[text]) for values in counts)  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", (0, 0, 0, 0)),
        ("\n\n\n\n", (0, 0, 0, 0)),  # blank lines are no duplicate lines
        ("one\n\n\ntwo\n \n", (2, 0, 6, 0)),
        ("one\n  one \ntwo\none", (4, 2, 12, 6)),
        ("Größe\nGröße", (2, 1, 10, 5)),
        ("One\none", (2, 0, 6, 0)),
    ],
)
def test_duplicate_lines_hand_counted_texts_have_their_counts(text: str, expected: tuple[int, ...]) -> None:
    assert row(lines_of(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", (0, 0, 0, 0)),
        ("a\nb\n\na\nb", (2, 1, 4, 2)),
        ("ab\nc\n\na\nbc", (2, 0, 6, 0)),  # hashed with separators
        ("a\n\nb\n \n\na\n\na", (4, 2, 4, 2)),
        ("\n\na\nb\n\n", (1, 0, 2, 0)),
        ("a\na", (1, 0, 2, 0)),
    ],
)
def test_duplicate_paragraphs_hand_counted_texts_have_their_counts(text: str, expected: tuple[int, ...]) -> None:
    assert row(paragraphs_of(text)) == expected


def test_grams_single_occurrences_are_not_repeated() -> None:
    found = grams_of("The cat sat.")
    assert found.characters.tolist() == [9]
    assert not found.top.any()
    assert not found.duplicate.any()


def test_grams_hand_counted_text_has_its_counts() -> None:
    # words: the cat the cat a the cat; pairs: the cat ×3, cat the, cat a, a the
    found = grams_of("The cat, the cat: a THE CAT!")
    assert found.characters.tolist() == [19]
    assert found.top[0, 2] == 18
    assert found.duplicate[0, 2] == 12
    assert not found.top[0, 3:].any()


def test_grams_overlapping_occurrences_count_characters_once() -> None:
    found = grams_of("a a a a")
    assert found.top[0, :5].tolist() == [0, 0, 4, 4, 0]
    assert found.duplicate[0, :5].tolist() == [0, 0, 3, 3, 0]


def test_grams_words_joined_otherwise_are_different() -> None:
    assert not grams_of("ab c a bc").top.any()


def test_grams_of_ten_words_are_the_longest() -> None:
    words = " ".join("abcdefghij")
    found = grams_of(f"{words} x {words}")
    assert found.duplicate[0].tolist() == [0, 0] + [10] * 9
    assert found.top[0].tolist() == [0, 0, 4, 6, 8, 10, 12, 14, 16, 18, 20]


def plain_grams(words: list[str]) -> tuple[list[int], list[int]]:
    top, duplicate = [0, 0], [0, 0]
    for n in range(2, LONGEST + 1):
        grams = [tuple(words[place : place + n]) for place in range(len(words) - n + 1)]
        counts = Counter(grams)
        most = max(counts.values(), default=0)
        best = 0
        for gram in [gram for gram, count in counts.items() if count == most >= 2]:
            places = {place + k for place, other in enumerate(grams) if other == gram for k in range(n)}
            best = max(best, sum(len(words[place]) for place in places))
        later = [place for place, gram in enumerate(grams) if gram in grams[:place]]
        places = {place + k for place in later for k in range(n)}
        top.append(best)
        duplicate.append(sum(len(words[place]) for place in places))
    return top, duplicate


@given(st.lists(st.lists(st.sampled_from(["a", "bb", "ccc"]), max_size=30), max_size=4))
@settings(max_examples=200)
def test_grams_any_texts_equal_plain_counting(texts: list[list[str]]) -> None:
    found = grams_of(*(" ".join(words) for words in texts))
    for text, words in enumerate(texts):
        top, duplicate = plain_grams(words)
        assert found.top[text].tolist() == top
        assert found.duplicate[text].tolist() == duplicate
        assert found.characters[text] == sum(map(len, words))


def plain_duplicates(items: list[str]) -> tuple[int, int, int, int]:
    later = [item for place, item in enumerate(items) if item in items[:place]]
    return len(items), len(later), sum(map(len, items)), sum(map(len, later))


@given(st.lists(st.text(st.sampled_from("ab \n"), max_size=25), max_size=4))
@settings(max_examples=300)
def test_duplicate_lines_and_paragraphs_any_texts_equal_plain_counting(texts: list[str]) -> None:
    lines, paragraphs = lines_of(*texts), paragraphs_of(*texts)
    for number, text in enumerate(texts):
        stripped = [line.strip(" ") for line in text.split("\n")]
        assert row(lines, number) == plain_duplicates([line for line in stripped if line])
        runs = [run.strip("\n") for run in "\n".join(stripped).split("\n\n")]
        expected = plain_duplicates([run for run in runs if run])
        found = row(paragraphs, number)
        assert found[:2] == expected[:2]
        assert found[2] == sum(len(line) for line in stripped)


def test_grams_words_beyond_the_bound_are_not_looked_at() -> None:
    words = Findings(pa.array(["a b c a b", "a b"], pa.large_string()))
    found = find_repeated_grams(words, most_words=4)
    assert found.characters.tolist() == [4, 2]
    assert not found.top.any()


def test_grams_long_repetitive_text_ends_soon() -> None:
    found = grams_of("a " * 200_000, "ab ba " * 100_000)
    assert found.top[:, 10].tolist() == [200_000, 400_000]


ALL = 2**64 - 1


def unmixed(value: int) -> int:
    """The inverse of `mix`."""
    for factor in (0xC4CEB9FE1A85EC53, 0xFF51AFD7ED558CCD):
        value = (value ^ value >> 33) * pow(factor, -1, 2**64) & ALL
    return value ^ value >> 33


def test_grams_and_lines_built_to_collide_end_soon_and_repeat_nothing() -> None:
    """100,000 pairs, then as many lines, whose hashes differ in their upper bits only."""
    count = 100_000
    wanted = np.arange(count, dtype=np.uint64) << np.uint64(32)
    hashes = [0]
    for value in wanted.tolist():
        hashes.append((unmixed(value) - hashes[-1] * 0x9E3779B97F4A7C15 - 0x632BE59BD9B4E019) & ALL)
    documents, ones = np.array([0, count + 1]), np.ones(count + 1, np.int64)
    _, top, duplicate = repetition._count_grams(documents, np.array(hashes, np.uint64), ones, np.int64(MOST_WORDS))
    assert not top.any() and not duplicate.any()
    lines = LineHashes(np.array([0, count]), wanted, ones[:-1], np.zeros(count, np.bool_))
    assert row(find_duplicate_lines(lines)) == (count, 0, count, 0)
