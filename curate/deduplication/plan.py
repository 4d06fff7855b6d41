"""What the tasks of one deduplication share: how documents are referred to, the files between tasks, partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from curate.digests import digest_json
from curate.exchange import partition_count
from curate.receipts import shard_folder
from curate.store import Store, StoredFile
from transforms.minhash import MinHash
from transforms.order_key import encode_column
from transforms.schema import ID

Refs = npt.NDArray[np.int64]

DIGESTS: Final = pa.schema(
    [("digest", ID), ("group", pa.large_binary()), ("order", pa.large_binary()), ("ref", pa.int64())]
)
EXACT: Final = pa.schema([("ref", pa.int64()), ("keeper", pa.int64()), ("keeper_id", ID)])
BANDS: Final = pa.schema([("bucket", pa.uint64()), ("split", pa.uint64()), ("order", pa.uint64()), ("ref", pa.int64())])
PAIRS: Final = pa.schema([("a", pa.int64()), ("b", pa.int64())])
CANDIDATES: Final = pa.schema([("ref", pa.int64())])
SHINGLES: Final = pa.schema(
    [
        pa.field("ref", pa.int64(), nullable=False),
        pa.field("id", ID, nullable=False),
        pa.field("order", pa.large_binary(), nullable=False),
        pa.field("shingles", pa.list_(pa.uint64()), nullable=False),
    ]
)
EDGES: Final = pa.schema([pa.field(name, pa.int64(), nullable=False) for name in ("a", "b", "intersection", "union")])
NEAR: Final = pa.schema(
    [
        ("ref", pa.int64()),
        ("keeper", pa.int64()),
        ("keeper_id", ID),
        ("intersection", pa.int64()),
        ("union", pa.int64()),
    ]
)

ROW_BYTES: Final = 128  # of a row of DIGESTS, for the number of partitions
BAND_BYTES: Final = 32
SHARD_BITS: Final = 32


def shards_of(refs: Refs) -> Refs:
    """Return the ordinals of the shards that `refs` lie in."""
    return refs >> SHARD_BITS


@dataclass(frozen=True, slots=True)
class Plan:
    """What every task of one deduplication knows: the shards in order, and the configuration."""

    store: Store
    key: str
    shards: tuple[str, ...]
    rows: tuple[int, ...]
    sources: tuple[str, ...]
    prefer: tuple[str, ...]
    within: str | None
    method: MinHash | None
    schema: pa.Schema

    @property
    def digest_partitions(self) -> int:
        """Partitions of the exchange by text digest."""
        return partition_count(sum(self.rows) * ROW_BYTES)

    @property
    def bucket_partitions(self) -> int:
        """Partitions of the exchanges by bucket and by pair."""
        return partition_count(sum(self.rows) * BAND_BYTES * (self.method.bands if self.method else 1))

    @property
    def shard_partitions(self) -> int:
        """Partitions of the exchanges by shard."""
        return partition_count(len(self.shards) << 26)

    def task_key(self, task: str, unit: object) -> str:
        """Return the shard key of one task in between."""
        return digest_json({"operation": f"deduplicate {task}", "stage": self.key, "unit": unit})

    def file(self, task: str, unit: object, name: str) -> StoredFile:
        """Return a file that a task published."""
        return self.store.file(f"{shard_folder(self.task_key(task, unit))}/{name}")

    def table(self, shard: int, columns: Sequence[str]) -> pa.Table:
        """Return `columns` of an input shard; columns that its dataset lacks are null."""
        path = self.store.local(f"{shard_folder(self.shards[shard])}/part.parquet")
        names = set(pq.read_schema(path).names)
        table = pq.read_table(path, columns=[name for name in columns if name in names])
        for name in columns:
            if name not in names:
                field = self.schema.field(name)
                table = table.append_column(field, pa.nulls(table.num_rows, field.type))
        return table.combine_chunks()

    def batch(self, shard: int) -> pa.RecordBatch:
        """Return what keep order, groups and comparison need of an input shard, as one batch."""
        wanted = ["id", "text", "source", *(name.removeprefix("-") for name in self.prefer), self.within]
        present = [name for name in dict.fromkeys(wanted) if name in self.schema.names]
        table = self.table(shard, [str(name) for name in present])
        arrays = [column.combine_chunks() for column in table.columns]
        joined = [pa.concat_arrays(a.chunks) if isinstance(a, pa.ChunkedArray) else a for a in arrays]
        return pa.RecordBatch.from_arrays(joined, names=table.schema.names)

    def groups(self, batch: pa.RecordBatch) -> pa.Array | None:
        """Return the column of `within=`, encoded exactly; None when all documents are compared with all."""
        return None if self.within is None else encode_column(batch.column(self.within), name=self.within)
