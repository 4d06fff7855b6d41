from __future__ import annotations

import itertools
import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transforms.documents import batch_of, kept_texts, reasons
from transforms.cutting import Pieces, cut_outcome, cut_pieces
from transforms.segmentation import text_buffers

ALPHABET = st.text(st.sampled_from("ab1 ,.\né漢字กา\u0301🙂"), max_size=14)


def array(texts: list[str]) -> pa.LargeStringArray:
    return pa.array(texts, pa.large_string())


def pieces_of(text: pa.LargeStringArray, spans: list[list[tuple[int, int]]]) -> Pieces:
    """Return pieces given as positions of characters of each text."""
    _, bounds = text_buffers(text)
    offsets, starts, ends = [0], [], []
    for first, content, of_text in zip(bounds.tolist(), text.to_pylist(), spans, strict=False):
        for start, end in sorted(of_text):
            starts.append(first + len(content[:start].encode()))
            ends.append(first + len(content[:end].encode()))
        offsets.append(len(starts))
    return Pieces(*(np.array(column, np.int64) for column in (offsets, starts, ends)))


def cut_by_hand(text: str, spans: list[tuple[int, int]]) -> str:
    gone = {place for start, end in spans for place in range(start, end)}
    return "".join(character for place, character in enumerate(text) if place not in gone)


@st.composite
def texts_with_spans(draw: st.DrawFn) -> tuple[list[str], list[list[tuple[int, int]]]]:
    texts = draw(st.lists(ALPHABET, max_size=4))
    spans = [
        [
            tuple(sorted(draw(st.tuples(st.integers(0, len(text)), st.integers(0, len(text))))))
            for _ in range(draw(st.integers(0, 4)))
        ]
        for text in texts
    ]
    return texts, spans  # type: ignore[return-value]


@settings(max_examples=300)
@given(drawn=texts_with_spans(), before=st.integers(0, 2))
def test_any_pieces_go_and_nothing_else(drawn: tuple[list[str], list[list[tuple[int, int]]]], before: int) -> None:
    texts, spans = drawn
    text = array(["é"] * before + texts).slice(before)
    result = cut_pieces(text, pieces_of(text, spans))
    for old, new, of_text, cut, inserted in zip(
        texts, result.text.to_pylist(), spans, result.cut.tolist(), result.inserted.tolist(), strict=True
    ):
        expected = cut_by_hand(old, of_text)
        assert new.replace(" ", "") == expected.replace(" ", "") and len(new) == len(expected) + inserted
        assert len(old) + inserted == len(new) + cut and (inserted == 0 or cut > 0)
        if not any(end > start for start, end in of_text):
            assert new == old


def test_touching_and_overlapping_pieces_lose_no_character_between() -> None:
    text = array(["0123456789"])
    touching = cut_pieces(text, pieces_of(text, [[(2, 4), (4, 6)]]))
    assert touching.text.to_pylist() == ["01 6789"] and touching.cut.tolist() == [4]
    overlapping = cut_pieces(text, pieces_of(text, [[(2, 5), (3, 4), (4, 6)]]))
    assert overlapping.text.to_pylist() == ["01 6789"] and overlapping.cut.tolist() == [4]
    apart = cut_pieces(text, pieces_of(text, [[(0, 4), (5, 10)]]))
    assert apart.text.to_pylist() == ["4"] and apart.inserted.tolist() == [0]


def test_other_occurrences_of_what_is_cut_stay() -> None:
    text = array(["again and again", "again"])
    result = cut_pieces(text, pieces_of(text, [[(10, 15)], []]))
    assert result.text.to_pylist() == ["again and ", "again"]


def test_words_do_not_grow_together() -> None:
    cases = {
        ("ab漢字cd", 2, 4): "ab cd",
        ("ab, cd", 2, 4): "ab cd",
        ("漢ab字", 1, 3): "漢字",
        ("a\u0301 b", 2, 3): "a\u0301 b",
    }
    for (text, start, end), expected in cases.items():
        column = array([text])
        assert cut_pieces(column, pieces_of(column, [[(start, end)]])).text.to_pylist() == [expected]


@pytest.mark.parametrize(("start", "end"), [(1, 2), (0, 1), (0, 4), (2, 1), (-1, 2)])
def test_piece_that_is_none_is_refused_by_its_bytes(start: int, end: int) -> None:
    """A character position applied to bytes, a cut inside UTF-8, a piece across the border of its document."""
    text = array(["x", "éb", "next"])
    offsets = np.array([0, 0, 1, 1], np.int64)
    pieces = Pieces(offsets, np.array([1 + start], np.int64), np.array([1 + end], np.int64))
    with pytest.raises(ValueError, match=f"bytes {start}:{end} of text 1, which has 3 bytes"):
        cut_pieces(text, pieces)


def test_pieces_out_of_order_are_refused() -> None:
    text = array(["abcd"])
    pieces = Pieces(*(np.array(column, np.int64) for column in ([0, 2], [2, 0], [3, 1])))
    with pytest.raises(ValueError, match="pieces come in order"):
        cut_pieces(text, pieces)


def test_outcome_counts_code_points_and_lists_the_first_pieces() -> None:
    batch = batch_of(["né un, né deux", "stays", "all"])
    outcome = cut_outcome(batch, pieces_of(batch.column("text"), [[(7, 14)], [], [(0, 3)]]), "T", "repeats")
    assert kept_texts(outcome) == ["né un, ", "stays"]
    assert reasons(outcome) == ["nothing but repeats"]
    (edit,) = outcome.edits.to_pylist()
    assert (edit["transform"], edit["reason"], edit["cut"], edit["inserted"]) == ("T", "repeats", 7, 0)
    assert json.loads(edit["evidence"]) == {"bytes": [[8, 16]], "pieces": 1}


def test_outcome_lists_eight_pieces_at_most() -> None:
    batch = batch_of(["a b " * 20])
    spans = [[(place, place + 2) for place in range(0, 40, 4)]]
    (edit,) = cut_outcome(batch, pieces_of(batch.column("text"), spans), "T", "repeats").edits.to_pylist()
    evidence = json.loads(edit["evidence"])
    assert evidence["pieces"] == 10 and evidence["bytes"] == [[place, place + 2] for place in range(0, 32, 4)]


def test_outcome_without_pieces_is_the_batch() -> None:
    batch = batch_of(["a", "", "  "])
    none = np.zeros(0, np.int64)
    outcome = cut_outcome(batch, Pieces(np.zeros(4, np.int64), none, none), "T", "repeats")
    assert outcome.kept.equals(batch) and outcome.edits.num_rows == outcome.dropped.num_rows == 0
    assert list(itertools.chain(outcome.near.to_pylist())) == []
