"""Items of a made-up benchmark are found however they are written down, and nothing else is."""

from __future__ import annotations

import json
import random
import re
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transforms.contamination_cases import HOST, ITEMS, PASSAGE, QUOTED, write_benchmark
from tests.transforms.documents import batch_of, kept_texts, reasons
from transforms.contamination import Benchmark, BenchmarkError, Decontaminate, protection, unprotectable
from transforms.contamination_findings import Finding, numbers_in, ranges
from transforms.contamination_places import CodePoints
from transforms.duplicates import text_digests
from transforms.outcome import DROPPED, EDITS, SchemaError

SHARED = Path(__file__).parents[2].parent / "shared" / "data"
FERRY, GLASS, BIRD, TOWER, CHARTER, CODE = 0, 1, 2, 7, 8, 9
Written = Callable[[str], str]


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory: pytest.TempPathFactory) -> Benchmark:
    return write_benchmark(tmp_path_factory.mktemp("benchmark"))


def question(number: int) -> str:
    return str(ITEMS[number]["question"])


def planted(text: str) -> str:
    return f"{HOST}{text}\n\n{HOST}"


def found(benchmark: Benchmark, text: str) -> list[Finding]:
    return Decontaminate(benchmark).findings(pa.array([text], pa.large_string())).get(0, [])


def spaced(text: str) -> str:
    return re.sub(r"(?:[^\w\s]|_)+", " ", text)


def unpunctuated(text: str) -> str:
    return re.sub(r"[^\w\s]|_", "", text)


def html(text: str) -> str:
    words = text.split(" ")
    words[3::7] = [f"<b>{word}</b>" for word in words[3::7]]
    return "<div><p>" + " ".join(words).replace("\n", "<br/>") + "</p></div>"


WAYS: dict[str, Written] = {
    "verbatim": str,
    "wrapped": lambda text: textwrap.fill(text, 40),
    "one paragraph a sentence": lambda text: text.replace(". ", ".\n\n"),
    "upper case": str.upper,
    "lower case": str.lower,
    "other marks": lambda text: text.replace(",", " -").replace("?", " …").replace(".", "!"),
    "no punctuation": unpunctuated,
    "spaces for punctuation": spaced,
    "curly apostrophes": lambda text: text.replace("'", "\u2019"),
    "soft hyphens": lambda text: text.replace("ss", "s\u00ads").replace("ing", "in\u00adg"),
    "HTML": html,
    "Markdown": lambda text: "> " + text.replace(" the ", " **the** ").replace("\n", "\n> "),
    "no-break spaces": lambda text: text.replace(" ", "\u00a0"),
}


@pytest.mark.parametrize("number", [FERRY, GLASS, TOWER, CHARTER, CODE])
@pytest.mark.parametrize("way", WAYS)
def test_question_alone_is_a_leak_however_it_is_written(benchmark: Benchmark, way: str, number: int) -> None:
    best = found(benchmark, planted(WAYS[way](question(number))))[0]
    assert (best.verdict, best.benchmark, best.item, best.part) == ("leak", "made-up", number, "question")


@pytest.mark.parametrize("number", [FERRY, GLASS, BIRD, CODE])
@pytest.mark.parametrize(
    "layout", ["{q}\n{a}", "Question: {q}\nAnswer: {a}", "Q: {q}\n\nA: {a}", "{q} <p>Solution</p> {a}"]
)
def test_question_with_answer_is_a_leak_in_the_usual_layouts(benchmark: Benchmark, layout: str, number: int) -> None:
    text = layout.format(q=question(number), a=ITEMS[number]["answer"])
    assert any(f.verdict == "leak" and f.item == number for f in found(benchmark, planted(text)))


@pytest.mark.parametrize("layout", ["{q} {a}", "Question: {q}\nAnswer: {a}", "Q: {q}\nA: {a}", "{q}\n\n{a}."])
def test_short_question_is_found_with_its_answer(benchmark: Benchmark, layout: str) -> None:
    text = layout.format(q=question(3), a=ITEMS[3]["answer"])
    (best,) = found(benchmark, planted(text))
    assert (best.verdict, best.item, best.part) == ("leak", 3, "question and answer")
    assert not found(benchmark, planted(question(3)))


@pytest.mark.parametrize("names", ["ABC", "123", "---"])
def test_short_question_is_found_with_its_choices(benchmark: Benchmark, names: str) -> None:
    choices = [f"{name}. {choice}" for name, choice in zip(names, ITEMS[10]["choices"], strict=True)]  # type: ignore[call-overload]
    best = found(benchmark, planted("\n".join([question(10), *choices])))[0]
    assert (best.verdict, best.item, best.part) == ("leak", 10, "question and choices")


def test_answer_of_enough_words_alone_is_a_leak_and_a_short_one_nothing(benchmark: Benchmark) -> None:
    (best,) = found(benchmark, planted(str(ITEMS[FERRY]["answer"])))
    assert (best.verdict, best.item, best.part) == ("leak", FERRY, "answer")
    assert not found(benchmark, planted(str(ITEMS[GLASS]["answer"])))


def test_item_inside_a_long_document_is_found_at_its_place(benchmark: Benchmark) -> None:
    text = HOST * 300 + question(FERRY) + HOST * 300
    (best,) = found(benchmark, text)
    ((start, end),) = best.spans
    assert question(FERRY).startswith(text[start:end]) and len(question(FERRY)) - (end - start) == 1  # the last mark
    assert best.covered == best.of and best.longest == len(re.findall(r"[\w']+", question(FERRY)))


def test_spans_are_code_points_where_others_have_more_bytes(benchmark: Benchmark) -> None:
    text = "Ünïcödé 😀 中文 " * 9 + question(GLASS)
    ((start, end),) = found(benchmark, text)[0].spans
    assert text[start:end] == question(GLASS)[:-1]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("number", [FERRY, GLASS, CHARTER])
def test_item_with_one_word_in_twenty_edited_is_found(benchmark: Benchmark, number: int, seed: int) -> None:
    draw = random.Random(seed)
    words = question(number).split(" ")
    for place in draw.sample(range(len(words)), max(1, len(words) // 20)):
        words[place] = draw.choice(HOST.split())
    assert found(benchmark, planted(" ".join(words)))[0].item == number


def test_item_with_every_tenth_word_edited_is_found(benchmark: Benchmark) -> None:
    words = question(FERRY).split(" ")
    words[9::10] = ["something"] * len(words[9::10])
    assert found(benchmark, planted(" ".join(words)))[0].item == FERRY


@pytest.mark.parametrize("place", [3, 12, 20])
def test_item_split_by_twenty_foreign_words_is_found_without_them(benchmark: Benchmark, place: int) -> None:
    words = question(FERRY).split(" ")
    foreign = "meanwhile rain fell over hills and two dogs slept near an old mill while nobody came along that way"
    text = planted(" ".join([*words[:place], *foreign.split(), *words[place:]]))
    (best,) = found(benchmark, text)
    assert (best.verdict, best.item) == ("leak", FERRY)
    assert all("dogs" not in text[start:end] for start, end in best.spans)


def test_item_with_other_numbers_is_a_variant(benchmark: Benchmark) -> None:
    text = question(FERRY).replace("24", "30").replace("9", "11").replace("7 times", "12 times")
    (best,) = found(benchmark, planted(text))
    assert (best.verdict, best.item, best.numbers, best.names) == ("variant", FERRY, 3, 0)


def test_item_with_other_names_is_a_variant(benchmark: Benchmark) -> None:
    text = question(GLASS).replace("Lindau", "Murano")
    (best,) = found(benchmark, planted(text))
    assert (best.verdict, best.item, best.numbers, best.names) == ("variant", GLASS, 0, 1)


def test_passage_of_the_benchmark_is_a_quotation_and_stays_unless_asked(benchmark: Benchmark) -> None:
    batch = batch_of([planted(PASSAGE)])
    (best,) = found(benchmark, planted(PASSAGE))
    assert (best.verdict, best.item, best.part) == ("quotation", TOWER, "passage")
    outcome = Decontaminate(benchmark).apply(batch)
    assert outcome.kept.num_rows == 1
    assert outcome.near.column("reason").to_pylist() == ["contamination: quotation"]
    asked = Decontaminate(benchmark, verdicts=("leak", "variant", "quotation")).apply(batch)
    assert reasons(asked) == ["contamination: quotation"]


def test_quotation_within_a_question_is_no_leak_without_the_question(benchmark: Benchmark) -> None:
    assert [(f.verdict, f.part) for f in found(benchmark, planted(QUOTED))] == [("quotation", "quotation")]
    assert found(benchmark, planted(question(CHARTER)))[0].verdict == "leak"


NOT_CONTAMINATED = {
    "digits": "0 0 0 0 " * 200,
    "counting": " ".join(map(str, range(1, 500))),
    "alphabets": "a b c d e f g h i j k l m n o p q r s t u v w x y z " * 20,
    "licence": "Permission is hereby granted, free of charge, to any person obtaining a copy of this software and "
    "associated documentation files, to deal in the software without restriction. " * 3,
    "loops": "for i in range(0, len(weights), 3):\n    for j in range(i, len(weights)):\n        total += 1\n" * 9,
    "half of a question": question(FERRY)[: len(question(FERRY)) // 2],
    "same subject": "Marta's ferry crosses the fjord on Saturday and on Sunday, with passengers and bicycles, all the "
    "weekend; how many times it crosses nobody knows, and nobody can carry all of it.",
    "words in another order": " ".join(sorted(question(GLASS).split())),
    "short item": "Who knows? Nobody.",
    "another exercise in the same words": 'def shelf_count(weights):\n    """Return the number of shelves, where '
    'every shelf takes three boxes.\n    >>> shelf_count([4, 1, 7, 2])\n    2\n    """\n',
}


@pytest.mark.parametrize("name", NOT_CONTAMINATED)
def test_text_that_is_no_item_stays_without_a_finding(benchmark: Benchmark, name: str) -> None:
    outcome = Decontaminate(benchmark).apply(batch_of([planted(NOT_CONTAMINATED[name])]))
    assert (outcome.kept.num_rows, outcome.near.num_rows) == (1, 0)


def test_items_that_cannot_be_found_are_listed(benchmark: Benchmark) -> None:
    (listed,) = protection([benchmark])
    assert (listed.benchmark, listed.items) == ("made-up", len(ITEMS))
    assert (listed.joined, listed.short, listed.plain) == ((3, 10), (4,), (5, 6))
    assert unprotectable(benchmark) == (4, 5, 6)
    assert Decontaminate(benchmark).protection() == (listed,)


def test_ledger_names_item_coverage_and_threshold(benchmark: Benchmark) -> None:
    outcome = Decontaminate(benchmark, coverage=".75").apply(batch_of([HOST, planted(question(FERRY))]))
    (row,) = outcome.dropped.to_pylist()
    evidence = json.loads(row.pop("evidence"))
    assert row == {
        "id": batch_of([HOST, ""]).column("id")[1].as_py(),
        "transform": "Decontaminate",
        "reason": "contamination: leak",
        "measure": "coverage of the item",
        "numerator": row["denominator"],
        "denominator": row["denominator"],
        "threshold": "< 0.75",
    }
    (entry,) = evidence["found"]
    assert (entry["benchmark"], entry["item"], entry["part"], entry["verdict"]) == ("made-up", 0, "question", "leak")
    assert entry["changed"] == {"numbers": 0, "names": 0, "words": 0}


def test_coverage_just_below_the_threshold_is_a_near_miss(benchmark: Benchmark) -> None:
    words = question(FERRY).split(" ")
    exact = found(benchmark, planted(" ".join(words[:-6])))[0]
    least = f"{exact.covered / exact.of + 0.005:.3f}"
    outcome = Decontaminate(benchmark, coverage=least).apply(batch_of([planted(" ".join(words[:-6]))]))
    assert outcome.kept.num_rows == 1
    assert outcome.near.column("numerator").to_pylist() == [exact.covered]
    assert outcome.near.column("reason").to_pylist() == ["contamination: near miss"]


def test_cut_takes_the_item_out_and_counts_it(benchmark: Benchmark) -> None:
    texts = [planted(f"“{question(FERRY)}”"), HOST, planted(question(GLASS) + " So it is. " + question(BIRD))]
    outcome = Decontaminate(benchmark, action="cut").apply(batch_of(texts))
    left = kept_texts(outcome)
    assert left == [planted(""), HOST, planted(" So it is. ")]
    edits = outcome.edits.to_pylist()
    assert [edit["cut"] for edit in edits] == [len(texts[0]) - len(left[0]), len(texts[2]) - len(left[2])]
    assert {(edit["reason"], edit["inserted"]) for edit in edits} == {("contamination: leak", 0)}


def test_cut_of_all_that_can_be_read_drops_the_document(benchmark: Benchmark) -> None:
    outcome = Decontaminate(benchmark, action="cut").apply(batch_of([f"* {question(FERRY)} *\n"]))
    assert (outcome.kept.num_rows, reasons(outcome), outcome.edits.num_rows) == (0, ["contamination: leak"], 0)


def test_tag_writes_a_column_and_keeps_everything(benchmark: Benchmark) -> None:
    batch = batch_of([HOST, planted(question(FERRY)), planted(PASSAGE)])
    transform = Decontaminate(benchmark, action="tag")
    outcome = transform.apply(batch)
    assert outcome.kept.schema == transform.output_schema(batch.schema)
    tags = outcome.kept.column("contamination").to_pylist()
    assert tags[0] is None
    assert [json.loads(tag)["found"][0]["verdict"] for tag in tags[1:]] == ["leak", "quotation"]
    assert (outcome.dropped.num_rows, outcome.edits.num_rows) == (0, 0)
    near = zip(outcome.near.column("id").to_pylist(), outcome.near.column("reason").to_pylist(), strict=True)
    ids = batch.column("id").to_pylist()
    assert list(near) == [(ids[1], "contamination: leak"), (ids[2], "contamination: quotation")]


def test_several_items_in_a_document_are_all_named_gravest_first(benchmark: Benchmark) -> None:
    text = planted("\n\n".join([PASSAGE, question(GLASS).replace("Lindau", "Murano"), question(FERRY)]))
    assert [(f.verdict, f.item) for f in found(benchmark, text)] == [
        ("leak", FERRY),
        ("variant", GLASS),
        ("quotation", TOWER),
    ]


PIECES = [question(FERRY), question(BIRD), PASSAGE, HOST, "", "a b 1 2 ", "the fjord, ", "\n", "中文", "😀"]
TEXTS = st.lists(st.lists(st.sampled_from(PIECES) | st.text(max_size=9), max_size=4).map(" ".join), max_size=5)


@pytest.mark.parametrize("action", ["drop", "cut", "tag", "mask"])
@given(texts=TEXTS, border=st.integers(0, 5))
@settings(max_examples=25)
def test_any_documents_are_accounted_for_in_any_batching(
    benchmark: Benchmark, action: str, texts: list[str], border: int
) -> None:
    transform = Decontaminate(benchmark, action=action)
    batch = batch_of(texts)
    whole = transform.apply(batch)
    assert (whole.dropped.schema, whole.edits.schema, whole.near.schema) == (DROPPED, EDITS, DROPPED)
    assert whole.kept.schema == transform.output_schema(batch.schema)
    ids = batch.column("id").to_pylist()
    kept_ids, dropped = whole.kept.column("id").to_pylist(), whole.dropped.column("id").to_pylist()
    assert sorted(kept_ids + dropped) == sorted(ids)
    before = dict(zip(ids, texts, strict=True))
    cut = {row["id"]: row["cut"] - row["inserted"] for row in whole.edits.to_pylist()}
    for identity, text in zip(kept_ids, kept_texts(whole), strict=True):
        assert len(text) == len(before[identity]) - cut.get(identity, 0)
        assert identity in cut or text == before[identity]
    parts = [transform.apply(batch.slice(0, border)), transform.apply(batch.slice(border))]
    for table in ("kept", "dropped", "edits", "near"):
        assert getattr(whole, table).to_pylist() == [row for part in parts for row in getattr(part, table).to_pylist()]


def test_hostile_repetition_takes_linear_time(benchmark: Benchmark) -> None:
    """Seeds of one item over and over: stretches do not begin within each other."""
    transform = Decontaminate(benchmark)
    transform.apply(batch_of([question(FERRY)]))
    seconds = []
    for times in (200, 1600):
        batch = batch_of([" ".join([question(FERRY)[:60], "the fjord if it crosses"] * times)])
        start = time.process_time()
        transform.apply(batch)
        seconds.append(time.process_time() - start)
    assert seconds[1] < 40 * max(seconds[0], 0.01)


def test_configuration_out_of_range_is_refused(benchmark: Benchmark) -> None:
    refused: list[dict[str, Any]] = [
        {"ngram": 0},
        {"coverage": 0.2},
        {"coverage": "1.5"},
        {"action": "burn"},
        {"verdicts": ()},
        {"benchmarks": ()},
        {"benchmarks": (benchmark, benchmark)},
    ]
    for options in refused:
        with pytest.raises(ValueError, match=r"benchmarks|ngram|coverage|action"):
            Decontaminate(**{"benchmarks": benchmark, **options})


def test_rows_without_text_and_changed_file_are_told_before_any_work(tmp_path: Path) -> None:
    mine = write_benchmark(tmp_path, name="changing")
    transform = Decontaminate(mine)
    with pytest.raises(SchemaError, match="text"):
        transform.output_schema(pa.schema([("id", pa.binary(16))]))
    mine.path.write_text("{}\n")
    with pytest.raises(BenchmarkError, match="digest"):
        transform.ready()


def test_two_benchmarks_share_an_index_and_keep_their_names(benchmark: Benchmark, tmp_path: Path) -> None:
    other = write_benchmark(
        tmp_path, [{"question": "How deep does the anchor chain of a pilot schooner reach at low water?"}], "second"
    )
    text = planted("How deep does the anchor chain of a pilot schooner reach at low water? " + question(GLASS))
    both = Decontaminate((benchmark, other)).findings(pa.array([text], pa.large_string()))[0]
    assert {(f.benchmark, f.item) for f in both} == {("made-up", GLASS), ("second", 0)}


def test_real_benchmarks_are_found_and_real_texts_left_alone() -> None:
    if not (SHARED / "benchmarks").is_dir():
        pytest.skip("../shared/data is not there")
    from benchmarks.decontamination import benchmarks, corpus

    texts = corpus(1_500_000)
    transform = Decontaminate(benchmarks())
    assert not [f for mine in transform.findings(texts).values() for f in mine if f.verdict]
    items = [(b.name, item) for b in benchmarks() for item in b.items()[::60]]
    listed = {p.benchmark: {*p.joined, *p.short, *p.plain} for p in transform.protection()}
    asked = [(name, item) for name, item in items if item.number not in listed[name]]
    for way in ("verbatim", "upper case", "no punctuation", "wrapped"):
        found = transform.findings(
            pa.array([planted(WAYS[way](item.question)) for _, item in asked], pa.large_string())
        )
        missed = [pair for row, pair in enumerate(asked) if not any(f.verdict for f in found.get(row, []))]
        assert len(missed) <= len(asked) * 0.02


def test_mask_records_the_places_of_the_item_and_keeps_the_text(benchmark: Benchmark) -> None:
    question = str(ITEMS[1]["question"])
    texts = [HOST + question + HOST + question, HOST, HOST + PASSAGE]
    outcome = Decontaminate(benchmark, action="mask").apply(batch_of(texts))
    assert outcome.kept.column("text").to_pylist() == texts
    first, *others = outcome.kept.column("not_trained").to_pylist()
    assert others == [None, None]  # a quotation is no leak
    mask = json.loads(first)
    assert [texts[0][start:end] for start, end in mask["spans"]] == [question.rstrip("?")] * 2
    assert mask["text"] == text_digests(pa.array(texts[:1], pa.large_string()))[0].as_py().hex()
    assert outcome.near.num_rows == 2


def test_evidence_numbers_every_item_found_equal_ones_too(tmp_path: Path) -> None:
    which = "Which of the keepers of lamp room {0}0{0} forgot oil, matches, bread and his own boots?"
    questions = [which.format(n) for n in range(9)]
    path = tmp_path / "items.jsonl"
    path.write_text("".join(json.dumps({"q": q}) + "\n" for q in [*questions, questions[2]]), "utf-8")
    parts = [Benchmark.jsonl("keepers", path, question="q", split=split) for split in ("dev", "test")]
    transform = Decontaminate(parts)
    dropped = transform.apply(batch_of([HOST + questions[2] + HOST])).dropped
    evidence = json.loads(dropped.column("evidence")[0].as_py())
    assert evidence["items"]["keepers/dev"]["leak"] == evidence["items"]["keepers/test"]["leak"] == "2,9"
    assert evidence["items"]["keepers/dev"]["variant"] == "0-1,3-8"
    assert [p.benchmark for p in transform.protection()] == ["keepers/dev", "keepers/test"]


@pytest.mark.parametrize(("numbers", "text"), [([], ""), ([3], "3"), ([0, 1, 2, 7, 9, 10], "0-2,7,9-10")])
def test_ranges_are_read_back(numbers: list[int], text: str) -> None:
    assert ranges(numbers) == text
    assert numbers_in(text) == numbers


@given(text=st.lists(st.sampled_from(["a", "é", "中", "😀"]), max_size=9).map("".join), repeats=st.integers(0, 1500))
@settings(max_examples=20)
def test_code_points_before_a_byte_are_those_of_the_text(text: str, repeats: int) -> None:
    data = (text * repeats).encode()
    points = CodePoints(data)
    for position in {0, len(data) // 3, len(data) // 2, len(data)}:
        begins = next(p for p in range(position, -1, -1) if p == len(data) or data[p] & 0xC0 != 0x80)
        assert points.before(begins) == len(data[:begins].decode())
