"""Passages of templates: the longest runs of listed shingles, as the text has them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.transforms.test_duplicates import array
from transforms.shingles import shingle_sets
from transforms.template_passages import Passage, passages

TEXT = "Home, About us! Über diese Seite: and now the story begins that nobody else has told; Home, About us! Über."


def shingles(texts: Sequence[str]) -> list[int]:
    return [int(value) for value in shingle_sets(array(texts), 3).values]


def test_passages_are_the_runs_of_listed_shingles() -> None:
    listed = dict.fromkeys(shingles(["home about us über diese"]), 9) | dict.fromkeys(shingles(["else has told"]), 4)
    found = list(passages(TEXT, listed, 3))
    assert found == [
        Passage("Home, About us! Über diese", 9),
        Passage("else has told", 4),
        Passage("Home, About us! Über", 9),
    ]


def test_passage_counts_what_its_rarest_shingle_has() -> None:
    first, second = shingles(["home about us"]), shingles(["about us über"])
    assert next(passages(TEXT, {first[0]: 9, second[0]: 5}, 3)) == Passage("Home, About us! Über", 5)


@pytest.mark.parametrize("text", ["", "!", "one two", TEXT])
def test_text_without_listed_shingles_has_no_passage(text: str) -> None:
    assert list(passages(text, {1: 2}, 3)) == []
