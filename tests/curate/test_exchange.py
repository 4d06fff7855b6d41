"""Exchange files: the same bytes and the rows of a plain group-by, whatever the batches, memory and fan-in."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.exchange import LIMITS, ExchangeFile, ExchangeWriter, Limits, Shape, merged, partition_of, write_merged
from curate.store import Store, StoreError

SCHEMA = pa.schema(
    [
        pa.field("number", pa.int64()),
        pa.field("name", pa.large_binary(), nullable=False),
        pa.field("text", pa.large_string()),
        pa.field("score", pa.int64()),
        pa.field("tags", pa.large_list(pa.uint16())),
        pa.field("where", pa.struct([pa.field("uri", pa.large_string()), pa.field("row", pa.int32())])),
    ]
)
KEY = ("number", "name")
SMALL = replace(LIMITS, block_bytes=60, fan_in=3, memory=1)
Row = tuple[int, int, int]
"""(partition, key, what tells rows with one key apart)"""


def batch_of(rows: Sequence[Row]) -> pa.RecordBatch:
    values = [
        {
            "number": key - 3,
            "name": b"n" * (key % 3),
            "text": None if tag % 3 == 0 else f"t{tag}",
            "score": None if tag % 2 else tag,
            "tags": [tag] * (tag % 4),
            "where": None if tag % 5 == 0 else {"uri": f"u{tag}", "row": tag},
        }
        for _, key, tag in rows
    ]
    return pa.RecordBatch.from_pylist(values, SCHEMA)


def write(folder: Path, name: str, batches: Sequence[Sequence[Row]], shape: Shape, limits: Limits) -> bytes:
    store = Store(folder / "store")
    with ExchangeWriter(folder / name, shape, limits, store.spool) as writer:
        for rows in batches:
            writer.add(batch_of(rows), np.array([partition for partition, _, _ in rows], np.int64))
        assert writer.finish().rows == sum(map(len, batches))
    assert not list((folder / "store").rglob("*.*")) and not list((folder / "store" / "spool").glob("*"))
    return (folder / name).read_bytes()


def read(folder: Path, names: Sequence[str], partition: int, shape: Shape, memory: int) -> list[dict[str, Any]]:
    with ExitStack() as stack:
        files = [ExchangeFile(stack.enter_context((folder / name).open("rb")), name, shape) for name in names]
        return [row for batch in merged(files, partition, memory) for row in batch.to_pylist()]


def cut(rows: Sequence[Row], draw: random.Random) -> list[Sequence[Row]]:
    edges = sorted({0, len(rows), *(draw.randint(0, len(rows)) for _ in range(draw.randint(0, 6)))})
    return [rows[first:last] for first, last in pairwise(edges)]


def by_definition(files: Sequence[Sequence[Row]], partition: int) -> list[dict[str, Any]]:
    """Return the rows of a partition as a plain group-by has them: stable by key, in the order of files and rows."""
    mine = [row for rows in files for row in rows if row[0] == partition]
    return batch_of(sorted(mine, key=lambda row: (row[1] - 3, b"n" * (row[1] % 3)))).to_pylist()


ROWS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6), st.integers(0, 99)), max_size=60)


@settings(max_examples=60)
@given(
    files=st.lists(ROWS, max_size=5),
    block=st.sampled_from([1, 90, 1 << 20]),
    fan_in=st.integers(2, 5),
    seed=st.integers(0, 99),
)
def test_files_have_the_same_bytes_and_the_rows_of_a_plain_group_by(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[Row]], block: int, fan_in: int, seed: int
) -> None:
    folder, draw, shape = tmp_path_factory.mktemp("x"), random.Random(seed), Shape(SCHEMA, KEY, 5)
    limits = replace(LIMITS, block_bytes=block, fan_in=fan_in)
    for number, rows in enumerate(files):
        whole = write(folder, str(number), [rows], shape, limits)
        for memory in (1, 2000):
            again = write(folder, "again", cut(rows, draw), shape, replace(limits, memory=memory))
            assert again == whole
    names = [str(number) for number in range(len(files))]
    for partition in range(5):
        expected = by_definition(files, partition)
        for memory in (1, 3000, 1 << 20):
            assert read(folder, names, partition, shape, memory) == expected


@settings(max_examples=30)
@given(files=st.lists(ROWS, min_size=1, max_size=6), seed=st.integers(0, 99))
def test_merged_file_has_the_rows_of_its_files_whatever_the_memory(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[Row]], seed: int
) -> None:
    folder, shape = tmp_path_factory.mktemp("x"), Shape(SCHEMA, KEY, 5)
    names = [str(number) for number in range(len(files))]
    for name, rows in zip(names, files, strict=True):
        write(folder, name, [rows], shape, SMALL)
    contents = set()
    for memory in (1, 500, 1 << 20):
        opened = [ExchangeFile((folder / name).open("rb"), name, shape) for name in names]
        write_merged(folder / "merged", shape, replace(SMALL, memory=memory), opened)
        contents.add((folder / "merged").read_bytes())
        for file in opened:
            file.close()
    assert len(contents) == 1
    for partition in range(5):
        assert read(folder, ["merged"], partition, shape, 1) == by_definition(files, partition)


def test_one_key_with_all_rows_comes_in_the_order_of_arrival(tmp_path: Path) -> None:
    shape = Shape(SCHEMA, KEY, 3)
    files = [[(1, 2, tag) for tag in range(first, first + 200)] for first in (0, 1000, 500)]
    for number, rows in enumerate(files):
        write(tmp_path, str(number), cut(rows, random.Random(number)), shape, SMALL)
    found = read(tmp_path, ["0", "1", "2"], 1, shape, 1)
    assert found == by_definition(files, 1) and len(found) == 600
    assert read(tmp_path, ["0", "1", "2"], 0, shape, 1) == read(tmp_path, ["0", "1", "2"], 2, shape, 1) == []


def test_no_files_and_files_without_rows_have_empty_partitions(tmp_path: Path) -> None:
    shape = Shape(SCHEMA, KEY, 3)
    assert read(tmp_path, [], 0, shape, 1) == []
    write(tmp_path, "f", [], shape, SMALL)
    write(tmp_path, "g", [[], []], shape, SMALL)
    assert read(tmp_path, ["f", "g"], 2, shape, 1) == []


def test_blocks_are_bounded_in_bytes_also_of_long_lists(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("key", pa.uint64()), pa.field("tokens", pa.large_list(pa.uint16()))])
    shape = Shape(schema, ("key",), 1)
    rows = pa.RecordBatch.from_pylist([{"key": n, "tokens": [n] * 500} for n in range(300)], schema)
    with ExchangeWriter(tmp_path / "f", shape, replace(LIMITS, block_bytes=10_000), Store(tmp_path).spool) as writer:
        writer.add(rows, np.zeros(300, np.int64))
        writer.finish()
    with (tmp_path / "f").open("rb") as content:
        blocks = ExchangeFile(content, "f", shape).blocks(0)
        assert len(blocks) == 30 and all(block.bytes < 12_000 for block in blocks)


def test_bytes_do_not_depend_on_chunks_or_on_what_lies_under_nulls(tmp_path: Path) -> None:
    shape = Shape(pa.schema([pa.field("key", pa.int64()), pa.field("score", pa.int64())]), ("key",), 2)
    keys = np.array([5, 1, 9, 3], np.int64)
    valid = pa.py_buffer(bytes([0b0101]))
    contents = set()
    for garbage in (0, 7):
        scores = np.array([4, garbage, 6, garbage], np.int64)
        array = pa.Array.from_buffers(pa.int64(), 4, [valid, pa.py_buffer(scores.tobytes())], 2)
        rows = pa.RecordBatch.from_arrays([pa.array(keys), array], schema=shape.schema)
        for pieces in ([rows], [rows.slice(0, 1), rows.slice(1)]):
            with ExchangeWriter(tmp_path / "f", shape, LIMITS, Store(tmp_path).spool) as writer:
                for piece in pieces:
                    writer.add(piece, np.zeros(len(piece), np.int64))
                writer.finish()
            contents.add((tmp_path / "f").read_bytes())
    assert len(contents) == 1


def test_null_in_a_key_is_refused(tmp_path: Path) -> None:
    rows = pa.RecordBatch.from_pylist([{"number": None, "name": b""}], SCHEMA)
    with ExchangeWriter(tmp_path / "f", Shape(SCHEMA, KEY, 2), LIMITS, Store(tmp_path).spool) as writer:
        writer.add(rows, np.zeros(1, np.int64))
        with pytest.raises(ValueError, match="key column 'number' has nulls"):
            writer.finish()


def test_partition_that_there_is_not_is_refused(tmp_path: Path) -> None:
    with ExchangeWriter(tmp_path / "f", Shape(SCHEMA, KEY, 2), LIMITS, Store(tmp_path).spool) as writer:
        for partition in (-1, 2):
            with pytest.raises(ValueError, match="1 rows go to 1 of 2 partitions"):
                writer.add(batch_of([(0, 1, 2)]), np.array([partition]))


# --- damage ----------------------------------------------------------------------------------------------------------


def test_every_flipped_byte_is_an_error_that_names_the_file_and_the_remedy(tmp_path: Path) -> None:
    shape = Shape(SCHEMA, KEY, 2)
    store = Store(tmp_path)
    with ExchangeWriter(tmp_path / "f", shape, SMALL, store.spool) as writer:
        writer.add(batch_of([(0, 1, 2), (1, 2, 3), (1, 3, 4)]), np.array([0, 1, 1]))
        digest = writer.finish().digest
    content = (tmp_path / "f").read_bytes()
    for place in range(8, len(content)):  # the first 8 bytes say what the file is; nothing reads them
        (tmp_path / "g").write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        with (tmp_path / "g").open("rb") as damaged, pytest.raises(StoreError, match=r"^here .*remove its folder"):
            file = ExchangeFile(damaged, "here", shape, digest)
            for partition in range(2):
                list(merged([file], partition, 1))


def test_damaged_block_is_named_by_partition_and_place_and_the_others_are_read(tmp_path: Path) -> None:
    shape = Shape(SCHEMA, KEY, 2)
    write(tmp_path, "f", [[(0, 1, 2), (1, 2, 3)]], shape, SMALL)
    with (tmp_path / "f").open("r+b") as content:
        (block,) = ExchangeFile(content, "f", shape).blocks(1)
        content.seek(block.offset)
        content.write(b"\xff" * 4)
    assert len(read(tmp_path, ["f"], 0, shape, 1)) == 1
    with pytest.raises(StoreError, match=f"f is damaged: the block of partition 1 at byte {block.offset} is not"):
        read(tmp_path, ["f"], 1, shape, 1)


def test_file_cut_short_anywhere_is_an_error(tmp_path: Path) -> None:
    shape = Shape(SCHEMA, KEY, 2)
    content = write(tmp_path, "f", [[(0, 1, 2), (1, 2, 3)]], shape, SMALL)
    for size in range(0, len(content), 7):
        (tmp_path / "cut").write_bytes(content[:size])
        with pytest.raises(StoreError, match="cut is no exchange file of this version, or is cut short"):
            read(tmp_path, ["cut"], 0, shape, 1)


def test_file_of_other_columns_or_partitions_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, "f", [[(0, 1, 2)]], Shape(SCHEMA, KEY, 2), SMALL)
    for other in (Shape(SCHEMA, KEY, 3), Shape(SCHEMA, KEY[:1], 2), Shape(pa.schema([SCHEMA[0], SCHEMA[1]]), KEY, 2)):
        with pytest.raises(StoreError, match="asked for was"):
            read(tmp_path, ["f"], 0, other, 1)


# --- partitions and groups -------------------------------------------------------------------------------------------


def test_number_of_partitions_follows_from_bytes() -> None:
    assert [LIMITS.partitions(n) for n in (0, 1, 64 << 20, (64 << 20) + 1, 1 << 40)] == [1, 1, 1, 2, 1 << 14]


@given(partitions=st.integers(1, 5000), most=st.integers(2, 9))
def test_levels_reach_all_partitions_with_few_per_level(partitions: int, most: int) -> None:
    radices = replace(LIMITS, most_partitions=most).radices(partitions)
    assert all(1 <= radix <= most for radix in radices)
    assert np.prod(radices) >= partitions
    assert len(radices) == 1 or np.prod(radices[1:]) < partitions


@given(files=st.integers(0, 9000), fan_in=st.integers(2, 64))
def test_groups_hold_every_file_once_in_order(files: int, fan_in: int) -> None:
    limits, levels = replace(LIMITS, fan_in=fan_in), 0
    while groups := limits.groups(files):
        assert [n for group in groups for n in group] == list(range(files))
        assert all(1 <= len(group) <= fan_in for group in groups)
        files, levels = len(groups), levels + 1
    assert files <= fan_in and levels <= 14


@given(values=st.lists(st.integers(0, 2**64 - 1), min_size=1), partitions=st.integers(1, 1024))
def test_partition_of_a_hash_is_its_place_among_equal_ranges(values: list[int], partitions: int) -> None:
    found = partition_of(np.array(values, np.uint64), partitions).tolist()
    assert found == [(value >> 32) * partitions >> 32 for value in values]
    assert all(0 <= part < partitions for part in found)


def test_partitions_of_many_hashes_are_about_equal() -> None:
    hashes = np.random.default_rng(1).integers(0, 2**64, 100_000, np.uint64)
    sizes = np.bincount(partition_of(hashes, 10), minlength=10)
    assert sizes.min() > 9_500 and sizes.max() < 10_500
