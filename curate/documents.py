"""The document-wise job: one unit of input through reading and a chain of transforms into one shard.

Memory: the batch in hand, one row group of the writer, and 32 bytes per record of a keyed source. Whatever the batch
size, a unit gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from curate.accounting import Accountant, ConservationError, LedgerRow, Step
from curate.conservation import check_documents
from curate.digests import digest_file
from curate.inputs import FileUnit, open_hashed
from curate.jobs import Item
from curate.kept import Kept
from curate.ledger import LEDGER, SAMPLES
from curate.quarantine import Quarantine, read_quarantine
from curate.readers.chunks import CHUNK_ROWS, Chunk, chunks_of
from curate.readers.open import read_events
from curate.readers.reader import Reader
from curate.receipts import FileEntry, Receipt, publish_receipt, read_receipt, shard_folder
from curate.samples import Samples
from curate.statistics import Statistics, merge
from curate.store import Store, StoreError
from curate.writer import Written, write_parquet
from transforms.outcome import canonical_json, rows
from transforms.pii import mask_excerpt

RECORD_KEYS = pa.schema(
    [pa.field("id", pa.binary(16), nullable=False), pa.field("record", pa.binary(16), nullable=False)]
)
"""Schema of `keys.parquet`: ids and record digests of a keyed source, to see a record that two files hold."""


@dataclass(frozen=True, slots=True)
class ShardUnit:
    """An upstream shard as the input of a task."""

    key: str

    def described(self) -> dict[str, str]:
        """Return the unit as it stands in a receipt."""
        return {"shard": self.key}


@dataclass(frozen=True, slots=True)
class DocumentJob:
    """Reads units and applies `steps`; `schema` is that of the rows that come out.

    Attributes:
        reader: how file units are read; None when the units are upstream shards.
        forbids: sources whose texts may not be shown.
        chunk_rows: rows per batch; changes no output.
    """

    store: Store
    name: str
    reader: Reader | None
    steps: tuple[Step, ...]
    schema: pa.Schema
    forbids: frozenset[str]
    chunk_rows: int = CHUNK_ROWS

    def run(self, item: Item) -> int:
        """Make the shard of one unit and return how many documents it read."""
        quarantine = read_quarantine(self.store, item.key)
        shard = _Shard(self, item, quarantine)
        with ExitStack() as stack:
            with _Chunks(self, item.unit) as chunks:  # left before publishing: leaving checks the file's digest
                shard.write(stack, chunks)
            shard.publish()
        return shard.documents


class _Chunks:
    """Context of the chunks of a unit, of either kind."""

    def __init__(self, job: DocumentJob, unit: FileUnit | ShardUnit) -> None:
        self.job, self.unit = job, unit
        self.stack = ExitStack()

    def __enter__(self) -> Iterator[Chunk]:
        if isinstance(self.unit, ShardUnit):
            return read_shard(self.job.store, self.unit.key, self.job.chunk_rows)
        if self.job.reader is None:
            raise TypeError("a job over files needs a reader")
        file = self.stack.enter_context(open_hashed(self.unit))
        events = read_events(self.job.reader, file, self.unit)
        return chunks_of(events, self.job.reader, self.unit.path, self.job.chunk_rows, self.unit.repeats)

    def __exit__(self, *error: object) -> None:
        self.stack.__exit__(*error)  # type: ignore[arg-type]


def read_shard(store: Store, key: str, chunk_rows: int = CHUNK_ROWS) -> Iterator[Chunk]:
    """Yield the rows of the shard `key` as chunks; nothing when it keeps nothing.

    Raises:
        StoreError: the shard is not there, or has other bytes or rows than its receipt says.
    """
    receipt = read_receipt(store, key)
    if receipt is None:
        raise StoreError(f"{store.url(shard_folder(key))} has no receipt: run the recipe again to make it")
    part = receipt.files.get("part.parquet")
    if part is None:
        return
    name = f"{shard_folder(key)}/part.parquet"
    if not store.exists(name) or digest_file(path := store.local(name, part.digest)) != part.digest:
        folder = store.url(shard_folder(key))
        raise StoreError(f"{store.url(name)} is missing or damaged: remove {folder} and run the recipe again")
    first = 0
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=chunk_rows):
            ordinals = np.arange(first, first + batch.num_rows, dtype=np.int64)
            yield Chunk(batch, ordinals, [], {})
            first += batch.num_rows
    if first != part.rows:
        raise StoreError(f"shard {key}: part.parquet has {first} rows, its receipt says {part.rows}")


class _Shard:
    """Books and files of one shard while it is made."""

    def __init__(self, job: DocumentJob, item: Item, quarantine: Quarantine) -> None:
        self.job, self.item, self.quarantine = job, item, quarantine
        self.samples = Samples()
        self.accountant = Accountant(job.steps, self.samples, self._shows)
        self.statistics: Statistics = {}
        self.kept = Kept()
        self.documents = 0
        self.ledger: list[pa.RecordBatch] = []
        self.keys: list[tuple[bytes, bytes]] = []
        self.files: dict[str, FileEntry] = {}
        self.spooled: dict[str, tuple[Path, Written]] = {}

    def _shows(self, source: str) -> bool:
        return source not in self.job.forbids

    def write(self, stack: ExitStack, chunks: Iterator[Chunk]) -> None:
        """Write part, ledger, samples and keys to spool files."""
        part = stack.enter_context(self.job.store.spool())
        written = write_parquet(part, self._kept_rows(chunks), self.job.schema)
        self.spooled["part.parquet"] = (part, written)
        for name, schema, batches in (
            ("dropped.parquet", LEDGER, self.ledger),
            ("samples.parquet", SAMPLES, [self.samples.batch()]),
            ("keys.parquet", RECORD_KEYS, [rows(RECORD_KEYS, [{"id": i, "record": r} for i, r in self.keys])]),
        ):
            path = stack.enter_context(self.job.store.spool())
            self.spooled[name] = (path, write_parquet(path, batches, schema))

    def _kept_rows(self, chunks: Iterable[Chunk]) -> Iterator[pa.RecordBatch]:
        for chunk in chunks:
            self.keys.extend(chunk.keys)
            self.statistics = merge(self.statistics, {"reading": chunk.counts} if chunk.counts else {})
            self.documents += chunk.rows.num_rows
            batch, ordinals, ledger = chunk.rows, chunk.ordinals, self._losses(chunk)
            outcome = self.quarantine.apply(batch)
            if outcome is not None:
                batch, ordinals = self._drop_quarantined(batch, ordinals, outcome, ledger)
            batch, ordinals, more = self.accountant.run(batch, ordinals)
            ledger = sorted([*ledger, *more], key=lambda row: row[:2])
            if ledger:
                self.ledger.append(rows(LEDGER, [columns for _, _, columns in ledger]))
            if batch.schema.remove_metadata() != self.job.schema:
                raise ConservationError(
                    f"{self.item.label}: rows have {batch.schema}, the stage declares {self.job.schema}"
                )
            self.kept.count(batch, self.samples, self._shows)
            if batch.num_rows:
                yield batch

    def _drop_quarantined(
        self, batch: pa.RecordBatch, ordinals: Any, outcome: Any, ledger: list[LedgerRow]
    ) -> tuple[pa.RecordBatch, Any]:
        step = Accountant([Step("quarantine", _Fixed(outcome))], Samples(), self._shows)
        batch, ordinals, more = step.run(batch, ordinals)
        ledger.extend((ordinal, -1, columns) for ordinal, _, columns in more)
        counted = step.statistics["00"]["sources"]  # only what is dropped: the rest depends on batches
        sources = {source: {"dropped": flow["dropped"]} for source, flow in counted.items() if "dropped" in flow}
        self.statistics = merge(self.statistics, {"quarantine": {"name": "quarantine", "sources": sources}})
        return batch, ordinals

    def _losses(self, chunk: Chunk) -> list[LedgerRow]:
        reader = self.job.reader
        if reader is None:
            return []
        return [
            (
                loss.ordinal,
                -2,
                {
                    "kind": loss.kind,
                    "id": loss.id,
                    "source": reader.source,
                    "origin": loss.origin,
                    "transform": f"read_{reader.format}",
                    "reason": loss.reason,
                    "evidence": None if loss.detail is None else _detail(loss.detail),
                    "characters": 0,
                    "cut": 0,
                    "inserted": 0,
                },
            )
            for loss in chunk.losses
        ]

    def publish(self) -> None:
        """Publish the files that hold rows, then the receipt."""
        folder = shard_folder(self.item.key)
        for name, (path, written) in self.spooled.items():
            if written.rows:
                size = path.stat().st_size
                digest = self.job.store.publish(path, f"{folder}/{name}")
                self.files[name] = FileEntry(size, digest, written.rows, written.content)
        statistics = {**self.statistics, "steps": self.accountant.statistics, **self.kept.statistics()}
        receipt = Receipt(
            self.item.key, self.job.name, self.item.unit.described(), self.files, statistics, self.quarantine.digest
        )
        check_documents(receipt, self.item.label)
        publish_receipt(self.job.store, receipt)


@dataclass(frozen=True, slots=True)
class _Fixed:
    """A transform whose outcome is known."""

    outcome: Any
    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        return schema

    def apply(self, batch: pa.RecordBatch) -> Any:
        return self.outcome


def _detail(detail: str) -> str:
    return canonical_json({"detail": mask_excerpt(detail)})
