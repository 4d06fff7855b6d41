"""The filters equal their definitions in plain Python, whatever the text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.plain_gopher import quality_reason, repetition_reason
from tests.transforms.documents import batch_of
from transforms.filters import Filter
from transforms.gopher_rules import GopherQuality, GopherRepetition

PIECES = (
    "the",
    "The",
    "of",
    "and",
    "don’t",
    "DON'T",
    "incomprehensibilities",
    "a",
    "12",
    "#",
    "|",
    "...",
    "....",
    "…",
    "- ",
    "•",
    "word…",
    "e.g.",
    "中文",
    "ไทย",
    "naïve",
    "x_1",
    "👍🏽",
    "same old words here",
    "\u3000",
    "\r\n",
    "\u2028",
    "\n",
    "\n\n",
    "\n- ",
)
texts = st.lists(st.sampled_from(PIECES), max_size=60).map(" ".join)
glued_texts = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)

LENIENT = GopherQuality(
    min_words=3, min_mean_word_length=2, max_mean_word_length=6, max_bulleted_lines=0.5, min_stop_words=1
)
LONG = GopherRepetition(
    max_duplicate_lines=None,
    max_duplicate_paragraphs=0.5,
    max_characters_in_duplicate_lines=0.6,
    max_characters_in_duplicate_paragraphs=None,
    max_characters_in_top_grams=((2, 0.7), (3, 0.5)),
    max_characters_in_duplicate_grams=((2, 0.8), (4, 0.5), (5, 0.3), (10, 0.1)),
)


@pytest.mark.parametrize(
    ("rules", "plain"),
    [
        (GopherQuality(min_words=None), quality_reason),
        (LENIENT, quality_reason),
        (GopherRepetition(), repetition_reason),
        (LONG, repetition_reason),
    ],
)
@given(st.lists(st.one_of(texts, glued_texts), max_size=6))
@settings(max_examples=80)
def test_gopher_any_texts_fail_the_rule_that_the_definition_says(
    rules: Filter, plain: Callable[[str, Any], str | None], samples: list[str]
) -> None:
    batch = batch_of(samples)
    dropped = rules.apply(batch).dropped
    found = dict(zip(dropped.column("id").to_pylist(), dropped.column("reason").to_pylist(), strict=True))
    expected = {id_: plain(text, rules) for id_, text in zip(batch.column("id").to_pylist(), samples, strict=True)}
    assert found == {id_: reason for id_, reason in expected.items() if reason is not None}
