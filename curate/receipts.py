"""Receipts (what a task produced) and manifests (what a stage produced; its presence is the commit).

Both are canonical JSON with their own digest as the field "digest". They hold nothing of the machine: no time, no
host, no attempt, so that two honest runs write the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

from curate.accounting.statistics import Statistics
from curate.digests import short
from curate.formats import Format, FormatError
from curate.store import MissingError, Store, StoreError, check_self_digest, json_line, self_digested

_REMEDY: Final = "use the version that wrote it, or run the recipe again into a new store"


def _without_logical_bytes(value: dict[str, Any]) -> dict[str, Any]:
    """Lift version 1, whose files did not say their logical bytes: they are unknown."""
    return value


def _without_values(value: dict[str, Any]) -> dict[str, Any]:
    """Lift version 2, whose samples did not say what documents are: the columns read as nulls."""
    return value


RECEIPT: Final = Format(3, _REMEDY, (_without_logical_bytes, _without_values))
"""Format of `receipt.json`."""
MANIFEST: Final = Format(3, _REMEDY, (_without_logical_bytes, _without_values))
"""Format of `manifest.json` of every kind, and of `shards.parquet`."""
STATISTICS: Final = Format(1, _REMEDY)
"""Format of `statistics.json`."""


LISTED_FROM: Final = 1000
"""Shards from which on a remote store is asked for a listing rather than for each."""

ASKED_AT_ONCE: Final = 16
"""Requests for receipts that a remote store gets at once."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file of a shard or dataset: size and BLAKE3 digest of its bytes.

    Tables have their rows too, and documents their content digest and logical bytes (see `curate.writer`).
    """

    bytes: int
    digest: str
    rows: int | None = None
    content: str | None = None
    logical: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the entry as it stands in receipts and manifests."""
        return {name: getattr(self, name) for name in ("bytes", "digest", "rows", "content", "logical")}


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
        stored: digest field of the receipt that it was read from, which may be of an earlier format.
    """

    key: str
    task: str
    unit: Mapping[str, Any]
    files: Mapping[str, FileEntry]
    statistics: Statistics = field(default_factory=dict)
    quarantine: str | None = None
    stored: str | None = field(default=None, compare=False)

    @property
    def digest(self) -> str:
        """Its own digest: what manifests list it by."""
        return self.stored or str(self.to_json()["digest"])

    def to_json(self) -> dict[str, Any]:
        """Return the receipt with its own digest."""
        return self_digested(
            {
                "format": RECEIPT.stamp,
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
    path = store.url(name)
    try:
        stored = store.read_json(name)
    except MissingError:
        return None
    value = lift(RECEIPT, check_self_digest(stored, path), path)
    if value["key"] != key:
        raise StoreError(f"{path} belongs to the shard key {value['key']}, not to {key}")
    files = {file: FileEntry(**entry) for file, entry in value["files"].items()}
    rest = (value["statistics"], value["quarantine"], value["digest"])
    return Receipt(value["key"], value["task"], value["unit"], files, *rest)


def finished(store: Store, keys: Sequence[str]) -> set[str]:
    """Return those of the shards `keys` that have a receipt; no receipt is read.

    A remote store is asked for each of a few, and for one listing where there are many: a request names a thousand.
    """
    if store.is_remote and len(keys) >= LISTED_FROM:
        names = store.names("shards")
        there = {name.split("/")[1] for name in names if name.endswith("/receipt.json")}
        return {key for key in keys if short(key) in there}
    names = [f"{shard_folder(key)}/receipt.json" for key in keys]
    if not store.is_remote:
        return {key for key, name in zip(keys, names, strict=True) if store.exists(name)}
    with ThreadPoolExecutor(ASKED_AT_ONCE) as pool:
        return {key for key, there in zip(keys, pool.map(store.exists, names), strict=True) if there}


def lift(form: Format, value: dict[str, Any], path: str) -> dict[str, Any]:
    """Return what `value` says in the current version of its format; its digest stays that of the stored file.

    Raises:
        StoreError: it is of a version that is not read.
    """
    try:
        return form.lift(value, path)
    except FormatError as error:
        raise StoreError(str(error)) from None


def read_manifest(store: Store, folder: str) -> dict[str, Any]:
    """Return the checked manifest of the dataset or recipe in `folder`.

    Raises:
        StoreError: it is missing, damaged or of another format.
    """
    name = f"{folder}/manifest.json"
    path = store.url(name)
    return lift(MANIFEST, check_self_digest(store.read_json(name), path), path)


def committed_folders(store: Store) -> list[str]:
    """Return the folders of a store that have a manifest, ordered."""
    return [folder for folder in store.folders() if store.exists(f"{folder}/manifest.json")]
