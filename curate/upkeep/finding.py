"""Where a document is: in datasets, ledgers, samples and token caches of a store.

A document is sought by id, by URL (exactly or in its normalised form) or by a text that it holds: runs of white space
count as one space, all else must be the same. One pass over the documents of every dataset finds ids; ledgers, samples
and caches are then searched for these ids and for the digests of their texts, so that equal texts under other ids are
found too, and documents that went because this one stayed. What no dataset keeps is known by its id or the digest of
its whole text alone.

Cost: one pass over the columns that are looked at (some 200 MB/s of text a core); ids and digests of caches. Memory: a
batch of rows, bounded by bytes whatever their length, the block of a cache, and what is found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from curate.configuration import ConfigurationError
from curate.datasets import Dataset, datasets_in
from curate.digests import short, text_digest
from curate.parquet_batches import group_batches
from curate.products import Caches
from curate.receipts import committed_folders, read_manifest, shard_folder
from curate.store import Store
from curate.visible import visible
from transforms.withdraw import normalised_url

ROWS: Final = 1024
"""Rows that are looked at together."""

BLOCK: Final = 1 << 20
"""Documents of a cache whose ids are looked at together."""

_WHITE: Final = re.compile(
    "[\\x09-\\x0d\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]+"
)


@dataclass(frozen=True, slots=True)
class Question:
    """What is sought: `by` "id", "url" or "text", and its value."""

    by: str
    value: str

    def __post_init__(self) -> None:
        """Check the value.

        Raises:
            ConfigurationError: an id without 32 hex digits, or nothing to look for.
        """
        if self.by == "id" and re.fullmatch("[0-9a-fA-F]{32}", self.value) is None:
            raise ConfigurationError(f"--id {self.value}: an id has 32 hex digits")
        if not self.value.strip():
            raise ConfigurationError(f"--{self.by}: nothing to look for")

    @property
    def column(self) -> str:
        """The column that tells."""
        return self.by

    def matches(self, column: pa.Array) -> npt.NDArray[np.intp]:
        """Return the positions in `column` that hold what is sought."""
        if self.by == "id":
            return _positions(pc.equal(column, pa.scalar(bytes.fromhex(self.value), pa.binary(16))))
        if self.by == "url":
            wanted = normalised_url(self.value)
            urls = column.to_pylist()
            return np.array(
                [row for row, url in enumerate(urls) if url is not None and _same(url, self.value, wanted)], int
            )
        phrase = one_space(self.value)
        word = max(phrase.split(" "), key=len)
        candidates = _positions(pc.match_substring(column, word))
        return np.array([row for row in candidates.tolist() if phrase in one_space(column[row].as_py())], int)


def _same(url: str, value: str, wanted: str) -> bool:
    return url == value or normalised_url(url) == wanted


def one_space(text: str) -> str:
    """Return `text` with each run of white space as one space, and none at the ends."""
    return _WHITE.sub(" ", text).strip(" ")


def _positions(mask: pa.Array) -> npt.NDArray[np.intp]:
    return np.flatnonzero(pc.fill_null(mask, False).to_numpy(zero_copy_only=False))


@dataclass(frozen=True, slots=True)
class Place:
    """A row that was found.

    Attributes:
        kind: "document", "dropped", "edit", "made others go" (its evidence names what was found) or "sample".
        dataset: whose row it is; `shard` is the ordinal there, `key` the shard key, `row` the row of the file.
        id, source, origin: of the document.
        digest: of its text as it stands there, None where there is none.
        detail: transform and reason, or "".
    """

    kind: str
    dataset: Dataset
    shard: int
    key: str
    row: int
    id: bytes
    source: str
    origin: dict[str, Any]
    digest: bytes | None
    detail: str = ""

    def __str__(self) -> str:
        where = f"{visible(self.dataset.name)} ({short(self.dataset.key)})"
        if self.key:
            where += f", shard {self.shard} ({short(self.key)}), row {self.row}"
        digest = f", text digest {self.digest.hex()}" if self.digest else ""
        origin = f"{visible(self.origin['uri'])}, {self.origin['place']} {self.origin['offset']}"
        detail = f": {visible(self.detail)}" if self.detail else ""
        return f"{self.kind}: {where}{detail}\n  {visible(self.source)} {self.id.hex()}{digest}\n  record: {origin}"


@dataclass(frozen=True, slots=True)
class TokenPlace:
    """A document of a token cache: tokens `start` to `stop` - 1 of `cell`."""

    caches: Caches
    cell: str
    document: int
    start: int
    stop: int
    id: bytes

    def __str__(self) -> str:
        where = f"{visible(self.caches.name)} ({short(self.caches.key)}), cell {visible(self.cell)}"
        return f"tokens: {where}, document {self.document}, tokens {self.start} to {self.stop}\n  {self.id.hex()}"


@dataclass(slots=True)
class _Known:
    """Ids and digests of texts that are sought now."""

    ids: set[bytes] = field(default_factory=set)
    digests: set[bytes] = field(default_factory=set)

    def rows(self, column: pa.Array, values: set[bytes]) -> npt.NDArray[np.intp]:
        return _positions(pc.is_in(column, pa.array(sorted(values), pa.binary(16)))) if values else np.zeros(0, np.intp)

    def named(self, evidence: pa.Array) -> npt.NDArray[np.intp]:
        """Return the rows whose evidence names one of the ids."""
        if not self.ids:
            return np.zeros(0, np.intp)
        return _positions(pc.match_substring_regex(evidence, "|".join(sorted(i.hex() for i in self.ids))))


def find(
    store: Store, question: Question, read: Callable[[int], None] = lambda size: None
) -> Iterator[Place | TokenPlace]:
    """Yield where what is sought lies: documents, then ledgers, samples and caches.

    `read` is told of the logical bytes that were looked at.
    """
    known = _Known()
    if question.by == "id":
        known.ids.add(bytes.fromhex(question.value))
    elif question.by == "text":
        known.digests.add(text_digest(question.value))
    datasets = datasets_in(store)
    for dataset in datasets:
        for place in _documents(dataset, question, read):
            known.ids.add(place.id)
            known.digests |= {place.digest} if place.digest else set()
            yield place
    for dataset in datasets:
        yield from _ledger(dataset, known)
        yield from _samples(dataset, question, known)
    for folder in committed_folders(store):
        manifest = read_manifest(store, folder)
        if manifest["kind"] == "caches":
            yield from _tokens(Caches(store, folder, manifest), known)


def _documents(dataset: Dataset, question: Question, read: Callable[[int], None]) -> Iterator[Place]:
    names = [name for name, _ in dataset.manifest["schema"]]
    if question.column not in names:
        return
    columns = list(dict.fromkeys(["id", "source", "origin", question.column]))
    for ordinal, shard in enumerate(dataset.shards()):
        if shard["content"] is None:
            continue
        name = f"{shard_folder(shard['key'])}/part.parquet"
        for row, found in _rows(dataset.store, name, columns, question, read):
            digest = text_digest(found.get("text") or _text(dataset.store, name, row)) if "text" in names else None
            about = (found["id"], found["source"], found["origin"], digest)
            yield Place("document", dataset, ordinal, shard["key"], row, *about)


def _rows(
    store: Store, name: str, columns: Sequence[str], question: Question, read: Callable[[int], None]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (row, columns) of what is found in a part."""
    first = 0
    with store.open(name) as file, pq.ParquetFile(file) as parquet:
        for batch in _batches(parquet, columns):
            read(batch.column(question.column).nbytes)
            for row in question.matches(batch.column(question.column)).tolist():
                yield first + row, batch.slice(row, 1).to_pylist()[0]
            first += batch.num_rows


def _text(store: Store, name: str, row: int) -> str:
    """Return the text of one row of a part."""
    with store.open(name) as file, pq.ParquetFile(file) as parquet:
        for batch in _batches(parquet, ["text"]):
            if row < batch.num_rows:
                return str(batch.column("text")[row].as_py())
            row -= batch.num_rows
    raise IndexError(row)


def _batches(parquet: pq.ParquetFile, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    for group in range(parquet.num_row_groups):
        yield from group_batches(parquet, group, list(columns), ROWS)


def _ledger(dataset: Dataset, known: _Known) -> Iterator[Place]:
    for ordinal, shard in enumerate(dataset.shards()):
        if shard["ledger"] is None:
            continue
        with (
            dataset.store.open(f"{shard_folder(shard['key'])}/dropped.parquet") as file,
            pq.ParquetFile(file) as parquet,
        ):
            first = 0
            for batch in parquet.iter_batches(batch_size=ROWS):
                for row in _known_rows(batch, known):
                    yield _listed(
                        dataset, (ordinal, shard["key"], first + row), batch.slice(row, 1).to_pylist()[0], known
                    )
                first += batch.num_rows


def _known_rows(batch: pa.RecordBatch, known: _Known) -> list[int]:
    found = [
        known.rows(batch.column("id"), known.ids),
        known.rows(batch.column("text_digest"), known.digests),
        known.named(batch.column("evidence")),
    ]
    return [int(row) for row in np.unique(np.concatenate(found))]


def _listed(dataset: Dataset, place: tuple[int, str, int], row: dict[str, Any], known: _Known) -> Place:
    is_it = row["id"] in known.ids or row["text_digest"] in known.digests
    kind = row["kind"] if is_it else "made others go"
    origin = row["origin"] or {"uri": "", "place": "", "offset": ""}
    detail = f"{row['transform']}, {row['reason']}"
    return Place(kind, dataset, *place, row["id"], row["source"], origin, row["text_digest"], detail)


def _samples(dataset: Dataset, question: Question, known: _Known) -> Iterator[Place]:
    for row in dataset.samples():
        shown = (
            (row["excerpt"], row["after"]) if question.by == "text" else (row["url"],) if question.by == "url" else ()
        )
        column = pa.array(shown, pa.large_string())
        if row["id"] in known.ids or row["text_digest"] in known.digests or (shown and len(question.matches(column))):
            detail = ", ".join(part for part in (row["kind"], row["transform"], row["reason"]) if part)
            yield Place(
                "sample", dataset, 0, "", 0, row["id"], row["source"], row["origin"], row["text_digest"], detail
            )


def _tokens(caches: Caches, known: _Known) -> Iterator[TokenPlace]:
    for cell, cache in caches.open().items():
        for first in range(0, cache.documents, BLOCK):
            stop = min(first + BLOCK, cache.documents)
            found = [
                known.rows(_fixed(cache.ids(first, stop)), known.ids),
                known.rows(_fixed(cache.text_digests(first, stop)), known.digests),
            ]
            for row in np.unique(np.concatenate(found)).tolist():
                document = first + row
                start, end = (int(cache.starts[place]) for place in (document, document + 1))
                yield TokenPlace(caches, cell, document, start, end, bytes(cache.ids(document, document + 1)[0]))


def _fixed(rows: npt.NDArray[np.uint8]) -> pa.Array:
    """Return rows of 16 bytes as an array of them."""
    buffer = pa.py_buffer(np.ascontiguousarray(rows))
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(rows), [None, buffer])
