from __future__ import annotations

import itertools
from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.minhash import MinHash, band_keys, permutations, sets_of, signatures
from transforms.shingles import NOTHING, Sets, _sort_runs, leave_out, membership, shingle_sets

TEXTS = st.lists(
    st.sampled_from(["a", "B", "Ä", "ก็", "กา", "漢字", " ", "\n", "\u2009", "\0", "’", ""]), max_size=12
).map("".join)


def array(*texts: str | None) -> pa.LargeStringArray:
    return pa.array(texts, pa.large_string())


def as_sets(sets: Sets) -> list[set[int]]:
    return [set(sets.values[i:j].tolist()) for i, j in pairwise(sets.offsets.tolist())]


def grams_by_hand(text: str, ngram: int) -> set[str]:
    """Character n-grams of the folded text; a tuple stands for a text shorter than one."""
    folded = " ".join(text.lower().replace("’", "'").split())
    if not folded:
        return {repr(text)} if text else set()
    if len(folded) < ngram:
        return {repr((folded, len(folded)))}
    return {folded[i : i + ngram] for i in range(len(folded) - ngram + 1)}


@settings(max_examples=200)
@given(texts=st.lists(TEXTS, max_size=5), ngram=st.integers(1, 4))
def test_character_shingles_of_any_texts_are_equal_where_their_grams_are(texts: list[str], ngram: int) -> None:
    sets = as_sets(shingle_sets(array(*texts), ngram, "character"))
    grams = [grams_by_hand(text, ngram) for text in texts]
    hashes: dict[str, int] = {}
    for found, expected in zip(sets, grams, strict=True):
        assert len(found) == len(expected)
        for other, theirs in zip(sets, grams, strict=True):
            assert len(found & other) == len(expected & theirs)
        if len(expected) == 1:
            assert hashes.setdefault(next(iter(expected)), next(iter(found))) in found


def test_character_shingles_keep_marks_apart() -> None:
    """Stripping marks would merge different Thai and Hindi words."""
    thai, hindi = (
        as_sets(shingle_sets(array("ใกล้", "ไกล"), 2, "character")),
        shingle_sets(array("कि", "की"), 2, "character"),
    )
    assert thai[0] != thai[1]
    assert as_sets(hindi)[0] != as_sets(hindi)[1]


def test_character_and_word_shingles_do_not_mix() -> None:
    words, characters = (as_sets(shingle_sets(array("a"), 1, unit)) for unit in ("word", "character"))
    assert not words[0] & characters[0]
    keys = [band_keys(array("a b c d e f"), MinHash(unit=unit)) for unit in ("word", "character")]
    assert not set(keys[0].ravel().tolist()) & set(keys[1].ravel().tolist())


def test_band_keys_of_characters_follow_their_sets() -> None:
    minhash = MinHash(ngram=3, unit="character", bands=3, rows=2)
    keys = band_keys(array("One  two", "one two", "one twq", "x" * 5000), minhash)
    assert keys[0].tolist() == keys[1].tolist() != keys[2].tolist()
    sets = sets_of(array("one two"), minhash)
    assert as_sets(sets) == as_sets(shingle_sets(array("one two"), 3, "character"))
    assert signatures(array("one two"), minhash)[0].tolist() == signature_of(as_sets(sets)[0], minhash)


def test_shingles_left_out_are_in_no_set_and_in_no_signature() -> None:
    header = "permission is hereby granted free of charge"
    bodies = ["alpha beta gamma delta epsilon zeta", "one two three four five six seven"]
    template = shingle_sets(array(header), 5).values
    texts = array(*(f"{header} {body}" for body in bodies))
    plain, less = as_sets(shingle_sets(texts, 5)), as_sets(shingle_sets(texts, 5, left_out=template))
    assert [a - b for a, b in zip(plain, less, strict=True)] == [set(template.tolist())] * 2
    minhash = MinHash(bands=40, rows=1)
    with_header, without = band_keys(texts, minhash), band_keys(texts, minhash, template)
    assert (with_header[0] == with_header[1]).any() and not (without[0] == without[1]).any()
    for row, values in enumerate(less):
        assert signatures(texts, minhash, template)[row].tolist() == signature_of(values, minhash)


def signature_of(values: set[int], minhash: MinHash) -> list[int]:
    a, b = (column.tolist() for column in permutations(minhash))
    return [min((x * (value >> 32) + y) % 2**32 for value in values) for x, y in zip(a, b, strict=True)]


def test_text_of_nothing_but_templates_is_compared_as_it_is() -> None:
    texts = array("one two three four five", "six seven eight nine ten", "")
    everything = np.unique(shingle_sets(texts, 5).values)
    assert as_sets(shingle_sets(texts, 5, left_out=everything)) == as_sets(shingle_sets(texts, 5))
    assert band_keys(texts, MinHash(), everything).tolist() == band_keys(texts, MinHash()).tolist()


def test_leaving_shingles_out_of_many_blocks_changes_nothing_else() -> None:
    text = array(" ".join(f"w{i}" for i in range(5000)))
    sets = shingle_sets(text, 5)
    some = np.sort(sets.values[::3])
    rest = set(sets.values.tolist()) - set(some.tolist())
    assert as_sets(shingle_sets(text, 5, left_out=some)) == [rest]
    minhash = MinHash(bands=2, rows=2)
    assert signatures(text, minhash, some)[0].tolist() == signature_of(rest, minhash)
    two = MinHash(bands=1, rows=1)
    keys = band_keys(text, two, some), band_keys(text, two)
    agree = signature_of(rest, two) == signatures(text, two)[0].tolist()
    assert (keys[0].tolist() == keys[1].tolist()) == agree


@given(listed=st.sets(st.integers(1, 40) | st.integers(2**64 - 9, 2**64 - 1)), values=st.lists(st.integers(0, 60)))
def test_leave_out_of_any_shingles_keeps_the_others_in_order(listed: set[int], values: list[int]) -> None:
    shingles = np.array(values, np.uint64)
    kept = leave_out(shingles, np.int64(len(values)), membership(np.array(sorted(listed), np.uint64)))
    assert shingles[:kept].tolist() == [value for value in values if value not in listed]


def test_membership_of_nothing_is_empty() -> None:
    assert len(membership(NOTHING)) == 0 and len(membership(np.array([5], np.uint64))) == 4


@given(
    runs=st.lists(
        st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 5) | st.integers(2**64 - 3, 2**64 - 1), max_size=40),
        max_size=5,
    )
)
def test_runs_of_any_values_are_sorted(runs: list[list[int]]) -> None:
    offsets = np.array([0, *itertools.accumulate(map(len, runs))], np.int64)
    values = np.array([x for run in runs for x in run], np.uint64)
    left = _sort_runs(offsets, values, np.empty(40, np.uint64)).tolist()
    for number, (run, (first, last)) in enumerate(zip(runs, pairwise(offsets.tolist()), strict=True)):
        found = values[first:last].tolist()
        assert sorted(found) == sorted(run) and (number in left or found == sorted(run))


def test_runs_of_unevenly_spread_values_are_left_to_a_comparing_sort() -> None:
    down = np.arange(500, 0, -1).astype(np.uint64)
    assert _sort_runs(np.array([0, 500]), down.copy(), np.empty(500, np.uint64)).tolist() == [0]
    spread = down << np.uint64(55)
    assert _sort_runs(np.array([0, 500]), spread, np.empty(500, np.uint64)).tolist() == []
    assert spread.tolist() == sorted(spread.tolist())


def test_shingle_set_of_a_long_text_is_sorted() -> None:
    values = shingle_sets(array(" ".join(f"w{i}" for i in range(300_000))), 5).values
    assert len(values) == 299_996 and (values[1:] > values[:-1]).all()


def test_short_texts_that_differ_in_a_mark_are_no_duplicates() -> None:
    """Thai and Hindi: words and characters keep their marks, so that the texts neither are equal nor share a bucket."""
    for a, b in (("ใกล้ บ้าน", "ไกล บ้าน"), ("ป่า", "ปา"), ("कि", "की"), ("दिन", "दीन")):
        for minhash in (MinHash(), MinHash(unit="character", ngram=16)):
            sets = as_sets(sets_of(array(a, b), minhash))
            keys = band_keys(array(a, b), minhash)
            assert not sets[0] & sets[1] and not (keys[0] == keys[1]).any()
