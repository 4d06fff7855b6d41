"""Exchange files: rows come back by partition, in order, whatever their batches; a file cut short is an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate import exchange
from curate.exchange import MAGIC, partition_count, partition_of, read_footer, read_partition, write_exchange
from curate.store import StoreError

SCHEMA = pa.schema([("key", pa.int64()), ("text", pa.large_string()), ("tags", pa.list_(pa.uint64()))])


def table_of(keys: list[int]) -> pa.Table:
    rows = [{"key": key, "text": None if key % 3 else f"t{key}" * (key % 4), "tags": [key] * (key % 3)} for key in keys]
    return pa.Table.from_pylist(rows, SCHEMA)


def longs(values: object) -> Any:
    return np.array(values, np.int64)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(
    files=st.lists(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 4)), max_size=12), max_size=3),
    block=st.sampled_from([1, 3, 1000]),
)
def test_rows_come_back_by_partition_in_the_order_of_files_and_rows(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[tuple[int, int]]], block: int
) -> None:
    folder = tmp_path_factory.mktemp("exchange")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exchange, "BLOCK_ROWS", block)
        for number, rows in enumerate(files):
            table, partition = table_of([key for key, _ in rows]), longs([part for _, part in rows])
            assert write_exchange(folder / str(number), table, partition, 5) == len(rows)
    paths = [folder / str(number) for number in range(len(files))]
    for wanted in range(5):
        expected = table_of([key for rows in files for key, part in rows if part == wanted])
        found = read_partition(paths, wanted, SCHEMA)
        assert found.to_pylist() == expected.to_pylist()
        assert found.schema == SCHEMA


def test_bytes_of_a_file_do_not_depend_on_the_chunks_of_its_table(tmp_path: Path) -> None:
    keys, partition = list(range(200)), longs([n * 7 % 5 for n in range(200)])
    whole = table_of(keys)
    layouts = [
        whole,
        pa.concat_tables([table_of(keys[:3]), table_of(keys[3:90]), table_of(keys[90:])]),
        table_of([0, *keys]).slice(1),
        whole.replace_schema_metadata({"k": "v"}).replace_schema_metadata(None),
    ]
    contents = set()
    for number, layout in enumerate(layouts):
        write_exchange(tmp_path / str(number), layout, partition, 5)
        contents.add((tmp_path / str(number)).read_bytes())
    assert len(contents) == 1


def test_file_of_no_rows_has_a_footer(tmp_path: Path) -> None:
    assert write_exchange(tmp_path / "f", SCHEMA.empty_table(), longs([]), 3) == 0
    assert read_footer(tmp_path / "f") == (3, [])
    assert read_partition([tmp_path / "f"], 2, SCHEMA).num_rows == 0


def test_footer_tells_where_each_block_lies(tmp_path: Path) -> None:
    write_exchange(tmp_path / "f", table_of([1, 2, 3]), longs([2, 0, 2]), 4)
    partitions, blocks = read_footer(tmp_path / "f")
    assert partitions == 4
    assert [(block.partition, block.rows) for block in blocks] == [(0, 1), (2, 2)]
    assert blocks[0].offset == len(MAGIC)
    assert blocks[1].offset == blocks[0].offset + blocks[0].length


def test_file_cut_short_anywhere_is_an_error_that_names_it(tmp_path: Path) -> None:
    write_exchange(tmp_path / "f", table_of([1, 2, 3]), longs([0, 1, 0]), 2)
    content = (tmp_path / "f").read_bytes()
    for size in range(len(content)):
        (tmp_path / "cut").write_bytes(content[:size])
        with pytest.raises(StoreError, match=r"cut is no exchange file or is cut short: remove its shard folder"):
            read_footer(tmp_path / "cut")


@pytest.mark.parametrize("damage", [b"x" * 40, MAGIC + b"\xff" * 8 + MAGIC, MAGIC + (2).to_bytes(8, "little") + MAGIC])
def test_file_that_is_no_exchange_file_is_an_error(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "f").write_bytes(damage)
    with pytest.raises(StoreError, match="is no exchange file or is cut short"):
        read_footer(tmp_path / "f")


def test_block_that_is_damaged_is_an_error_that_names_its_place(tmp_path: Path) -> None:
    write_exchange(tmp_path / "f", table_of([1, 2, 3]), longs([0, 1, 0]), 2)
    content = bytearray((tmp_path / "f").read_bytes())
    block = read_footer(tmp_path / "f")[1][1]
    content[block.offset : block.offset + 8] = b"\xff" * 8
    (tmp_path / "f").write_bytes(content)
    assert read_partition([tmp_path / "f"], 0, SCHEMA).num_rows == 2
    with pytest.raises(StoreError, match=f"f is damaged at byte {block.offset} "):
        read_partition([tmp_path / "f"], 1, SCHEMA)


# --- partitions ------------------------------------------------------------------------------------------------------


def test_number_of_partitions_follows_from_bytes() -> None:
    assert [partition_count(n) for n in (0, 1, 64 << 20, (64 << 20) + 1, 1 << 50)] == [1, 1, 1, 2, 1024]


@given(values=st.lists(st.integers(0, 2**64 - 1), min_size=1), partitions=st.integers(1, 1024))
@settings(deadline=None, derandomize=True)
def test_partition_of_a_hash_is_its_place_among_equal_ranges(values: list[int], partitions: int) -> None:
    found = partition_of(np.array(values, np.uint64), partitions).tolist()
    assert found == [(value >> 32) * partitions >> 32 for value in values]
    assert all(0 <= part < partitions for part in found)


def test_partitions_of_many_hashes_are_about_equal() -> None:
    hashes = np.random.default_rng(1).integers(0, 2**64, 100_000, np.uint64)
    sizes = np.bincount(partition_of(hashes, 10), minlength=10)
    assert sizes.min() > 9_500 and sizes.max() < 10_500
