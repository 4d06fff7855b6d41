"""Regrouping through tasks: the rows of a plain group-by for any fan-in and levels; damage is found and named."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.committing.gathered import Receipts
from curate.exchange import LIMITS, Limits
from curate.receipts import read_receipt, shard_folder
from curate.regroup import Cursor, Exchange, Regrouped, regroup
from curate.running.engine import Engine
from curate.running.jobs import Item, TaskError, publish_files
from curate.running.journal import Journal
from curate.running.runners import LocalRunner
from curate.store import Store, StoreError
from tests.curate.corpus import ShuffledRunner, tree

SCHEMA = pa.schema([pa.field("key", pa.int64(), nullable=False), pa.field("note", pa.large_string())])
Rows = Sequence[tuple[int, int]]
"""(partition, key)"""


@dataclass(frozen=True)
class MapJob:
    """Publishes the rows of one input; without rows, no file."""

    exchange: Exchange
    inputs: Sequence[Rows]
    name: str = "map"

    @property
    def store(self) -> Store:
        return self.exchange.store

    def run(self, item: Item) -> int:
        rows = self.inputs[item.unit]
        if not rows:
            publish_files(self.store, item, self.name, {}, {})
            return 0
        notes = [f"{item.unit}.{place}" for place in range(len(rows))]
        batch = pa.RecordBatch.from_arrays(
            [pa.array([key for _, key in rows], pa.int64()), pa.array(notes)], ["key", "note"]
        )
        with self.exchange.collect() as collector:
            collector.add(batch.cast(SCHEMA), np.array([partition for partition, _ in rows], np.int64))
            publish_files(self.store, item, self.name, {self.exchange.file: collector.finish()}, {})
        return len(rows)


@contextmanager
def engine_on(folder: Path, runner: Any = None) -> Iterator[Engine]:
    store = Store(folder)
    journal = Journal(store)
    try:
        yield Engine(store, runner or LocalRunner(), journal)
    finally:
        journal.close()


def regrouped(
    folder: Path, inputs: Sequence[Rows], partitions: int, limits: Limits, runner: Any = None
) -> tuple[Regrouped, list[Receipts]]:
    with engine_on(folder, runner) as engine:
        exchange = Exchange(engine.store, "k" * 64, "rows", "rows.exchange", SCHEMA, ("key",), partitions, limits)
        items = [Item(f"{number:064x}", f"{number}", number) for number in range(len(inputs))]
        items = [replace(item, key=item.key[::-1]) for item in items]
        engine.receipts(MapJob(exchange, inputs), items)
        return regroup(engine, exchange, [item.key for item in items])


def by_definition(inputs: Sequence[Rows], partition: int) -> list[dict[str, Any]]:
    rows = [
        {"key": key, "note": f"{number}.{place}"}
        for number, given in enumerate(inputs)
        for place, (mine, key) in enumerate(given)
        if mine == partition
    ]
    return sorted(rows, key=lambda row: row["key"])


def drawn(inputs: int, partitions: int, seed: int = 1) -> list[Rows]:
    draw = random.Random(seed)
    return [
        [(draw.randrange(partitions), draw.randrange(8)) for _ in range(draw.choice([0, 1, 20]))] for _ in range(inputs)
    ]


@settings(max_examples=15)
@given(
    inputs=st.integers(0, 14),
    partitions=st.integers(1, 40),
    most=st.integers(2, 7),
    fan_in=st.integers(2, 4),
    memory=st.sampled_from([1, 1 << 20]),
    seed=st.integers(0, 99),
)
def test_partitions_have_the_rows_of_a_plain_group_by_whatever_the_levels(
    tmp_path_factory: pytest.TempPathFactory,
    inputs: int,
    partitions: int,
    most: int,
    fan_in: int,
    memory: int,
    seed: int,
) -> None:
    given_rows = drawn(inputs, partitions, seed)
    limits = Limits(most_partitions=most, block_bytes=40, fan_in=fan_in, memory=memory)
    found, _ = regrouped(tmp_path_factory.mktemp("x"), given_rows, partitions, limits)
    assert len(found.tasks) <= fan_in
    for partition in range(partitions):
        assert found.table(partition).to_pylist() == by_definition(given_rows, partition)


def test_more_partitions_than_a_level_has_are_reached_in_levels(tmp_path: Path) -> None:
    """At the limits of the format: 1,030 partitions are 515 of 2 each."""
    given_rows = drawn(3, 1030)
    found, inner = regrouped(tmp_path, given_rows, 1030, replace(LIMITS, memory=1 << 20))
    assert found.exchange.radices == (515, 2)
    assert [len(receipts) for receipts in inner] == [515]
    for partition in {part for rows in given_rows for part, _ in rows} | {0, 1029}:
        assert found.table(partition).to_pylist() == by_definition(given_rows, partition)


def test_files_are_merged_in_as_many_levels_as_needed(tmp_path: Path) -> None:
    given_rows = drawn(29, 2)
    found, inner = regrouped(tmp_path, given_rows, 2, replace(LIMITS, fan_in=3))
    assert [len(receipts) for receipts in inner] == [10, 3, 2]  # 29 files → 10 → 4 → 2; a group of one is its file
    assert len(found.tasks) == 2
    for partition in range(2):
        assert found.table(partition).to_pylist() == by_definition(given_rows, partition)


def test_every_file_is_the_same_in_any_order_of_tasks_and_when_run_again(tmp_path: Path) -> None:
    given_rows, limits = drawn(12, 30), Limits(most_partitions=4, block_bytes=40, fan_in=3, memory=100)
    trees = []
    for number, runner in enumerate((None, ShuffledRunner(1), ShuffledRunner(2))):
        regrouped(tmp_path / str(number), given_rows, 30, limits, runner)
        trees.append(tree(tmp_path / str(number)))
    assert trees[0] == trees[1] == trees[2]
    regrouped(tmp_path / "0", given_rows, 30, limits)
    assert tree(tmp_path / "0") == trees[0]


def test_one_key_with_all_rows_is_read_in_bounded_batches(tmp_path: Path) -> None:
    """`batches` respects the memory for a skewed key; `table` holds it whole."""
    given_rows = [[(0, 5)] * 2000 for _ in range(3)]
    limits = Limits(block_bytes=500, memory=6000)
    found, _ = regrouped(tmp_path, given_rows, 1, limits)
    sizes = [batch.nbytes for batch in found.batches(0)]
    assert sum(batch.num_rows for batch in found.batches(0)) == 6000
    assert max(sizes) <= limits.memory


@pytest.mark.parametrize("remedy", [False, True])
def test_flipped_byte_stops_the_reading_task_and_running_again_makes_the_file_again(
    tmp_path: Path, remedy: bool
) -> None:
    given_rows, limits = drawn(7, 3), replace(LIMITS, fan_in=3)
    found, _ = regrouped(tmp_path, given_rows, 3, limits)
    store, key = found.exchange.store, found.tasks[0]
    path = store.path(f"{shard_folder(key)}/rows.exchange")
    content = bytearray(path.read_bytes())
    content[20] ^= 1
    path.write_bytes(content)
    with pytest.raises(
        StoreError, match=f"{path} is damaged: the block of partition 0 at byte 8 .*: remove its folder"
    ):
        found.table(0)
    if remedy:
        for file in path.parent.iterdir():
            file.unlink()
        again, _ = regrouped(tmp_path, given_rows, 3, limits)
        assert again.table(0).to_pylist() == by_definition(given_rows, 0)


def test_file_of_other_rows_than_the_receipt_says_is_an_error(tmp_path: Path) -> None:
    """A file that is whole, but not the one that the receipt is for: the footer's digest tells."""
    found, _ = regrouped(tmp_path / "a", [[(0, 1)]], 1, LIMITS)
    other, _ = regrouped(tmp_path / "b", [[(0, 2)]], 1, LIMITS)
    name = f"{shard_folder(found.tasks[0])}/rows.exchange"
    found.exchange.store.path(name).write_bytes(other.exchange.store.path(name).read_bytes())
    with pytest.raises(StoreError, match="has another footer than its receipt says: remove its folder"):
        found.table(0)


def test_receipt_has_the_digest_of_the_footer(tmp_path: Path) -> None:
    found, _ = regrouped(tmp_path, [[(0, 1)], []], 1, LIMITS)
    full, empty = (read_receipt(found.exchange.store, key) for key in found.tasks)
    assert full is not None and full.files["rows.exchange"].rows == 1
    assert full.files["rows.exchange"].content is not None
    assert empty is not None and empty.files == {}


def test_missing_file_is_an_error_with_the_remedy(tmp_path: Path) -> None:
    found, _ = regrouped(tmp_path, [[(0, 1)]], 1, LIMITS)
    found.exchange.store.path(f"{shard_folder(found.tasks[0])}/rows.exchange").unlink()
    with pytest.raises(StoreError, match=r"rows\.exchange is missing: remove .* and run the recipe again"):
        found.table(0)


def test_merge_task_that_meets_damage_names_file_and_task(tmp_path: Path) -> None:
    given_rows, limits = drawn(7, 3), replace(LIMITS, fan_in=3)
    found, _ = regrouped(tmp_path, given_rows, 3, limits)
    store = found.exchange.store
    receipt = read_receipt(store, found.tasks[0])
    assert receipt is not None
    for file in store.path(shard_folder(found.tasks[0])).iterdir():
        file.unlink()
    source = next(key for key in receipt.unit["unit"] if store.exists(f"{shard_folder(key)}/rows.exchange"))
    path = store.path(f"{shard_folder(source)}/rows.exchange")
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(TaskError, match=r"rows: merge, group 0: StoreError: .*rows\.exchange is no exchange file"):
        regrouped(tmp_path, given_rows, 3, limits)


def test_cursor_gives_every_row_once_below_rising_bounds() -> None:
    pieces: list[list[int]] = [[1, 1, 4], [4, 9], [], [12]]
    batches = [pa.RecordBatch.from_pydict({"ref": pa.array(refs, pa.int64())}) for refs in pieces]
    cursor = Cursor(iter(batches), "ref", batches[0].schema)
    assert [cursor.below(bound).column("ref").to_pylist() for bound in (1, 4, 5, 5, 10, 99)] == [
        [],
        [1, 1],
        [4, 4],
        [],
        [9],
        [12],
    ]
