from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from blake3 import blake3

from benchmarks import dedup_corpora
from benchmarks.dedup_corpora import (
    CORPUS,
    LEAST,
    MOST,
    SCHEMA,
    cut_into_passages,
    passages,
    size_of,
    texts_of,
    thinned,
    with_words_replaced,
    write_speed_corpus,
    write_worlds,
)
from transforms.minhash import MinHash, band_keys
from transforms.segmentation import find_words


def some_text() -> pa.LargeStringArray:
    if not CORPUS.exists():
        pytest.skip(f"{CORPUS} is not there")
    return texts_of(CORPUS).slice(0, 300)


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return passages(some_text())


def counts(texts: list[str]) -> np.ndarray:
    return np.diff(find_words(pa.array(texts, pa.large_string())).documents)


def test_passages_are_whole_paragraphs_of_200_to_2000_words() -> None:
    text = some_text()
    found = cut_into_passages(text)
    assert len(found) > 500 and counts(found).min() >= LEAST and counts(found).max() <= MOST
    whole = "\0".join(text.to_pylist())
    assert all(passage in whole and passage == passage.rstrip("\n") for passage in found)


def test_passages_with_copies_are_the_same_texts_every_time(table: pa.Table) -> None:
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


def test_thinned_passages_keep_their_copies(table: pa.Table) -> None:
    few = thinned(table, 5)
    of = few.column("of").to_numpy()
    names = set(few.column("id").to_pylist())
    assert 0 < len(few) < len(table) / 3 and {f"passage {row}" for row in of[of >= 0].tolist()} <= names
    assert (of >= 0).sum() > 10


def test_worlds_repeat_alike_and_share_nothing(tmp_path: Path, table: pa.Table) -> None:
    documents, total = write_worlds(tmp_path / "worlds", table, 400_000, 2)
    worlds = [pq.read_table(path).column("text").combine_chunks() for path in sorted((tmp_path / "worlds").iterdir())]
    assert [len(world) for world in worlds] == [documents] * 2 and size_of(worlds[0]) == total == size_of(worlds[1])
    minhash = MinHash()
    keys = [band_keys(world, minhash) for world in worlds]
    alike = [(world[:, None] == world[None]).any(axis=2) for world in keys]
    assert (alike[0] == alike[1]).mean() > 0.999 and alike[0].sum() > documents
    assert not np.isin(keys[0], keys[1]).any()


def test_small_speed_corpus_repeats_as_the_whole_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: pa.Table
) -> None:
    page = pa.array(["The visible text of a page."], pa.large_string())
    monkeypatch.setattr(dedup_corpora, "visible_texts", lambda every: page)
    documents, total = write_speed_corpus(tmp_path / "speed.parquet", table, 400_000)
    found = pq.read_table(tmp_path / "speed.parquet")
    rounds = {name.partition("/")[0] for name in found.column("id").to_pylist()}
    assert len(found) == documents and total >= 400_000 and len(rounds) > 1
