"""Measures that lie beside a shard are those of its texts, and nothing comes out otherwise because of them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from curate import Outputs, deduplicate, deduplicate_parts, read_jsonl
from curate.accounting import measured
from curate.accounting.measured import MEASURES, Measured, StoredMeasures
from curate.accounting.measures import Measures, measure
from curate.run import Result
from curate.running.jobs import TaskError
from curate.writer import write_parquet
from tests.curate.corpus import ledger, run_on, write_lines
from tests.transforms.test_duplicates import array, variants
from transforms.duplicates import text_digests
from transforms.minhash import MinHash


def run(folder: Path, root: Path) -> Result:
    """Run a recipe whose stages join small shards, drop and cut documents."""
    pages = read_jsonl(root, source="s")
    pages = deduplicate(pages, method=MinHash(bands=60, rows=2), prefer=("-length",), count="duplicates")
    return run_on(Outputs(deduplicate_parts(pages, unit="line", least=1)), folder)


def test_measures_beside_shards_change_no_content_and_no_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"{text}\nthe same line\n" for text in variants(60, 3)]
    for number in range(2):
        rows = [{"text": text} for text in ["", "é", *texts[number::2], texts[0]]]
        write_lines(tmp_path / "in" / f"{number}.jsonl", rows)
    plain = run(tmp_path / "plain", tmp_path / "in")
    monkeypatch.setattr(measured, "MEASURED_FROM", 1)
    beside = run(tmp_path / "beside", tmp_path / "in")
    for one, other in zip(plain.stages, beside.stages, strict=True):
        assert (one.manifest["content"], ledger(one)) == (other.manifest["content"], ledger(other))
        assert one.statistics == other.statistics or one.statistics["steps"] == other.statistics["steps"]
    assert not list(tmp_path.glob("plain/shards/*/measures.parquet"))
    files = list(tmp_path.glob("beside/shards/*/measures.parquet"))
    assert len(files) == len(list(tmp_path.glob("beside/shards/*/part.parquet"))) > 4
    for file in files:
        rows = pq.read_table(file.with_name("part.parquet"))
        expected = measure(rows.combine_chunks().to_batches()[0])
        found = pq.read_table(file, schema=MEASURES)
        assert found.column("digest").to_pylist() == expected.digests.to_pylist()
        assert found.column("characters").to_pylist() == expected.characters.tolist()


def test_damaged_measures_stop_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "MEASURED_FROM", 1)
    write_lines(tmp_path / "in" / "a.jsonl", [{"text": "a b c"}, {"text": "d e f"}])
    pages = read_jsonl(tmp_path / "in", source="s").keep("pages")
    run_on(Outputs(pages), tmp_path / "store")
    (file,) = tmp_path.glob("store/shards/*/measures.parquet")
    content = file.read_bytes()
    file.chmod(0o644)
    file.write_bytes(content[:10] + b"x" + content[11:])
    with pytest.raises(TaskError, match=re.escape("measures.parquet")):
        run_on(Outputs(deduplicate(pages)), tmp_path / "store")


def test_measures_are_held_back_until_texts_are_long_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "MEASURED_FROM", 5)
    found, three = Measured(), measure_of("aaa")
    assert list(found.add(three)) == []
    assert [rows.num_rows for rows in found.add(three)] == [1, 1]
    assert [rows.num_rows for rows in found.add(three)] == [1]


def measure_of(*texts: str) -> Measures:
    return Measures(np.array([len(text) for text in texts]), text_digests(array(texts)))


@pytest.mark.parametrize("sizes", [(5,), (1, 4), (2, 2, 1), (0, 5)])
def test_stored_measures_are_read_in_any_pieces(tmp_path: Path, sizes: tuple[int, ...]) -> None:
    all_of = measure_of("a", "bb", "", "dddd", "e")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measured, "MEASURED_FROM", 0)
        write_parquet(tmp_path / "m", list(Measured().add(all_of)), MEASURES)
    with StoredMeasures(tmp_path / "m") as stored:
        pieces = [stored.take(size) for size in sizes]
        with pytest.raises(ValueError, match="1 rows too early"):
            stored.take(1)
    assert [n for piece in pieces for n in piece.characters.tolist()] == all_of.characters.tolist()
    assert [d for piece in pieces for d in piece.digests.to_pylist()] == all_of.digests.to_pylist()
