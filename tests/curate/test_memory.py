"""What a task takes stays below what it declares, and does not grow with the size of a document or a shard.

Each case runs in a process of its own; contents compress well, so that large inputs are small files.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from tests.curate import memory_child

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]

MB = 1_000_000
LIMIT = 4 * MB
TEXT = pa.schema([("text", pa.large_string())])


def taken(format_: str, work: Path, step: str = "keeps", limit: int = LIMIT) -> dict[str, int]:
    """Return what the child says of the files in `work`/in."""
    given = [format_, str(work / "in"), str(limit), step, str(work / "store")]
    done = subprocess.run([sys.executable, memory_child.__file__, *given], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, int] = json.loads(done.stdout)
    return found


def parquet_writer(work: Path) -> pq.ParquetWriter:
    (work / "in").mkdir(parents=True)
    return pq.ParquetWriter(work / "in" / "a.parquet", TEXT, compression="zstd", use_dictionary=False)


def batches(total: int, length: int) -> Iterator[pa.RecordBatch]:
    """Yield texts of `length` bytes, `total` together."""
    base, each = "abcdefghijklmnopqrstuvwxyz" * (length // 26), max(1, 10 * MB // length)
    for first in range(0, total // length, each):
        texts = [f"{n} {base}" for n in range(first, min(first + each, total // length))]
        yield pa.record_batch([pa.array(texts, pa.large_string())], schema=TEXT)


def write_parquet(work: Path, total: int, length: int) -> None:
    with parquet_writer(work) as writer:
        for batch in batches(total, length):
            writer.write_batch(batch)


def test_shard_three_times_as_large_takes_no_more(tmp_path: Path) -> None:
    peaks = []
    for total in (150 * MB, 450 * MB):
        write_parquet(tmp_path / str(total), total, 30_000)
        found = taken("parquet", tmp_path / str(total))
        assert found["rows"] == total // 30_000
        assert found["peak"] < found["declared"]
        peaks.append(found["peak"])
    assert peaks[1] < peaks[0] + 48 * MB


def test_row_group_of_many_hundred_megabytes_is_read_page_by_page(tmp_path: Path) -> None:
    table = pa.Table.from_batches(list(batches(400 * MB, 20_000)), TEXT)
    (tmp_path / "in").mkdir()
    pq.write_table(
        table, tmp_path / "in" / "a.parquet", row_group_size=table.num_rows, compression="zstd", use_dictionary=False
    )
    found = taken("parquet", tmp_path)
    assert pq.read_metadata(tmp_path / "in" / "a.parquet").num_row_groups == 1
    assert found["rows"] == table.num_rows
    assert found["peak"] < found["declared"]


def test_shard_of_one_row_of_300_megabytes_is_refused_without_being_decoded(tmp_path: Path) -> None:
    with parquet_writer(tmp_path) as writer:
        writer.write_batch(pa.record_batch([pa.array(["x" * 300 * MB], pa.large_string())], schema=TEXT))
    found = taken("parquet", tmp_path)
    assert found["rows"] == 0
    assert found["peak"] < 100 * MB
    assert ledger(tmp_path) == [("record too large", 0, 1, f'{{"detail":"more than {LIMIT} bytes"}}')]


def test_line_of_300_megabytes_is_refused_with_its_place_and_its_neighbours_are_read(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    first, size = b'{"text":"a"}\n', 300 * MB
    packed = zstandard.ZstdCompressor().compressobj()
    with (tmp_path / "in" / "a.jsonl.zst").open("wb") as file:
        file.write(packed.compress(first))
        for _ in range(size // MB):
            file.write(packed.compress(b"x" * MB))
        file.write(packed.compress(b'\n{"text":"b"}\n') + packed.flush())
    found = taken("jsonl", tmp_path)
    assert found["rows"] == 2
    assert found["peak"] < found["declared"]
    evidence = f'{{"detail":"{size + 1} bytes"}}'
    assert ledger(tmp_path) == [("record too large", len(first), size + 1, evidence)]


def test_documents_near_the_limit_take_what_is_declared_for_them(tmp_path: Path) -> None:
    limit = 24 * MB
    write_parquet(tmp_path, 10 * (limit - 100), limit - 100)
    found = taken("parquet", tmp_path, limit=limit)
    assert found["rows"] == 10
    assert found["peak"] < found["declared"]


def test_ledger_of_a_shard_that_drops_everything_is_not_held(tmp_path: Path) -> None:
    write_parquet(tmp_path, 60 * MB, 260)
    found = taken("parquet", tmp_path, "drops")
    assert found["rows"] == 0
    assert found["peak"] < found["declared"]
    assert len(ledger(tmp_path)) == 60 * MB // 260


def ledger(work: Path) -> list[tuple[Any, ...]]:
    """Return reason, offset, length and evidence of each row of the ledger of the one shard."""
    (path,) = (work / "store").glob("shards/*/dropped.parquet")
    rows = pq.read_table(path, columns=["reason", "origin", "evidence"]).to_pylist()
    return [(row["reason"], row["origin"]["offset"], row["origin"]["length"], row["evidence"]) for row in rows]
