from __future__ import annotations

import itertools
import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transforms.documents import batch_of, kept_texts, reasons
from transforms.order_key import order_keys
from transforms.outcome import Outcome
from transforms.parts import Occurrences, Parts, RepeatedParts, cut_parts, find_parts, later_ones, too_frequent


def compared(text: str, parts: RepeatedParts) -> list[str]:
    found = find_parts(pa.array([text], pa.large_string()), parts)
    return [found.data[i:j].tobytes().decode() for i, j in zip(found.starts, found.ends, strict=True)]


def decide(batches: list[pa.RecordBatch], parts: RepeatedParts, shuffle: int = 0) -> list[Outcome]:
    """Compose the steps as the engine does: rows of all batches, in any order, decided together, cut apart."""
    found = [find_parts(batch.column("text"), parts) for batch in batches]
    digests = pa.concat_arrays([each.digests() for each in found])
    owners = [
        order_keys(batch, ("-length",), ["test"]).take(pa.array(each.documents()))
        for batch, each in zip(batches, found, strict=True)
    ]
    orders, places = pa.concat_arrays(owners), np.concatenate([each.starts for each in found])
    mixed = np.random.default_rng(shuffle).permutation(len(digests))
    goes = np.empty(len(digests), np.bool_)
    taken = digests.take(pa.array(mixed))
    if parts.more_than is None:
        goes[mixed] = later_ones(taken, orders.take(pa.array(mixed)), places[mixed])
    else:
        goes[mixed] = too_frequent(taken, parts.more_than)
    first, outcomes = 0, []
    for batch, each in zip(batches, found, strict=True):
        last = first + len(each.starts)
        outcomes.append(cut_parts(batch, each, goes[first:last], parts.reason))
        first = last
    return outcomes


def outcome_of(texts: list[str], parts: RepeatedParts) -> Outcome:
    return decide([batch_of(texts)], parts)[0]


def test_lines_that_take_part_are_trimmed_filled_and_long_enough() -> None:
    text = "  one line \r\n\n \t\nshort\nanother one\u2028\u00a0wide line\u00a0"
    assert compared(text, RepeatedParts(least=8)) == ["one line", "another one", "wide line"]
    assert compared("", RepeatedParts()) == [] and compared("ééé", RepeatedParts(least=4)) == []


def test_paragraphs_are_runs_of_filled_lines() -> None:
    text = "\n\na b\nc\n \n\nd e\n\nf"
    assert compared(text, RepeatedParts("paragraph", 1)) == ["a b\nc", "d e", "f"]


def test_first_line_in_keep_order_stays_and_the_others_go_with_their_line_breaks() -> None:
    shared = "this line is in both of them"
    outcome = outcome_of(
        [f"short\n{shared}\nend", f"{shared}\nthe longer of the two comes first in keep order"], RepeatedParts()
    )
    assert kept_texts(outcome) == ["short\nend", f"{shared}\nthe longer of the two comes first in keep order"]
    (edit,) = outcome.edits.to_pylist()
    assert edit["cut"] == len(shared) + 1 and edit["reason"] == "repeated lines" and edit["inserted"] == 0


def test_line_repeated_within_a_document_stays_once() -> None:
    line = "a line of its own kind"
    assert kept_texts(outcome_of([f"{line}\nx\n{line}\ny\n {line}"], RepeatedParts())) == [f"{line}\nx\ny"]


def test_blank_and_short_lines_are_no_duplicates() -> None:
    text = "a\n\n\n}\n}\n\n"
    assert kept_texts(outcome_of([text, text], RepeatedParts(least=2))) == [text, text]


def test_paragraph_goes_with_the_blank_lines_behind_it() -> None:
    shared = "one shared paragraph\nof two lines"
    texts = [
        f"{shared}\n\nand a long beginning of the document that is first",
        f"a\n\n{shared}\n\n\nb",
        f"c\n\n{shared}",
    ]
    outcome = outcome_of(texts, RepeatedParts("paragraph"))
    assert kept_texts(outcome) == [texts[0], "a\n\nb", "c"]
    assert outcome.edits.column("cut").to_pylist() == [len(shared) + 3, len(shared) + 2]


def test_document_of_nothing_else_is_dropped() -> None:
    line = "the same line as elsewhere"
    outcome = outcome_of(
        [f"{line}\n{line}\n", f"{line}\nand more of it, so that it is the longer one"], RepeatedParts()
    )
    assert reasons(outcome) == ["nothing but repeated lines"] and outcome.edits.num_rows == 0


def test_lines_seen_more_than_n_times_all_go() -> None:
    often, seldom = "seen in three documents", "seen in two documents only"
    texts = [f"a\n{often}\n{seldom}", f"b\n{often}\n{seldom}", f"c\n{often}"]
    outcome = outcome_of(texts, RepeatedParts(more_than=2))
    assert kept_texts(outcome) == [f"a\n{seldom}", f"b\n{seldom}", "c"]
    assert set(outcome.edits.column("reason").to_pylist()) == {"lines seen more than 2 times"}


def test_more_lines_than_sixteen_bits_count_are_told_apart() -> None:
    lines = [f"line number {i} of this very long text" for i in range(70_000)]
    outcome = outcome_of(["\n".join([*lines, lines[3], lines[65_537]])], RepeatedParts())
    assert kept_texts(outcome) == ["\n".join(lines)]


def drawn_texts(seed: int) -> list[str]:
    draw = random.Random(seed)
    lines = [f"line {i} of the common stock, é漢" for i in range(30)] + ["", "  ", "x"]
    return ["\n".join(draw.choices(lines, k=draw.randrange(1, 12))) for _ in range(60)]


@pytest.mark.parametrize("parts", [RepeatedParts(), RepeatedParts("paragraph", 1), RepeatedParts(more_than=3)])
def test_what_is_cut_depends_on_no_batching_and_no_order(parts: RepeatedParts) -> None:
    batch = batch_of(drawn_texts(1))
    whole = decide([batch], parts)[0]
    slices = [batch.slice(first, 13) for first in range(0, 60, 13)]
    apart = decide(slices, parts, shuffle=5)
    assert [text for outcome in apart for text in kept_texts(outcome)] == kept_texts(whole)
    assert pa.Table.from_batches([outcome.edits for outcome in apart]).equals(pa.Table.from_batches([whole.edits]))


def test_each_line_that_is_cut_stays_once() -> None:
    texts = drawn_texts(2)
    outcome = outcome_of(texts, RepeatedParts())
    left = [line for text in kept_texts(outcome) for line in text.split("\n") if len(line) >= 20]
    assert sorted(left) == sorted({line for text in texts for line in text.split("\n") if len(line) >= 20})
    characters = sum(map(len, texts)) - sum(map(len, kept_texts(outcome)))
    dropped = {row["id"] for row in outcome.dropped.to_pylist()}
    lost = sum(len(t) for t, i in zip(texts, batch_of(texts).column("id").to_pylist(), strict=True) if i in dropped)
    assert sum(outcome.edits.column("cut").to_pylist()) + lost == characters


@pytest.mark.parametrize("fields", [{"unit": "page"}, {"least": 0}, {"more_than": 0}])
def test_field_out_of_its_range_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(fields))):
        RepeatedParts(**fields)  # type: ignore[arg-type]


@settings(max_examples=200)
@given(
    rows=st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.integers(0, 9)), min_size=1, max_size=14),
    cuts=st.sets(st.integers(1, 13)),
    length=st.none() | st.integers(0, 5),
)
def test_later_occurrences_of_any_rows_follow_the_rule_in_any_batches(
    rows: list[tuple[str, str, int]], cuts: set[int], length: int | None
) -> None:
    rows = sorted(set(rows))
    first = {digest: min(row for row in rows if row[0] == digest) for digest, _, _ in rows}
    expected = [
        row != first[row[0]]
        and not (length is not None and row[1] == first[row[0]][1] and row[2] < first[row[0]][2] + length)
        for row in rows
    ]
    digests = pa.array([row[0].encode() * 16 for row in rows], pa.binary(16))
    orders = pa.array([row[1].encode() for row in rows], pa.large_binary())
    places = np.array([row[2] for row in rows], np.int64)
    lengths = None if length is None else np.full(len(rows), length, np.int64)
    stream, found = Occurrences(), []
    borders = [0, *sorted(cut for cut in cuts if cut < len(rows)), len(rows)]
    for i, j in itertools.pairwise(borders):
        sizes = None if lengths is None else lengths[i:j]
        found += stream.later(digests[i:j], orders[i:j], places[i:j], sizes).tolist()
    assert found == expected
    backwards = pa.array(np.arange(len(rows))[::-1])
    taken = digests.take(backwards), orders.take(backwards), places[::-1].copy()
    assert later_ones(*taken, lengths).tolist() == expected[::-1]


def test_parts_of_no_texts_are_none() -> None:
    found = find_parts(pa.array([], pa.large_string()), RepeatedParts())
    assert isinstance(found, Parts) and len(found.digests()) == 0 and found.documents().tolist() == []
    assert later_ones(found.digests(), pa.array([], pa.large_binary()), found.starts).tolist() == []
