"""Datasets of Hugging Face's `datasets`, as a source and as what a finished dataset is opened with.

`datasets` is imported when `to_hugging_face` is called; reading needs nothing of it but the object.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Unpack

import pyarrow as pa

from curate.bridges.arrow_source import FILE, lay_down
from curate.bridges.rows import check_columns, plain_batches
from curate.configuration import ConfigurationError
from curate.datasets import Dataset
from curate.readers.reader import Column, declared_columns
from curate.recipes import graph
from curate.recipes.reading import ReadOptions, reading

ROWS_AT_ONCE: Final = 1000


def from_hugging_face(
    dataset: Any,
    folder: str | Path,
    *,
    source: str,
    columns: Mapping[str, str | Column] | None = None,
    ignore: Sequence[str] = (),
    **options: Unpack[ReadOptions],
) -> graph.Dataset:
    """Read one split of Hugging Face's `datasets`, in its order, streamed or not.

    Its rows are laid down once as Parquet, as `from_arrow` does: what a hub serves tomorrow changes no key of today's
    rows, and what it served is kept.

    Args:
        dataset: a `datasets.Dataset` or `IterableDataset`, as `load_dataset("name", split="train")` returns.
        folder: where its rows are laid down; every node of a cluster must see it.
        source: name of the source; part of every id.
        columns: our name → its column, as in `read_parquet`; "key" names each row, without it its number does.
        ignore: columns to leave out; all others that are not declared survive as JSON in `extra`.
        **options: `curate.recipes.reading.ReadOptions`.

    Raises:
        ConfigurationError: it is no split, has no rows, or a column has a type that datasets do not hold.
    """
    if isinstance(dataset, Mapping):
        raise ConfigurationError(f"from_hugging_face takes one split: give dataset[…], one of {', '.join(dataset)}")
    if not (hasattr(dataset, "with_format") and hasattr(dataset, "iter")):
        raise ConfigurationError(f"from_hugging_face got a {type(dataset).__name__}: give a datasets.Dataset")
    tables = dataset.with_format("arrow").iter(batch_size=ROWS_AT_ONCE)
    first = next(iter(tables), None)
    if first is None:
        raise ConfigurationError(f"source {source!r}: the dataset has no rows")
    features = getattr(dataset, "features", None)
    schema = first.schema if features is None else features.arrow_schema
    again = dataset.with_format("arrow").iter(batch_size=ROWS_AT_ONCE)
    place = lay_down(schema.remove_metadata(), _batches(again, schema), Path(folder), source)
    return reading("parquet", place, FILE, source, options, None, declared_columns(columns, "text"), ignore)


def _batches(tables: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for table in tables:
        yield from table.select(schema.names).cast(schema).to_batches()


def to_hugging_face(dataset: Dataset, file: str | Path, columns: Sequence[str] | None = None) -> Any:
    """Write the documents of a finished dataset as an Arrow file, and return it as a `datasets.Dataset` on that file.

    Rows keep their order; ids are strings of 32 hex digits. The file is memory-mapped, not loaded.

    Args:
        dataset: as `open_result(store, folder).outputs["documents"]`.
        file: the Arrow file to write; it must stay as long as the dataset is used.
        columns: to take; None: all.

    Raises:
        ConfigurationError: `datasets` is not installed, the file is there, or a column is not.
    """
    try:
        import datasets  # type: ignore[import-untyped]
    except ImportError:
        raise ConfigurationError("to_hugging_face needs the package datasets: pip install datasets") from None
    path = Path(file)
    write_arrow(path, dataset, columns)
    return datasets.Dataset.from_file(str(path))


def write_arrow(path: Path, dataset: Dataset, columns: Sequence[str] | None = None) -> int:
    """Write the documents of `dataset` as one Arrow stream and return how many they are.

    Raises:
        ConfigurationError: the file is there, the dataset keeps nothing, or a column is not there.
    """
    names = check_columns(dataset, columns)
    batches = plain_batches(dataset, names)
    first = next(batches, None)
    if first is None:
        raise ConfigurationError(f"{dataset.name} keeps no documents: there is nothing to write")
    try:
        sink = path.open("xb")
    except FileExistsError:
        raise ConfigurationError(f"{path} is there: give a file that is not") from None
    with sink, pa.ipc.new_stream(sink, first.schema) as stream:
        stream.write_batch(first)
        rows = int(first.num_rows)
        for batch in batches:
            stream.write_batch(batch)
            rows += int(batch.num_rows)
    return rows
