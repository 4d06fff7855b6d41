"""Exchange files: rows regrouped by partition, one file per map task, read by partition.

Layout: `MAGIC`, then blocks (each a zstd-compressed Arrow IPC stream) sorted by (partition, key), then a footer of
canonical JSON with the offset table, its length as 8 bytes little-endian, and `MAGIC` again. A reduce task reads its
own blocks of every map file and nothing else.

Numbers of partitions follow from logical bytes and constants, never from the number of workers.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curate.digests import logical_type
from curate.store import StoredFile, StoreError
from transforms.outcome import canonical_json

MAGIC: Final = b"CURXCHG1"
PARTITION_BYTES: Final = 64 << 20
MOST_PARTITIONS: Final = 1024
BLOCK_ROWS: Final = 1 << 20


Stored = Path | StoredFile
"""An exchange file, on this node or in a store."""


@dataclass(frozen=True, slots=True)
class Block:
    """A run of rows of one partition: where it lies in the file, and how many rows it has."""

    partition: int
    offset: int
    length: int
    rows: int


def partition_count(logical_bytes: int) -> int:
    """Return how many partitions rows of this many bytes are regrouped into: at most `MOST_PARTITIONS`."""
    return min(MOST_PARTITIONS, max(1, -(-logical_bytes // PARTITION_BYTES)))


def partition_of(hashes: npt.NDArray[np.uint64], partitions: int) -> npt.NDArray[np.int64]:
    """Return the partition of each 64-bit hash: its place among equal ranges of the upper 32 bits."""
    upper = (hashes >> np.uint64(32)).astype(np.int64)
    return np.asarray((upper * partitions) >> 32, np.int64)


def write_exchange(path: Path, table: pa.Table, partition: npt.NDArray[np.int64], partitions: int) -> int:
    """Write `table`, whose row i belongs to `partition[i]`, and return the number of rows.

    Rows keep their order within a partition: sort them by key before, so that the file does not depend on batching.
    """
    order = np.argsort(partition, kind="stable")
    # lists are slow to take, and rows often come in order
    ordered = table if np.all(partition[:-1] <= partition[1:]) else table.take(pa.array(order))
    bounds = np.searchsorted(partition[order], np.arange(partitions + 1))
    blocks: list[Block] = []
    with path.open("wb") as file:
        file.write(MAGIC)
        for number in range(partitions):
            for first in range(int(bounds[number]), int(bounds[number + 1]), BLOCK_ROWS):
                rows = min(BLOCK_ROWS, int(bounds[number + 1]) - first)
                data = _encode(ordered.slice(first, rows))
                blocks.append(Block(number, file.tell(), len(data), rows))
                file.write(data)
        footer = _footer(table.schema, partitions, blocks)
        file.write(footer + len(footer).to_bytes(8, "little") + MAGIC)
    return int(table.num_rows)


def _encode(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=options) as stream:
        stream.write_table(table.combine_chunks(), max_chunksize=BLOCK_ROWS)
    return sink.getvalue()


def _footer(schema: pa.Schema, partitions: int, blocks: list[Block]) -> bytes:
    value = {
        "format": 1,
        "schema": [[field.name, logical_type(field.type)] for field in schema],
        "partitions": partitions,
        "blocks": [[block.partition, block.offset, block.length, block.rows] for block in blocks],
    }
    return canonical_json(value).encode()


def read_footer(path: Stored) -> tuple[int, list[Block]]:
    """Return the number of partitions and the blocks of an exchange file.

    Raises:
        StoreError: it is no exchange file, or is cut short.
    """
    with path.open("rb") as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(max(0, size - 16))
        tail = file.read()
        length = int.from_bytes(tail[:8], "little")
        if tail[8:] != MAGIC or length > size - 16:
            raise _damaged(path)
        file.seek(size - 16 - length)
        try:
            footer: dict[str, Any] = json.loads(file.read(length))
            return footer["partitions"], [Block(*block) for block in footer["blocks"]]
        except (ValueError, KeyError, TypeError):
            raise _damaged(path) from None


def _damaged(path: Stored) -> StoreError:
    return StoreError(f"{path} is no exchange file or is cut short: remove its shard folder and run again")


def read_partition(paths: Iterable[Stored], partition: int, schema: pa.Schema) -> pa.Table:
    """Return the rows of `partition` of all files, in the order of the files."""
    tables = [schema.empty_table()]
    for path in paths:
        _, blocks = read_footer(path)
        mine = [block for block in blocks if block.partition == partition]
        if mine:
            with path.open("rb") as file:
                tables.extend(_decode(path, file, block) for block in mine)
    return pa.concat_tables(tables).combine_chunks()


def _decode(path: Stored, file: Any, block: Block) -> pa.Table:
    file.seek(block.offset)
    try:
        return pa.ipc.open_stream(file.read(block.length)).read_all()
    except (pa.ArrowException, OSError) as error:
        raise StoreError(
            f"{path} is damaged at byte {block.offset} ({error}): remove its shard folder and run again"
        ) from error
