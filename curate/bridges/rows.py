"""Documents of a finished dataset as other tools take them: ids in hex, one batch at a time, in their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from curate.configuration import ConfigurationError
from curate.datasets import Dataset
from transforms.schema import ID

HEX = 32
"""Digits of an id."""


def check_columns(dataset: Dataset, columns: Sequence[str] | None) -> list[str]:
    """Return the columns asked for, all where that is None.

    Raises:
        ConfigurationError: the dataset lacks one; the message lists what it has.
    """
    there = [column for column, _ in dataset.manifest["schema"]]
    wanted = list(columns) if columns is not None else there
    if missing := [name for name in wanted if name not in there]:
        raise ConfigurationError(f"{dataset.name} has no column {', '.join(missing)}; it has {', '.join(there)}")
    return wanted


def plain_batches(dataset: Dataset, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the documents of `dataset`, in order; 16-byte ids and digests become strings of 32 hex digits."""
    for batch in dataset.batches(columns):
        yield plain_batch(batch.select(list(columns)))


def plain_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return `batch` with its 16-byte values as strings of 32 hex digits."""
    arrays = [_hex(array) if array.type == ID else array for array in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _hex(array: pa.Array) -> pa.Array:
    return pa.array([None if value is None else value.hex() for value in array.to_pylist()], pa.large_string())


def plain_value(value: Any) -> Any:
    """Return a value of a row as JSON holds it: bytes as hex, times in ISO 8601, decimals as doubles."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, dict):
        return {name: plain_value(each) for name, each in value.items()}
    if isinstance(value, list):
        return [plain_value(each) for each in value]
    return value
