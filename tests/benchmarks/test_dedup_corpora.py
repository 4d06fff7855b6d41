from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from blake3 import blake3

from benchmarks.dedup_corpora import (
    CORPUS,
    LEAST,
    MOST,
    SCHEMA,
    cut_into_passages,
    passages,
    texts_of,
    with_words_replaced,
)
from benchmarks.dedup_passages import Clock, decide, quality
from transforms.minhash import MinHash
from transforms.segmentation import find_words


def some_text() -> pa.LargeStringArray:
    if not CORPUS.exists():
        pytest.skip(f"{CORPUS} is not there")
    return texts_of(CORPUS).slice(0, 300)


def counts(texts: list[str]) -> np.ndarray:
    return np.diff(find_words(pa.array(texts, pa.large_string())).documents)


def test_passages_are_whole_paragraphs_of_200_to_2000_words() -> None:
    text = some_text()
    found = cut_into_passages(text)
    assert len(found) > 500 and counts(found).min() >= LEAST and counts(found).max() <= MOST
    whole = "\0".join(text.to_pylist())
    assert all(passage in whole and passage == passage.rstrip("\n") for passage in found)


def test_passages_with_copies_are_the_same_texts_every_time() -> None:
    table = passages(some_text())
    assert table.schema == SCHEMA and table.equals(passages(some_text()))
    content = "\0".join(table.column("text").to_pylist()).encode()
    assert blake3(content).hexdigest()[:16] == "84c41c8fa214f81e"
    of = table.column("of").to_numpy()
    originals = int((of < 0).sum())
    assert (of[:originals] == -1).all() and (of[originals:] >= 0).all() and (of < originals).all()


def test_words_are_replaced_at_the_rate_and_nothing_else() -> None:
    text = pa.array(["größe, word " * 5000, "same"], pa.large_string())
    made = with_words_replaced(text, np.array([0.1, 0.0]), 7).to_pylist()
    old, new = (find_words(pa.array([each], pa.large_string())).strings()[0] for each in (text[0].as_py(), made[0]))
    assert len(old) == len(new) and abs(sum(x != y for x, y in zip(old, new, strict=True)) - 1000) < 100
    assert made[1] == "same" and len(made[0].encode()) == len(text[0].as_py().encode())


def test_verdict_on_families_is_the_sequential_rule() -> None:
    words = [f"w{i}" for i in range(300)]
    texts = [" ".join(words), " ".join(words[:-5]), " ".join(words), "other " * 9, " ".join(words[:200])]
    text = pa.array(texts, pa.large_string())
    verdict = decide(
        iter([text.slice(0, 2), text.slice(2)]), lambda rows: iter([text.take(pa.array(rows))]), MinHash(), Clock()
    )
    assert verdict.exact.tolist() == [-1, -1, 0, -1, -1] and verdict.near.tolist() == [-1, 0, -1, -1, -1]


def test_small_quality_run_holds() -> None:
    some_text()
    checks = quality("small", MinHash())
    assert all(holds for _, _, holds in checks.values()), checks
