"""What a store holds that no kept result names: what `curate gc` lists, and removes when it is told to.

Roots are the manifests of kept results. From them: the manifests of their stages, and from those their files, shards
and caches. All else is a leftover, in kinds that are removed in this order: whoever is stopped in between leaves a
store with unfinished stages, never a damaged one, as a manifest goes before the receipts that it lists, and a receipt
before its files. Journals, the stat index, and files that curate never writes are left alone.

Cost: one listing, the kept manifests and their lists of shards; no receipt is read. Memory: the names of all files.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from curate.accounting.quarantine import quarantine_name
from curate.caches.description import NAME as CACHE
from curate.caches.description import read_description
from curate.datasets import Dataset, dataset_folder
from curate.receipts import committed_folders, read_manifest, shard_folder
from curate.storage.files import Entry
from curate.storage.spool import SPOOL
from curate.store import REPORT_FILES, Store, StoreError

KINDS: Final = (
    "report page",  # of a result that is not kept
    "manifest of a result",
    "manifest of a stage",
    "cache.json",
    "receipt",
    "quarantine list",
    "inner file",  # read by tasks of a finished stage, and by nothing later
    "shard file",
    "cache file",
    "file of a result or stage",
    "lock of a killed writer",
    "spool file",
    "journal",
)
"""What leftovers are, in the order in which they are removed."""

INNER: Final = "inner"
JOURNALS: Final = "journals"
MORE: Final = (INNER, JOURNALS)
"""What goes only on request: what tasks in between of kept stages left, and journals of runs that ended."""

LOCK: Final = "__lock"
OWN: Final = ("manifest.json", "shards.parquet", "statistics.json", "samples.parquet", "tokenizer.json", "plan.json")
"""Names of files in the folders of results and stages."""

BESIDE: Final = re.compile(r"provenance/inputs\.jsonl|provenance/recipe-[0-9a-f]{16}\.py|packings/[0-9a-f]{64}")
"""Names of files in folders below those of results."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """A file that no kept result names, and its kind, one of `KINDS`."""

    entry: Entry
    kind: str

    @property
    def name(self) -> str:
        """Its name in the store."""
        return self.entry.name


@dataclass(slots=True)
class Kept:
    """What kept results name: folders of results and stages, shards, caches; `inner` are shards of tasks in between."""

    folders: set[str] = field(default_factory=set)
    shards: set[str] = field(default_factory=set)
    quarantine: set[str] = field(default_factory=set)
    caches: set[str] = field(default_factory=set)
    cached: set[str] = field(default_factory=set)
    inner: set[str] = field(default_factory=set)
    contents: list[str] = field(default_factory=list)


def kept_by(store: Store, results: Sequence[str]) -> Kept:
    """Return what the results in the folders `results` name.

    Raises:
        StoreError: a manifest is missing or damaged, so that what it names cannot be told.
    """
    kept = Kept()
    for folder in results:
        manifest = read_manifest(store, folder)
        kept.folders.add(folder)
        kept.contents.append(manifest["content"])
        for stage in manifest["stages"]:
            _keep_stage(store, dataset_folder(stage["name"], stage["key"]), kept)
    kept.inner -= kept.shards
    return kept


def _keep_stage(store: Store, folder: str, kept: Kept) -> None:
    if folder in kept.folders:
        return
    kept.folders.add(folder)
    manifest = read_manifest(store, folder)
    kept.inner.update(shard_folder(entry["key"]) for entry in manifest["inner"])
    if manifest["kind"] == "dataset":
        for shard in Dataset(store, folder, manifest).shards():
            kept.shards.add(shard_folder(shard["key"]))
            kept.quarantine.add(quarantine_name(shard["key"]))
    for cell in manifest.get("cells", {}).values():
        kept.caches.add(cell["folder"])
        kept.inner.add(shard_folder(cell["receipt"]))
        listed = read_description(store.within(cell["folder"]), cell["content"]).files
        kept.cached.update(f"{cell['folder']}/{name}" for name in (*listed, CACHE))
    for entry in (*manifest["inputs"], *manifest.get("models", ())):
        _keep_stage(store, dataset_folder(entry["name"], entry["key"]), kept)


def leftovers(store: Store, results: Sequence[str], more: Collection[str] = ()) -> list[Leftover]:
    """Return what is left over when the results in the folders `results` are kept, in the order of removal.

    `more` are names of `MORE`.

    Raises:
        StoreError: a manifest of a kept result is missing or damaged; nothing can be removed safely then.
    """
    kept = kept_by(store, results)
    entries = store.entries()
    tokenizers = {_folder(entry.name) for entry in entries if entry.name.endswith("/tokenizer.json")}
    collected = kept.inner - tokenizers if INNER in more else set()
    committed = set(committed_folders(store))
    found = [
        Leftover(entry, kind)
        for entry in entries
        if (kind := _kind(store, entry.name, kept, committed, collected, more)) is not None
    ]
    return sorted(found, key=lambda leftover: (KINDS.index(leftover.kind), leftover.name))


def _folder(name: str) -> str:
    return name.rpartition("/")[0]


def _kind(
    store: Store, name: str, kept: Kept, committed: set[str], collected: set[str], more: Collection[str]
) -> str | None:
    top, _, below = name.partition("/")
    if name.endswith(LOCK):
        return "lock of a killed writer"
    if top == SPOOL:
        return "spool file"
    if top == "shards":
        return _kind_in_shard(name, kept, collected)
    if top == "caches":
        return _kind_in_cache(name, kept)
    if top == "quarantine":
        return None if name in kept.quarantine else "quarantine list"
    if top == "runs":
        return "journal" if JOURNALS in more and "/" in below else None
    if name in REPORT_FILES:
        return None if _shows(store, name, kept.contents) else "report page"
    if top not in kept.folders and (below in OWN or BESIDE.fullmatch(below)):
        return _kind_in_folder(store, top, below, committed)
    return None


def _kind_in_shard(name: str, kept: Kept, collected: set[str]) -> str | None:
    folder = _folder(name)
    if folder in kept.shards or (folder in kept.inner and folder not in collected):
        return None
    if name.endswith("/receipt.json"):
        return "receipt"
    return "inner file" if folder in collected else "shard file"


def _kind_in_cache(name: str, kept: Kept) -> str | None:
    folder = "/".join(name.split("/")[:2])
    if folder in kept.caches:
        return None if name in kept.cached else "cache file"
    return "cache.json" if name == f"{folder}/{CACHE}" else "cache file"


def _kind_in_folder(store: Store, folder: str, below: str, committed: set[str]) -> str | None:
    if below != "manifest.json":
        return "file of a result or stage"
    if folder not in committed:
        return None
    try:
        kind = read_manifest(store, folder)["kind"]
    except StoreError:  # damaged: it is not kept, and goes like that of a stage
        kind = ""
    return "manifest of a result" if kind == "recipe" else "manifest of a stage"


def _shows(store: Store, name: str, contents: Sequence[str]) -> bool:
    """Return whether the page in the store, or its values, is that of a kept result: it quotes its digest."""
    page = store.read_bytes(name)
    return any(content.encode() in page for content in contents)


def by_kind(found: Sequence[Leftover]) -> Iterator[tuple[str, int, int]]:
    """Yield kind, files and bytes of what was found."""
    for kind in KINDS:
        mine = [leftover.entry.size for leftover in found if leftover.kind == kind]
        if mine:
            yield kind, len(mine), sum(mine)


def by_folder(found: Sequence[Leftover]) -> dict[str, list[Any]]:
    """Return folder (or file at the top) → [files, bytes], ordered."""
    folders: dict[str, list[int]] = {}
    for leftover in found:
        parts = leftover.name.split("/")
        inside = parts[0] in ("shards", "caches", "runs") and len(parts) > 2
        counted = folders.setdefault("/".join(parts[: 2 if inside else 1]), [0, 0])
        counted[0] += 1
        counted[1] += leftover.entry.size
    return dict(sorted(folders.items()))
