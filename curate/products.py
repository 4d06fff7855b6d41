"""What stages make that is no dataset: trained tokenizers, fitted models, token caches. Each has a folder and manifest.

`<store>/<name>-<key>/` of a tokenizer holds `tokenizer.json`, that of a model its files; that of caches holds the
manifest alone, which names each cache's folder below `<store>/caches/` with its content digest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curate.caches.cache import TokenCache
from curate.committing.commit import entries_of, inner_of
from curate.committing.gathered import ReceiptRow, Receipts
from curate.datasets import Committed, dataset_folder
from curate.digests import digest_json
from curate.receipts import MANIFEST, FileEntry, read_manifest
from curate.recipes.models import StoredModel
from curate.store import Store, StoreError, json_line, self_digested
from transforms.tokens import Tokenizer


@dataclass(frozen=True, slots=True)
class TokenizerFile(Committed):
    """A trained tokenizer in a store; its content digest is that of tokenizer.json."""

    @property
    def path(self) -> Path:
        """The tokenizer.json on this node."""
        return self.store.local(f"{self.folder}/tokenizer.json", self.content)

    def tokenizer(self, bos: str | None, eos: str | None) -> Tokenizer:
        """Return it with what marks the ends of documents."""
        return Tokenizer(self.path, bos=bos, eos=eos)


@dataclass(frozen=True, slots=True)
class ModelFiles(Committed):
    """A model that a stage fitted: files, of which transforms are given one, and a card."""

    @property
    def card(self) -> Mapping[str, Any]:
        """What is known of it, in numbers and words."""
        return dict(self.manifest["card"])

    def file(self, name: str) -> StoredModel:
        """Return its file of this name."""
        digest = self.manifest["files"][name]["digest"]
        return StoredModel(self.store, f"{self.folder}/{name}", digest, self.key)


@dataclass(frozen=True, slots=True)
class Caches(Committed):
    """The token caches that one stage made: a mapping of cells; the content digest is over those of all cells."""

    @property
    def cells(self) -> tuple[str, ...]:
        """Names of the cells, ordered."""
        return tuple(self.manifest["cells"])

    def place(self, cell: str) -> Store:
        """Return the folder of the cache of `cell`."""
        return self.store.within(self.manifest["cells"][cell]["folder"])

    def open(self) -> dict[str, TokenCache]:
        """Open all caches, checked against what the manifest says.

        Raises:
            CacheError: one is cut short, damaged, of another tokenizer or format, or another cache stands in its place.
        """
        return {
            cell: TokenCache.open(self.place(cell), digest=entry["content"])
            for cell, entry in self.manifest["cells"].items()
        }

    def __str__(self) -> str:
        cells = self.manifest["cells"].values()
        tokens = sum(cell["tokens"] for cell in cells)
        return f"{self.name} ({self.key[:16]}): {tokens:,} tokens in {len(cells):,} caches"


@dataclass(frozen=True, slots=True)
class MadeOf:
    """What a manifest says of how something was made: configuration, inputs and the receipts of tasks in between."""

    name: str
    key: str
    operation: dict[str, Any]
    inputs: Sequence[Any]
    inner: Sequence[Receipts]

    def fields(self, kind: str) -> dict[str, Any]:
        """Return the fields that manifests of every kind have."""
        return {
            "format": MANIFEST.stamp,
            "kind": kind,
            "name": self.name,
            "key": self.key,
            "operation": self.operation,
            "inputs": entries_of(self.inputs),
            "inner": inner_of(self.inner),
        }


def commit_tokenizer(store: Store, made: MadeOf, content: bytes, card: Mapping[str, Any]) -> TokenizerFile:
    """Publish a trained tokenizer with its card: what it was trained on, in numbers."""
    folder = dataset_folder(made.name, made.key)
    digest = store.publish_bytes(content, f"{folder}/tokenizer.json")
    files = {"tokenizer.json": FileEntry(len(content), digest).to_json()}
    manifest = {**made.fields("tokenizer"), "content": digest, "card": dict(card), "files": files}
    store.publish_bytes(json_line(self_digested(manifest)), f"{folder}/manifest.json")
    return TokenizerFile(store, folder, read_manifest(store, folder))


def commit_model(store: Store, made: MadeOf, files: Mapping[str, bytes], card: Mapping[str, Any]) -> ModelFiles:
    """Publish the files of a fitted model with its card; the content digest is over those of all files."""
    folder = dataset_folder(made.name, made.key)
    entries = {}
    for name, data in sorted(files.items()):
        digest = store.publish_bytes(data, f"{folder}/{name}")
        entries[name] = FileEntry(len(data), digest).to_json()
    content = digest_json({name: entry["digest"] for name, entry in entries.items()})
    manifest = {**made.fields("model"), "content": content, "card": dict(card), "files": entries}
    store.publish_bytes(json_line(self_digested(manifest)), f"{folder}/manifest.json")
    return ModelFiles(store, folder, read_manifest(store, folder))


def commit_caches(store: Store, made: MadeOf, receipts: Iterable[ReceiptRow], backend: Mapping[str, Any]) -> Caches:
    """Publish the manifest of token caches.

    `receipts` are those of their last tasks, in the order of cells; `backend` says which library encoded.
    """
    folder = dataset_folder(made.name, made.key)
    cells = {str(receipt.unit["cell"]): {**receipt.unit, "receipt": receipt.key} for receipt in receipts}
    content = digest_json({cell: entry["content"] for cell, entry in cells.items()})
    manifest = {**made.fields("caches"), "content": content, "cells": cells, "files": {}, "backend": dict(backend)}
    store.publish_bytes(json_line(self_digested(manifest)), f"{folder}/manifest.json")
    return Caches(store, folder, read_manifest(store, folder))


def open_product(store: Store, name: str, key: str) -> TokenizerFile | ModelFiles | Caches:
    """Open a committed tokenizer, model or caches.

    Raises:
        StoreError: it is missing, damaged, of another kind or format, or another key stands in its place.
    """
    folder = dataset_folder(name, key)
    manifest = read_manifest(store, folder)
    kinds: dict[str, type[TokenizerFile] | type[ModelFiles] | type[Caches]] = {
        "tokenizer": TokenizerFile,
        "model": ModelFiles,
        "caches": Caches,
    }
    if manifest["key"] != key or manifest["kind"] not in kinds:
        raise StoreError(f"{store.url(folder)} is a {manifest['kind']} with key {manifest['key']}, asked for was {key}")
    return kinds[manifest["kind"]](store, folder, manifest)
