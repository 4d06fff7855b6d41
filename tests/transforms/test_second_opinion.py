"""Items told in other words: tags by vectors, an embedder of one's own, and nothing dropped."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

from tests.transforms.contamination_cases import HOST, ITEMS, write_benchmark
from transforms.contamination import Benchmark
from transforms.embedding import HashedTfidf
from transforms.second_opinion import RESEMBLES, SCALES, SecondOpinion

GERMAN = {"warum": "why", "kühlen": "cool", "glasbläser": "glassblowers", "vase": "vase", "ofen": "oven"}
QUESTION = "Why do glassblowers cool a vase overnight within an oven?"
TRANSLATED = "Warum kühlen Glasbläser Vase Ofen?"


@dataclass(frozen=True)
class Bilingual:
    """Knows five words of two languages."""

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()
    dimension: ClassVar[int] = 5

    def embed(self, texts: pa.LargeStringArray) -> Any:
        words = [text.lower().replace("?", " ").split() for text in texts.to_pylist()]
        known = list(GERMAN.items())
        return np.array([[float(g in some or e in some) for g, e in known] for some in words], np.float32).reshape(
            -1, 5
        )


def rows(texts: list[str]) -> pa.RecordBatch:
    ids = pa.array([bytes([n]) * 16 for n in range(len(texts))], pa.binary(16))
    return pa.RecordBatch.from_arrays([ids, pa.array(texts, pa.large_string())], names=["id", "text"])


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory: pytest.TempPathFactory) -> Benchmark:
    return write_benchmark(tmp_path_factory.mktemp("benchmark"))


def test_words_in_another_order_are_tagged_with_item_and_place(benchmark: Benchmark) -> None:
    question = str(ITEMS[0]["question"])
    one, other = question.split("If it")
    turned = f"If it{other} {one}"
    text = HOST * 3 + turned + HOST * 3
    outcome = SecondOpinion(benchmark, similarity="0.7").apply(rows([HOST, text, ""]))
    assert outcome.kept.num_rows == 3
    assert outcome.dropped.num_rows == outcome.edits.num_rows == 0
    tags = outcome.kept.column("resembles").to_pylist()
    assert tags[0] is tags[2] is None
    (found, *_) = json.loads(tags[1])["items"]
    assert (found["benchmark"], found["item"]) == ("made-up", 0)
    assert 7_000 <= found["cosine"][0] <= 10_000
    start, end = found["span"]
    assert len(HOST) * 2 < start < len(HOST) * 3 + len(turned) < end + len(HOST)


def test_translated_item_is_tagged_by_an_embedder_that_knows_both_languages(tmp_path: Path) -> None:
    benchmark = write_benchmark(tmp_path, [{"question": QUESTION}])
    texts = rows([TRANSLATED, "Warum regnet es?", HOST])
    tags = SecondOpinion(benchmark, Bilingual(), "0.9").apply(texts).kept.column("resembles").to_pylist()
    assert [tag is not None for tag in tags] == [True, False, False]
    assert json.loads(tags[0])["items"][0]["cosine"] == [10_000, 10_000]
    assert SecondOpinion(benchmark).apply(texts).kept.column("resembles").null_count == 3


def test_outcome_does_not_depend_on_the_batch(benchmark: Benchmark) -> None:
    opinion = SecondOpinion(benchmark, similarity="0.5")
    texts = [HOST + str(item.get("question")) for item in ITEMS] + ["", "x", HOST * 20]
    whole = opinion.apply(rows(texts)).kept.column("resembles").to_pylist()
    alone = [opinion.apply(rows([text])).kept.column("resembles")[0].as_py() for text in texts]
    assert whole == alone
    assert sum(tag is not None for tag in whole) > 3
    opinion.ready()


def test_item_longer_than_the_last_scale_is_compared_by_its_first_words(tmp_path: Path) -> None:
    text = " ".join(f"word{n}" for n in range(SCALES[-1] * 2))
    benchmark = write_benchmark(tmp_path, [{"question": text}])
    (tag,) = SecondOpinion(benchmark, similarity=1).apply(rows([text])).kept.column("resembles").to_pylist()
    assert json.loads(tag)["items"][0]["span"] == [0, len(" ".join(f"word{n}" for n in range(SCALES[-1])))]


def test_arguments_out_of_range_are_refused(benchmark: Benchmark) -> None:
    for wrong in ({"similarity": 0}, {"similarity": "1.1"}, {"embedder": HashedTfidf}, {"benchmarks": ()}):
        with pytest.raises(ValueError, match="SecondOpinion"):
            SecondOpinion(**{"benchmarks": benchmark, **wrong})  # type: ignore[arg-type]
    assert SecondOpinion(benchmark).output_schema(rows([]).schema).field("resembles") == RESEMBLES
