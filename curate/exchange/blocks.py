"""Exchange files: blocks of rows ordered by partition and key, and a footer that says where each lies.

Layout: `MAGIC`; blocks, each an Arrow IPC record batch message, as one zstd frame or, where the rows are hashes that no
codec makes smaller, as it is; a footer of canonical JSON (schema, key, number of partitions, codec, and of each block
its partition, place, rows, size and digest); its length as 8 bytes little-endian; `MAGIC` again. The footer's digest
stands in the receipt of the task that wrote the file, and the footer has the digest of every block: what is read is
verified block by block, and nothing else is read.

A block closes as soon as it holds `Limits.block_bytes`, so bytes depend on the rows alone. Memory: one block.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

import numpy as np
import pyarrow as pa
from blake3 import blake3

from curate.digests import digest_bytes
from curate.storage.errors import StoreError
from curate.writer import cut_rows
from transforms.canonical import canonical_json

FORMAT: Final = 3
"""Version of the format of exchange files: part of the keys of all tasks that write or read them."""

MAGIC: Final = b"CURXCHG3"
_CODEC: Final = pa.Codec("zstd", compression_level=1)
_DIGEST_BYTES: Final = 16

Codec = Literal["zstd", "none"]


@dataclass(frozen=True, slots=True)
class Shape:
    """What the rows of an exchange file are: columns, those that order them within a partition, and partitions.

    `codec` is "none" where the rows are mostly evenly spread hashes.
    """

    schema: pa.Schema
    key: tuple[str, ...]
    partitions: int
    codec: Codec = "zstd"

    def __post_init__(self) -> None:
        """Check the number of partitions.

        Raises:
            ValueError: there are none, or more than fit into 16 bits.
        """
        if not 1 <= self.partitions <= 1 << 16:
            raise ValueError(f"an exchange file has 1 to {1 << 16:,} partitions: got {self.partitions:,}")

    def described(self) -> dict[str, Any]:
        """Return the shape as it stands in a footer."""
        columns = [[field.name, str(field.type)] for field in self.schema]
        return {"schema": columns, "key": list(self.key), "partitions": self.partitions, "codec": self.codec}


@dataclass(frozen=True, slots=True)
class Block:
    """A run of rows of one partition: where it lies, how many rows it has, its size unpacked, and its digest."""

    partition: int
    offset: int
    length: int
    rows: int
    bytes: int
    digest: str

    def to_json(self) -> list[int | str]:
        """Return the block as it stands in a footer."""
        return [self.partition, self.offset, self.length, self.rows, self.bytes, self.digest]


@dataclass(frozen=True, slots=True)
class WrittenExchange:
    """What an exchange file holds: its rows, and the digest of its footer."""

    rows: int
    digest: str


class BlockWriter:
    """Writes rows that come in the order of partitions and keys. The file is whole only after `finish`."""

    def __init__(self, path: Path, shape: Shape, block_bytes: int) -> None:
        self.shape, self.block_bytes = shape, block_bytes
        self._blocks: list[Block] = []
        self._file = path.open("wb")
        self._file.write(MAGIC)

    def write(self, partition: int, batches: Iterable[pa.RecordBatch]) -> None:
        """Write all rows of `partition`, which comes after those written before."""
        if (self._blocks and partition <= self._blocks[-1].partition) or partition >= self.shape.partitions:
            raise ValueError(f"partition {partition} of {self.shape.partitions} is out of order")
        for rows in cut_rows(batches, self.block_bytes):
            message = pa.concat_batches([rows]).serialize()  # a copy: after a slice, bits of further rows would follow
            data = memoryview(message) if self.shape.codec == "none" else _CODEC.compress(message, asbytes=True)
            place = (partition, self._file.tell(), len(data), rows.num_rows, message.size)
            self._blocks.append(Block(*place, _digest(data)))
            self._file.write(data)

    def finish(self) -> WrittenExchange:
        """Write the footer and close the file."""
        value = {"format": FORMAT, **self.shape.described(), "blocks": [block.to_json() for block in self._blocks]}
        footer = canonical_json(value).encode()
        self._file.write(footer + len(footer).to_bytes(8, "little") + MAGIC)
        self.close()
        return WrittenExchange(sum(block.rows for block in self._blocks), digest_bytes(footer))

    def close(self) -> None:
        """Close the file, whole or not."""
        self._file.close()


class ExchangeFile:
    """An exchange file that is open for reading; `where` names it in errors.

    Raises:
        StoreError: it is no exchange file, is cut short, has other rows than `shape`, or another footer than `digest`.
    """

    def __init__(self, file: BinaryIO, where: str, shape: Shape, digest: str | None = None) -> None:
        self.where, self.shape, self._file = where, shape, file
        value = self._footer(digest)
        expected = {"format": FORMAT, **shape.described()}
        found = {name: value[name] for name in expected}
        if found != expected:
            raise StoreError(f"{where} holds {found}, asked for was {expected}: {_REMEDY}")
        self._blocks = [Block(*block) for block in value["blocks"]]
        self._partitions = np.array([block.partition for block in self._blocks], np.int64)

    def _footer(self, digest: str | None) -> dict[str, Any]:
        size = self._file.seek(0, io.SEEK_END)
        self._file.seek(max(0, size - 16))
        tail = self._file.read(16)
        length = int.from_bytes(tail[:8], "little")
        if tail[8:] != MAGIC or length > size - 16 - len(MAGIC):
            raise self._damaged("is no exchange file of this version, or is cut short")
        self._file.seek(size - 16 - length)
        content = self._file.read(length)
        if digest is not None and digest_bytes(content) != digest:
            raise self._damaged("has another footer than its receipt says")
        try:
            value: dict[str, Any] = json.loads(content)
            return {name: value[name] for name in ("format", "schema", "key", "partitions", "codec", "blocks")}
        except (ValueError, KeyError, TypeError):
            raise self._damaged("has a footer that cannot be read") from None

    def blocks(self, partition: int) -> list[Block]:
        """Return the blocks of `partition`, in order; they lie one after the other."""
        first, last = np.searchsorted(self._partitions, [partition, partition + 1]).tolist()
        return self._blocks[first:last]

    def read(self, blocks: list[Block]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of `blocks`, which lie one after the other: one read.

        Raises:
            StoreError: a block has other bytes than were written.
        """
        if not blocks:
            return
        start = blocks[0].offset
        self._file.seek(start)
        data = memoryview(self._file.read(blocks[-1].offset + blocks[-1].length - start))
        for block in blocks:
            packed = data[block.offset - start :][: block.length]
            if _digest(packed) != block.digest:
                raise self._damaged(
                    f"is damaged: the block of partition {block.partition} at byte {block.offset} is not what was "
                    "written"
                )
            plain = self.shape.codec == "none"
            message = pa.py_buffer(packed) if plain else _CODEC.decompress(packed, block.bytes)
            yield pa.ipc.read_record_batch(message, self.shape.schema)

    def _damaged(self, what: str) -> StoreError:
        return StoreError(f"{self.where} {what}: {_REMEDY}")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


_REMEDY: Final = "remove its folder and run the recipe again"


def _digest(data: bytes | memoryview) -> str:
    return blake3(data).hexdigest(_DIGEST_BYTES)
