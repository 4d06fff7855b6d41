"""Which items can be found, what of them counts, and the look-up against a plain one."""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.transforms.contamination_cases import HOST, ITEMS, write_benchmark
from transforms.benchmark_items import Item
from transforms.contamination import Decontaminate
from transforms.contamination_index import ALONE, JOINED, PLAIN, SHORT, Index, build_index
from transforms.contamination_scan import _look_up
from transforms.contamination_units import COMMON, PARTS, RARE, SEED, _frequent, seed_at
from transforms.contamination_words import hash_folded
from transforms.segmentation import find_words

NOUNS = ["lantern", "harbour", "violin", "glacier", "pepper", "sparrow", "canyon", "teapot", "saddle", "walnut",
         "compass", "thistle", "anvil", "orchard", "ribbon", "quarry", "beacon", "meadow"]  # fmt: skip


def indexed(*items: Item | str) -> Index:
    made = [item if isinstance(item, Item) else Item(n, item) for n, item in enumerate(items)]
    return build_index((), [(0, item) for item in made])


def weights(index: Index, item: int, part: str = "question") -> list[int]:
    (unit,) = np.flatnonzero((index.units.item == item) & (index.units.part == PARTS.index(part))).tolist()
    return index.units.weight[index.units.first[unit] : index.units.last[unit]].tolist()


def test_status_of_items_is_alone_joined_short_or_plain() -> None:
    index = indexed(
        "Which of the old canals still carries timber barges down to the sea?",
        Item(1, "Who built it?", "The canal company of Veere built it in one year"),
        "Who built it?",
        "1 2 3 4 5 6 7 8 9 10 11 12 13 14",
        "x y z x y z x y z x y z",
        "",
    )
    assert index.status.tolist() == [ALONE, JOINED, SHORT, PLAIN, PLAIN, SHORT]


def test_phrase_of_many_questions_counts_nothing() -> None:
    template = "Which of the following objects would a careful sailor put beside the"
    index = indexed(*(f"{template} {noun} to keep the old wooden {noun} dry" for noun in NOUNS), template)
    words = weights(index, 0)
    assert words[:8] == [0] * 8 and words[-2:] == [RARE, 1]
    assert index.status.tolist() == [ALONE] * len(NOUNS) + [PLAIN]


def test_phrase_of_few_questions_counts() -> None:
    template = "Which of the following objects would a careful sailor put beside the"
    index = indexed(*(f"{template} {noun} to keep the old wooden {noun} dry" for noun in NOUNS[:COMMON]))
    assert 0 not in weights(index, 0)


def test_equal_items_are_indexed_once_and_equal_questions_count_as_one() -> None:
    question = "Which of the old canals still carries timber barges down to the sea?"
    same = [Item(n, question) for n in range(30)]
    index = indexed(*same)
    assert len(index.units.item) == 1 and index.status.tolist() == [ALONE] * 30
    answered = indexed(*(Item(n, question, f"The canal of {noun} carries them") for n, noun in enumerate(NOUNS)))
    assert answered.status.tolist() == [ALONE] * len(NOUNS)
    assert 0 not in weights(answered, 0)


def test_rare_words_weigh_more_than_those_of_many_questions() -> None:
    draw = random.Random(1)
    index = indexed(*(f"{' '.join(draw.choices(NOUNS, k=5))} painted wall{n} blue{n}" for n in range(300)))
    assert weights(index, 7) == [1, 1, 1, 1, 1, 1, RARE, RARE]


def test_quoted_words_do_not_count_where_enough_others_do() -> None:
    quoted = " ".join(f"{noun}s gleam" for noun in NOUNS)
    index = indexed(f'The ballad says "{quoted}". Which northern poet wrote this ballad of objects for his daughter?')
    assert weights(index, 0)[3 : 3 + 2 * len(NOUNS)] == [0] * (2 * len(NOUNS))
    assert len(weights(index, 0, "quotation")) == 2 * len(NOUNS)
    code = indexed(f'def f():\n    """{quoted}"""\n    return "lantern shining over an old harbour wall"')
    assert 0 not in weights(code, 0)[1:30]


def test_question_that_hangs_on_a_saying_is_found_as_a_whole_only(tmp_path: Path) -> None:
    saying = "a lantern in the harbour is worth two on the glacier when the walnut falls"
    transform = Decontaminate(write_benchmark(tmp_path, [{"question": f'Who said, "{saying}"?'}], "saying"))
    texts = [f"{HOST} As they say, {saying}.", f"{HOST} Who said: {saying}?"]
    found = transform.findings(pa.array(texts, pa.large_string()))
    assert {row: mine[0].verdict for row, mine in found.items()} == {1: "leak"}


@pytest.mark.parametrize("count", [1, 2, 3])
def test_smallest_benchmarks_are_found(tmp_path: Path, count: int) -> None:
    items: list[dict[str, object]] = [{"question": str(item["question"])} for item in ITEMS[:count]]
    transform = Decontaminate(write_benchmark(tmp_path, items, f"small {count}"))
    texts = [HOST + str(item["question"]) for item in items]
    found = transform.findings(pa.array(texts, pa.large_string()))
    assert {row: mine[0].item for row, mine in found.items()} == {row: row for row in range(count)}


def test_benchmark_of_nothing_finds_nothing(tmp_path: Path) -> None:
    transform = Decontaminate(write_benchmark(tmp_path, [{"question": "1 2 3"}], "nothing"))
    assert transform.findings(pa.array([HOST, "1 2 3"], pa.large_string())) == {}


def test_item_longer_than_the_limit_is_found(tmp_path: Path) -> None:
    draw = random.Random(2)
    long = " ".join(draw.choice(NOUNS) + str(n) for n in range(3000))
    transform = Decontaminate(write_benchmark(tmp_path, [{"question": long}], "long"))
    assert transform.findings(pa.array([HOST + long], pa.large_string()))[0][0].verdict == "leak"


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5)), max_size=60), st.integers(0, 4))
def test_hashes_of_many_owners_equal_counting(pairs: list[tuple[int, int]], most: int) -> None:
    pairs.sort(key=lambda pair: pair[1])
    owners: dict[int, set[int]] = defaultdict(set)
    for value, owner in pairs:
        owners[value].add(owner)
    columns = np.array([v for v, _ in pairs], np.uint64), np.array([o for _, o in pairs], np.int64)
    assert _frequent(*columns, most).tolist() == sorted(v for v, mine in owners.items() if len(mine) > most)


def test_look_up_equals_a_dictionary_of_seeds() -> None:
    index = indexed(*(Item(n, str(i["question"]), str(i["answer"])) for n, i in enumerate(ITEMS)))
    texts = [str(item["question"]) + HOST + str(item["answer"]) for item in ITEMS] + ["", "one two"]
    hashes, places = hash_folded(words := find_words(pa.array(texts, pa.large_string())))
    documents = np.searchsorted(places, words.documents)
    known: dict[int, list[int]] = defaultdict(list)
    for number, value in enumerate(index.seeds.hashes.tolist()):
        known[value].append(number)
    expected: list[list[Any]] = []
    for d in range(len(texts)):
        for word in range(int(documents[d]), int(documents[d + 1]) - SEED + 1):
            value = int(seed_at(hashes, np.int64(word)))
            expected.extend([word, seed] for seed in known.get(value, []))
    seeds = index.seeds
    assert _look_up(hashes, documents, seeds.hashes, seeds.directory, seeds.filter).tolist() == expected
    assert len(expected) > 100
