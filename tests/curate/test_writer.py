"""The same rows give the same Parquet bytes, however they came."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.content_digests import content_digest
from curate.digests import digest_file
from curate.writer import cut_rows, row_bytes, write_parquet

SCHEMA = pa.schema(
    [
        pa.field("id", pa.binary(16), nullable=False),
        pa.field("text", pa.large_string(), nullable=False),
        pa.field("n", pa.int64()),
        pa.field("tags", pa.list_(pa.large_string())),
        pa.field("at", pa.struct([("uri", pa.large_string()), ("offset", pa.int64())])),
    ]
)


def rows_of(texts: Sequence[str]) -> pa.RecordBatch:
    rows = [
        {
            "id": n.to_bytes(16, "big"),
            "text": text,
            "n": None if n % 3 == 0 else n,
            "tags": None if n % 4 == 0 else [text] * (n % 3),
            "at": None if n % 5 == 0 else {"uri": "u" * (n % 7), "offset": n},
        }
        for n, text in enumerate(texts)
    ]
    return pa.RecordBatch.from_pylist(rows, SCHEMA)


def parts_of(batch: pa.RecordBatch, cuts: Sequence[int]) -> list[pa.RecordBatch]:
    edges = [0, *sorted(cuts), batch.num_rows]
    return [batch.slice(start, stop - start) for start, stop in itertools.pairwise(edges)]


@settings(max_examples=60)
@given(
    texts=st.lists(st.text("ab\u00e4", max_size=9), max_size=12),
    limit=st.sampled_from([1, 200, 500, 10**9]),
    data=st.data(),
)
def test_rows_cut_into_groups_do_not_depend_on_batches(texts: list[str], limit: int, data: Any) -> None:
    batch = rows_of(texts)
    expected = [group.to_pylist() for group in cut_rows([batch], limit)]
    cuts = data.draw(st.lists(st.integers(0, len(texts)), max_size=5))
    assert [group.to_pylist() for group in cut_rows(parts_of(batch, cuts), limit)] == expected
    assert [row for group in expected for row in group] == batch.to_pylist()
    for group in cut_rows([batch], limit):
        sizes = row_bytes(group)
        assert sizes[:-1].sum() < limit, "a group closes with the row that fills it"


def test_logical_bytes_of_a_row_are_widths_and_lengths() -> None:
    batch = pa.RecordBatch.from_pylist(
        [{"id": b"x" * 16, "text": "\u00e4b", "n": 1, "tags": ["abc", None], "at": {"uri": "u", "offset": 2}}], SCHEMA
    )
    text, numbers, tags, at = 3 + 8, 8, 8 + (3 + 8) + (0 + 8), (1 + 8) + 8
    assert row_bytes(batch).tolist() == [16 + text + numbers + tags + at]
    assert row_bytes(pa.RecordBatch.from_pydict({"t": pa.array([True, None])})).tolist() == [1, 1]


def test_parquet_bytes_do_not_depend_on_batches_or_metadata(tmp_path: Path) -> None:
    batch = rows_of([f"text {n} " * (n % 9) for n in range(150)])
    marked = batch.replace_schema_metadata({"pandas": "{}"})
    odd = pa.RecordBatch.from_arrays(
        [pa.concat_arrays([a.slice(0, 70), a.slice(70)]) for a in batch.columns], schema=SCHEMA
    )
    layouts = [[batch], parts_of(batch, range(150)), parts_of(batch, [7, 7, 80]), [marked], [odd]]
    written = []
    for number, layout in enumerate(layouts):
        path = tmp_path / str(number)
        schema = marked.schema if layout[0] is marked else SCHEMA
        written.append((write_parquet(path, layout, schema, 3000), digest_file(path)))
    assert all(found == written[0] for found in written)
    file = pq.ParquetFile(tmp_path / "0")
    assert file.num_row_groups > 5
    assert written[0][0].rows == file.metadata.num_rows == 150
    assert written[0][0].bytes == int(row_bytes(batch).sum())
    assert written[0][0].content == content_digest([batch], SCHEMA)
    assert file.read().to_batches()[0].schema.equals(SCHEMA)


def test_parquet_file_has_the_layout_of_the_design(tmp_path: Path) -> None:
    write_parquet(tmp_path / "f", [rows_of(["same"] * 50)], SCHEMA)
    metadata = pq.ParquetFile(tmp_path / "f").metadata
    assert metadata.num_row_groups == 1
    for number in range(metadata.num_columns):
        column = metadata.row_group(0).column(number)
        assert column.compression == "ZSTD"
        assert not any("DICTIONARY" in encoding for encoding in column.encodings)
    assert set(metadata.metadata or {}) == {b"ARROW:schema"}


def test_dataset_of_no_rows_is_a_file_of_its_schema(tmp_path: Path) -> None:
    written = write_parquet(tmp_path / "f", [], SCHEMA)
    assert (written.rows, written.bytes, written.content) == (0, 0, content_digest([], SCHEMA))
    assert pq.read_table(tmp_path / "f").schema == SCHEMA


def test_batch_with_another_name_of_a_column_is_refused(tmp_path: Path) -> None:
    other = rows_of(["a"]).rename_columns(["id", "content", "n", "tags", "at"])
    with pytest.raises(pa.ArrowInvalid, match="Schema"):
        write_parquet(tmp_path / "f", [other], SCHEMA)


def test_source_of_rows_that_raises_lets_the_error_through(tmp_path: Path) -> None:
    def batches() -> Any:
        yield rows_of(["a"])
        raise OSError("disk on fire")

    with pytest.raises(OSError, match="disk on fire"):
        write_parquet(tmp_path / "f", batches(), SCHEMA)


def test_long_row_has_a_group_of_its_own() -> None:
    groups = list(cut_rows([rows_of(["a", "b" * 1000, "c", "d"])], 500))
    assert [group.num_rows for group in groups] == [2, 2]
    assert [int(row_bytes(group).sum()) >= 500 for group in groups] == [True, False]
    assert np.array_equal(row_bytes(groups[0]), row_bytes(rows_of(["a", "b" * 1000])))
