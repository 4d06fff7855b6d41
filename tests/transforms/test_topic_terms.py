"""Telling terms and names: no stop words, compared within a language, distinct."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tests.transforms.topic_texts import PLAIN, SUBJECTS, texts_about_topics
from transforms.topic_terms import names_of, telling_terms

MADE = texts_about_topics(40)
TEXTS = pa.array([text for _, _, text in MADE], pa.large_string())
LANGUAGES = [language for language, _, _ in MADE]
LABELS = np.repeat(np.arange(4), 40)


def test_telling_terms_are_the_words_of_the_topic_and_no_stop_words() -> None:
    for terms, listed in zip(telling_terms(TEXTS, LABELS, 4, LANGUAGES), SUBJECTS.values(), strict=True):
        assert 5 <= len(terms) <= 10
        assert set(terms) <= {word.lower() for word in listed.split()}


def test_telling_terms_without_languages_leave_listed_stop_words_out() -> None:
    terms = telling_terms(TEXTS, LABELS, 4)
    assert not {word for mine in terms for word in mine} & set(" ".join(PLAIN.values()).split())


def test_telling_terms_of_an_unlisted_language_are_no_function_words() -> None:
    """Two topics of a made-up language: its function words are in both, and in all documents."""
    swapped = pa.array([text.translate(str.maketrans("aeiou", "öäüîâ")) for text in TEXTS[:80].to_pylist()])
    terms = telling_terms(swapped.cast(pa.large_string()), LABELS[:80], 2, ["xx"] * 80)
    plain = {word.translate(str.maketrans("aeiou", "öäüîâ")) for word in PLAIN["en"].split()}
    assert all(mine for mine in terms)
    assert not {word for mine in terms for word in mine} & plain


def test_telling_terms_are_the_same_in_any_order() -> None:
    order = np.random.default_rng(3).permutation(len(TEXTS))
    mixed = telling_terms(TEXTS.take(pa.array(order)), LABELS[order], 4, [LANGUAGES[row] for row in order])
    assert mixed == telling_terms(TEXTS, LABELS, 4, LANGUAGES)


def test_telling_terms_of_chinese_are_pairs_of_characters() -> None:
    texts = pa.array(["銀河と恒星の観測。銀河"] * 5 + ["小麦粉を使う料理。料理"] * 5, pa.large_string())
    terms = telling_terms(texts, np.repeat([0, 1], 5), 2)
    assert "銀河" in terms[0]
    assert "料理" in terms[1]
    assert all(len(word) == 2 for mine in terms for word in mine if word.isascii() is False)


@pytest.mark.parametrize(
    ("terms", "names"),
    [
        ([["star", "stars", "galaxy", "orbit", "x"]], ("star-galaxy-orbit",)),
        ([["java.util", "c:func", "map", "set"], ["a.b"]], ("map-set", "a.b")),
        ([["a", "b", "c", "d"], ["a", "b", "c", "e"]], ("a-b-c", "a-b-c-e")),
        ([["a"], ["a"], []], ("a", "a-1", "topic-2")),
    ],
)
def test_names_of_topics_are_distinct(terms: list[list[str]], names: tuple[str, ...]) -> None:
    assert names_of(terms) == names
