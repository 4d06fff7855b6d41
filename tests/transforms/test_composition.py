"""Normalization Form C: equal to what Python's own database says of what it has assigned."""

from __future__ import annotations

import hashlib
import unicodedata
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms import composition, unicode_tables
from transforms.composition import compose, load_tables

ASSIGNED = [chr(point) for point in range(0x110000) if unicodedata.category(chr(point)) not in ("Cn", "Cs")]
TELLING = [
    character
    for character in ASSIGNED
    if unicodedata.combining(character) or unicodedata.decomposition(character) or "\u1100" <= character < "\u1200"
]


def composed(*texts: str) -> list[str]:
    contents = [text.encode() for text in texts]
    bounds = np.cumsum([0, *map(len, contents)])
    data, offsets, cut, inserted = compose(np.frombuffer(b"".join(contents), np.uint8), bounds)
    result = [bytes(data[start:end]).decode() for start, end in pairwise(offsets.tolist())]
    for text, other, less, more in zip(texts, result, cut.tolist(), inserted.tolist(), strict=True):
        assert len(text) + more == len(other) + less
        assert (less > 0) == (text != other)
    return result


def test_tables_are_of_the_pinned_version() -> None:
    content = Path(composition.__file__).with_name("composition_tables.npz").read_bytes()
    assert hashlib.blake2b(content, digest_size=8).hexdigest() == "7f84d38a9b8edbbd"
    assert load_tables().version == unicode_tables.VERSION


def test_every_character_alone_and_between_others_is_as_python_has_it() -> None:
    alone = [*TELLING, *ASSIGNED[::53]]
    assert composed(*alone) == [unicodedata.normalize("NFC", character) for character in alone]
    around = [f"a{character}\u0301\u0323" for character in TELLING[::7]]
    assert composed(*around) == [unicodedata.normalize("NFC", text) for text in around]


@settings(max_examples=200)
@given(st.lists(st.text(st.one_of(st.sampled_from(TELLING), st.sampled_from("aeious ´")), max_size=12), max_size=4))
def test_any_texts_are_as_python_has_them_and_composed_once_for_all(texts: list[str]) -> None:
    result = composed(*texts)
    assert result == [unicodedata.normalize("NFC", text) for text in texts]
    assert composed(*result) == result


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a" + "\u0301\u0323" * 200_000, "\u1ea1" + "\u0323" * 199_999 + "\u0301" * 200_000),
        ("\U0001d160" * 10_000, "\U0001d158\U0001d165\U0001d16e" * 10_000),
        ("\u1112\u1161\u11ab" * 10_000, "\ud55c" * 10_000),
    ],
)
def test_hostile_runs_are_composed_in_linear_time(text: str, expected: str) -> None:
    """Python's own takes minutes for the first."""
    assert composed(text, "ä") == [expected, "ä"]
