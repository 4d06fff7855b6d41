"""Reading a partition of many exchange files as one stream in the order of its key, in bounded memory.

Of each file a share of the memory is buffered. What lies before the least of the last buffered keys is complete: it is
sorted and passed on, and the files that ran out are read further. Rows with one key come in the order of the files,
then in that of their rows, whatever the memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from curate.exchange.blocks import Block, ExchangeFile
from curate.exchange.sorting import Key, key_of, place_of, sort_order, take_rows

COPIES = 4
"""How often rows stand in memory at most: buffered, joined, sorted, and with who takes them."""


def merged(files: Sequence[ExchangeFile], partition: int, memory: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `partition` of all `files`, ordered by key; all files have one shape.

    Memory: about `memory` bytes; a block of each file at least.
    """
    runs = [_Run(file, file.blocks(partition)) for file in files]
    runs = [run for run in runs if run.blocks]
    share = memory // (COPIES * max(1, len(runs)))
    while runs:
        for run in runs:
            run.fill(share)
        pieces = _complete(runs)
        runs = [run for run in runs if run.blocks or run.rows is not None]
        if pieces:
            rows = pa.concat_batches(pieces) if len(pieces) > 1 else pieces[0]
            yield take_rows(rows, sort_order(rows, files[0].shape.key) if len(pieces) > 1 else None)


class _Run:
    """The part of one file: blocks that are still to be read, and rows that are buffered."""

    def __init__(self, file: ExchangeFile, blocks: list[Block]) -> None:
        self.file, self.blocks = file, blocks
        self.rows: pa.RecordBatch | None = None

    def fill(self, share: int) -> None:
        """Read blocks of `share` bytes, one at least, where nothing is buffered."""
        if self.rows is not None or not self.blocks:
            return
        count, size = 0, 0
        while count < len(self.blocks) and (not count or size + self.blocks[count].bytes <= share):
            size += self.blocks[count].bytes
            count += 1
        mine, self.blocks = self.blocks[:count], self.blocks[count:]
        self.rows = pa.concat_batches(list(self.file.read(mine)))

    def last(self) -> Key:
        """Return the key of the last buffered row."""
        if self.rows is None:
            raise ValueError("nothing is buffered")
        return key_of(self.rows, self.file.shape.key, self.rows.num_rows - 1)

    def pop(self, count: int) -> pa.RecordBatch | None:
        """Return the first `count` buffered rows and forget them."""
        if self.rows is None or not count:
            return None
        head = self.rows.slice(0, count)
        self.rows = None if count == self.rows.num_rows else self.rows.slice(count)
        return head


def _complete(runs: Sequence[_Run]) -> list[pa.RecordBatch]:
    """Return the buffered rows that no row comes before which is not buffered yet, in the order of the runs."""
    going_on = [(run.last(), number) for number, run in enumerate(runs) if run.blocks]
    bound, least = min(going_on, default=(None, len(runs)))
    pieces = []
    for number, run in enumerate(runs):
        if run.rows is not None:
            count = run.rows.num_rows
            if bound is not None:
                count = place_of(run.rows, run.file.shape.key, bound, after=number <= least)
            pieces.append(run.pop(count))
    return [piece for piece in pieces if piece is not None]
