"""Finished datasets: committing one, and the public way of reading one.

`<store>/<name>-<key>/` holds `shards.parquet` (the shards in order), `statistics.json`, `samples.parquet` and, last,
`manifest.json`. Pages and tools read datasets through `open_dataset`; nothing else needs to know the layout.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from curate.digests import digest_json, logical_type, short
from curate.ledger import SAMPLES
from curate.receipts import (
    MANIFEST,
    STATISTICS,
    FileEntry,
    Receipt,
    committed_folders,
    lift,
    read_manifest,
    shard_folder,
)
from curate.samples import Samples
from curate.statistics import Statistics, merge_all
from curate.store import Store, StoreError, check_self_digest, json_line, self_digested
from curate.writer import write_parquet
from transforms.outcome import canonical_json, rows

SHARDS: Final = pa.schema(
    [
        pa.field("key", pa.large_string(), nullable=False),
        pa.field("unit", pa.large_string(), nullable=False),  # canonical JSON
        pa.field("rows", pa.int64(), nullable=False),
        pa.field("bytes", pa.int64(), nullable=False),  # of the stored files
        pa.field("content", pa.large_string()),  # content digest of the part; null when nothing is kept
        pa.field("ledger", pa.large_string()),
        pa.field("receipt", pa.large_string(), nullable=False),  # digest field of the receipt
    ]
)
"""Schema of `shards.parquet`."""


def dataset_folder(name: str, key: str) -> str:
    """Return the folder of the dataset `name` with `key` within the store: other characters become "-"."""
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "._") else "-" for c in name)
    return f"{safe[:80]}-{short(key)}"


@dataclass(frozen=True, slots=True)
class MadeDataset:
    """What a stage made: its configuration, inputs and receipts in order.

    `inner` are receipts of the tasks in between (exchange files of a dataset-wide operation): `verify` checks them.
    """

    name: str
    key: str
    operation: dict[str, Any]
    inputs: tuple[Dataset, ...]
    schema: pa.Schema
    receipts: Sequence[Receipt]
    inner: Sequence[Receipt] = ()


def commit_dataset(store: Store, made: MadeDataset) -> Dataset:
    """Write a dataset's files and, last, its manifest; return the dataset.

    Raises:
        StoreError: another manifest is published under this name and key.
    """
    folder = dataset_folder(made.name, made.key)
    statistics = merge_all([receipt.statistics for receipt in (*made.receipts, *made.inner)])
    files = {
        "shards.parquet": _publish_table(store, f"{folder}/shards.parquet", SHARDS, shard_rows(made.receipts)),
        "samples.parquet": _publish_table(
            store, f"{folder}/samples.parquet", SAMPLES, merged_samples(store, made.receipts)
        ),
        "statistics.json": _publish_json(
            store, f"{folder}/statistics.json", self_digested({"format": STATISTICS.stamp, **statistics})
        ),
    }
    parts = [entry for receipt in made.receipts if (entry := receipt.files.get("part.parquet"))]
    ledgers = [entry.content for receipt in made.receipts if (entry := receipt.files.get("dropped.parquet"))]
    quarantine = [receipt.quarantine for receipt in made.receipts if receipt.quarantine]
    schema = [[field.name, logical_type(field.type)] for field in made.schema]
    manifest = {
        "format": MANIFEST.stamp,
        "kind": "dataset",
        "name": made.name,
        "key": made.key,
        "operation": made.operation,
        "inputs": [{"name": i.name, "key": i.key, "digest": i.manifest["digest"]} for i in made.inputs],
        "schema": schema,
        "shards": len(made.receipts),
        "rows": sum(part.rows or 0 for part in parts),
        "content": digest_json({"schema": schema, "shards": [part.content for part in parts]}),
        "ledger": digest_json(ledgers),
        "texts": statistics.get("texts"),
        "quarantine": digest_json(quarantine) if quarantine else None,
        "inner": [{"key": receipt.key, "receipt": receipt.digest} for receipt in made.inner],
        "files": {name: entry.to_json() for name, entry in files.items()},
    }
    store.publish_bytes(json_line(self_digested(manifest)), f"{folder}/manifest.json")
    return open_dataset(store, made.name, made.key)


def shard_rows(receipts: Sequence[Receipt]) -> pa.RecordBatch:
    """Return the rows of `shards.parquet` for these receipts, in order."""
    return rows(SHARDS, [_shard_row(receipt) for receipt in receipts])


def _shard_row(receipt: Receipt) -> dict[str, Any]:
    part, ledger = receipt.files.get("part.parquet"), receipt.files.get("dropped.parquet")
    return {
        "key": receipt.key,
        "unit": canonical_json(dict(receipt.unit)),
        "rows": (part.rows or 0) if part else 0,
        "bytes": sum(entry.bytes for entry in receipt.files.values()),
        "content": part.content if part else None,
        "ledger": ledger.content if ledger else None,
        "receipt": receipt.digest,
    }


def merged_samples(store: Store, receipts: Sequence[Receipt]) -> pa.RecordBatch:
    """Return the samples of a dataset: the lowest of its shards' samples."""
    samples = Samples()
    for receipt in receipts:
        if "samples.parquet" in receipt.files:
            samples.merge(pq.read_table(store.local(f"{shard_folder(receipt.key)}/samples.parquet"), schema=SAMPLES))
    return samples.batch()


def _publish_table(store: Store, name: str, schema: pa.Schema, batch: pa.RecordBatch) -> FileEntry:
    with store.spool() as path:
        written = write_parquet(path, [batch], schema)
        size = path.stat().st_size
        return FileEntry(size, store.publish(path, name), written.rows, written.content)


def _publish_json(store: Store, name: str, value: dict[str, Any]) -> FileEntry:
    content = json_line(value)
    return FileEntry(len(content), store.publish_bytes(content, name))


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

    def samples(self) -> list[dict[str, Any]]:
        """Return the samples, columns as in `curate.ledger.SAMPLES`."""
        return list(pq.read_table(self.store.local(f"{self.folder}/samples.parquet"), schema=SAMPLES).to_pylist())

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the documents in order."""
        for shard in self.shards():
            if shard["content"] is not None:
                path = self.store.local(f"{shard_folder(shard['key'])}/part.parquet")
                with pq.ParquetFile(path) as file:
                    yield from file.iter_batches(columns=columns)

    def ledger(self) -> Iterator[pa.RecordBatch]:
        """Yield the ledger of this stage in order, columns as in `curate.ledger.LEDGER`."""
        for shard in self.shards():
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
