from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.counts import LineCounts, WordCounts, count_distinct, count_lines, count_words
from transforms.findings import Findings


def words_of(*texts: str) -> WordCounts:
    array = pa.array(texts, pa.large_string())
    return count_words(Findings(array))


def lines_of(text: str) -> tuple[int, int, int]:
    found: LineCounts = count_lines(Findings(pa.array([text], pa.large_string())), ("•", "-"))
    return int(found.lines[0]), int(found.bulleted[0]), int(found.with_ellipsis[0])


def distinct_in(text: str, *wanted: str) -> int:
    return int(count_distinct(Findings(pa.array([text], pa.large_string())), wanted)[0])


@pytest.mark.parametrize(
    ("text", "words", "characters", "alphabetic", "bare"),
    [
        ("", 0, 0, 0, 0),
        ("The cat sat.", 3, 9, 3, 0),
        ("a | b -- 12 c3", 4, 6, 3, 2),
        ("--|--", 0, 0, 0, 1),
        ("中文 ไทย", 5, 5, 5, 0),
        ("  ... \n", 0, 0, 0, 1),
        ("end. …", 1, 3, 1, 1),
        ("x\u00a0=\u00a0y", 2, 2, 2, 1),
    ],
)
def test_words_hand_counted_texts_have_their_counts(
    text: str, words: int, characters: int, alphabetic: int, bare: int
) -> None:
    found = words_of(text)
    assert found.words.tolist() == [words]
    assert found.characters.tolist() == [characters]
    assert found.alphabetic.tolist() == [alphabetic]
    assert found.bare_symbols.tolist() == [bare]


@pytest.mark.parametrize(
    ("text", "hashes", "ellipses"),
    [("# a ##", 3, 0), ("a... b…", 0, 2), ("a......", 0, 1), ("a.. .", 0, 0), ("...…...", 0, 3), ("", 0, 0)],
)
def test_symbols_hand_counted_texts_have_their_counts(text: str, hashes: int, ellipses: int) -> None:
    found = words_of(text)
    assert (found.hashes.tolist(), found.ellipses.tolist()) == ([hashes], [ellipses])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", (0, 0, 0)),
        ("• a\n - b\n\nc - d", (3, 2, 0)),
        ("a...\nb… \nc..\n…", (4, 0, 3)),
        ("\n \n", (0, 0, 0)),
        ("-", (1, 1, 0)),
    ],
)
def test_lines_hand_counted_texts_have_their_counts(text: str, expected: tuple[int, int, int]) -> None:
    assert lines_of(text) == expected


def test_distinct_words_are_counted_once_in_any_case() -> None:
    assert distinct_in("The the THE of", "the", "of", "and") == 2
    assert distinct_in("Die Straße", "die", "straße") == 2
    assert distinct_in("", "the") == 0
    assert distinct_in("a b") == 0


@pytest.mark.parametrize("word", ["of the", "", "です", "-"])
def test_distinct_wanted_that_is_not_one_word_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match="one word"):
        distinct_in("text", word)


@given(st.lists(st.text("ab1|.#…中 \n", max_size=15), max_size=5))
@settings(max_examples=200)
def test_counts_any_texts_are_those_of_each_text_alone(texts: list[str]) -> None:
    together = words_of(*texts)
    for number, text in enumerate(texts):
        alone = words_of(text)
        for name in ("words", "characters", "alphabetic", "bare_symbols", "hashes", "ellipses"):
            assert getattr(together, name)[number] == getattr(alone, name)[0]
        chunks = text.split()
        assert alone.bare_symbols[0] == sum(not any(c in "ab1中" for c in chunk) for chunk in chunks)
