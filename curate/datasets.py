"""Finished datasets: the public way of reading one. `curate.committing.commit` writes them.

`<store>/<name>-<key>/` holds `shards.parquet` (the shards in order), `statistics.json`, `samples.parquet` and, last,
`manifest.json`. Pages and tools read datasets through `open_dataset`; nothing else needs to know the layout.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from curate.accounting.ledger import SAMPLES
from curate.accounting.statistics import Statistics
from curate.digests import short
from curate.receipts import STATISTICS, committed_folders, lift, read_manifest, shard_folder
from curate.store import Store, StoreError, check_self_digest

SHARDS: Final = pa.schema(
    [
        pa.field("key", pa.large_string(), nullable=False),
        pa.field("unit", pa.large_string(), nullable=False),  # canonical JSON
        pa.field("rows", pa.int64(), nullable=False),
        pa.field("bytes", pa.int64(), nullable=False),  # of the stored files
        pa.field("logical", pa.int64()),  # bytes of the part; null when nothing is kept, or written in format 1
        pa.field("content", pa.large_string()),  # content digest of the part; null when nothing is kept
        pa.field("ledger", pa.large_string()),
        pa.field("receipt", pa.large_string(), nullable=False),  # digest field of the receipt
    ]
)
"""Schema of `shards.parquet`."""


ROWS_AT_ONCE: Final = 1024
"""Rows of `shards.parquet` that are held at once."""


def dataset_folder(name: str, key: str) -> str:
    """Return the folder of the dataset `name` with `key` within the store: other characters become "-"."""
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "._") else "-" for c in name)
    return f"{safe[:80]}-{short(key)}"


@dataclass(frozen=True, slots=True)
class Committed:
    """What a stage made: a folder of the store, and its checked manifest."""

    store: Store
    folder: str
    manifest: dict[str, Any]

    @property
    def name(self) -> str:
        """Name of the stage that made it."""
        return str(self.manifest["name"])

    @property
    def key(self) -> str:
        """Its key, 64 hex digits."""
        return str(self.manifest["key"])

    @property
    def content(self) -> str:
        """Its content digest."""
        return str(self.manifest["content"])


@dataclass(frozen=True, slots=True)
class Dataset(Committed):
    """A finished dataset."""

    @property
    def rows(self) -> int:
        """How many documents it keeps."""
        return int(self.manifest["rows"])

    @property
    def statistics(self) -> Statistics:
        """Merged statistics of its shards."""
        name = f"{self.folder}/statistics.json"
        path = self.store.url(name)
        return lift(STATISTICS, check_self_digest(self.store.read_json(name), path), path)

    def shards(self) -> list[dict[str, Any]]:
        """Return the rows of `shards.parquet`: one per unit, also of units that keep nothing."""
        return list(pq.read_table(self.store.local(f"{self.folder}/shards.parquet"), schema=SHARDS).to_pylist())

    def each_shard(self, columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
        """Yield the rows of `shards`, or `columns` of them, without holding all."""
        names = list(columns or SHARDS.names)
        with pq.ParquetFile(self.store.local(f"{self.folder}/shards.parquet")) as file:
            for batch in file.iter_batches(ROWS_AT_ONCE, columns=names):
                yield from ({name: row.get(name) for name in names} for row in batch.to_pylist())

    def kept_shards(self) -> list[dict[str, Any]]:
        """Return key, rows and bytes of the shards that keep anything, in order."""
        shards = self.each_shard(["key", "rows", "bytes", "content"])
        return [{name: shard[name] for name in ("key", "rows", "bytes")} for shard in shards if shard["content"]]

    def samples(self) -> list[dict[str, Any]]:
        """Return the samples, columns as in `curate.accounting.ledger.SAMPLES`."""
        return list(pq.read_table(self.store.local(f"{self.folder}/samples.parquet"), schema=SAMPLES).to_pylist())

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the documents in order."""
        for shard in self.each_shard(["key", "content"]):
            if shard["content"] is not None:
                path = self.store.local(f"{shard_folder(shard['key'])}/part.parquet")
                with pq.ParquetFile(path) as file:
                    yield from file.iter_batches(columns=columns)

    def ledger(self) -> Iterator[pa.RecordBatch]:
        """Yield the ledger of this stage in order, columns as in `curate.accounting.ledger.LEDGER`."""
        for shard in self.each_shard(["key", "ledger"]):
            if shard["ledger"] is not None:
                path = self.store.local(f"{shard_folder(shard['key'])}/dropped.parquet")
                with pq.ParquetFile(path) as file:
                    yield from file.iter_batches()

    def __str__(self) -> str:
        return f"{self.name} ({short(self.key)}): {self.rows:,} documents in {self.manifest['shards']:,} shards"


def has_dataset(store: Store, name: str, key: str) -> bool:
    """Return whether the dataset is committed."""
    return store.exists(f"{dataset_folder(name, key)}/manifest.json")


def open_dataset(store: Store, name: str, key: str) -> Dataset:
    """Open a committed dataset.

    Raises:
        StoreError: it is missing, damaged, of another format, or another key stands in its place.
    """
    folder = dataset_folder(name, key)
    manifest = read_manifest(store, folder)
    if manifest["key"] != key:
        raise StoreError(f"{store.url(folder)} has the key {manifest['key']}, asked for was {key}")
    return Dataset(store, folder, manifest)


def datasets_in(store: Store) -> list[Dataset]:
    """Return all committed datasets of a store, ordered by folder."""
    found = []
    for folder in committed_folders(store):
        manifest = read_manifest(store, folder)
        if manifest["kind"] == "dataset":
            found.append(Dataset(store, folder, manifest))
    return found
