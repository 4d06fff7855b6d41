"""Rows in the order of key columns: stable sorting, taking, and finding where a key belongs.

Key columns are integers, binary or strings without nulls; their order is that of numbers and of bytes. Cost: about
100 ns per row and key column, a fifth of it where the first is of hashes; a list of numbers is copied row by row,
without an index of its values.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transforms.hash_order import stable_order

Integers = npt.NDArray[np.int64]
Key = tuple[Any, ...]
"""The key of one row as Python values."""

_SIGN: Final = np.uint64(1 << 63)


def sort_order(rows: pa.RecordBatch, key: Sequence[str], before: Sequence[npt.NDArray[Any]] = ()) -> Integers | None:
    """Return the stable order of `rows` by the numbers `before`, then by `key`; None where they are in order already.

    Raises:
        ValueError: a key column has nulls, or is of a type without an order here.
    """
    columns = [*before, *(number for name in key for number in _numbers(rows.column(name), name))]
    if not columns or _in_order(columns):
        return None
    return _order([column for column in columns if (column[1:] != column[:-1]).any()])


def _order(columns: Sequence[npt.NDArray[Any]]) -> Integers:
    """Return the stable order by `columns`, one at least, the most significant first."""
    lead, *rest = columns
    if lead.dtype == np.uint16 and rest:  # partitions: numpy sorts 16 bits by radix
        within = _order(rest)
        return within[np.argsort(lead[within], kind="stable")]
    first = stable_order(lead.astype(np.uint64))
    led = lead[first]
    if not rest or not (led[1:] == led[:-1]).any():  # digests differ in their first bytes already
        return first
    return np.asarray(np.lexsort(columns[::-1]), np.int64)


def take_rows(rows: pa.RecordBatch, order: Integers | None) -> pa.RecordBatch:
    """Return `rows` in another order; None leaves them as they are."""
    if order is None:
        return rows
    arrays = [_take(array, order) for array in rows.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=rows.schema)


def key_of(rows: pa.RecordBatch, key: Sequence[str], row: int) -> Key:
    """Return the key of one row."""
    return tuple(rows.column(name)[row].as_py() for name in key)


def place_of(rows: pa.RecordBatch, key: Sequence[str], bound: Key, *, after: bool) -> int:
    """Return how many of the sorted `rows` stand before the key `bound`; with `after`, those that equal it too."""
    columns = [rows.column(name) for name in key]
    find = bisect_right if after else bisect_left
    return find(range(rows.num_rows), bound, key=lambda row: tuple(column[row].as_py() for column in columns))


def _numbers(column: pa.Array, name: str) -> list[npt.NDArray[np.uint64]]:
    """Return unsigned numbers that order as the values do, most significant first."""
    kind = column.type
    if column.null_count:
        raise ValueError(f"the key column {name!r} has nulls: they have no place in an exchange")
    if pa.types.is_unsigned_integer(kind):
        return [column.to_numpy().astype(np.uint64)]
    if pa.types.is_signed_integer(kind):
        return [column.to_numpy().astype(np.int64).view(np.uint64) ^ _SIGN]
    if pa.types.is_fixed_size_binary(kind) and kind.byte_width % 8 == 0:
        halves = kind.byte_width // 8
        data = np.frombuffer(column.buffers()[1], ">u8", halves * len(column), column.offset * kind.byte_width)
        return [data[half::halves].astype(np.uint64) for half in range(halves)]
    if pa.types.is_large_binary(kind) or pa.types.is_large_string(kind) or pa.types.is_fixed_size_binary(kind):
        return [pc.rank(column, sort_keys="ascending", tiebreaker="dense").to_numpy()]
    raise ValueError(f"the key column {name!r} is {kind}: give integers, binary or strings")


def _in_order(columns: Sequence[npt.NDArray[Any]]) -> bool:
    open_ties = np.ones(max(0, len(columns[0]) - 1), np.bool_)
    for column in columns:
        if (open_ties & (column[1:] < column[:-1])).any():
            return False
        open_ties &= column[1:] == column[:-1]
        if not open_ties.any():
            return True
    return True


def _take(array: pa.Array, order: Integers) -> pa.Array:
    kind = array.type
    if not (pa.types.is_large_list(kind) and pa.types.is_primitive(kind.value_type)):
        return array.take(pa.array(order))
    values = array.flatten()
    if array.null_count or values.null_count or pa.types.is_boolean(kind.value_type):
        return array.take(pa.array(order))
    numbers = values.to_numpy()
    lengths = pc.list_value_length(array).to_numpy().astype(np.int64)
    starts = np.cumsum(lengths) - lengths
    bounds = zip(starts[order].tolist(), (starts + lengths)[order].tolist(), strict=True)
    flat = np.concatenate([numbers[:0], *(numbers[first:last] for first, last in bounds)])
    offsets = np.concatenate([[0], np.cumsum(lengths[order])]).astype(np.int64)
    return pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(flat, kind.value_type), type=kind)


def borders(ordered: npt.NDArray[Any]) -> list[tuple[int, int, int]]:
    """Return (value, first, last) of each run of equal values of an ordered array."""
    if not len(ordered):
        return []
    edges = [0, *(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1).tolist(), len(ordered)]
    return [(int(ordered[first]), first, last) for first, last in pairwise(edges)]
