"""`curate contamination`: datasets, caches and plain files, lists of items, and what a run's ledger has."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from curate import ConfigurationError, Outputs, decontaminate, read_jsonl
from curate.command_line import main
from curate.contamination import Audit, audit_texts, found_in_run, texts_of_cache, texts_of_files
from curate.contamination.files import benchmark_file, benchmark_of
from curate.run import Result
from tests.curate.corpus import run_on, write_lines
from tests.curate.token_corpus import END, build, write_tokenizer
from tests.transforms.contamination_cases import HOST, ITEMS, PASSAGE
from transforms.contamination import Benchmark, Decontaminate
from transforms.tokens import Tokenizer

QUESTIONS = [str(item.get("question")) for item in ITEMS]
DOCUMENTS = [HOST, HOST + QUESTIONS[0] + HOST, HOST + QUESTIONS[0], QUESTIONS[1].upper(), HOST + PASSAGE]
FIELDS = "question=question,answer=answer,passage=passage,choices=choices"


@pytest.fixture(scope="module")
def items(memory: Path) -> Path:
    path = memory / "items.jsonl"
    path.write_text("".join(json.dumps(item) + "\n" for item in [*ITEMS, ITEMS[0]]), "utf-8")
    return path


@pytest.fixture(scope="module")
def result(memory: Path, items: Path) -> Result:
    """A store whose run tagged what it found, from two sources."""
    write_lines(memory / "one" / "a.jsonl", [{"text": text} for text in DOCUMENTS[:2]])
    write_lines(memory / "two" / "a.jsonl", [{"text": text} for text in DOCUMENTS[2:]])
    sources = {name: read_jsonl(memory / name, source=name) for name in ("one", "two")}
    benchmark = benchmark_of(f"made/test={items},{FIELDS}")
    tagged = decontaminate(sources["one"], benchmark, action="tag", name="tagged")
    cut = decontaminate(sources["two"], benchmark, action="drop", name="dropped")
    return run_on(Outputs(tagged=tagged, dropped=cut, raw=sources["two"].keep("raw")), memory / "store")


def test_dataset_is_audited_and_items_are_listed(
    result: Result, items: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--benchmark", f"made/test={items},{FIELDS}", "--out", str(tmp_path / "out"), "--threads", "2"]
    assert main(["contamination", str(result.store.root), *given]) == 1
    shown = capsys.readouterr().out
    assert "6 documents of 2 sources" in shown
    assert "leak in 3 documents: one 1, two 2" in shown
    assert "gsm8k" in shown.partition("Not checked")[2]
    report = json.loads((tmp_path / "out/contamination.json").read_text())["benchmarks"]["made/test"]
    assert [report[name] for name in ("items", "leak", "variant", "clean", "unchecked")] == [12, 3, 0, 6, 3]
    assert report["documents"] == {"leak": {"one": 1, "two": 2}, "quotation": {"two": 2}}
    numbers = {
        kind: [int(line) for line in (tmp_path / f"out/made-test.{kind}.txt").read_text().split()]
        for kind in ("clean", "dirty", "unchecked")
    }
    assert numbers["dirty"] == [0, 1, 11]  # the last item is the first once more
    assert sorted(number for some in numbers.values() for number in some) == list(range(12))
    told = [json.loads(line) for line in (tmp_path / "out/made-test.items.jsonl").read_text().splitlines()]
    assert told[0]["documents"] == {"leak": 2}
    assert told[0]["sources"] == {"one": 1, "two": 1}
    assert told[7] == {**told[7], "status": "clean", "documents": {"quotation": 2}}


def test_ledger_and_tags_of_a_run_are_counted(result: Result, items: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--benchmark", f"made/test={items},{FIELDS}", "--ledger", "--json"]
    assert main(["contamination", str(result.store.root), *given]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["benchmarks"]["made/test"]["documents"] == {"leak": {"one": 1, "two": 2}}
    assert told["checked"]["documents"] == {"one": 2, "two": 3}
    assert found_in_run([], Decontaminate(benchmark_of(f"made={items},{FIELDS}"))).is_clean


def test_token_cache_is_audited_through_its_tokenizer(
    result: Result, items: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tokenizer = Tokenizer(write_tokenizer(tmp_path), eos=END)
    dataset = result.outputs["raw"]
    cache = next(iter(build(dataset, tokenizer).caches.values()))
    (portion,) = texts_of_cache(cache, tokenizer)
    assert sorted(portion.texts.to_pylist()) == sorted(DOCUMENTS[2:])
    given = ["--benchmark", f"made={items},{FIELDS}", "--json"]
    assert main(["contamination", str(cache.store.root), *given]) == 1
    told = json.loads(capsys.readouterr().out)["benchmarks"]["made"]["documents"]
    assert told == {"leak": {cache.name: 2}, "quotation": {cache.name: 1}}


def test_plain_files_are_audited(items: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "deep").mkdir()
    pq.write_table(pa.table({"text": [*DOCUMENTS[:2], None]}), tmp_path / "deep/a.parquet")
    write_lines(tmp_path / "b.jsonl", [{"text": DOCUMENTS[0]}])
    benchmark = benchmark_of(f"made={items},{FIELDS}")
    found = audit_texts(texts_of_files(tmp_path), Decontaminate(benchmark))
    assert found.documents == {"deep/a.parquet": 3, "b.jsonl": 1}
    assert found.seen["made", 0].names == ["deep/a.parquet 1"]
    assert main(["contamination", str(tmp_path), "--benchmark", f"made={items},{FIELDS}"]) == 1
    said = capsys.readouterr()
    assert "leak in 1 documents: deep/a.parquet 1" in said.out
    assert "contamination: 4 documents, " in said.err


def test_audit_is_the_same_for_any_threads_and_portions(items: Path, tmp_path: Path) -> None:
    decontaminate = Decontaminate(benchmark_of(f"made={items},{FIELDS}"))
    for number, text in enumerate(DOCUMENTS * 3):
        write_lines(tmp_path / f"many/{number:02}.jsonl", [{"text": text}])
    audits: list[Audit] = [audit_texts(texts_of_files(tmp_path / "many"), decontaminate, threads) for threads in (1, 3)]
    assert audits[0] == audits[1]


def test_clean_texts_are_status_0_and_known_sets_are_listed(
    items: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_lines(tmp_path / "a.jsonl", [{"text": HOST}])
    assert main(["contamination", str(tmp_path), "--benchmark", f"made={items},{FIELDS}"]) == 0
    assert main(["contamination", "--known"]) == 0
    assert "gsm8k: openai/gsm8k, MIT, splits train, test" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["DIR"], "both are needed"),
        (["DIR", "--benchmark", "made"], "give NAME=FILE"),
        (["DIR", "--benchmark", "made=ITEMS"], "no benchmark 'made' is known"),
        (["DIR", "--benchmark", "made=ITEMS,question=ask"], "no item has the field 'ask'"),
        (["DIR", "--benchmark", "gsm8k=nothing.jsonl"], "nothing.jsonl cannot be read"),
        (["DIR", "--benchmark", "gsm8k=ITEMS"], "is no store, dataset, token cache or folder of"),
        (["DIR", "--benchmark", "gsm8k=ITEMS", "--coverage", "0.1"], "coverage is a share"),
        (["DIR", "--benchmark", "gsm8k=ITEMS", "--benchmark", "gsm8k=ITEMS"], "each under its own name"),
    ],
)
def test_what_cannot_be_audited_is_refused_with_the_reason(
    arguments: list[str], message: str, items: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = [part.replace("DIR", str(tmp_path)).replace("ITEMS", str(items)) for part in arguments]
    assert main(["contamination", *made]) == 2
    assert message in capsys.readouterr().err


def test_file_from_a_url_is_fetched_once_and_pinned(items: Path, tmp_path: Path) -> None:
    url = items.as_uri()
    path = benchmark_file(url, folder=tmp_path)
    assert path.read_bytes() == items.read_bytes()
    digest = Benchmark.jsonl("made", path, question="question").digest
    assert benchmark_file(url, digest, tmp_path) == path
    with pytest.raises(ConfigurationError, match="has the digest"):
        benchmark_file(url, "0" * 64, tmp_path)
    with pytest.raises(ConfigurationError, match="cannot be fetched"):
        benchmark_file(f"{url}.gone", folder=tmp_path)
    with pytest.raises(ConfigurationError, match="http, https or file"):
        benchmark_file("ftp://host/items.jsonl", folder=tmp_path)


def test_fields_of_a_named_benchmark_are_understood(items: Path) -> None:
    benchmark = benchmark_of(f"made/dev={items},question=question,choices=question+answer,counts_from=1")
    assert (benchmark.title, benchmark.choices, benchmark.counts_from) == ("made/dev", ("question", "answer"), 1)
