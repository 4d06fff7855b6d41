"""Decontamination in a recipe: key, ledger and conservation, whatever the batches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from curate import Outputs, read_jsonl, tokenize
from curate.recipes.evaluation import decontaminate
from curate.recipes.graph import Dataset
from curate.upkeep.verify import verify
from tests.curate.corpus import ShuffledRunner, ledger, run_on, texts, write_lines
from tests.curate.token_corpus import END, write_tokenizer
from tests.transforms.contamination_cases import HOST, ITEMS, PASSAGE, write_benchmark
from transforms.contamination import Benchmark
from transforms.tokens import Tokenizer

QUESTIONS = [str(item["question"]) for item in ITEMS]
TEXTS = [HOST, HOST + QUESTIONS[0] + "\n" + HOST, QUESTIONS[1], HOST + PASSAGE, "", HOST.upper()]


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory: pytest.TempPathFactory) -> Benchmark:
    return write_benchmark(tmp_path_factory.mktemp("benchmark"))


def source(root: Path) -> Dataset:
    write_lines(root / "a.jsonl", [{"text": text} for text in TEXTS[:3]])
    write_lines(root / "b.jsonl", [{"text": text} for text in TEXTS[3:]])
    return read_jsonl(root, source="s")


@pytest.mark.parametrize("chunk_rows", [1, 4096])
def test_contaminated_documents_go_with_their_item_in_the_ledger(
    tmp_path: Path, benchmark: Benchmark, chunk_rows: int
) -> None:
    clean = decontaminate(source(tmp_path / "in"), benchmark)
    result = run_on(Outputs(clean=clean), tmp_path / "store", ShuffledRunner(1), chunk_rows)
    assert texts(result.outputs["clean"]) == [TEXTS[n] for n in (0, 3, 4, 5)]
    gone = ledger(result.outputs["clean"])
    assert [(row["transform"], row["reason"]) for row in gone] == [("Decontaminate", "contamination: leak")] * 2
    assert [json.loads(row["evidence"])["found"][0]["item"] for row in gone] == [0, 1]
    near = [row for row in result.outputs["clean"].samples() if row["kind"] == "near miss"]
    assert [row["reason"] for row in near] == ["contamination: quotation"]
    (step,) = result.outputs["clean"].statistics["steps"].values()
    assert step["found"] == {
        "made-up": {
            "documents": {"leak": {"s": 2}, "quotation": {"s": 1}},
            "items": {"leak": {"0": 1, "1": 1}, "quotation": {"7": 1}},
        }
    }
    assert step["sources"]["s"]["near"] == {"Decontaminate": {"contamination: quotation": {"documents": 1}}}
    assert verify(tmp_path / "store").ok


def test_cut_items_are_edits_that_add_up(tmp_path: Path, benchmark: Benchmark) -> None:
    clean = decontaminate(source(tmp_path / "in"), benchmark, action="cut")
    result = run_on(Outputs(clean=clean), tmp_path / "store")
    assert texts(result.outputs["clean"]) == [HOST, HOST + "\n" + HOST, TEXTS[3], "", TEXTS[5]]
    assert [(row["kind"], row["cut"]) for row in ledger(result.outputs["clean"])] == [
        ("edit", len(QUESTIONS[0])),
        ("dropped", 0),
    ]
    assert verify(tmp_path / "store").ok


def test_key_follows_content_and_fields_of_the_benchmark_but_not_its_place(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "two", "three")]
    for folder in folders:
        folder.mkdir()
    named = [write_benchmark(folders[0]), write_benchmark(folders[1]), write_benchmark(folders[2], ITEMS[:5])]
    store = tmp_path / "store"
    results = [run_on(Outputs(clean=decontaminate(source(tmp_path / "in"), b)), store) for b in named]
    keys = [result.outputs["clean"].key for result in results]
    assert keys[0] == keys[1] != keys[2]


def test_masked_items_are_read_and_no_targets_of_training(tmp_path: Path, benchmark: Benchmark) -> None:
    tokenizer = Tokenizer(write_tokenizer(tmp_path), eos=END)
    cells = tokenize(decontaminate(source(tmp_path / "in"), benchmark, action="mask"), tokenizer)
    (cache,) = run_on(Outputs(tokens=cells), tmp_path / "store").caches["tokens"].open().values()
    (marks,) = cache.read_untrained([(0, cache.tokens)]) or ()
    tokens = cache.read(0, cache.tokens)
    read = tokenizer.encoder().decode(tokens[marks > 0])
    one, other = (question.removesuffix("?") for question in QUESTIONS[:2])
    assert read in {one + other, other + one}
