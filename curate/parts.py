"""Reading columns of stored shards, batch by batch: for tasks that look at documents without passing them on.

What is read is checked first against the receipt, so a flipped byte is an error and never another answer; what a
process has checked it checks again when the file has changed (`curate.digests.digest_unchanged`). Memory: a batch, and
some pages of one row group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Final

import pyarrow as pa

from curate.accounting.measured import MEASURES_FILE, StoredMeasures
from curate.digests import digest_bytes, digest_unchanged
from curate.parquet_batches import group_batches, open_parquet
from curate.receipts import Receipt, read_receipt, shard_folder
from curate.store import Store, StoreError
from curate.writer import cut_rows

BATCH_BYTES: Final = 16 << 20
"""Most logical bytes of a batch, but for long rows; changes no output."""

SMALL_BATCH: Final = 1 << 20
"""Batches below so many bytes are joined; changes no output."""


def checked_file(store: Store, key: str, name: str) -> Path:
    """Return the path, on this node, of the file `name` of the shard `key`.

    Raises:
        StoreError: the shard is not there or has no such file, or its bytes are not what the receipt says.
    """
    place, digest = _promised(store, key, name)
    if not store.exists(place) or digest_unchanged(path := store.local(place, digest)) != digest:
        raise _damaged(store, key, place)
    return path


def checked_bytes(store: Store, key: str, name: str) -> bytes:
    """Return the bytes of the file `name` of the shard `key`; errors as for `checked_file`."""
    place, digest = _promised(store, key, name)
    if not store.exists(place) or digest_bytes(content := store.read_bytes(place)) != digest:
        raise _damaged(store, key, place)
    return content


def _promised(store: Store, key: str, name: str) -> tuple[str, str]:
    """Return where a file of a shard lies, and the digest that its receipt says."""
    receipt = read_receipt(store, key)
    if receipt is None or name not in receipt.files:
        raise StoreError(f"{store.url(shard_folder(key))} has no {name}: run the recipe again to make it")
    return f"{shard_folder(key)}/{name}", receipt.files[name].digest


def _damaged(store: Store, key: str, place: str) -> StoreError:
    folder = store.url(shard_folder(key))
    return StoreError(f"{store.url(place)} is missing or damaged: remove {folder} and run the recipe again")


@contextmanager
def stored_measures(store: Store, receipt: Receipt) -> Iterator[StoredMeasures | None]:
    """Yield the measures of the texts of a shard, None where it has none: `curate.accounting.measured`.

    Raises:
        StoreError: the file is missing or damaged.
    """
    if MEASURES_FILE not in receipt.files:
        yield None
        return
    with StoredMeasures(checked_file(store, receipt.key, MEASURES_FILE)) as measures:
        yield measures


def part_batches(store: Store, key: str, columns: Sequence[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield `columns` of the shard `key` in batches of at most about `BATCH_BYTES`.

    Columns that the shard lacks are null; `schema` has the types of those.

    Raises:
        StoreError: the shard is not there, or has other bytes than its receipt says.
    """
    yield from file_columns(checked_file(store, key, "part.parquet"), columns, schema)


def file_columns(path: Path, columns: Sequence[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield what `part_batches` does of a part at `path` that the caller has checked."""
    with open_parquet(path) as file:
        there = set(file.schema_arrow.names)
        wanted = [name for name in columns if name in there]
        groups = (group_batches(file, group, wanted) for group in range(file.num_row_groups))
        for batch in _of_like_size(chain.from_iterable(groups)):
            arrays = [
                batch.column(name) if name in there else pa.nulls(batch.num_rows, schema.field(name).type)
                for name in columns
            ]
            yield pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _of_like_size(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `batches`: small ones joined, large ones cut, those of texts passed on without being copied."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size >= SMALL_BATCH:
            yield from cut_rows(held, BATCH_BYTES)
            held, size = [], 0
    if held:
        yield from cut_rows(held, BATCH_BYTES)
