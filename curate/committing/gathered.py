"""What many receipts say together, without holding them: light rows, merged statistics, merged samples.

Up to `FAN_IN` receipts are held here as rows. Of more, tasks have published the rows and what is merged (see
`curate.committing.gathering`); they are read a node at a time. Merging is associative and commutative and the fan-in a
constant: what is read here is the same with and without a tree. Memory: the rows of one node, and the statistics of
one dataset.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from curate.accounting.ledger import SAMPLES
from curate.accounting.samples import Samples
from curate.accounting.statistics import Statistics, merge_all
from curate.receipts import FileEntry, Receipt, shard_folder
from curate.store import Store, check_self_digest, json_line, self_digested
from transforms.canonical import canonical_json
from transforms.outcome import rows

FAN_IN: Final = 128
"""Receipts, or nodes of a tree of receipts, that are merged at once: a constant, whatever the number of workers."""

MERGED: Final = "merged.json"
"""The file of a node with what its receipts say together."""

ROWS: Final = pa.schema(
    [
        pa.field("key", pa.large_string(), nullable=False),
        pa.field("receipt", pa.large_string(), nullable=False),  # digest field of the receipt
        pa.field("unit", pa.large_string(), nullable=False),  # canonical JSON
        pa.field("files", pa.large_string(), nullable=False),  # canonical JSON, as in the receipt
        pa.field("quarantine", pa.large_string()),
    ]
)
"""Schema of `rows.parquet` of a node: its receipts without their statistics."""


@dataclass(frozen=True, slots=True)
class ReceiptRow:
    """A receipt without its statistics; `digest` is the receipt's own."""

    key: str
    digest: str
    unit: Mapping[str, Any]
    files: Mapping[str, FileEntry]
    quarantine: str | None = None

    @classmethod
    def of(cls, receipt: Receipt) -> ReceiptRow:
        """Return the row of `receipt`."""
        return cls(receipt.key, receipt.digest, receipt.unit, receipt.files, receipt.quarantine)

    @property
    def bytes(self) -> int:
        """Bytes of its files."""
        return sum(entry.bytes for entry in self.files.values())

    def to_json(self) -> dict[str, Any]:
        """Return the row's columns, as in `ROWS`."""
        return {
            "key": self.key,
            "receipt": self.digest,
            "unit": canonical_json(dict(self.unit)),
            "files": canonical_json({name: entry.to_json() for name, entry in self.files.items()}),
            "quarantine": self.quarantine,
        }


def row_of(columns: Mapping[str, Any]) -> ReceiptRow:
    """Return the row with these columns of `ROWS`."""
    files = {name: FileEntry(**entry) for name, entry in json.loads(columns["files"]).items()}
    return ReceiptRow(columns["key"], columns["receipt"], json.loads(columns["unit"]), files, columns["quarantine"])


@dataclass(frozen=True, slots=True)
class Receipts:
    """The receipts of a job's items, in order.

    Attributes:
        count: how many there are.
        bytes: of all their files.
        held: their rows where there are at most `FAN_IN`, and `merged` their statistics.
        leaves: else the keys of the nodes that hold their rows, in order, and
        nodes: the rows of all nodes of the tree, the root last.
    """

    store: Store
    count: int
    bytes: int
    held: tuple[ReceiptRow, ...] = ()
    merged: Statistics | None = None
    leaves: tuple[str, ...] = ()
    nodes: tuple[ReceiptRow, ...] = ()

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[ReceiptRow]:
        """Yield the rows in order, those of one node at a time."""
        yield from self.held
        for leaf in self.leaves:
            yield from node_rows(self.store, leaf)

    def statistics(self) -> Statistics:
        """Return the merged statistics."""
        return read_node(self.store, self.nodes[-1].key).statistics if self.nodes else self.merged or {}

    def samples(self) -> pa.RecordBatch:
        """Return the merged samples."""
        keys = self.nodes[-1:] or self.held
        return merged_samples(self.store, (row.key for row in keys if "samples.parquet" in row.files))


def held(store: Store, receipts: Sequence[Receipt]) -> Receipts:
    """Return a few `receipts` together."""
    rows = tuple(ReceiptRow.of(receipt) for receipt in receipts)
    size = sum(row.bytes for row in rows)
    return Receipts(store, len(rows), size, rows, merge_all(receipt.statistics for receipt in receipts))


def node_rows(store: Store, key: str) -> Iterator[ReceiptRow]:
    """Yield the rows of a node."""
    table = pq.read_table(store.local(f"{shard_folder(key)}/rows.parquet"), schema=ROWS)
    yield from map(row_of, table.to_pylist())


@dataclass(frozen=True, slots=True)
class Node:
    """What the receipts below a node say together: the `size` of their files in bytes, and statistics."""

    size: int
    statistics: Statistics

    def content(self) -> bytes:
        """Return `merged.json` of the node."""
        return json_line(self_digested({"bytes": self.size, "statistics": self.statistics}))


def read_node(store: Store, key: str) -> Node:
    """Return a node.

    Raises:
        StoreError: the file is missing or damaged.
    """
    name = f"{shard_folder(key)}/{MERGED}"
    value = check_self_digest(store.read_json(name), store.url(name))
    return Node(value["bytes"], value["statistics"])


def merged_samples(store: Store, keys: Iterator[str]) -> pa.RecordBatch:
    """Return the samples of these shards or nodes together: the lowest of each kind."""
    samples = Samples()
    for key in keys:
        samples.merge(pq.read_table(store.local(f"{shard_folder(key)}/samples.parquet"), schema=SAMPLES))
    return samples.batch()


def table_of(receipts: Iterator[ReceiptRow]) -> pa.RecordBatch:
    """Return `receipts` as columns of `ROWS`."""
    return rows(ROWS, [row.to_json() for row in receipts])
