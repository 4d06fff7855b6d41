"""Documents of a finished dataset as plain files: Parquet, JSON lines or Arrow, numbered, in their order.

Shards of a store lie under digests; these files are for tools that want a folder. Files are cut at `FILE_BYTES` logical
bytes, so they do not depend on how the store is cut. Memory: the rows of one file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Final

import orjson
import pyarrow as pa
import zstandard

from curate.bridges.rows import check_columns, plain_batches, plain_value
from curate.configuration import ConfigurationError
from curate.datasets import Dataset
from curate.writer import RowCutter, row_bytes, write_parquet

FILE_BYTES: Final = 256 << 20
"""Logical bytes after which the next file begins."""


def write_documents(
    dataset: Dataset, folder: str | Path, form: str = "parquet", columns: Sequence[str] | None = None
) -> list[Path]:
    """Write the documents of `dataset` into the empty `folder` and return the files.

    Args:
        dataset: a finished dataset.
        folder: made when it is not there.
        form: "parquet", "jsonl" (zstd) or "arrow" (a stream); ids are strings of 32 hex digits.
        columns: to write; None: all.

    Raises:
        ConfigurationError: another form, a folder that holds something, or a column that is not there.
    """
    if form not in FORMS:
        raise ConfigurationError(f"documents are written as {', '.join(FORMS)}, not {form!r}")
    names, place = check_columns(dataset, columns), Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    if any(place.iterdir()):
        raise ConfigurationError(f"{place} is not empty: give a folder that is")
    ending, write = FORMS[form]
    written = []
    for number, rows in zip(count(), _cut(plain_batches(dataset, names)), strict=False):
        path = place / f"{number:05d}.{ending}"
        write(path, rows)
        written.append(path)
    return written


def _cut(batches: Iterator[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    cutter = RowCutter(FILE_BYTES)
    for batch in batches:
        for group in cutter.add(batch, row_bytes(batch)):
            yield [rows for rows, _ in group]
    for group in cutter.rest():
        yield [rows for rows, _ in group]


def _write_parquet(path: Path, rows: list[pa.RecordBatch]) -> None:
    write_parquet(path, rows, rows[0].schema)


def _write_arrow(path: Path, rows: list[pa.RecordBatch]) -> None:
    with path.open("xb") as sink, pa.ipc.new_stream(sink, rows[0].schema) as stream:
        for batch in rows:
            stream.write_batch(batch)


def _write_lines(path: Path, rows: list[pa.RecordBatch]) -> None:
    with path.open("xb") as sink, zstandard.ZstdCompressor().stream_writer(sink) as packed:
        for batch in rows:
            for row in batch.to_pylist():
                packed.write(orjson.dumps(plain_value(row), option=orjson.OPT_APPEND_NEWLINE))


FORMS: Final[Mapping[str, tuple[str, Callable[[Path, list[pa.RecordBatch]], None]]]] = {
    "parquet": ("parquet", _write_parquet),
    "jsonl": ("jsonl.zst", _write_lines),
    "arrow": ("arrow", _write_arrow),
}
