"""Receipts (what a task produced) and manifests (what a stage produced; its presence is the commit).

Both are canonical JSON with their own digest as the field "digest". They hold nothing of the machine: no time, no
host, no attempt, so that two honest runs write the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from curate.digests import short
from curate.statistics import Statistics
from curate.store import Store, StoreError, check_self_digest, json_line, self_digested

FORMAT: Final = 1
"""Version of the format of receipts and manifests."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file of a shard or dataset: size and BLAKE3 digest of its bytes; rows and content digest of tables."""

    bytes: int
    digest: str
    rows: int | None = None
    content: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the entry as it stands in receipts and manifests."""
        return {"bytes": self.bytes, "digest": self.digest, "rows": self.rows, "content": self.content}


@dataclass(frozen=True, slots=True)
class Receipt:
    """What one task produced.

    Attributes:
        key: the shard key, 64 hex digits.
        task: what was done, in words ("documents", "signatures", …).
        unit: what it was done to: path and fingerprint of an input file, or the upstream shard or partition.
        files: the files of the shard by name.
        statistics: mergeable integers.
        quarantine: digest of the quarantine list that the task read, or None.
    """

    key: str
    task: str
    unit: Mapping[str, Any]
    files: Mapping[str, FileEntry]
    statistics: Statistics = field(default_factory=dict)
    quarantine: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the receipt with its own digest."""
        return self_digested(
            {
                "format": FORMAT,
                "key": self.key,
                "task": self.task,
                "unit": dict(self.unit),
                "files": {name: entry.to_json() for name, entry in self.files.items()},
                "statistics": self.statistics,
                "quarantine": self.quarantine,
            }
        )


def shard_folder(key: str) -> str:
    """Return the name of the folder of the shard `key` within the store."""
    return f"shards/{short(key)}"


def publish_receipt(store: Store, receipt: Receipt) -> None:
    """Publish `receipt`: from now on its task is done. Its files must have been published before."""
    store.publish_bytes(json_line(receipt.to_json()), f"{shard_folder(receipt.key)}/receipt.json")


def read_receipt(store: Store, key: str) -> Receipt | None:
    """Return the receipt of the shard `key`, or None when its task is not done.

    Raises:
        StoreError: the receipt is damaged, of another format, or of another shard with the same path.
    """
    name = f"{shard_folder(key)}/receipt.json"
    if not store.exists(name):
        return None
    path = str(store.path(name))
    value = check_format(check_self_digest(store.read_json(name), path), path)
    if value["key"] != key:
        raise StoreError(f"{path} belongs to the shard key {value['key']}, not to {key}")
    files = {file: FileEntry(**entry) for file, entry in value["files"].items()}
    return Receipt(value["key"], value["task"], value["unit"], files, value["statistics"], value["quarantine"])


def check_format(value: dict[str, Any], path: str) -> dict[str, Any]:
    """Return `value` if its format version is the one that this package reads.

    Raises:
        StoreError: it is another version.
    """
    if value.get("format") != FORMAT:
        raise StoreError(
            f"{path} has format {value.get('format')}, this version of curate reads format {FORMAT}: "
            "use the version that wrote it, or run the recipe again into a new store"
        )
    return value


def read_manifest(store: Store, folder: str) -> dict[str, Any]:
    """Return the checked manifest of the dataset or recipe in `folder`.

    Raises:
        StoreError: it is missing, damaged or of another format.
    """
    name = f"{folder}/manifest.json"
    path = str(store.path(name))
    return check_format(check_self_digest(store.read_json(name), path), path)
