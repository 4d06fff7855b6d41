"""Phrases of benchmarks that are common in a corpus: counted over shards, and no evidence afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from curate import ConfigurationError, Outputs, decontaminate, fit_phrases, read_jsonl
from tests.curate.corpus import ShuffledRunner, ledger, run_on, texts, write_lines
from transforms.contamination import Benchmark, Decontaminate
from transforms.contamination_common import LEAST, Phrases, read_phrases
from transforms.contamination_counts import PhraseCounts
from transforms.fitted import FittedError, LocalFile

SAYING = "wer den Leuchtturm verlässt soll zuvor das Öl prüfen und die Lampe putzen lassen"
QUESTION = f"Kapitän Ohlsen liest: {SAYING}. Welche Pflicht trifft Wärter Brandt?"
OTHER = "Which cheese of the valley ripens longest beneath wet straw and slate before the autumn market opens?"


@pytest.fixture
def benchmark(tmp_path: Path) -> Benchmark:
    path = tmp_path / "items.jsonl"
    path.write_text("".join(json.dumps({"q": q}) + "\n" for q in (SAYING, QUESTION, OTHER)), "utf-8")
    return Benchmark.jsonl("items", path, question="q")


PAGES = [f"Tafel {n}: {' '.join(SAYING.split()[:11])} und so fort, Nummer {n}." for n in range(LEAST + 2)]


def test_phrase_of_many_texts_is_common_unless_its_item_is_found(benchmark: Benchmark) -> None:
    counts = PhraseCounts(Decontaminate(benchmark))
    leaks = [f"Seite {n}. {OTHER}" for n in range(LEAST + 2)]
    counts.add(pa.array([*PAGES, *leaks, *PAGES], pa.large_string()))
    assert counts.texts == len(PAGES) + len(leaks)
    hashes, numbers = counts.table()
    assert set(numbers.tolist()) == {len(PAGES)}
    assert len(hashes) == 7  # of eleven words
    assert counts.common().hashes().tolist() == hashes.tolist()


def test_counts_of_parts_add_up_to_those_of_the_whole(benchmark: Benchmark) -> None:
    whole, sums = PhraseCounts(Decontaminate(benchmark)), PhraseCounts(Decontaminate(benchmark))
    whole.add(pa.array(PAGES, pa.large_string()))
    for part in (PAGES[:5], PAGES[5:]):
        counts = PhraseCounts(Decontaminate(benchmark))
        counts.add(pa.array(part, pa.large_string()))
        sums.add_counts(*counts.table(), counts.texts)
    assert sums.common() == whole.common() != Phrases(b"", 0)


def test_recipe_lets_no_common_phrase_count(tmp_path: Path, benchmark: Benchmark) -> None:
    write_lines(tmp_path / "in/a.jsonl", [{"text": text} for text in PAGES[:6]])
    write_lines(tmp_path / "in/b.jsonl", [{"text": text} for text in [*PAGES[6:], SAYING, OTHER]])
    pages = read_jsonl(tmp_path / "in", source="s")
    plain = decontaminate(pages, benchmark)
    fitted = decontaminate(pages, benchmark, common=fit_phrases(pages, benchmark), name="fitted")
    result = run_on(Outputs(plain=plain, fitted=fitted), tmp_path / "store", ShuffledRunner(1))
    assert [row["reason"] for row in ledger(result.outputs["plain"])] == ["contamination: leak"] * 2
    gone = [json.loads(row["evidence"])["items"] for row in ledger(result.outputs["fitted"])]
    assert gone == [{"items": {"leak": "2"}}]
    assert SAYING in texts(result.outputs["fitted"])


def test_file_of_phrases_is_read_back_and_another_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "phrases.bin"
    phrases = Phrases(b"".join(n.to_bytes(8, "little") for n in (3, 7)), 12)
    path.write_bytes(phrases.to_bytes())
    assert read_phrases(LocalFile(path)) == phrases
    for content in (b"", b"123", phrases.to_bytes() + (7).to_bytes(8, "little")):
        path.write_bytes(content)
        with pytest.raises(FittedError, match="holds no phrases"):
            read_phrases(LocalFile(path))


def test_fit_without_benchmarks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="needs the benchmarks"):
        fit_phrases(read_jsonl(tmp_path, source="s"))
