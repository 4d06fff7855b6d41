"""Rows that a program holds as Arrow, as a source of a recipe.

They are laid down as one Parquet file in a folder named by the content digest of the rows, and read like any other: so
batches, chunks and the process that held them change nothing, tasks on other nodes find them, and a document leads back
to its row. Ids are made of the source's name and the row number, or of a key column.

Cost: one pass that writes the rows each time the recipe is called; memory: one row group of 64 MiB.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Unpack

import pyarrow as pa
import pyarrow.dataset as pads

from curate.configuration import ConfigurationError
from curate.content_digests import ContentDigest
from curate.digests import short
from curate.readers.reader import Column, declared_columns
from curate.recipes.graph import Dataset
from curate.recipes.reading import ReadOptions, reading
from curate.writer import write_parquet

FILE: Final = "rows.parquet"


def from_arrow(
    rows: Any,
    folder: str | Path,
    *,
    source: str,
    columns: Mapping[str, str | Column] | None = None,
    ignore: Sequence[str] = (),
    **options: Unpack[ReadOptions],
) -> Dataset:
    """Read rows that a program holds as Arrow.

    Args:
        rows: a pyarrow Table, RecordBatch, RecordBatchReader or Dataset, an iterable of record batches, or an object
            that exports an Arrow stream (`__arrow_c_stream__`: polars, DuckDB, pandas). A reader is used up.
        folder: where they are laid down, `<folder>/<digest>/rows.parquet`; every node of a cluster must see it.
        source: name of the source; part of every id.
        columns: our name → column of `rows`, as in `read_parquet`; "key" names each row, without it its number does.
        ignore: columns to leave out; all others that are not declared survive as JSON in `extra`.
        **options: `curate.recipes.reading.ReadOptions`.

    Raises:
        ConfigurationError: `rows` is nothing of that kind, or a column has a type that datasets do not hold.
    """
    schema, batches = _opened(rows)
    place = lay_down(schema, batches, Path(folder), source)
    return reading("parquet", place, FILE, source, options, None, declared_columns(columns, "text"), ignore)


def lay_down(schema: pa.Schema, batches: Iterable[pa.RecordBatch], folder: Path, source: str) -> Path:
    """Write rows below `folder`, unless they are there, and return the folder named by their content digest.

    Raises:
        ConfigurationError: a column has a type that datasets do not hold.
    """
    plain = pa.schema([field.with_type(_plain_type(field.type)) for field in schema])
    for field in plain:
        try:
            ContentDigest(pa.schema([field]))
        except TypeError as error:
            raise ConfigurationError(f"source {source!r}, column {field.name!r}: {error}") from None
    room = folder / f".writing-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    room.mkdir(parents=True)
    try:
        written = write_parquet(room / FILE, (_plain(batch, plain) for batch in batches), plain)
        place = folder / short(written.content)
        if not place.exists():
            try:
                room.rename(place)
            except OSError:  # another process was first
                if not place.exists():
                    raise
        return place
    finally:
        shutil.rmtree(room, ignore_errors=True)


def _opened(rows: Any) -> tuple[pa.Schema, Iterable[pa.RecordBatch]]:
    """Return the schema of `rows` and its batches, in order."""
    if isinstance(rows, pads.Dataset):
        return rows.schema, rows.to_batches()
    if isinstance(rows, pa.RecordBatch):
        return rows.schema, [rows]
    if isinstance(rows, pa.RecordBatchReader):
        return rows.schema, rows
    if hasattr(rows, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(rows)
        return reader.schema, reader
    if isinstance(rows, Iterable) and not isinstance(rows, (str, bytes, Mapping)):
        return _of_batches(iter(rows))
    raise ConfigurationError(
        f"from_arrow got a {type(rows).__name__}: give a table, record batches, a pyarrow dataset, or what exports an "
        "Arrow stream"
    )


def _of_batches(batches: Iterator[Any]) -> tuple[pa.Schema, Iterable[pa.RecordBatch]]:
    first = next(batches, None)
    if not isinstance(first, pa.RecordBatch):
        what = "nothing" if first is None else f"a {type(first).__name__}"
        raise ConfigurationError(f"from_arrow got {what} where it takes record batches: build a pyarrow.Table first")

    def again() -> Iterator[pa.RecordBatch]:
        yield first
        yield from batches

    return first.schema, again()


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type under which values are laid down: those of a dictionary themselves, nulls as strings."""
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_null(kind):
        return pa.large_string()
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    return kind


def _plain(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    arrays = [batch.column(field.name) for field in schema]
    fitting = [
        array if array.type == field.type else array.cast(field.type)
        for array, field in zip(arrays, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(fitting, schema=schema)
