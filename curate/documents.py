"""The document-wise job: one unit of input through reading and a chain of transforms into one shard.

Memory: the batch in hand, one row group of the writer, and 32 bytes per record of a keyed source. Whatever the batch
size, a unit gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from curate.accounting import Accountant, ConservationError, LedgerRow, Step, sample_row
from curate.digests import text_digest
from curate.inputs import FileUnit, open_hashed
from curate.jobs import Item
from curate.ledger import LEDGER, SAMPLES
from curate.quarantine import Quarantine, read_quarantine
from curate.readers.chunks import CHUNK_ROWS, Chunk, chunks_of
from curate.readers.open import read_events
from curate.readers.reader import Reader
from curate.receipts import FileEntry, Receipt, publish_receipt, read_receipt, shard_folder
from curate.samples import Samples
from curate.statistics import Statistics, add, distinct, least, length_bin, merge, text_sum
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
        StoreError: the shard is not there or has other rows than its receipt says.
    """
    receipt = read_receipt(store, key)
    if receipt is None:
        raise StoreError(f"{store.path(shard_folder(key))} has no receipt: run the recipe again to make it")
    part = receipt.files.get("part.parquet")
    if part is None:
        return
    first = 0
    with pq.ParquetFile(store.path(f"{shard_folder(key)}/part.parquet")) as file:
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
        self.statistics = merge(self.statistics, {"quarantine": step.statistics["00"]})
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


class Kept:
    """Statistics of the documents that a shard keeps."""

    def __init__(self) -> None:
        self.counts: Statistics = {}
        self.hosts: dict[str, Statistics] = {}
        self.digests: list[bytes] = []

    def count(self, batch: pa.RecordBatch, samples: Samples, shows: Any) -> None:
        """Add the documents of `batch`, and offer them as samples of what is kept."""
        if batch.schema.get_field_index("text") < 0:
            return
        names = set(batch.schema.names)
        groups = {
            name: batch.column(name).to_pylist() for name in ("source", "language", "licence", "topic") if name in names
        }
        self._count_rights(batch)
        urls = batch.column("url").to_pylist() if "url" in names else [None] * batch.num_rows
        for position, text in enumerate(batch.column("text").to_pylist()):
            digest = text_digest(text)
            self.digests.append(digest)
            size = len(text)
            for name, values in groups.items():
                value = "null" if values[position] is None else str(values[position])
                add(self.counts, ["groups", name, value, "documents"], 1)
                add(self.counts, ["groups", name, value, "characters"], size)
            add(self.counts, ["lengths", groups["source"][position], length_bin(size)], 1)
            url = urls[position]
            if url is not None:
                host = self.hosts.setdefault(host_of(url), {"documents": 0, "characters": 0})
                host["documents"] += 1
                host["characters"] += size
            identity = batch.column("id")[position].as_py()
            if samples.wants(("kept", "", ""), digest, identity):
                samples.offer(sample_row("kept", {}, batch, position, digest, shows))

    def _count_rights(self, batch: pa.RecordBatch) -> None:
        columns = {name: batch.column(name).to_pylist() for name in ("source", "licence", "licence_basis", "optout")}
        sizes = pc.utf8_length(batch.column("text")).to_pylist()
        for source, licence, basis, optout, size in zip(*columns.values(), sizes, strict=True):
            add(self.counts, ["rights", source, licence, basis, "documents"], 1)
            add(self.counts, ["rights", source, licence, basis, "characters"], size)
            for signal, value in optout.items():
                add(self.counts, ["optout", source, signal, value], 1)

    def statistics(self) -> Statistics:
        """Return the counters, the hosts (exact for the lowest digests, and how many there are), and the texts."""
        if not self.digests:
            return {"texts": {"count": 0, "multiset": text_sum([])}}
        return {
            **self.counts,
            "hosts": {"most": least(self.hosts), "distinct": distinct(host.encode() for host in self.hosts)},
            "texts": {"count": len(self.digests), "multiset": text_sum(self.digests)},
        }


FLOWS: Final = ("documents_in", "documents_out", "characters_in", "characters_out", "payload_bytes_in")


def host_of(url: str) -> str:
    """Return the host of `url` in lower case, without user, port or path; "" where there is none."""
    rest = url.partition("://")[2]
    for end in "/?#\\":
        rest = rest.partition(end)[0]
    host = rest.rpartition("@")[2]
    if not host.startswith("["):
        host = host.partition(":")[0]
    return "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in host[:255])


def check_documents(receipt: Receipt, label: str) -> None:
    """Raise unless documents and code points of a receipt add up: read = kept + dropped, step by step.

    Raises:
        ConservationError: they do not; the message has both sides.
    """
    statistics = receipt.statistics
    for source, counts in statistics.get("reading", {}).items():
        _check_reading(source, counts, label)
    steps = [statistics["steps"][index] for index in sorted(statistics["steps"])]
    part = receipt.files.get("part.parquet")
    out = (part.rows or 0) if part else 0
    flow = [_totals(step) for step in steps]
    for step, totals in zip(steps, flow, strict=True):
        _check_step(step["name"], totals, label)
    for before, after in pairwise(flow):
        if before["documents_out"] != after["documents_in"] or before["characters_out"] != after["characters_in"]:
            raise ConservationError(f"{label}: {before} went out of one step, {after} into the next")
    _check_read(statistics, flow[0]["documents_in"] if flow else out, label)
    if flow and flow[-1]["documents_out"] != out:
        raise ConservationError(
            f"{label}: {flow[-1]['documents_out']} documents left the last step, {out} were written"
        )


def _check_reading(source: str, counts: Statistics, label: str) -> None:
    """Raise unless records, refused and structural records and gaps add up to the file, in each unit."""
    sums = dict.fromkeys(counts.get("total", {}), 0)
    for group in ("records", "refused", "structural", "gaps"):
        for counted in counts.get(group, {}).values():
            for place, length in counted.items():
                if place != "count":
                    sums[place] = sums.get(place, 0) + length
    if sums != counts.get("total", {}):
        raise ConservationError(f"{label}, {source}: records and gaps add up to {sums}, the file has {counts['total']}")


def _check_read(statistics: Statistics, entered: int, label: str) -> None:
    """Raise unless the records read are the documents that entered the first step, but for quarantined ones."""
    if "reading" not in statistics:
        return
    read = sum(counts.get("records", {}).get("read", {}).get("count", 0) for counts in statistics["reading"].values())
    kept_back = _totals(statistics["quarantine"])["dropped"] if "quarantine" in statistics else 0
    if read != entered + kept_back:
        raise ConservationError(f"{label}: {read} records were read, {entered} entered, {kept_back} are quarantined")


def _totals(step: Statistics) -> dict[str, int]:
    totals = dict.fromkeys((*FLOWS, "dropped", "dropped_characters", "cut", "inserted"), 0)
    for source in step["sources"].values():
        for name in FLOWS:
            totals[name] += source.get(name, 0)
        for reasons in source.get("dropped", {}).values():
            for counted in reasons.values():
                totals["dropped"] += counted["documents"]
                totals["dropped_characters"] += counted["characters"]
        for edit in source.get("edits", {}).values():
            totals["cut"] += edit["cut"]
            totals["inserted"] += edit["inserted"]
    return totals


def _check_step(name: str, totals: dict[str, int], label: str) -> None:
    if totals["documents_in"] != totals["documents_out"] + totals["dropped"]:
        raise ConservationError(
            f"{label}, {name}: {totals['documents_in']} documents in, {totals['documents_out']} out, "
            f"{totals['dropped']} dropped"
        )
    if totals["payload_bytes_in"]:
        return  # text starts here: bytes in, characters out
    left = totals["characters_in"] + totals["inserted"]
    right = totals["characters_out"] + totals["dropped_characters"] + totals["cut"]
    if left != right:
        raise ConservationError(f"{label}, {name}: code points in + inserted = {left}, out + dropped + cut = {right}")
