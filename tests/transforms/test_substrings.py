from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from tests.transforms.documents import batch_of, kept_texts, reasons
from transforms.order_key import order_keys
from transforms.outcome import Outcome
from transforms.parts import later_ones
from transforms.segmentation import find_words
from transforms.substrings import RepeatedSpans, anchors, cut_spans, shared, windows

SEPARATORS = (" ", " ", " ", ", ", ".\n", " é ", "")
WORDS = ("a", "b", "漢", "字", "ง่า", "größe", "I", "12")


def decide(batches: list[pa.RecordBatch], spans: RepeatedSpans, shuffle: int = 0) -> list[Outcome]:
    """Compose the steps as the engine does: anchors of all batches together, then windows of all batches together."""
    found = [anchors(batch.column("text"), spans) for batch in batches]
    together = shared(np.concatenate([each.hash for each in found]))
    first, chosen = 0, []
    for batch, each in zip(batches, found, strict=True):
        last = first + len(each.hash)
        chosen.append(windows(batch.column("text"), spans, each.place[together[first:last]]))
        first = last
    orders = [
        order_keys(batch, (), ["test"]).take(pa.array(each.document))
        for batch, each in zip(batches, chosen, strict=True)
    ]
    digests = pa.concat_arrays([each.digests() for each in chosen])
    places = np.concatenate([each.starts for each in chosen])
    mixed = np.random.default_rng(shuffle).permutation(len(digests))
    goes = np.empty(len(digests), np.bool_)
    lengths = np.concatenate([each.lengths for each in chosen])[mixed]
    rows = pa.array(mixed)
    goes[mixed] = later_ones(digests.take(rows), pa.concat_arrays(orders).take(rows), places[mixed], lengths)
    first, outcomes = 0, []
    for batch, each in zip(batches, chosen, strict=True):
        outcomes.append(cut_spans(batch, each, goes[first : first + len(each.starts)], spans))
        first += len(each.starts)
    return outcomes


def by_hand(batch: pa.RecordBatch, words: int) -> list[str]:
    """Return what is left of each text: every window compared with every other, bytes marked one by one."""
    text = batch.column("text")
    orders = order_keys(batch, (), ["test"]).to_pylist()
    content, found = [value.encode() for value in text.to_pylist()], find_words(text)
    seen: dict[bytes, tuple[int, int]] = {}
    left: dict[int, bytes] = {}
    for row in sorted(range(len(content)), key=orders.__getitem__):
        before = sum(len(each) for each in content[:row])
        first, last = found.documents[row], found.documents[row + 1]
        gone = np.zeros(len(content[row]), np.bool_)
        for word in range(first, last - words + 1):
            start, end = found.starts[word] - before, found.ends[word + words - 1] - before
            owner, border = seen.setdefault(content[row][start:end], (row, end))
            if owner != row or start >= border:
                gone[start:end] = True
        left[row] = bytes(byte for byte, away in zip(content[row], gone, strict=True) if not away)
    return [left[row].decode() for row in range(len(content))]


def drawn_texts(seed: int, count: int = 30) -> list[str]:
    """Texts of few words, so that spans repeat by chance, and of pieces of a common stock."""
    draw = random.Random(seed)
    stock = [
        "".join(draw.choice(WORDS) + draw.choice(SEPARATORS) for _ in range(draw.randrange(3, 25))) for _ in range(6)
    ]
    texts = []
    for _ in range(count):
        pieces = [
            draw.choice([*stock, draw.choice(WORDS) + draw.choice(SEPARATORS)]) for _ in range(draw.randrange(0, 6))
        ]
        text = "".join(pieces)
        start = draw.randrange(len(text) + 1)
        texts.append(text[start:])
    return texts


def squeezed(texts: list[str]) -> list[str]:
    return [text.replace(" ", "") for text in texts]


@pytest.mark.parametrize(("words", "gram"), [(2, 1), (5, 2), (8, 7), (12, 4)])
def test_what_is_left_of_any_texts_is_what_comparing_all_windows_leaves(words: int, gram: int) -> None:
    cut = 0
    for seed in range(5):
        batch = batch_of(drawn_texts(seed))
        (outcome,) = decide([batch], RepeatedSpans(words, gram))
        expected = dict(zip(batch.column("id").to_pylist(), by_hand(batch, words), strict=True))
        for row in outcome.dropped.to_pylist():
            assert not expected.pop(row["id"]).strip(" \n")
        kept = dict(zip(outcome.kept.column("id").to_pylist(), kept_texts(outcome), strict=True))
        assert squeezed(list(kept.values())) == squeezed(list(expected.values()))
        cut += outcome.edits.num_rows
    assert cut > 30


def test_what_is_cut_depends_on_no_batching_and_no_order() -> None:
    batch, spans = batch_of(drawn_texts(9, 60)), RepeatedSpans(6, 3)
    (whole,) = decide([batch], spans)
    apart = decide([batch.slice(first, 17) for first in range(0, 60, 17)], spans, shuffle=3)
    assert [text for outcome in apart for text in kept_texts(outcome)] == kept_texts(whole)
    assert pa.Table.from_batches([outcome.edits for outcome in apart]).equals(pa.Table.from_batches([whole.edits]))


def outcome_of(texts: list[str], words: int, gram: int = 2) -> Outcome:
    return decide([batch_of(texts)], RepeatedSpans(words, gram))[0]


def test_first_in_keep_order_stays_and_the_other_loses_the_words_between_borders() -> None:
    span = "one two three four five six"
    texts = [f"alpha {span}, omega", f"beta; {span}. psi"]
    outcome = outcome_of(texts, 5)
    first = {row["id"] for row in outcome.edits.to_pylist()}
    cut_row = batch_of(texts).column("id").to_pylist().index(first.pop())
    assert not first and kept_texts(outcome)[1 - cut_row] == texts[1 - cut_row]
    assert kept_texts(outcome)[cut_row] == texts[cut_row].replace(span, "")
    assert outcome.edits.column("cut").to_pylist() == [len(span)]


def test_spans_that_differ_in_one_byte_are_none() -> None:
    assert outcome_of(["a b c d e f", "a b c d  e f"], 5).edits.num_rows == 0
    assert outcome_of(["a b c d e f", "A b c d e f"], 6).edits.num_rows == 0
    assert outcome_of(["a b c d e f", "A b c d e f"], 5).edits.num_rows == 1


def test_no_span_runs_across_the_border_of_documents() -> None:
    texts = ["x a b c", "d e f y", "x a b c d e f y"]
    assert outcome_of(texts, 5).edits.num_rows == 0


def test_text_of_one_repeated_word_keeps_one_window() -> None:
    outcome = outcome_of(["0 " * 100], 10, 3)
    assert kept_texts(outcome) == ["0 " * 9 + "0  "] and outcome.edits.column("cut").to_pylist() == [179]


def test_document_of_nothing_else_is_dropped() -> None:
    text = "one two three four five six seven"
    outcome = outcome_of([text, text], 5)
    assert kept_texts(outcome) == [text] and reasons(outcome) == ["nothing but repeated spans"]


def test_short_and_empty_texts_have_no_anchor() -> None:
    text = pa.array(["", "a b c", None, "!!!"], pa.large_string())
    found = anchors(text, RepeatedSpans(4, 2))
    assert len(found.hash) == 0 and len(windows(text, RepeatedSpans(4, 2), found.place).starts) == 0
    assert outcome_of(["", "a b"], 3).kept.num_rows == 2


def test_anchors_are_few_and_each_window_has_one() -> None:
    draw = random.Random(0)
    text = pa.array([" ".join(f"w{draw.randrange(10**6)}" for _ in range(20_000))], pa.large_string())
    spans = RepeatedSpans(50, 20)
    found = anchors(text, spans)
    assert abs(len(found.place) / 20_000 - 2 / 31) < 0.005
    assert np.diff(found.place).max() <= 30 and (found.document == 0).all()


def test_places_count_through_all_texts_of_a_batch() -> None:
    """More text than is worked on at a time: two portions, whose words and texts are numbered on."""
    draw = random.Random(1)
    texts = [" ".join(f"w{draw.randrange(10**6)}" for _ in range(40_000)) for _ in range(3)]
    texts[2] = " ".join(texts[0].split(" ")[500:600]) + " " + texts[2]
    text = pa.array(texts, pa.large_string())
    found = anchors(text, RepeatedSpans(50, 20))
    assert sorted(set(found.document.tolist())) == [0, 1, 2] and (np.diff(found.place) > 0).all()
    together = windows(text, RepeatedSpans(50, 20), found.place[shared(found.hash)])
    digests = together.digests().to_pylist()
    twice = [(row, digests.index(digest)) for row, digest in enumerate(digests) if digests.index(digest) < row]
    assert [(together.document[row], together.document[first]) for row, first in twice] == [(2, 0)] * 51


@pytest.mark.parametrize("fields", [{"words": 1}, {"words": 20, "gram": 20}, {"gram": 0}])
def test_field_out_of_its_range_is_refused(fields: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="words is from 2"):
        RepeatedSpans(**fields)
