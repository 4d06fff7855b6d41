"""Verifying a store: every byte outside `runs/` is covered by a digest, and every count by another count.

Manifests name their files and receipts, receipts their files, both themselves. What a killed task left without a
receipt promises nothing: it is listed as a note. Cost: one pass over the bytes, and one more over the receipts.
Memory: a row for each receipt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from curate.accounting.accountant import ConservationError
from curate.accounting.conservation import check_documents
from curate.accounting.quarantine import quarantine_name, quarantined, read_quarantine
from curate.accounting.statistics import Statistics, merge_all
from curate.caches.description import NAME as CACHE
from curate.caches.description import read_description
from curate.committing.gathered import ReceiptRow
from curate.configuration import ConfigurationError
from curate.datasets import Dataset
from curate.digests import digest_json, short
from curate.receipts import (
    MANIFEST,
    RECEIPT,
    Receipt,
    committed_folders,
    lift,
    read_manifest,
    read_receipt,
    shard_folder,
)
from curate.store import REPORT_FILES, Store, StoreError, check_self_digest

UNHASHED: Final = ("runs", "spool")
"""Folders of a store that nothing hashes."""


@dataclass(slots=True)
class Verification:
    """What `verify` found: files and bytes checked, problems that break a promise, notes that do not."""

    files: int = 0
    bytes: int = 0
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether no promise is broken."""
        return not self.problems


def verify(place: Path | str | Store, told: Callable[[int], None] = lambda size: None) -> Verification:
    """Check every file of the store at `place`, a path, a URL or a store.

    `told` is called with the size of each file that is checked.

    Raises:
        ConfigurationError: it is no store.
    """
    store = place if isinstance(place, Store) else Store(place)
    if not committed_folders(store):
        raise ConfigurationError(
            f"{store.url('')} is no store: it has no manifest. Give the place that `curate run --store` wrote"
        )
    return _Verifier(store, told).run()


class _Verifier:
    def __init__(self, store: Store, told: Callable[[int], None]) -> None:
        self.store, self.told = store, told
        self.found = Verification()
        self.sizes = {entry.name: entry.size for entry in store.entries()}
        self.folders = committed_folders(store)
        self.seen: set[str] = set()
        self.receipts: dict[str, ReceiptRow] = {}
        self.collected: set[str] = set()

    def run(self) -> Verification:
        for folder in self.store.folders("shards"):
            self._shard(folder)
        for folder in self.folders:
            self._guard(f"{folder}/manifest.json", lambda folder=folder: self._manifest(folder))
        self._strangers()
        return self.found

    def _guard(self, name: str, check: Any) -> None:
        try:
            check()
        except (StoreError, ConservationError, pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
            text = str(error)
            self._problem(name, text if self.store.url(name) in text else f"{type(error).__name__}: {text}")

    def _problem(self, name: str, what: str) -> None:
        self.found.problems.append(what if name in what else f"{name}: {what}")

    def _count(self, name: str) -> None:
        self.seen.add(name)
        self.found.files += 1
        self.found.bytes += self.sizes[name]
        self.told(self.sizes[name])

    def _shard(self, folder: str) -> None:
        name = f"{folder}/receipt.json"
        if name not in self.sizes:
            self.found.notes.append(f"{folder}: no receipt, left by a task that did not finish")
            self.seen.update(other for other in self.sizes if other.startswith(f"{folder}/"))
            return
        self._guard(name, lambda: self._receipt(folder, name))

    def _receipt(self, folder: str, path: str) -> None:
        self._count(path)
        key = self._json(path)["key"]
        if shard_folder(key) != folder:
            self._problem(path, f"belongs to the shard {short(key)}")
            return
        receipt = read_receipt(self.store, key)
        if receipt is None:
            return
        self.receipts[key] = ReceiptRow.of(receipt)
        for name, entry in receipt.files.items():
            self._file(f"{folder}/{name}", entry.digest)
        if "steps" in receipt.statistics:
            check_documents(receipt, folder)
        self._list(path, receipt)

    def _list(self, path: str, receipt: Receipt) -> None:
        """Check that the quarantine list is the one that the shard was made with, and names what it lost."""
        name = quarantine_name(receipt.key)
        listed = read_quarantine(self.store, receipt.key)
        if listed.digest != receipt.quarantine:
            self._problem(path, f"{name} is not the list that this task read")
        elif listed.digest is not None:
            named = Counter(verdict.reason for verdict in listed.verdicts.values())
            for reason, count in quarantined(receipt.statistics).items():
                if count > named[reason]:
                    self._problem(path, f"{count} documents were quarantined as {reason}, {name} has {named[reason]}")

    def _json(self, name: str) -> dict[str, Any]:
        path = self.store.url(name)
        value = check_self_digest(self.store.read_json(name), path)
        return lift(RECEIPT if name.endswith("/receipt.json") else MANIFEST, value, path)

    def _file(self, name: str, digest: str) -> None:
        if name not in self.sizes:
            self._problem(name, "is missing")
            return
        self._count(name)
        if (found := self.store.digest(name)) != digest:
            self._problem(name, f"has the digest {found}, written was {digest}: the file is damaged")

    def _manifest(self, folder: str) -> None:
        path = f"{folder}/manifest.json"
        self._count(path)
        manifest = self._json(path)
        for name, entry in manifest["files"].items():
            self._file(f"{folder}/{name}", entry["digest"])
        if manifest["kind"] == "recipe":
            self._recipe(folder, manifest)
            return
        inner = self._inner(folder, manifest["inner"])
        if manifest["kind"] == "dataset":
            self._dataset(path, Dataset(self.store, folder, manifest), inner)
        elif manifest["kind"] == "caches":
            for cell in manifest["cells"].values():
                self._guard(f"{cell['folder']}/{CACHE}", lambda cell=cell: self._cache(cell))

    def _dataset(self, path: str, dataset: Dataset, inner: list[ReceiptRow]) -> None:
        listed = [self._listed(dataset.folder, shard["key"], shard["receipt"]) for shard in dataset.each_shard()]
        receipts = [receipt for receipt in listed if receipt is not None]
        if len(receipts) == dataset.manifest["shards"]:
            self._sums(path, dataset, receipts, inner)

    def _cache(self, cell: dict[str, Any]) -> None:
        folder = cell["folder"]
        self._file(f"{folder}/{CACHE}", cell["cache"])
        description = read_description(self.store.within(folder), cell["content"])
        for name, entry in description.files.items():
            self._file(f"{folder}/{name}", entry["digest"])

    def _inner(self, folder: str, listed: list[dict[str, str]]) -> list[ReceiptRow]:
        """Return the receipts of the tasks in between that are there: `curate gc --inner` removes them."""
        there = [entry for entry in listed if f"{shard_folder(entry['key'])}/receipt.json" in self.sizes]
        if gone := len(listed) - len(there):
            self.collected.add(folder)
            self.found.notes.append(f"{folder}: {gone} of {len(listed)} tasks in between were collected")
        return [receipt for entry in there if (receipt := self._listed(folder, entry["key"], entry["receipt"]))]

    def _listed(self, folder: str, key: str, digest: str) -> ReceiptRow | None:
        receipt = self.receipts.get(key)
        if receipt is None:
            self._problem(f"{shard_folder(key)}/receipt.json", f"is missing or damaged; {folder} needs it")
        elif receipt.digest != digest:
            self._problem(f"{shard_folder(key)}/receipt.json", f"is not the receipt that {folder} lists")
        return receipt

    def _sums(self, path: str, dataset: Dataset, receipts: list[ReceiptRow], inner: list[ReceiptRow]) -> None:
        manifest = dataset.manifest
        parts = [entry for receipt in receipts if (entry := receipt.files.get("part.parquet"))]
        if sum(entry.rows or 0 for entry in parts) != manifest["rows"]:
            self._problem(path, f"says {manifest['rows']} documents, its shards hold {sum(e.rows or 0 for e in parts)}")
        if digest_json({"schema": manifest["schema"], "shards": [e.content for e in parts]}) != manifest["content"]:
            self._problem(path, "its content digest is not that of its shards")
        merged = merge_all(self._statistics(row.key) for row in (*receipts, *inner))
        stored = {name: value for name, value in dataset.statistics.items() if name not in ("digest", "format")}
        if dataset.folder in self.collected:  # what they counted cannot be added up again
            stored = {name: value for name, value in stored.items() if name in merged}
        if merged != stored:
            self._problem(path, "statistics.json is not the sum of its shards' statistics")

    def _statistics(self, key: str) -> Statistics:
        receipt = read_receipt(self.store, key)
        return {} if receipt is None else receipt.statistics

    def _recipe(self, folder: str, manifest: dict[str, Any]) -> None:
        listed = {dataset["digest"] for dataset in [*manifest["outputs"].values(), *manifest["stages"]]}
        if missing := listed - set(self._manifests()):
            self._problem(f"{folder}/manifest.json", f"{len(missing)} of its stages are missing or damaged")

    def _manifests(self) -> Iterator[str]:
        """Yield the digests of all manifests that are sound."""
        for folder in self.folders:
            with suppress(StoreError):  # reported where it is checked
                yield read_manifest(self.store, folder)["digest"]

    def _strangers(self) -> None:
        read = {quarantine_name(key) for key, receipt in self.receipts.items() if receipt.quarantine}
        for name in self.sizes:
            top, _, below = name.partition("/")
            if name in REPORT_FILES or top in UNHASHED or name in self.seen:
                continue
            if name in read:
                self._count(name)
            elif top == "quarantine":
                self.found.notes.append(f"{name}: read by no task that has finished")
            elif top == "shards" or (top in self.folders and "/" not in below):
                self._problem(name, "belongs to no receipt or manifest")
            else:
                self.found.notes.append(f"{name}: not part of the store")
