"""Benchmarks from files: the same items whatever the format, damage and misnaming told apart."""

from __future__ import annotations

import csv
import gzip
import io
import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from curate.configuration import describe
from transforms.benchmark_items import Benchmark, BenchmarkError, Item
from transforms.canonical import canonical_json

ROWS = [
    {"q": "How many boats\nlie in the harbour?", "a": "Three, as ever.", "p": "A harbour."},
    {"q": "Wie heißt die Fähre, 'Möwe' or \"Gull\"?", "a": "Möwe", "p": ""},
    {"q": "", "a": "nothing asked", "p": "A passage alone."},
]
FIELDS = {"question": "q", "answer": "a", "passage": "p"}
ITEMS = [Item(number, row["q"], row["a"], (), row["p"]) for number, row in enumerate(ROWS)]


def json_lines(rows: list[Any]) -> bytes:
    return b"\xef\xbb\xbf" + b"".join(json.dumps(row).encode() + b"\r\n" for row in rows) + b"\n"


def comma_separated(rows: list[dict[str, str]]) -> bytes:
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return b"\xef\xbb\xbf" + file.getvalue().encode()


def parquet(rows: list[Any]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    return sink.getvalue()


def written(folder: Path, name: str, content: bytes) -> Path:
    packed = {".gz": gzip.compress, ".zst": zstandard.compress}.get(Path(name).suffix, bytes)(content)
    (folder / name).write_bytes(packed)
    return folder / name


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
@pytest.mark.parametrize(("format_", "encode"), [("jsonl", json_lines), ("csv", comma_separated), ("parquet", parquet)])
def test_items_are_the_same_in_every_format(tmp_path: Path, format_: str, encode: Any, ending: str) -> None:
    path = written(tmp_path, f"set.{format_}{ending}", encode(ROWS))
    benchmark = getattr(Benchmark, format_)("set", path, **FIELDS)
    assert benchmark.items() == ITEMS


def test_fields_reach_into_nested_values_and_answers_name_choices(tmp_path: Path) -> None:
    rows = [
        {"ask": {"stem": "one"}, "options": {"text": ["red", "blue"]}, "key": 1},
        {"ask": {"stem": "two"}, "options": {"text": ["red", "blue"]}, "key": "A"},
        {"ask": {"stem": "three"}, "options": {"text": ["red", "blue"]}, "key": "green"},
        {"ask": {"stem": "four"}, "options": {"text": ["red", "blue"]}, "key": 7},
        {"ask": {"stem": "five"}, "options": {"text": []}, "key": ["first", "second"]},
        {"ask": "no stem", "options": None, "key": None},
    ]
    path = written(tmp_path, "set.jsonl", json_lines(rows))
    items = Benchmark.jsonl("set", path, question="ask.stem", answer="key", choices="options.text").items()
    assert [item.question for item in items] == ["one", "two", "three", "four", "five", ""]
    assert [item.answer for item in items] == ["blue", "red", "green", "", "first", ""]
    assert items[0].choices == ("red", "blue") and items[5].choices == ()


def test_identity_is_name_content_and_fields_but_not_the_place(tmp_path: Path) -> None:
    first = Benchmark.jsonl("set", written(tmp_path, "a.jsonl", json_lines(ROWS)), **FIELDS)
    second = Benchmark.jsonl("set", written(tmp_path, "b.jsonl", json_lines(ROWS)), **FIELDS)
    other = Benchmark.jsonl("set", written(tmp_path, "c.jsonl", json_lines(ROWS[:2])), **FIELDS)
    assert first == second and hash(first) == hash(second)
    assert canonical_json(describe(first)) == canonical_json(describe(second))
    different = [other, Benchmark.jsonl("name", first.path, **FIELDS), Benchmark.jsonl("set", first.path, question="q")]
    assert len({canonical_json(describe(benchmark)) for benchmark in (first, *different)}) == 4
    assert str(tmp_path) not in canonical_json(describe(first))
    assert pickle.loads(pickle.dumps(first)).items() == ITEMS


def test_file_that_changed_is_refused(tmp_path: Path) -> None:
    benchmark = Benchmark.jsonl("set", written(tmp_path, "a.jsonl", json_lines(ROWS)), **FIELDS)
    written(tmp_path, "a.jsonl", json_lines(ROWS[:1]))
    with pytest.raises(BenchmarkError, match="digest"):
        benchmark.items()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", b'{"q": "cut short'),
        ("a.jsonl", b"[1, 2]\n"),
        ("a.jsonl", b'{"q": "\xff"}\n'),
        ("a.jsonl.gz", b"no gzip"),
        ("a.jsonl.zst", b"no zstd"),
        ("a.parquet", b"no parquet"),
        ("a.csv", b'q,a\n"never closed,1\n'),
    ],
)
def test_damaged_file_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    benchmark = getattr(Benchmark, name.split(".")[1])("set", tmp_path / name, question="q")
    with pytest.raises(BenchmarkError, match=r"a\.\w+.* cannot be read"):
        benchmark.items()


def test_missing_file_and_misnamed_field_are_told(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match="nowhere"):
        Benchmark.jsonl("set", tmp_path / "nowhere.jsonl", question="q")
    path = written(tmp_path, "a.jsonl", json_lines(ROWS))
    with pytest.raises(BenchmarkError, match=r"'question'; there are: a, p, q"):
        Benchmark.jsonl("set", path, question="question").items()
    with pytest.raises(BenchmarkError, match="question or passage"):
        Benchmark.jsonl("set", path, answer="a")


def test_lone_surrogate_of_json_becomes_a_replacement_character(tmp_path: Path) -> None:
    path = written(tmp_path, "a.jsonl", b'{"q": "a \\ud800 b"}\n')
    assert "\ud800" not in Benchmark.jsonl("set", path, question="q").items()[0].question
