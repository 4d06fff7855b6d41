"""Joining consecutive small shards, so that dataset-wide stages and all that follows see few of them.

The planner puts a compact stage between a document-wise stage and a dataset-wide one that reads it. No row changes,
none changes its place in the dataset: the texts, their order and what is counted of them are those of the input, and
only the cut into shards is another. A shard of about the target size is a group of its own: its file is linked under a
new receipt, not written again (on an object store: copied by way of the node).

Where a group ends depends on the logical bytes and the keys of the shards around that place alone: after a shard with a
fitting key, or where the next would make the group too large. So a file that is added to the input moves the ends near
it and no others, and the groups further on keep their keys. Cost: what is joined is read and written once; statistics
and samples are merged, not made again. It is packed with LZ4, as only the stages that follow read it. Memory:
a row group of the writer.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from curate.accounting.accountant import ConservationError
from curate.accounting.ledger import SAMPLES
from curate.accounting.measured import MEASURES, MEASURES_FILE, Measured
from curate.accounting.measures import measure
from curate.accounting.samples import CELL, Samples
from curate.accounting.statistics import Statistics, merge_all
from curate.committing.gathered import Receipts
from curate.datasets import Dataset
from curate.digests import digest_file, digest_json, digest_unchanged, short
from curate.receipts import FileEntry, Receipt, publish_receipt, read_receipt, shard_folder
from curate.running.documents import read_shard
from curate.running.jobs import Item, RunsJobs
from curate.store import Store, StoreError
from curate.writer import TableWriter, row_bytes, write_parquet

TARGET: Final = 128 << 20
"""Logical bytes that a shard has at most, unless it came in larger."""

FLOW: Final = ("reading", "steps", "who", "quarantine")
"""Parts of a shard's statistics that say what became of what came in; all others count what is kept."""

_ALONE: Final = 2  # a shard of half the target is a group of its own
_LEAST: Final = 4  # a group of less than a quarter of the target ends only where there is no room


@dataclass(frozen=True, slots=True)
class Compact:
    """The operation: `inputs` is empty, as a recipe never says it; `target` is in logical bytes."""

    inputs: tuple[Any, ...] = ()
    target: int = TARGET

    version = 1


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard that comes in: key and logical bytes."""

    key: str
    size: int


def groups_of(shards: Sequence[Shard], target: int = TARGET) -> list[tuple[Shard, ...]]:
    """Return consecutive groups of `shards`, none empty, each of at most `target` logical bytes or of one shard."""
    groups: list[tuple[Shard, ...]] = []
    held: list[Shard] = []
    size = 0
    for shard in shards:
        alone = shard.size * _ALONE >= target
        if held and (alone or size + shard.size > target):
            groups.append(tuple(held))
            held, size = [], 0
        held.append(shard)
        size += shard.size
        if alone or (size * _LEAST >= target and _ends_after(shard, target)):
            groups.append(tuple(held))
            held, size = [], 0
    return [*groups, tuple(held)] if held else groups


def _ends_after(shard: Shard, target: int) -> bool:
    """Return whether the key says that a group ends here: once in half a target of bytes, whatever their cut."""
    return int(short(shard.key), 16) * target < (shard.size * 2) << 64


def group_key(group: Sequence[Shard]) -> str:
    """Return the key of the shard that `group` is joined to: the same in any dataset that has this group."""
    return digest_json({"operation": "compact", "shards": [shard.key for shard in group]})


@dataclass(frozen=True, slots=True)
class Compaction:
    """One compaction of `dataset`, whose rows have `schema`, by the stage `name`."""

    name: str
    operation: Compact
    dataset: Dataset
    schema: pa.Schema
    engine: RunsJobs

    def run(self) -> Receipts:
        """Return the receipts of the groups, in order.

        Raises:
            ConservationError: the rows of all groups are not those of the dataset; the message has both sides.
        """
        items = [
            Item(group_key(group), f"group {number}", tuple(shard.key for shard in group), sum(s.size for s in group))
            for number, group in enumerate(groups_of(list(self._shards()), self.operation.target))
        ]
        receipts = self.engine.receipts(CompactJob(self.engine.store, self.name, self.schema), items)
        rows = sum(receipt.files["part.parquet"].rows or 0 for receipt in receipts)
        if rows != self.dataset.rows:
            raise ConservationError(f"{self.name}: {self.dataset.rows:,} rows came in, {rows:,} went out")
        return receipts

    def _shards(self) -> Iterator[Shard]:
        for shard in self.dataset.each_shard(["key", "logical", "content"]):
            if shard["content"] is not None:
                size = shard["logical"]
                yield Shard(shard["key"], measured(self.dataset.store, shard["key"]) if size is None else size)


def measured(store: Store, key: str) -> int:
    """Return the logical bytes of a shard whose receipt does not have them, because an earlier version wrote it."""
    return sum(int(row_bytes(chunk.rows).sum()) for chunk in read_shard(store, key))


@dataclass(frozen=True, slots=True)
class CompactJob:
    """Per group: one shard with the rows of its shards, in order."""

    store: Store
    name: str
    schema: pa.Schema

    def run(self, item: Item) -> int:
        """Publish the shard of the group `item.unit` (keys of shards) and return its rows."""
        receipts = [self._receipt(key) for key in item.unit]
        with ExitStack() as stack:
            path, beside = (stack.enter_context(self.store.spool()) for _ in range(2))
            make = self._linked if len(receipts) == 1 else self._joined
            made = make(path, beside, receipts)
            entry = made["part.parquet"]
            samples = stack.enter_context(self.store.spool())
            sampled = write_parquet(samples, [self._samples(receipts)], SAMPLES)
            folder = shard_folder(item.key)
            self.store.publish(path, f"{folder}/part.parquet", entry.digest)
            files = {"part.parquet": entry}
            if MEASURES_FILE in made:
                files[MEASURES_FILE] = made[MEASURES_FILE]
                self.store.publish(beside, f"{folder}/{MEASURES_FILE}", files[MEASURES_FILE].digest)
            if sampled.rows:
                size = samples.stat().st_size
                digest = self.store.publish(samples, f"{folder}/samples.parquet")
                files["samples.parquet"] = FileEntry(size, digest, sampled.rows, sampled.content, sampled.bytes)
        statistics = merge_all([kept_only(receipt.statistics) for receipt in receipts])
        texts = statistics["texts"]["count"] if "text" in self.schema.names else entry.rows
        check_joined(item.label, receipts, entry, texts)
        publish_receipt(self.store, Receipt(item.key, self.name, {"shards": list(item.unit)}, files, statistics))
        return entry.rows or 0

    def _receipt(self, key: str) -> Receipt:
        receipt = read_receipt(self.store, key)
        if receipt is None or "part.parquet" not in receipt.files:
            raise StoreError(f"{self.store.url(shard_folder(key))} has no receipt: run the recipe again to make it")
        return receipt

    def _linked(self, path: Path, beside: Path, receipts: Sequence[Receipt]) -> dict[str, FileEntry]:
        """Make `path` a name of the part of the one receipt, and `beside` one of its measures, if it has any."""
        (receipt,) = receipts
        names = {"part.parquet": path, MEASURES_FILE: beside}
        return {name: self._link(receipt, name, to) for name, to in names.items() if name in receipt.files}

    def _link(self, receipt: Receipt, file: str, path: Path) -> FileEntry:
        entry = receipt.files[file]
        name = f"{shard_folder(receipt.key)}/{file}"
        link_or_copy(self.store.local(name, entry.digest), path)
        if digest_unchanged(path) != entry.digest:
            raise StoreError(f"{self.store.url(name)} is damaged: remove its folder and run the recipe again")
        return entry

    def _joined(self, path: Path, beside: Path, receipts: Sequence[Receipt]) -> dict[str, FileEntry]:
        measures = TableWriter(beside, MEASURES)
        try:
            written = write_parquet(path, self._rows(receipts, measures), self.schema, codec="lz4")
            found = {"part.parquet": (path, written), MEASURES_FILE: (beside, measures.close())}
        finally:
            measures.abandon()
        return {
            name: FileEntry(place.stat().st_size, digest_file(place), of.rows, of.content, of.bytes)
            for name, (place, of) in found.items()
            if of.rows
        }

    def _rows(self, receipts: Sequence[Receipt], measures: TableWriter) -> Iterator[pa.RecordBatch]:
        """Yield all rows, and write the measures of their texts."""
        measured = Measured()
        for receipt in receipts:
            for chunk in read_shard(self.store, receipt.key):
                if "text" in self.schema.names:
                    for rows in measured.add(chunk.measures or measure(chunk.rows)):
                        measures.write(rows)
                yield chunk.rows

    def _samples(self, receipts: Sequence[Receipt]) -> pa.RecordBatch:
        """Return the samples of what is kept; why others went is told by the stage before."""
        samples = Samples()
        for receipt in receipts:
            if "samples.parquet" in receipt.files:
                with self.store.open(f"{shard_folder(receipt.key)}/samples.parquet") as file:
                    table = pq.read_table(file, schema=SAMPLES)
                samples.merge(table.filter(pc.is_in(table.column("kind"), pa.array(["kept", CELL], pa.large_string()))))
        return samples.batch()


def kept_only(statistics: Statistics) -> Statistics:
    """Return what a shard's `statistics` say of the documents that it keeps."""
    return {name: value for name, value in statistics.items() if name not in FLOW}


def link_or_copy(source: Path, target: Path) -> None:
    """Make `target` another name of the file `source`, or a copy where the file system has no links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def check_joined(label: str, receipts: Sequence[Receipt], entry: FileEntry, texts: int | None) -> None:
    """Raise unless a group holds what its shards held: rows, and as many `texts` as are counted.

    Raises:
        ConservationError: it does not.
    """
    came = sum(receipt.files["part.parquet"].rows or 0 for receipt in receipts)
    if not came == entry.rows == texts:
        raise ConservationError(f"{label}: {came:,} rows came in, {entry.rows:,} went out, {texts:,} texts are counted")
