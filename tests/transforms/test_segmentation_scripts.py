"""Our words against the word boundaries of the `regex` library (UAX #29, flag WORD), on texts of every script there is.

The one place where we differ on purpose, and others that one might take for such, stand in `STATED`.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from transforms.segmentation import find_words

regex = pytest.importorskip("regex")

TEXTS = Path("../shared/data/lid/udhr2.parquet")
CHARACTERS = 1_500
SCRIPTS = [
    "Latin",
    "Cyrillic",
    "Arabic",
    "Devanagari",
    "Han",
    "Hiragana",
    "Thai",
    "Khmer",
    "Lao",
    "Myanmar",
    "Hangul",
    "Tibetan",
    "Ethiopic",
    "Hebrew",
    "Greek",
    "Armenian",
    "Georgian",
    "Tamil",
    "Bengali",
    "Mongolian",
]


def library_words(text: str) -> list[str]:
    """The segments between boundaries of UAX #29 that hold a letter or a digit."""
    bounds = [0, *(match.start() for match in regex.finditer(r"(?w)\b", text)), len(text)]
    segments = [text[start:end] for start, end in pairwise(bounds)]
    return [segment for segment in segments if regex.search(r"[\p{L}\p{Nd}\p{Nl}]", segment)]


@pytest.mark.skipif(not TEXTS.exists(), reason=f"{TEXTS} is not there")
def test_words_all_scripts_equal_those_of_a_uax29_library() -> None:
    table = pq.read_table(TEXTS)
    texts = [text[:CHARACTERS] for text in table.column("text").to_pylist()]
    everything = "".join(texts)
    assert [script for script in SCRIPTS if not regex.search(rf"\p{{{script}}}", everything)] == []
    found = find_words(pa.array(texts, pa.large_string())).strings()
    different = [
        code
        for code, text, words in zip(table.column("code").to_pylist(), texts, found, strict=True)
        if words != library_words(text)
    ]
    assert (len(texts), different) == (388, [])


STATED = {
    # an emoji joined to a letter-like pictograph: WB3c keeps them together, a word here starts with its first letter
    "\U0001f441\u200d\u2139": (["\U0001f441\u200d\u2139"], ["\u2139"]),
    # a run of underscores is a segment without a letter or digit, joined to letters it is part of the word
    "__ a_b __": (["a_b"], ["a_b"]),
    # superscripts, fractions and circled digits (No) are segments of their own, and no words
    "x² ½ ①": (["x"], ["x"]),
    # scripts that UAX #29 leaves to dictionaries: the default, letter by letter with their marks, is what we take
    "ภาษาที่นี่": (["ภ", "า", "ษ", "า", "ที่", "นี่"], ["ภ", "า", "ษ", "า", "ที่", "นี่"]),
}


@pytest.mark.parametrize("text", STATED)
def test_words_in_the_places_that_the_docs_name_are_as_stated(text: str) -> None:
    assert (library_words(text), find_words(pa.array([text], pa.large_string())).strings()[0]) == STATED[text]
