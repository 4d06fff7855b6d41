"""What is measured of the texts of a batch, once: code points and digests, carried along while a text is not edited."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transforms.duplicates import text_digests
from transforms.schema import ID
from transforms.text_columns import code_points

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Measures:
    """Of each text its code points and its digest; zeros and nulls while there is no text yet."""

    characters: Integers
    digests: pa.FixedSizeBinaryArray

    def take(self, rows: Integers) -> Measures:
        """Return the measures of these rows."""
        if len(rows) == len(self.characters) and (rows == np.arange(len(rows))).all():
            return self
        return Measures(self.characters[rows], self.digests.take(pa.array(rows)))

    def replaced(self, rows: Integers, others: Measures) -> Measures:
        """Return these measures with those of `others` at `rows`, which ascend."""
        if not len(rows):
            return self
        characters, digests = self.characters.copy(), bytes_of(self.digests).copy()
        characters[rows], digests[rows] = others.characters, bytes_of(others.digests)
        array = pa.Array.from_buffers(ID, len(digests), [None, pa.py_buffer(digests)])
        return Measures(characters, array)


def measure(batch: pa.RecordBatch) -> Measures:
    """Return what is measured of the texts of `batch`."""
    if batch.schema.get_field_index("text") < 0:
        return Measures(np.zeros(batch.num_rows, np.int64), pa.nulls(batch.num_rows, ID))
    return measure_text(batch.column("text"))


def measure_text(text: pa.LargeStringArray) -> Measures:
    """Return what is measured of these texts."""
    return Measures(code_points(text), text_digests(text))


def bytes_of(digests: pa.FixedSizeBinaryArray) -> npt.NDArray[np.uint8]:
    """Return the bytes of digests, none of which is null, as rows of 16."""
    if not len(digests):
        return np.zeros((0, 16), np.uint8)
    return np.frombuffer(digests.buffers()[1], np.uint8, 16 * len(digests), 16 * digests.offset).reshape(-1, 16)


@dataclass(frozen=True, slots=True)
class Coded:
    """A column, or several, as different `values` and which of them stands in each row."""

    values: list[Any]
    codes: Integers

    def take(self, rows: Integers) -> Coded:
        """Return these rows; values that none of them has may stay."""
        return Coded(self.values, self.codes[rows])

    def counts(self, amounts: Integers | None = None) -> list[int]:
        """Return for each value how many rows have it, or the sum of their `amounts`: exact below 2^53."""
        return [int(value) for value in np.bincount(self.codes, amounts, minlength=len(self.values)).tolist()]


def coded(array: pa.Array) -> Coded:
    """Return the different values of `array`; null is one."""
    encoded = array.dictionary_encode(null_encoding="encode")
    return Coded(encoded.dictionary.to_pylist(), np.asarray(encoded.indices, np.int64))


def combined(*columns: Coded) -> Coded:
    """Return the different rows of `columns`, those that there are, as tuples."""
    values: list[tuple[Any, ...]] = [(value,) for value in columns[0].values]
    codes = columns[0].codes
    for column in columns[1:]:
        if len(values) == len(column.values) == 1:
            values = [(*values[0], column.values[0])]
            continue
        pairs, codes = np.unique(codes * len(column.values) + column.codes, return_inverse=True)
        values = [(*values[p // len(column.values)], column.values[p % len(column.values)]) for p in pairs.tolist()]
    return Coded(values, codes)
