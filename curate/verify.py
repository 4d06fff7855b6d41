"""Verifying a store: every byte outside `runs/` is covered by a digest, and every count by another count.

Manifests name their files and receipts, receipts their files, both themselves. What a killed task left without a
receipt promises nothing: it is listed as a note. Cost: one pass over the bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from curate.accounting import ConservationError
from curate.caches.description import NAME as CACHE
from curate.caches.description import read_description
from curate.conservation import check_documents
from curate.datasets import Dataset
from curate.digests import digest_file, digest_json, short
from curate.quarantine import quarantine_name, read_quarantine
from curate.receipts import MANIFEST, RECEIPT, Receipt, lift, read_manifest, read_receipt, shard_folder
from curate.statistics import merge_all
from curate.store import Store, StoreError, check_self_digest, json_line

UNHASHED: Final = ("runs", "spool")
"""Folders of a store that nothing hashes."""

REPORT: Final = "report.html"
"""The page that `curate report` writes into a store: made from what is verified, and made again at any time."""


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


def verify(root: Path) -> Verification:
    """Check every file of the store under `root`.

    Raises:
        StoreError: `root` is no store.
    """
    store = Store(Path(root).resolve())
    if not store.root.is_dir() or not any(store.root.glob("*/manifest.json")):
        raise StoreError(f"{root} is no store: it has no manifest. Give the folder that `curate run --store` wrote")
    return _Verifier(store).run()


class _Verifier:
    def __init__(self, store: Store) -> None:
        self.store = store
        self.found = Verification()
        self.seen: set[Path] = set()
        self.receipts: dict[str, Receipt] = {}
        self.broken: set[str] = set()

    def run(self) -> Verification:
        for folder in sorted((self.store.root / "shards").glob("*")):
            self._shard(folder)
        for path in sorted(self.store.root.glob("*/manifest.json")):
            self._guard(path, lambda path=path: self._manifest(path.parent.name))
        self._strangers()
        return self.found

    def _guard(self, path: Path, check: Any) -> None:
        try:
            check()
        except (StoreError, ConservationError, pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
            text = str(error)
            self._problem(path, text if str(path) in text else f"{type(error).__name__}: {text}")

    def _problem(self, path: Path, what: str) -> None:
        name = path.relative_to(self.store.root).as_posix()
        self.found.problems.append(what if name in what else f"{name}: {what}")

    def _count(self, path: Path) -> None:
        self.seen.add(path)
        self.found.files += 1
        self.found.bytes += path.stat().st_size

    def _shard(self, folder: Path) -> None:
        path = folder / "receipt.json"
        if not path.exists():
            self.found.notes.append(f"shards/{folder.name}: no receipt, left by a task that did not finish")
            self.seen.update(folder.iterdir())
            return
        self._guard(path, lambda: self._receipt(folder, path))

    def _receipt(self, folder: Path, path: Path) -> None:
        self._count(path)
        key = self._json(path)["key"]
        if short(key) != folder.name:
            self._problem(path, f"belongs to the shard {short(key)}")
            return
        receipt = read_receipt(self.store, key)
        if receipt is None:
            return
        self.receipts[key] = receipt
        for name, entry in receipt.files.items():
            self._file(folder / name, entry.digest)
        if "steps" in receipt.statistics:
            check_documents(receipt, f"shards/{folder.name}")
        if read_quarantine(self.store, key).digest != receipt.quarantine:
            self._problem(path, f"{quarantine_name(key)} is not the list that this task read")

    def _json(self, path: Path) -> dict[str, Any]:
        value = check_self_digest(self.store.read_json(self._name(path)), str(path))
        if path.read_bytes() != json_line(value):
            raise StoreError(f"{path} is not canonical JSON: a byte was changed")
        return lift(RECEIPT if path.name == "receipt.json" else MANIFEST, value, str(path))

    def _name(self, path: Path) -> str:
        return path.relative_to(self.store.root).as_posix()

    def _file(self, path: Path, digest: str) -> None:
        if not path.exists():
            self._problem(path, "is missing")
            return
        self._count(path)
        if (found := digest_file(path)) != digest:
            self._problem(path, f"has the digest {found}, written was {digest}: the file is damaged")

    def _manifest(self, folder: str) -> None:
        path = self.store.path(f"{folder}/manifest.json")
        self._count(path)
        manifest = self._json(path)
        for name, entry in manifest["files"].items():
            self._file(path.parent / name, entry["digest"])
        if manifest["kind"] == "recipe":
            self._recipe(folder, manifest)
            return
        inner = [
            receipt for entry in manifest["inner"] if (receipt := self._listed(folder, entry["key"], entry["receipt"]))
        ]
        if manifest["kind"] == "dataset":
            self._dataset(path, Dataset(self.store, folder, manifest), inner)
        elif manifest["kind"] == "caches":
            for cell in manifest["cells"].values():
                self._guard(self.store.path(f"{cell['folder']}/{CACHE}"), lambda cell=cell: self._cache(cell))

    def _dataset(self, path: Path, dataset: Dataset, inner: list[Receipt]) -> None:
        listed = [self._listed(dataset.folder, shard["key"], shard["receipt"]) for shard in dataset.shards()]
        receipts = [receipt for receipt in listed if receipt is not None]
        if len(receipts) == dataset.manifest["shards"]:
            self._sums(path, dataset, receipts, inner)

    def _cache(self, cell: dict[str, Any]) -> None:
        folder = self.store.path(cell["folder"])
        self._file(folder / CACHE, cell["cache"])
        description = read_description(folder, cell["content"])
        for name, entry in description.files.items():
            self._file(folder / name, entry["digest"])

    def _listed(self, folder: str, key: str, digest: str) -> Receipt | None:
        receipt = self.receipts.get(key)
        if receipt is None:
            self._problem(
                self.store.path(f"{shard_folder(key)}/receipt.json"), f"is missing or damaged; {folder} needs it"
            )
        elif receipt.digest != digest:
            self._problem(
                self.store.path(f"{shard_folder(key)}/receipt.json"), f"is not the receipt that {folder} lists"
            )
        return receipt

    def _sums(self, path: Path, dataset: Dataset, receipts: list[Receipt], inner: list[Receipt]) -> None:
        manifest = dataset.manifest
        parts = [entry for receipt in receipts if (entry := receipt.files.get("part.parquet"))]
        if sum(entry.rows or 0 for entry in parts) != manifest["rows"]:
            self._problem(path, f"says {manifest['rows']} documents, its shards hold {sum(e.rows or 0 for e in parts)}")
        if digest_json({"schema": manifest["schema"], "shards": [e.content for e in parts]}) != manifest["content"]:
            self._problem(path, "its content digest is not that of its shards")
        merged = merge_all([receipt.statistics for receipt in (*receipts, *inner)])
        stored = {name: value for name, value in dataset.statistics.items() if name not in ("digest", "format")}
        if merged != stored:
            self._problem(path, "statistics.json is not the sum of its shards' statistics")

    def _recipe(self, folder: str, manifest: dict[str, Any]) -> None:
        listed = {dataset["digest"] for dataset in [*manifest["outputs"].values(), *manifest["stages"]]}
        there = {read_manifest(self.store, path.parent.name)["digest"] for path in self._manifests()}
        if missing := listed - there:
            self._problem(
                self.store.path(f"{folder}/manifest.json"), f"{len(missing)} of its stages are missing or damaged"
            )

    def _manifests(self) -> Iterator[Path]:
        for path in sorted(self.store.root.glob("*/manifest.json")):
            try:
                read_manifest(self.store, path.parent.name)
            except StoreError:
                continue  # reported where it is checked
            yield path

    def _strangers(self) -> None:
        for path in sorted(self.store.root.rglob("*")):
            name = self._name(path)
            if path.is_dir() or name == REPORT or name.split("/")[0] in UNHASHED or path in self.seen:
                continue
            if name.startswith("quarantine/") and self._is_read(path):
                self._count(path)
            elif (path.parent / "manifest.json").exists() or name.startswith(("shards/", "quarantine/")):
                self._problem(path, "belongs to no receipt or manifest")
            else:
                self.found.notes.append(f"{name}: not part of the store")

    def _is_read(self, path: Path) -> bool:
        return any(short(key) == path.stem and receipt.quarantine for key, receipt in self.receipts.items())
