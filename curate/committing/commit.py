"""Committing a dataset: its files, then its manifest, from receipts that are merged already.

Memory: the rows of one node of the tree of receipts, one row group of `shards.parquet`, and the merged statistics;
nothing grows with the number of shards but the list of tasks in between in the manifest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

import pyarrow as pa
from blake3 import blake3

from curate.accounting.ledger import SAMPLES
from curate.accounting.statistics import merge_all, text_sum
from curate.committing.gathered import ReceiptRow, Receipts
from curate.content_digests import logical_type
from curate.datasets import ROWS_AT_ONCE, SHARDS, Committed, Dataset, dataset_folder, open_dataset
from curate.receipts import MANIFEST, STATISTICS, FileEntry
from curate.store import Store, json_line, self_digested
from curate.writer import write_parquet
from transforms.canonical import canonical_json
from transforms.outcome import rows

GROUP_BYTES: Final = 256 << 10
"""Logical bytes of a row group of `shards.parquet` and `samples.parquet`: the driver writes them, and holds one."""


NO_TEXTS: Final = {"count": 0, "multiset": text_sum([])}
"""What a manifest says of the texts of no shards."""


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
    receipts: Receipts
    inner: Sequence[Receipts] = ()
    models: Sequence[Committed] = ()


def commit_dataset(store: Store, made: MadeDataset) -> Dataset:
    """Write a dataset's files and, last, its manifest; return the dataset.

    Raises:
        StoreError: another manifest is published under this name and key.
    """
    folder = dataset_folder(made.name, made.key)
    statistics = merge_all(receipts.statistics() for receipts in (made.receipts, *made.inner))
    schema = [[column.name, logical_type(column.type)] for column in made.schema]
    sums = _Sums(canonical_json(schema))
    stamped = self_digested({"format": STATISTICS.stamp, **statistics})
    files = {
        "shards.parquet": _publish_table(store, f"{folder}/shards.parquet", SHARDS, sums.batches(made.receipts)),
        "samples.parquet": _publish_table(store, f"{folder}/samples.parquet", SAMPLES, [made.receipts.samples()]),
        "statistics.json": _publish_json(store, f"{folder}/statistics.json", stamped),
    }
    manifest = {
        "format": MANIFEST.stamp,
        "kind": "dataset",
        "name": made.name,
        "key": made.key,
        "operation": made.operation,
        "inputs": entries_of(made.inputs),
        **({"models": entries_of(made.models)} if made.models else {}),
        "schema": schema,
        "shards": len(made.receipts),
        "rows": sums.rows,
        "content": sums.content.hexdigest(),
        "ledger": sums.ledger.hexdigest(),
        "texts": statistics.get("texts", NO_TEXTS),
        "quarantine": sums.quarantine.hexdigest() if sums.quarantine.count else None,
        "inner": inner_of(made.inner, made.receipts),
        "files": {name: entry.to_json() for name, entry in files.items()},
    }
    store.publish_bytes(json_line(self_digested(manifest)), f"{folder}/manifest.json")
    return open_dataset(store, made.name, made.key)


def entries_of(made: Iterable[Committed]) -> list[dict[str, str]]:
    """Return what a manifest says of what was made of it."""
    return [{"name": i.name, "key": i.key, "digest": i.manifest["digest"]} for i in made]


def inner_of(inner: Iterable[Receipts], *made: Receipts) -> list[dict[str, str]]:
    """Return what a manifest says of the tasks in between: those of `inner`, and of the trees over all receipts."""
    tasks = [row for receipts in inner for row in (*receipts, *receipts.nodes)]
    return [{"key": row.key, "receipt": row.digest} for row in (*tasks, *(row for m in made for row in m.nodes))]


class _ListDigest:
    """The digest of canonical JSON that holds a list of strings, which come one after the other."""

    def __init__(self, before: str = "", after: str = "") -> None:
        self.count, self._after = 0, after
        self._hasher = blake3(f"{before}[".encode())

    def add(self, value: str) -> None:
        """Append one string."""
        self._hasher.update(f"{',' if self.count else ''}{canonical_json(value)}".encode())
        self.count += 1

    def hexdigest(self) -> str:
        """Return what `digest_json` returns for the whole."""
        whole = self._hasher.copy()
        whole.update(f"]{self._after}".encode())
        return str(whole.hexdigest())


@dataclass(slots=True)
class _Sums:
    """What a manifest says of all shards together, counted while their rows are written."""

    schema: str
    rows: int = 0
    content: _ListDigest = field(init=False)
    ledger: _ListDigest = field(default_factory=_ListDigest)
    quarantine: _ListDigest = field(default_factory=_ListDigest)

    def __post_init__(self) -> None:
        self.content = _ListDigest(f'{{"schema":{self.schema},"shards":', "}")

    def batches(self, receipts: Iterable[ReceiptRow]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of `shards.parquet`."""
        remaining = iter(receipts)
        while columns := [self._count(receipt) for receipt in islice(remaining, ROWS_AT_ONCE)]:
            yield rows(SHARDS, columns)

    def _count(self, receipt: ReceiptRow) -> dict[str, Any]:
        part, ledger = receipt.files.get("part.parquet"), receipt.files.get("dropped.parquet")
        kept = (part.rows or 0) if part else 0
        self.rows += kept
        for digest, entry in ((self.content, part), (self.ledger, ledger)):
            if entry is not None:
                digest.add(str(entry.content))
        if receipt.quarantine:
            self.quarantine.add(receipt.quarantine)
        return {
            "key": receipt.key,
            "unit": canonical_json(dict(receipt.unit)),
            "rows": kept,
            "bytes": receipt.bytes,
            "logical": part.logical if part else None,
            "content": part.content if part else None,
            "ledger": ledger.content if ledger else None,
            "receipt": receipt.digest,
        }


def _publish_table(store: Store, name: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> FileEntry:
    with store.spool() as path:
        written = write_parquet(path, batches, schema, GROUP_BYTES)
        size = path.stat().st_size
        return FileEntry(size, store.publish(path, name), written.rows, written.content)


def _publish_json(store: Store, name: str, value: dict[str, Any]) -> FileEntry:
    content = json_line(value)
    return FileEntry(len(content), store.publish_bytes(content, name))
