"""Keep order as bytes: of two near-duplicates, the one whose key compares lower stays.

`prefer=("source", "-stars", "-length")` reads: first by position in the list of sources, then by more stars, then by
more code points. Keys are compared with memcmp, in any process, partition or sort routine, and need no schema to be
compared. They end with the text's digest and the document's id, so that two rows with the same key are one row, and
so that which of two *different* texts stays depends on ids (and with them on how the raw files are cut) never.

Encoding of a column's value (prefix-free, so that keys of several columns can be concatenated):
one byte, 0 = value, 1 = null (nulls sort last in both directions); then, all bits inverted when descending:
- integers: one byte for the sign, eight bytes of two's complement, big-endian: int8 … uint64 compare with each other;
- booleans: one byte; decimals: 32 bytes of two's complement of value × 10^38, sign bit flipped;
- floats: eight bytes, IEEE order; -0.0 equals 0.0; NaN counts as null;
- timestamps and dates: seconds as an integer, nanoseconds within the second as four bytes: all units compare;
- strings and bytes: 0x00 written as 0x00 0xFF, ended by 0x00 0x00: a prefix sorts first, UTF-8 sorts by code point.

Cost: a few vectorised passes per column; memory about twice the keys.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transforms.duplicates import text_digests
from transforms.outcome import SchemaError

Matrix = npt.NDArray[np.uint8]

_LARGE_BINARY: Final = pa.large_binary()
_SIGN: Final = np.uint64(1 << 63)
_ALL: Final = np.uint64(0xFFFFFFFFFFFFFFFF)
_DECIMAL: Final = pa.decimal256(76, 38)
_EMPTY: Final[Any] = pa.scalar(b"", _LARGE_BINARY)
_END: Final[Any] = pa.scalar(b"\0\0", _LARGE_BINARY)


@dataclass(frozen=True, slots=True)
class OrderBy:
    """One criterion of keep order: a column, and whether larger values come first."""

    column: str
    descending: bool = False

    @classmethod
    def parse(cls, criterion: str) -> OrderBy:
        """Return the criterion of a string as "stars" (smaller first) or "-stars" (larger first).

        Raises:
            ValueError: no column name is left.
        """
        name = criterion.removeprefix("-")
        if not name:
            raise ValueError(f"a criterion of keep order is a column name with or without '-' before it: {criterion!r}")
        return cls(name, criterion.startswith("-"))


def order_by(prefer: Sequence[str]) -> tuple[OrderBy, ...]:
    """Return the criteria of `prefer=("source", "-stars", "-length")`.

    Raises:
        ValueError: a criterion is empty or a column stands twice.
        TypeError: `prefer` is one string.
    """
    if isinstance(prefer, str):
        raise TypeError(f"prefer is a sequence of column names, got the string {prefer!r}: write ({prefer!r},)")
    criteria = tuple(OrderBy.parse(criterion) for criterion in prefer)
    names = [criterion.column for criterion in criteria]
    if len(set(names)) < len(names):
        raise ValueError(f"prefer names a column twice: {tuple(prefer)}")
    return criteria


def order_keys(
    batch: pa.RecordBatch,
    prefer: Sequence[str],
    sources: Sequence[str],
    digests: pa.FixedSizeBinaryArray | None = None,
) -> pa.LargeBinaryArray:
    """Return the keep-order key of each row of `batch`, which has `id`, `text` and the columns that `prefer` names.

    "source" is the position of the row's source in `sources`; "length" the code points of `text` unless the batch has
    a column of that name. `digests` are `text_digests` of the column `text`, if the caller has them already; with them
    and such a column the batch needs no `text`.

    Raises:
        SchemaError: a column is missing or of a type without an order.
        ValueError: a row's source is not among `sources`; `prefer` is malformed.
    """
    columns = [encode_column(_values(batch, by.column, sources), by.descending, by.column) for by in order_by(prefer)]
    texts: Any = text_digests(cast("pa.LargeStringArray", batch.column("text"))) if digests is None else digests
    ids: Any = batch.column("id")
    ends = _joined_ends(texts, ids)
    return join_keys([*columns, ends]) if columns else ends


def _joined_ends(texts: Any, ids: Any) -> pa.LargeBinaryArray:
    """Return digest and id of each row, one after the other."""
    if any(part.null_count or not pa.types.is_fixed_size_binary(part.type) for part in (texts, ids)):
        return join_keys([pc.cast(texts, _LARGE_BINARY), pc.cast(ids, _LARGE_BINARY)])
    return _rows(np.hstack([_bytes(texts), _bytes(ids)]))


def _bytes(values: Any) -> Matrix:
    """Return the bytes of values of one width, none of them null, as rows."""
    width = values.type.byte_width
    content = values.buffers()[1] or b""
    return np.frombuffer(content, np.uint8, width * len(values), width * values.offset).reshape(-1, width)


def join_keys(parts: Sequence[Any]) -> pa.LargeBinaryArray:
    """Return the row-wise concatenation of encoded columns: the order by the first, then the second and so on."""
    return cast("pa.LargeBinaryArray", pc.binary_join_element_wise(*parts, _EMPTY))


def encode_column(values: pa.Array[Any], descending: bool = False, name: str = "column") -> pa.LargeBinaryArray:
    """Return bytes whose memcmp order is the order of `values`, nulls last. `name` is for messages.

    Raises:
        SchemaError: the type has no order here (lists, structs, durations, times, 256-bit decimals).
    """
    plain = _plain(values)
    nulls = np.asarray(plain.is_null()).astype(np.uint8)[:, None]
    if _is_bytes(plain.type):
        escaped = _escaped(plain)
        content: Any = _inverted(escaped) if descending else escaped
        return join_keys([_rows(nulls), pc.if_else(plain.is_null(), _EMPTY, content)])
    encoded = _payload(plain, name)
    if descending:
        encoded = ~encoded
    encoded[nulls[:, 0] == 1] = 0
    return _rows(np.hstack([nulls, encoded]))


def group_hashes(values: pa.Array[Any]) -> npt.NDArray[np.uint64]:
    """Return 64 bits of BLAKE2b of each value: the groups of `within=`; nulls are a group of their own.

    Raises:
        SchemaError: as `encode_column`.
    """
    distinct: Any = encode_column(values, name="within").dictionary_encode()
    hashes = [
        hashlib.blake2b(key, digest_size=8, person=b"curate within").digest() for key in distinct.dictionary.to_pylist()
    ]
    table = np.frombuffer(b"".join(hashes), "<u8").astype(np.uint64)
    rows: npt.NDArray[np.int32] = np.asarray(distinct.indices)
    return table[rows]


def _values(batch: pa.RecordBatch, column: str, sources: Sequence[str]) -> Any:
    if batch.schema.get_field_index(column) < 0:
        if column == "length":
            text: Any = batch.column("text")
            return pc.utf8_length(text)
        raise SchemaError(f"keep order needs the column {column!r}; the rows have {', '.join(batch.schema.names)}")
    return _places(batch.column(column), sources) if column == "source" else batch.column(column)


def _places(column: Any, sources: Sequence[str]) -> Any:
    """Return the position of each row's source in `sources`."""
    places = pc.index_in(column, value_set=pa.array(list(sources), column.type))
    if places.null_count:
        missing = pc.unique(column.filter(places.is_null())).to_pylist()
        raise ValueError(f"sources without a place in keep order: {missing}; the list is {list(sources)}")
    return places


def _plain(values: Any) -> Any:
    """Return `values` without dictionary, and with null for NaN."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_floating(values.type):
        return pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)
    return values


def _payload(values: Any, name: str) -> Matrix:
    """Encode the values of a column of fixed width, ascending, whatever stands in the place of nulls."""
    kind: Any = values.type
    if pa.types.is_boolean(kind):
        return np.asarray(pc.fill_null(values, False)).astype(np.uint8)[:, None]
    if pa.types.is_integer(kind):
        return _integers(np.asarray(pc.fill_null(values, 0)))
    if pa.types.is_floating(kind):
        return _floats(np.asarray(pc.fill_null(pc.cast(values, pa.float64()), 0.0)))
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return _instants(values)
    if pa.types.is_decimal(kind) and not pa.types.is_decimal256(kind) and kind.scale >= 0:
        return _decimals(pc.cast(values, _DECIMAL))
    if pa.types.is_null(kind):
        return np.zeros((len(values), 0), np.uint8)
    raise SchemaError(f"keep order has no order for {name!r} of type {kind}: cast it to a number or a string first")


def _is_text(kind: Any) -> bool:
    return any(test(kind) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def _is_bytes(kind: Any) -> bool:
    tests = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_binary_view)
    return _is_text(kind) or any(test(kind) for test in tests)


def _integers(values: npt.NDArray[Any]) -> Matrix:
    sign = (values >= 0).astype(np.uint8)[:, None]
    return np.hstack([sign, _big_endian(values.astype(np.uint64))])


def _floats(values: npt.NDArray[np.float64]) -> Matrix:
    bits = (values + 0.0).view(np.uint64)  # + 0.0 makes 0.0 of -0.0
    return _big_endian(np.where(bits & _SIGN, bits ^ _ALL, bits | _SIGN))


def _instants(values: Any) -> Matrix:
    kind: Any = values.type
    if pa.types.is_date(kind):
        return _instants(pc.cast(values, pa.timestamp("s" if pa.types.is_date32(kind) else "ms")))
    ticks = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}[kind.unit]
    count = np.asarray(pc.fill_null(pc.cast(values, pa.int64()), 0))
    seconds, rest = np.divmod(count, ticks)
    nanoseconds = (rest * (1_000_000_000 // ticks)).astype(np.uint64)
    return np.hstack([_integers(seconds), _big_endian(nanoseconds)[:, 4:]])


def _decimals(values: Any) -> Matrix:
    words = np.frombuffer(values.buffers()[1], np.uint8, len(values) * 32, values.offset * 32).reshape(-1, 32)
    encoded: Matrix = words[:, ::-1].copy()
    encoded[:, 0] ^= 0x80
    return encoded


def _big_endian(values: npt.NDArray[np.uint64]) -> Matrix:
    return np.ascontiguousarray(values).astype(">u8").view(np.uint8).reshape(-1, 8)


def _escaped(values: Any) -> pa.LargeBinaryArray:
    text = pc.cast(values, pa.large_string()) if _is_text(values.type) else values
    content: Any = pc.fill_null(pc.cast(text, _LARGE_BINARY), _EMPTY)
    replace: Any = pc.replace_substring  # its stub knows strings only
    return join_keys([replace(content, pattern=b"\0", replacement=b"\0\xff"), _END])


def _inverted(values: Any) -> pa.LargeBinaryArray:
    offsets = np.frombuffer(values.buffers()[1], np.int64, len(values) + 1, values.offset * 8)
    data = np.frombuffer(values.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    return _large_binary(offsets - offsets[0], ~data)


def _rows(matrix: Matrix) -> pa.LargeBinaryArray:
    count, width = matrix.shape
    return _large_binary(np.arange(count + 1, dtype=np.int64) * width, np.ascontiguousarray(matrix))


def _large_binary(offsets: npt.NDArray[np.int64], data: Matrix) -> pa.LargeBinaryArray:
    buffers = [None, pa.py_buffer(offsets.data), pa.py_buffer(data.data)]
    return cast("pa.LargeBinaryArray", pa.Array.from_buffers(_LARGE_BINARY, len(offsets) - 1, buffers))
