"""Tokenizing a dataset into caches, one per cell: the choreography. Two passes, lengths known between them.

    tokenizer   once            its file, kept in the store
    cells       per shard       combinations of values          → cells and partitions
    tokens      per shard       ids of its documents            → exchanges by (cell, order)
    lengths     per partition   documents in order              → where each begins
    write       per zarr shard  tokens; offsets, ids, origins, text digests
    finish      per cell        metadata, then cache.json

The order of documents is that of a keyed digest of their texts, so cells hold the same tokens and offsets however the
documents were cut into shards. Nothing is copied once it is written. Memory: the buffers of exchange files, one zarr
shard.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from curate import exchange
from curate.accounting.statistics import merge_all
from curate.caches.backend import FALL_BACK, Backend, choose_backend
from curate.caches.encode import CellsJob, TokensJob, check_cells, read_cells
from curate.caches.errors import CacheError
from curate.caches.finish import FinishJob, writers
from curate.caches.layout import LAYOUT, Layout
from curate.caches.lengths import Lengths, LengthsJob, read_lengths
from curate.caches.plan import Cell, Plan, SourceShard, Values, cell_name
from curate.caches.values import columns_in
from curate.caches.write import WriteDocumentsJob, WriteTokensJob
from curate.committing.gathered import Receipts, held
from curate.configuration import ConfigurationError
from curate.datasets import Dataset
from curate.digests import digest_json
from curate.exchange import Limits
from curate.receipts import Receipt, read_receipt, shard_folder
from curate.regroup import Regrouped, regroup
from curate.running.jobs import Item, Job, RunsJobs, publish_files
from curate.store import Store
from transforms.not_trained import NOT_TRAINED
from transforms.tokens import Tokenizer

COLUMN_TYPES: Final = ("string", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
"""Types of columns whose values can make cells."""


@dataclass(frozen=True, slots=True)
class Tokenization:
    """One tokenization of `dataset` under the stage's `key`; a cell per combination of values of the columns `by`."""

    dataset: Dataset
    tokenizer: Tokenizer
    by: tuple[str, ...]
    key: str
    engine: RunsJobs
    layout: Layout = LAYOUT
    fast: str = FALL_BACK

    def run(self) -> tuple[Receipts, list[Receipts], dict[str, Any]]:
        """Return the receipts of the caches, ordered by cell, those of the tasks in between, and what encoded.

        The unit of a cache's receipt has its cell, folder, content digest, tokens, documents, and the file digest of
        its `cache.json`.

        Raises:
            ConfigurationError: a column of `by` is not there, or of a type that makes no cells.
            CacheError: the dataset has no documents, or too many cells, or two cells have one name.
        """
        check_by(self.by, self.dataset.manifest["schema"])
        plan, kept = self._plan()
        inner = [held(self.engine.store, [kept])]
        shards = range(len(plan.shards))
        inner.append(self._receipts(plan, CellsJob(plan), "cells", shards))
        plan = replace(plan, cells=make_cells(plan.by, merge_cells(plan), plan.limits))
        encodings, backend, record = self._encode(plan, shards)
        encoded = encodings[-1]
        inner += encodings
        tasks = [plan.inner_key("tokens", unit_of(backend, shard)) for shard in shards]
        documents, merges = regroup(self.engine, plan.documents, tasks)
        inner += merges
        inner.append(self._inner(plan, LengthsJob(plan, documents), "lengths", range(plan.partitions)))
        lengths = tuple(read_lengths(plan))
        self._check_counts(lengths)
        tokens, merges = regroup(self.engine, plan.tokens, tasks)
        inner += merges
        written = self._write(plan, lengths, tokens)
        statistics = merge_all(receipts.statistics() for receipts in (encoded, *written))["cells"]
        finish = FinishJob(plan, lengths, statistics, self._described_dataset())
        caches = self._receipts(plan, finish, "finish", range(len(plan.cells)))
        return caches, [*inner, *written], record

    def _encode(self, plan: Plan, shards: range) -> tuple[list[Receipts], Backend, dict[str, Any]]:
        """Return the receipts of all encodings, the last of which counts, what it was made with, and the record."""
        backend = choose_backend(self.fast, plan.tokenizer)
        made, compared = [self._tokens(plan, backend, shards)], {}
        if backend.name is not None:
            compared = made[0].statistics().get("compared", {})
            after = backend.after(compared.get("differing", 0))
            if after != backend:
                backend = after
                made.append(self._tokens(plan, backend, shards))
        return made, backend, backend.to_json(compared)

    def _tokens(self, plan: Plan, backend: Backend, shards: range) -> Receipts:
        items = [Item(plan.inner_key("tokens", unit_of(backend, shard)), f"tokens {shard}", shard) for shard in shards]
        return self.engine.receipts(TokensJob(plan, backend), items)

    def _plan(self) -> tuple[Plan, Receipt]:
        store = self.engine.store
        shards = tuple(
            SourceShard(ordinal, shard["key"], shard["rows"])
            for ordinal, shard in enumerate(self.dataset.each_shard(["key", "rows", "content"]))
            if shard["content"] is not None
        )
        if not shards:
            raise CacheError(
                f"{self.dataset.name} keeps no documents, so there is nothing to tokenize: look at its ledger; "
                "of a held-out part, give hold_out(…) more characters= or documents= (each text fits into it, or stays)"
            )
        path, kept = keep_tokenizer(store, self.tokenizer)
        tokenizer = replace(self.tokenizer, path=path)
        encoder = tokenizer.encoder()
        canary = tuple(encoder.canary())
        made = Plan(store, self.key, shards, self.by, tokenizer, encoder.dtype, canary, self.layout, exchange.LIMITS)
        schema = self.dataset.manifest["schema"]
        masked = NOT_TRAINED.name in {column[0] for column in schema}
        return replace(made, masked=masked, counted=columns_in(schema)), kept

    def _receipts(self, plan: Plan, job: Job, task: str, units: Sequence[Any]) -> Receipts:
        items = [Item(plan.task_key(task, unit), f"{task} {unit}", unit) for unit in units]
        return self.engine.receipts(job, items)

    def _inner(self, plan: Plan, job: Job, task: str, units: Sequence[int]) -> Receipts:
        items = [Item(plan.inner_key(task, unit), f"{task} {unit}", unit) for unit in units]
        return self.engine.receipts(job, items)

    def _write(self, plan: Plan, lengths: tuple[Lengths, ...], tokens: Regrouped) -> list[Receipts]:
        jobs: Mapping[str, Job] = {
            "write tokens": WriteTokensJob(plan, lengths, tokens),
            "write documents": WriteDocumentsJob(plan, lengths),
        }
        units = [entry for cell in range(len(plan.cells)) for entry in writers(plan, lengths, cell)]
        return [
            self._receipts(plan, job, task, [unit for name, unit in units if name == task])
            for task, job in jobs.items()
        ]

    def _check_counts(self, lengths: Sequence[Lengths]) -> None:
        documents = sum(int(mine.documents[-1]) for mine in lengths)
        if documents != self.dataset.rows:
            raise CacheError(f"{self.dataset.name} has {self.dataset.rows:,} documents, {documents:,} were tokenized")

    def _described_dataset(self) -> dict[str, str]:
        return {"name": self.dataset.name, "key": self.dataset.key, "content": self.dataset.content}


def unit_of(backend: Backend, shard: int) -> object:
    """Return what stands in the key of the task that encodes an input shard."""
    return {"shard": shard, "backend": backend.name, "codec": "none"}


def check_by(by: Sequence[str], schema: Sequence[Sequence[str]]) -> None:
    """Check that columns can make cells; `schema` is that of a manifest.

    Raises:
        ConfigurationError: one is repeated, not there, or of another type than `COLUMN_TYPES`.
    """
    types: dict[str, str] = {column[0]: column[1] for column in schema}
    if len(set(by)) < len(by):
        raise ConfigurationError(f"by={list(by)} names a column twice")
    for name in by:
        if name not in types:
            raise ConfigurationError(f"by={list(by)}: the documents have no column {name!r}; {', '.join(types)}")
        if types[name] not in COLUMN_TYPES:
            raise ConfigurationError(f"by={list(by)}: {name!r} is {types[name]}; cells come from text, numbers, bool")


def keep_tokenizer(store: Store, tokenizer: Tokenizer) -> tuple[Path, Receipt]:
    """Keep the tokenizer's file in the store, under its digest; return its path there and the receipt."""
    key = tokenizer_key(tokenizer.digest)
    receipt = read_receipt(store, key)
    if receipt is None:
        with store.spool() as path:
            path.write_bytes(tokenizer.content())
            item = Item(key, "tokenizer", {"digest": tokenizer.digest})
            publish_files(store, item, "tokenize: tokenizer", {"tokenizer.json": (path, 1)}, {})
        receipt = read_receipt(store, key)
    if receipt is None or receipt.files["tokenizer.json"].digest != tokenizer.digest:
        raise CacheError(f"the file of {tokenizer} changed while it was copied into the store: run again")
    return stored_tokenizer(store, tokenizer.digest), receipt


def tokenizer_key(digest: str) -> str:
    """Return the shard key under which the tokenizer.json with this digest is kept."""
    return digest_json({"operation": "tokenizer", "digest": digest})


def stored_tokenizer(store: Store, digest: str) -> Path:
    """Return the path of the tokenizer.json with this digest in a store that has caches made with it."""
    return store.local(f"{shard_folder(tokenizer_key(digest))}/tokenizer.json", digest)


def merge_cells(plan: Plan) -> dict[Values, tuple[int, int]]:
    """Return values → documents and estimated bytes over all input shards."""
    merged: dict[Values, tuple[int, int]] = {}
    for values, documents, size in read_cells(plan):
        had = merged.get(values, (0, 0))
        merged[values] = (had[0] + documents, had[1] + size)
        check_cells(plan.by, len(merged))
    return merged


def make_cells(by: Sequence[str], counts: Mapping[Values, tuple[int, int]], limits: Limits) -> tuple[Cell, ...]:
    """Return the cells, ordered by their values with nulls last, and their partitions.

    Raises:
        CacheError: two cells have one name.
    """
    cells: list[Cell] = []
    names: dict[str, Values] = {}
    first = 0
    for values in sorted(counts, key=lambda values: [(value is None, value or "") for value in values]):
        name = cell_name(by, values)
        if name in names:
            raise CacheError(f"the cells of {names[name]} and {values} both have the name {name!r}: change a value")
        names[name] = values
        documents, size = counts[values]
        cells.append(Cell(name, values, documents, first, limits.partitions(size)))
        first += cells[-1].partitions
    return tuple(cells)
