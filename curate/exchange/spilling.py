"""Writing an exchange file from rows that come in any order and any batches, in bounded memory.

Rows are collected up to a quarter of the memory, sorted by (partition, key) and spilled as a run: an exchange file that
is never published. As many runs as have room for a block each are merged into one of the next level; at the end what
there is is merged into the file. Rows with one partition and key stand in the order of arrival, so bytes depend neither
on batches nor on memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa

from curate.exchange.blocks import BlockWriter, ExchangeFile, Shape, WrittenExchange
from curate.exchange.limits import Limits
from curate.exchange.merging import COPIES, merged
from curate.exchange.sorting import Integers, borders, sort_order, take_rows

Spool = Callable[[], AbstractContextManager[Path]]
"""Gives a path for a file that is gone afterwards, as `Store.spool`."""


class ExchangeWriter:
    """Writes one exchange file to `path`. A context: leaving it removes the runs."""

    def __init__(self, path: Path, shape: Shape, limits: Limits, spool: Spool) -> None:
        self.path, self.shape, self.limits, self._spool = path, shape, limits, spool
        self._pending: list[tuple[pa.RecordBatch, Integers]] = []
        self._held = 0
        self._levels: list[list[tuple[Path, ExitStack]]] = []
        self._width = max(2, min(limits.fan_in, limits.memory // (COPIES * limits.block_bytes)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for level in self._levels:
            for _, stack in level:
                stack.close()

    def add(self, rows: pa.RecordBatch, partition: Integers) -> None:
        """Add `rows`; row i belongs to `partition[i]`.

        Raises:
            ValueError: the numbers of rows differ, a partition is none of the shape, or a key column has nulls.
        """
        if len(partition) != rows.num_rows or not _inside(partition, self.shape.partitions):
            raise ValueError(f"{rows.num_rows} rows go to {len(partition)} of {self.shape.partitions} partitions")
        if rows.num_rows:
            self._pending.append((pa.RecordBatch.from_arrays(rows.columns, schema=self.shape.schema), partition))
            self._held += rows.nbytes
        if self._held * COPIES >= self.limits.memory:
            self._spill(0, self._sorted())

    def finish(self) -> WrittenExchange:
        """Write the file and return what it holds."""
        if not self._levels:
            return self._write(self.path, self._sorted())
        if self._pending:
            self._spill(0, self._sorted())
        while sum(map(len, self._levels)) > self._width:
            self._raise_level(next(level for level, runs in enumerate(self._levels) if runs))
        return self._merge(self.path, [path for level in self._levels[::-1] for path, _ in level])

    def _sorted(self) -> Iterator[tuple[int, Iterator[pa.RecordBatch]]]:
        """Yield the pending rows by partition, in order, and forget them."""
        if not self._pending:
            return
        rows = pa.concat_batches([batch for batch, _ in self._pending])
        partition = np.concatenate([numbers for _, numbers in self._pending])
        self._pending, self._held = [], 0
        order = sort_order(rows, self.shape.key, [partition.astype(np.uint16)])  # numpy sorts 16 bits by radix
        rows = take_rows(rows, order)
        for number, first, last in borders(partition if order is None else partition[order]):
            yield number, iter([rows.slice(first, last - first)])

    def _spill(self, level: int, parts: Iterator[tuple[int, Iterator[pa.RecordBatch]]]) -> None:
        stack = ExitStack()
        path = stack.enter_context(self._spool())
        self._keep(level, path, stack)
        self._write(path, parts)
        if len(self._levels[level]) == self._width:
            self._raise_level(level)

    def _raise_level(self, level: int) -> None:
        """Merge the runs of `level` into one of the next."""
        runs, stack = self._levels[level], ExitStack()
        path = stack.enter_context(self._spool())
        self._keep(level + 1, path, stack)
        self._merge(path, [run for run, _ in runs])
        self._levels[level] = []
        for _, done in runs:
            done.close()
        if len(self._levels[level + 1]) == self._width:
            self._raise_level(level + 1)

    def _keep(self, level: int, path: Path, stack: ExitStack) -> None:
        while len(self._levels) <= level:
            self._levels.append([])
        self._levels[level].append((path, stack))

    def _write(self, path: Path, parts: Iterator[tuple[int, Iterator[pa.RecordBatch]]]) -> WrittenExchange:
        return write_parts(path, self.shape, self.limits, parts)

    def _merge(self, path: Path, runs: Sequence[Path]) -> WrittenExchange:
        with ExitStack() as stack:
            files = [ExchangeFile(stack.enter_context(run.open("rb")), str(run), self.shape) for run in runs]
            return write_merged(path, self.shape, self.limits, files)


def write_parts(
    path: Path, shape: Shape, limits: Limits, parts: Iterator[tuple[int, Iterator[pa.RecordBatch]]]
) -> WrittenExchange:
    """Write rows that come by partition and in the order of their key to `path`, and return what the file holds."""
    writer = BlockWriter(path, shape, limits.block_bytes)
    try:
        for partition, batches in parts:
            writer.write(partition, batches)
        return writer.finish()
    finally:
        writer.close()


def write_merged(path: Path, shape: Shape, limits: Limits, files: Sequence[ExchangeFile]) -> WrittenExchange:
    """Merge `files` of one shape into one at `path`."""
    parts = ((number, merged(files, number, limits.memory)) for number in range(shape.partitions))
    return write_parts(path, shape, limits, parts)


def _inside(partition: Integers, partitions: int) -> bool:
    return not len(partition) or (int(partition.min()) >= 0 and int(partition.max()) < partitions)
