"""Regrouping rows between map tasks and reduce tasks: the choreography of exchange files.

    map      per input       one exchange file each, written by whoever has the rows (`Exchange.collect`)
    merge    per group       `Limits.fan_in` files into one, in as many levels as needed: a task opens few files
    split    per partition   into partitions of partitions, level by level, where there are more than a level has
    reduce   per partition   its rows in order of the key (`Regrouped.batches`)

Merge and split are tasks like all others, committed with a receipt; how many there are follows from numbers of inputs
and partitions and from constants. What a task reads is verified: receipt, footer, block.

Memory of each task: `Limits.memory`, however many rows there are; `Regrouped.table` holds a partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from curate.committing.gathered import Receipts
from curate.committing.gathering import required_receipt
from curate.digests import digest_json
from curate.exchange import (
    FORMAT,
    Codec,
    ExchangeFile,
    ExchangeWriter,
    Limits,
    Shape,
    WrittenExchange,
    merged,
    spans,
    write_merged,
    write_parts,
)
from curate.exchange.sorting import Integers, borders, place_of
from curate.receipts import shard_folder
from curate.running.jobs import Item, Resources, RunsJobs, publish_files
from curate.store import Store, StoreError

PARTITION: Final = "*partition"
"""Column that rows have while there are levels to come: the partition that they belong to at the last."""

PROCESS_BYTES: Final = 512 << 20
"""What a worker takes before a task has read anything: interpreter, libraries, compiled kernels."""


def memory_of(limits: Limits) -> Resources:
    """Return what a task that reads or writes exchange files declares."""
    return Resources(memory=PROCESS_BYTES + limits.memory)


@dataclass(frozen=True, slots=True)
class Exchange:
    """One regrouping: its rows, what orders them within a partition, and how many partitions there are.

    Attributes:
        key: names it, like a shard key: a digest of the stage and the role of these rows in it.
        name: what is regrouped, in words, for progress and journal.
        file: name of the exchange file that each map task publishes.
        schema: of the rows.
        order: key columns, without nulls.
        partitions: how many.
        codec: "none" where rows are mostly hashes, which no codec makes smaller.
    """

    store: Store
    key: str
    name: str
    file: str
    schema: pa.Schema
    order: tuple[str, ...]
    partitions: int
    limits: Limits
    codec: Codec = "zstd"

    @property
    def radices(self) -> tuple[int, ...]:
        """Into how many parts each level cuts a partition of the level before."""
        return self.limits.radices(self.partitions)

    def shape(self, level: int) -> Shape:
        """Return the shape of the files of a level."""
        if level == len(self.radices) - 1:
            return Shape(self.schema, self.order, self.radices[level], self.codec)
        schema = self.schema.append(pa.field(PARTITION, pa.int64(), nullable=False))
        return Shape(schema, (PARTITION, *self.order), self.radices[level], self.codec)

    def task_key(self, what: str, of: Sequence[str], unit: object = None) -> str:
        """Return the shard key of a merge or split task over the tasks `of`."""
        described = {"format": FORMAT, "key": self.key, "file": self.file, "radices": list(self.radices)}
        return digest_json({"operation": f"regroup {what}", "exchange": described, "of": list(of), "unit": unit})

    @contextmanager
    def collect(self, writers: int = 1) -> Iterator[Collector]:
        """Yield what a map task adds its rows to; it has so many of them at a time, which share the memory."""
        limits = replace(self.limits, memory=self.limits.memory // writers)
        with (
            self.store.spool() as path,
            ExchangeWriter(path, self.shape(0), limits, self.store.spool) as writer,
        ):
            yield Collector(self, writer)


class Collector:
    """Takes the rows of a map task in any order."""

    def __init__(self, exchange: Exchange, writer: ExchangeWriter) -> None:
        self.exchange, self._writer = exchange, writer
        self._span = spans(exchange.radices)[0]

    def add(self, rows: pa.RecordBatch, partition: Integers) -> None:
        """Add `rows`; row i belongs to `partition[i]`."""
        arrays, shape = rows.columns, self._writer.shape
        if PARTITION in shape.schema.names:
            arrays = [*arrays, pa.array(np.asarray(partition, np.int64))]
        self._writer.add(pa.RecordBatch.from_arrays(arrays, schema=shape.schema), partition // self._span)

    def finish(self) -> tuple[Path, int, str]:
        """Write the file and return path, rows and footer digest, as `publish_files` takes them."""
        written = self._writer.finish()
        return self._writer.path, written.rows, written.digest


@dataclass(frozen=True, slots=True)
class Regrouped:
    """Rows that can be read by partition: `tasks` are the shard keys of at most `Limits.fan_in` files."""

    exchange: Exchange
    tasks: tuple[str, ...]

    def batches(self, partition: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of `partition`, ordered by key, then by the order of map tasks and of their rows.

        Raises:
            StoreError: a file is missing, or has other bytes than its receipt says.
        """
        radices = self.exchange.radices
        level = len(radices) - 1
        if not level:
            return self._read(self.tasks, 0, partition)
        return self._read([self.split_key(level, partition // radices[level])], level, partition % radices[level])

    def table(self, partition: int) -> pa.Table:
        """Return the rows of a `partition` that fits into memory."""
        return pa.Table.from_batches(list(self.batches(partition)), self.exchange.schema).combine_chunks()

    def split_key(self, level: int, number: int) -> str:
        """Return the shard key of the task that splits partition `number` of the level before `level`."""
        return self.exchange.task_key("split", self.tasks, [level, number])

    def before(self, level: int, number: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows that the split task `number` of `level` reads."""
        if level == 1:
            return self._read(self.tasks, 0, number)
        radix = self.exchange.radices[level - 1]
        return self._read([self.split_key(level - 1, number // radix)], level - 1, number % radix)

    def _read(self, tasks: Sequence[str], level: int, partition: int) -> Iterator[pa.RecordBatch]:
        with opened(self.exchange, tasks, level) as files:
            yield from merged(files, partition, self.exchange.limits.memory)


@contextmanager
def opened(exchange: Exchange, tasks: Sequence[str], level: int) -> Iterator[list[ExchangeFile]]:
    """Yield the files that `tasks` published, in order, without those of tasks that had no rows.

    Raises:
        StoreError: a file is missing, or has another footer than its receipt says.
    """
    store, files = exchange.store, []
    with ExitStack() as stack:
        for key in tasks:
            entry = required_receipt(store, key).files.get(exchange.file)
            if entry is not None:
                name = f"{shard_folder(key)}/{exchange.file}"
                if not store.exists(name):
                    folder = store.url(shard_folder(key))
                    raise StoreError(f"{store.url(name)} is missing: remove {folder} and run the recipe again")
                file = stack.enter_context(store.open(name))
                files.append(ExchangeFile(file, store.url(name), exchange.shape(level), entry.content))
        yield files


@dataclass(frozen=True, slots=True)
class MergeJob:
    """Per group of files: one file with their rows."""

    exchange: Exchange

    @property
    def store(self) -> Store:
        """Where files lie."""
        return self.exchange.store

    @property
    def name(self) -> str:
        """What the tasks do."""
        return f"{self.exchange.name}: merge"

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return memory_of(self.exchange.limits)

    def run(self, item: Item) -> int:
        """Publish the merged file of the tasks `item.unit`, and return its rows."""
        exchange = self.exchange
        with self.store.spool() as path, opened(exchange, item.unit, 0) as files:
            written = write_merged(path, exchange.shape(0), exchange.limits, files)
            return _publish(self.store, item, self.name, exchange.file, path, written)


@dataclass(frozen=True, slots=True)
class SplitJob:
    """Per partition of the level before: its partitions at `level`."""

    regrouped: Regrouped
    level: int

    @property
    def store(self) -> Store:
        """Where files lie."""
        return self.regrouped.exchange.store

    @property
    def name(self) -> str:
        """What the tasks do."""
        return f"{self.regrouped.exchange.name}: split"

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return memory_of(self.regrouped.exchange.limits)

    def run(self, item: Item) -> int:
        """Publish partition `item.unit` of the level before, split; return its rows."""
        exchange = self.regrouped.exchange
        shape = exchange.shape(self.level)
        span, radix = spans(exchange.radices)[self.level], exchange.radices[self.level]
        pieces = groupby(_by_partition(self.regrouped.before(self.level, item.unit), shape, span, radix), itemgetter(0))
        parts = ((number, (rows for _, rows in mine)) for number, mine in pieces)
        with self.store.spool() as path:
            written = write_parts(path, shape, exchange.limits, parts)
            return _publish(self.store, item, self.name, exchange.file, path, written)


def _by_partition(
    batches: Iterator[pa.RecordBatch], shape: Shape, span: int, radix: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield rows with their partition of this level; they come in the order of `PARTITION`."""
    for batch in batches:
        local = batch.column(PARTITION).to_numpy() // span % radix
        kept = pa.RecordBatch.from_arrays([batch.column(name) for name in shape.schema.names], schema=shape.schema)
        for number, first, last in borders(local):
            yield number, kept.slice(first, last - first)


def _publish(store: Store, item: Item, task: str, file: str, path: Path, written: WrittenExchange) -> int:
    publish_files(store, item, task, {file: (path, written.rows, written.digest)}, {})
    return written.rows


def regroup(engine: RunsJobs, exchange: Exchange, tasks: Sequence[str]) -> tuple[Regrouped, list[Receipts]]:
    """Make what map `tasks` published readable by partition; return it, and the receipts of the tasks in between.

    Raises:
        TaskError: a task failed.
    """
    inner: list[Receipts] = []
    while groups := exchange.limits.groups(len(tasks)):
        members = [tuple(tasks[group.start : group.stop]) for group in groups]
        keys = [of[0] if len(of) == 1 else exchange.task_key("merge", of) for of in members]
        items = [
            Item(key, f"group {number}", of)
            for number, (key, of) in enumerate(zip(keys, members, strict=True))
            if len(of) > 1
        ]
        inner.append(engine.receipts(MergeJob(exchange), items))
        tasks = keys
    regrouped = Regrouped(exchange, tuple(tasks))
    for level in range(1, len(exchange.radices)):
        parts = -(-exchange.partitions // spans(exchange.radices)[level - 1])
        key = partial(regrouped.split_key, level)
        items = [Item(key(number), f"level {level}, partition {number}", number) for number in range(parts)]
        inner.append(engine.receipts(SplitJob(regrouped, level), items))
    return regrouped, inner


class Cursor:
    """Goes once through a stream that is ordered by `column`, a piece at a time."""

    def __init__(self, batches: Iterator[pa.RecordBatch], column: str, schema: pa.Schema) -> None:
        self._batches, self._column, self._schema = batches, column, schema
        self._next: pa.RecordBatch | None = next(batches, None)

    def below(self, bound: int | bytes, *, up_to: bool = False) -> pa.RecordBatch:
        """Return the rows below `bound` that were not returned before; with `up_to`, those that equal it too."""
        pieces = [pa.RecordBatch.from_pylist([], self._schema)]
        while self._next is not None:
            count = place_of(self._next, (self._column,), (bound,), after=up_to)
            pieces.append(self._next.slice(0, count))
            if count < self._next.num_rows:
                self._next = self._next.slice(count)
                break
            self._next = next(self._batches, None)
        return pa.concat_batches(pieces)
