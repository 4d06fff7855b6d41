"""The registry of common benchmarks: each set's layout reads its items, whatever the file's format."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from transforms.benchmark_items import Benchmark, BenchmarkError, Item
from transforms.benchmark_registry import KNOWN, Layout, known_benchmark

ROWS: dict[str, tuple[dict[str, Any], Item]] = {
    "gsm8k": ({"question": "How many?", "answer": "7"}, Item(0, "How many?", "7")),
    "mmlu": ({"question": "Which?", "choices": ["a", "b"], "answer": 1}, Item(0, "Which?", "b", ("a", "b"))),
    "arc": (
        {"question": "Which?", "choices": {"text": ["x", "y"], "label": ["1", "2"]}, "answerKey": "2"},
        Item(0, "Which?", "y", ("x", "y")),
    ),
    "hellaswag": (
        {"ctx": "He", "endings": ["runs.", "sits."], "label": "0"},
        Item(0, "He", "runs.", ("runs.", "sits.")),
    ),
    "winogrande": (
        {"sentence": "The _ fits.", "option1": "cup", "option2": "pot", "answer": "2"},
        Item(0, "The _ fits.", "pot", ("cup", "pot")),
    ),
    "piqa": ({"goal": "Dry it", "sol1": "Sun", "sol2": "Rain", "label": 0}, Item(0, "Dry it", "Sun", ("Sun", "Rain"))),
    "boolq": ({"question": "is it", "passage": "It is."}, Item(0, "is it", passage="It is.")),
    "triviaqa": ({"question": "Who?", "answer": {"value": "She"}}, Item(0, "Who?", "She")),
    "humaneval": ({"prompt": "def f():", "canonical_solution": "  pass"}, Item(0, "def f():", "  pass")),
    "mbpp": ({"text": "Write it.", "code": "pass"}, Item(0, "Write it.", "pass")),
    "truthfulqa": ({"Question": "Why?", "Best Answer": "So."}, Item(0, "Why?", "So.")),
    "math": ({"problem": "Find x.", "solution": "x = 1"}, Item(0, "Find x.", "x = 1")),
    "openbookqa": (
        {"question_stem": "The sun", "choices": {"text": ["warms", "cools"]}, "answerKey": "B"},
        Item(0, "The sun", "cools", ("warms", "cools")),
    ),
    "squad": (
        {"question": "Who?", "context": "Ada did.", "answers": {"text": ["Ada"]}},
        Item(0, "Who?", "Ada", (), "Ada did."),
    ),
    "lambada": ({"text": "A long text"}, Item(0, "", passage="A long text")),
}


@pytest.mark.parametrize("name", ROWS)
def test_known_set_gives_question_answer_choices_and_passage(tmp_path: Path, name: str) -> None:
    row, item = ROWS[name]
    path = tmp_path / "file.jsonl"
    path.write_text(json.dumps(row) + "\n", "utf-8")
    benchmark = known_benchmark(name, path, split=KNOWN[name].splits[0])
    assert benchmark.items() == [item]
    assert benchmark.title == f"{name}/{KNOWN[name].splits[0]}"


def test_known_set_is_read_from_parquet_and_csv(tmp_path: Path) -> None:
    row, item = ROWS["truthfulqa"]
    with (tmp_path / "file.csv").open("w", newline="") as file:
        csv.writer(file).writerows([row.keys(), row.values()])
    pq.write_table(pa.Table.from_pylist([{"question": "Why?", "best_answer": "So."}]), tmp_path / "file.parquet")
    assert known_benchmark("truthfulqa", tmp_path / "file.csv").items() == [item]
    assert known_benchmark("truthfulqa", tmp_path / "file.parquet").items() == [item]


def test_every_set_names_a_question_or_passage_and_its_rights() -> None:
    for name, which in KNOWN.items():
        assert which.name == name
        assert which.layouts
        assert which.splits
        assert which.origin
        assert which.licence
        assert all(_parts(layout) & {"question", "passage"} for layout in which.layouts)


def _parts(layout: Layout) -> set[str]:
    return set(layout)


@pytest.mark.parametrize(
    ("name", "split", "message"),
    [
        ("gsm9k", "", "no benchmark 'gsm9k' is known"),
        ("gsm8k", "dev", "gsm8k has no split 'dev'"),
        ("arc", "", "has the fields answer, question; arc has question, answerKey, choices.text"),
    ],
)
def test_unknown_set_split_or_layout_is_refused(tmp_path: Path, name: str, split: str, message: str) -> None:
    path = tmp_path / "file.jsonl"
    path.write_text(json.dumps(ROWS["gsm8k"][0]) + "\n", "utf-8")
    with pytest.raises(BenchmarkError, match=message):
        known_benchmark(name, path, split=split)


def test_file_of_another_ending_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file.txt").write_text("x")
    with pytest.raises(BenchmarkError, match=r"ends in \.jsonl, \.csv or \.parquet"):
        Benchmark.file("x", tmp_path / "file.txt", question="q")
