"""The document-wise job: one unit of input through reading and a chain of transforms into one shard.

Memory: the batch in hand, one row group of each file that is written, and what a keyed source remembers of its records.
Rows and ledger go to spool files as they come. Whatever the batch size, a unit gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from curate.accounting.accountant import Accountant, ConservationError, LedgerPart, Step, in_order
from curate.accounting.conservation import check_documents
from curate.accounting.kept import Kept
from curate.accounting.ledger import LEDGER, SAMPLES
from curate.accounting.measured import MEASURES, MEASURES_FILE, Measured
from curate.accounting.samples import Samples
from curate.accounting.statistics import Statistics, merge
from curate.inputs.files import FileUnit, open_hashed
from curate.isolation.guard import NO_GUARD, Guard, GuardedShard, Settled
from curate.parquet_batches import file_batches, open_parquet
from curate.parts import checked_file, stored_measures
from curate.readers.chunks import CHUNK_ROWS, RECORD_KEYS, Chunk, chunks_of
from curate.readers.open import read_events
from curate.readers.reader import MAX_RECORD_BYTES, Reader
from curate.receipts import FileEntry, Receipt, publish_receipt, read_receipt, shard_folder
from curate.running.jobs import Item, Resources
from curate.store import Store, StoreError
from curate.writer import Codec, TableWriter, Written
from transforms.canonical import canonical_json
from transforms.outcome import rows
from transforms.pii import mask_excerpt

WORKER_BYTES: Final = 256 << 20
"""What a worker takes before its first task: the interpreter and libraries."""

WORKING_BYTES: Final = 320 << 20
"""What a task takes whatever its input: a batch, pages, and a row group of each file that it writes."""

RECORD_TIMES: Final = 14
"""How often the longest record can be in memory: its line, its text, its batch, the row group, pages of it."""


@dataclass(frozen=True, slots=True)
class ShardUnit:
    """An upstream shard as the input of a task; `checked` is its part, where the task has checked that already."""

    key: str
    checked: Path | None = None

    def described(self) -> dict[str, str]:
        """Return the unit as it stands in a receipt."""
        return {"shard": self.key}


@runtime_checkable
class RowsUnit(Protocol):
    """Rows that an operation gives, as a partition of an exchange, as the input of a task."""

    def described(self) -> Mapping[str, Any]:
        """Return the unit as it stands in a receipt."""

    def chunks(self) -> Iterator[Chunk]:
        """Yield the rows; each call begins anew and yields the same."""


@dataclass(frozen=True, slots=True)
class DocumentJob:
    """Reads units and applies `steps`; `schema` is that of the rows that come out.

    Attributes:
        reader: how file units are read; None when the units are upstream shards.
        forbids: sources whose texts may not be shown.
        chunk_rows: rows per batch; changes no output.
        guard: how steps are kept from taking the worker down.
        codec: of the rows that are kept, one for all shards of a stage.
    """

    store: Store
    name: str
    reader: Reader | None
    steps: tuple[Step, ...]
    schema: pa.Schema
    forbids: frozenset[str]
    chunk_rows: int = CHUNK_ROWS
    guard: Guard = NO_GUARD
    codec: Codec = "zstd"

    def run(self, item: Item) -> int:
        """Make the shard of one unit and return how many documents it read."""
        settled = Settled.AGAIN
        while settled is Settled.AGAIN:
            label = f"{self.name}, {item.label}"
            guarded = GuardedShard(self.store, item.key, label, self.steps, self.guard, self.shows)
            shard = _Shard(self, item, guarded)
            with ExitStack() as stack:
                with _Chunks(self, item.unit) as chunks:  # left before publishing: leaving checks the file's digest
                    shard.write(stack, chunks)
                settled = guarded.settle()
                if settled is Settled.PUBLISH:
                    shard.publish()
        return shard.documents

    @property
    def resources(self) -> Resources:
        """What a task needs, whatever the size of its unit; texts of upstream shards are as long as records may be."""
        longest = MAX_RECORD_BYTES if self.reader is None else self.reader.max_record_bytes
        return Resources(memory=WORKER_BYTES + WORKING_BYTES + RECORD_TIMES * longest + self.guard.memory)

    def shows(self, source: str) -> bool:
        """Return whether texts of `source` may be shown."""
        return source not in self.forbids


class _Chunks:
    """Context of the chunks of a unit, of either kind."""

    def __init__(self, job: DocumentJob, unit: FileUnit | ShardUnit | RowsUnit) -> None:
        self.job, self.unit = job, unit
        self.stack = ExitStack()

    def __enter__(self) -> Iterator[Chunk]:
        if isinstance(self.unit, ShardUnit):
            return read_shard(self.job.store, self.unit.key, self.job.chunk_rows, self.unit.checked)
        if isinstance(self.unit, RowsUnit):
            return self.unit.chunks()
        if self.job.reader is None:
            raise TypeError("a job over files needs a reader")
        file = self.stack.enter_context(open_hashed(self.unit))
        events = read_events(self.job.reader, file, self.unit)
        return chunks_of(events, self.job.reader, self.unit.path, self.job.chunk_rows, self.unit.repeats)

    def __exit__(self, *error: object) -> None:
        self.stack.__exit__(*error)  # type: ignore[arg-type]


def read_shard(store: Store, key: str, chunk_rows: int = CHUNK_ROWS, checked: Path | None = None) -> Iterator[Chunk]:
    """Yield the rows of the shard `key` as chunks; nothing when it keeps nothing. `checked` is its part, if known.

    Raises:
        StoreError: the shard is not there, or has other bytes or rows than its receipt says.
    """
    receipt = read_receipt(store, key)
    if receipt is None:
        raise StoreError(f"{store.url(shard_folder(key))} has no receipt: run the recipe again to make it")
    part = receipt.files.get("part.parquet")
    if part is None:
        return
    path, first = checked or checked_file(store, key, "part.parquet"), 0
    with open_parquet(path) as file, stored_measures(store, receipt) as measures:
        for batch in file_batches(file, chunk_rows):
            ordinals = np.arange(first, first + batch.num_rows, dtype=np.int64)
            known = None if measures is None else measures.take(batch.num_rows)
            yield Chunk(batch, ordinals, [], {}, measures=known)
            first += batch.num_rows
    if first != part.rows:
        raise StoreError(f"shard {key}: part.parquet has {first} rows, its receipt says {part.rows}")


class _Shard:
    """Books and files of one shard while it is made."""

    def __init__(self, job: DocumentJob, item: Item, guarded: GuardedShard) -> None:
        self.job, self.item, self.guarded = job, item, guarded
        self.samples = Samples()
        self.accountant = Accountant(guarded.steps, self.samples, job.shows)
        self.statistics: Statistics = {}
        self.kept = Kept()
        self.measured = Measured()
        self.documents = 0
        self.files: dict[str, FileEntry] = {}
        self.tables: dict[str, tuple[Path, TableWriter]] = {}
        self.spooled: dict[str, tuple[Path, Written]] = {}

    def write(self, stack: ExitStack, chunks: Iterator[Chunk]) -> None:
        """Write part, ledger, samples and keys to spool files, those that have rows."""
        for chunk in chunks:
            self._write_chunk(stack, chunk)
        self._add(stack, "samples.parquet", self.samples.batch())
        self.spooled = {name: (path, writer.close()) for name, (path, writer) in self.tables.items()}

    def _add(self, stack: ExitStack, name: str, rows: pa.RecordBatch | None) -> None:
        if rows is None or not rows.num_rows:
            return
        if name not in self.tables:
            path = stack.enter_context(self.job.store.spool())
            codec: Codec = self.job.codec if name == "part.parquet" else "zstd"
            self.tables[name] = path, TableWriter(path, self.schemas[name], codec=codec)
            stack.callback(self.tables[name][1].abandon)
        self.tables[name][1].write(rows)

    @property
    def schemas(self) -> dict[str, pa.Schema]:
        """The columns of each file."""
        return {
            "part.parquet": self.job.schema,
            "dropped.parquet": LEDGER,
            "samples.parquet": SAMPLES,
            "keys.parquet": RECORD_KEYS,
            MEASURES_FILE: MEASURES,
        }

    def _write_chunk(self, stack: ExitStack, chunk: Chunk) -> None:
        self.statistics = merge(self.statistics, {"reading": chunk.counts} if chunk.counts else {})
        self.documents += chunk.rows.num_rows
        passed = self.accountant.run(chunk.rows, chunk.ordinals, chunk.measures)
        if passed.rows.schema.remove_metadata() != self.job.schema:
            raise ConservationError(
                f"{self.item.label}: rows have {passed.rows.schema}, the stage declares {self.job.schema}"
            )
        self.kept.count(passed.rows, passed.measures, self.samples, self.job.shows)
        self._add(stack, "keys.parquet", chunk.keys)
        self._add(stack, "dropped.parquet", in_order([*self._losses(chunk), *passed.ledger]))
        self._add(stack, "part.parquet", passed.rows)
        if "text" in passed.rows.schema.names:
            for measured in self.measured.add(passed.measures):
                self._add(stack, MEASURES_FILE, measured)

    def _losses(self, chunk: Chunk) -> list[LedgerPart]:
        reader = self.job.reader
        if reader is None or not chunk.losses:
            return []
        lost = [
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
            }
            for loss in chunk.losses
        ]
        return [LedgerPart(np.array([loss.ordinal for loss in chunk.losses], np.int64), -1, rows(LEDGER, lost))]

    def publish(self) -> None:
        """Publish the files that hold rows, then the receipt."""
        folder = shard_folder(self.item.key)
        for name in sorted(self.spooled, key=list(self.schemas).index):
            path, written = self.spooled[name]
            size = path.stat().st_size
            digest = self.job.store.publish(path, f"{folder}/{name}")
            self.files[name] = FileEntry(size, digest, written.rows, written.content, written.bytes)
        who = self.accountant.who.statistics()
        statistics = {
            **self.statistics,
            "steps": self.accountant.statistics,
            **({"who": who} if who else {}),
            **self.kept.statistics(),
        }
        receipt = Receipt(
            self.item.key, self.job.name, self.item.unit.described(), self.files, statistics, self.guarded.digest
        )
        check_documents(receipt, self.item.label)
        publish_receipt(self.job.store, receipt)


def _detail(detail: str) -> str:
    return canonical_json({"detail": mask_excerpt(detail)})
