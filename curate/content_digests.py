"""Digests of content: of the logical values of a table, however they are stored.

A content digest covers the schema and each column's values in row order; it does not see row groups, chunks,
compression, `string` against `large_string`, or what lies under a null. It is computed as rows stream by, in memory
that does not grow with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from blake3 import blake3

from curate.digests import MODULUS, digest_json


def logical_type(kind: pa.DataType) -> str:
    """Return the name of a column's logical type, the same for the small and large layouts of one type.

    Raises:
        TypeError: a type that datasets do not hold.
    """
    if pa.types.is_large_string(kind) or pa.types.is_string(kind):
        return "string"
    if pa.types.is_large_binary(kind) or pa.types.is_binary(kind):
        return "binary"
    if pa.types.is_fixed_size_binary(kind):
        return f"binary{kind.byte_width}"
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return str(kind)
    if pa.types.is_floating(kind):
        return {16: "float16", 32: "float32", 64: "float64"}[kind.bit_width]
    if pa.types.is_decimal128(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return f"timestamp({kind.unit},{kind.tz or ''})"
    if pa.types.is_date32(kind):
        return "date"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"list<{logical_type(kind.value_type)}>"
    if pa.types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        return "struct<" + ",".join(f"{field.name}:{logical_type(field.type)}" for field in fields) + ">"
    raise TypeError(f"columns of type {kind} are not supported: cast the column before it is read")


_ONES: Final = np.ones(1 << 13, np.uint8)
_ONES.flags.writeable = False


def _ones(count: int) -> npt.NDArray[np.uint8]:
    return _ONES[:count] if count <= len(_ONES) else np.ones(count, np.uint8)


class _ColumnDigest:
    """Streams of one column: which rows are null, lengths, values; children for nested types."""

    def __init__(self, kind: pa.DataType) -> None:
        self.kind = kind
        self.valid, self.lengths, self.values = blake3(), blake3(), blake3()
        self.children: list[_ColumnDigest] = []
        self._add: Callable[[_ColumnDigest, pa.Array, npt.NDArray[np.uint8]], None] = _ColumnDigest._add_numbers
        if pa.types.is_struct(kind):
            self.children = [_ColumnDigest(kind.field(i).type) for i in range(kind.num_fields)]
            self._add = _ColumnDigest._add_fields
        elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
            self.children, self._add = [_ColumnDigest(kind.value_type)], _ColumnDigest._add_list
        elif pa.types.is_fixed_size_binary(kind):
            self._add = _ColumnDigest._add_fixed
        elif logical_type(kind) in ("string", "binary"):
            self._add = _ColumnDigest._add_strings

    def update(self, array: pa.Array) -> None:
        valid = _ones(len(array))
        if array.null_count:
            valid = array.is_valid().to_numpy(zero_copy_only=False).astype(np.uint8)
        self.valid.update(valid.data)
        self._add(self, array, valid)

    def _add_fields(self, array: pa.Array, valid: npt.NDArray[np.uint8]) -> None:
        for child, values in zip(self.children, array.flatten(), strict=True):
            child.update(values)

    def _add_list(self, array: pa.Array, valid: npt.NDArray[np.uint8]) -> None:
        self.lengths.update(pc.fill_null(pc.list_value_length(array), 0).cast(pa.int64()).to_numpy().tobytes())
        self.children[0].update(array.flatten())

    def _add_strings(self, array: pa.Array, valid: npt.NDArray[np.uint8]) -> None:
        lengths, data = _variable_buffers(array)
        self.lengths.update(lengths.view(np.uint8).data)
        self.values.update(data)

    def _add_fixed(self, array: pa.Array, valid: npt.NDArray[np.uint8]) -> None:
        self.values.update(_fixed_values(array, self.kind.byte_width, valid))

    def _add_numbers(self, array: pa.Array, valid: npt.NDArray[np.uint8]) -> None:
        self.values.update(_fixed_bytes(array, self.kind))

    def digest(self) -> bytes:
        parts = [self.valid.digest(), self.lengths.digest(), self.values.digest()]
        return blake3(b"".join(parts + [child.digest() for child in self.children])).digest()


def _variable_buffers(array: pa.Array) -> tuple[npt.NDArray[np.int64], memoryview]:
    """Return the length of each value, 0 for nulls, and their bytes one after the other: a view where no null is."""
    filled = pc.fill_null(array, b"" if "binary" in str(array.type) else "") if array.null_count else array
    is_large = pa.types.is_large_string(filled.type) or pa.types.is_large_binary(filled.type)
    large = filled if is_large else filled.cast(pa.large_binary())
    if not len(large):
        return np.zeros(0, np.int64), memoryview(b"")
    offsets = np.frombuffer(large.buffers()[1], np.int64)[large.offset : large.offset + len(large) + 1]
    if offsets[0] == offsets[-1]:
        return np.zeros(len(large), np.int64), memoryview(b"")
    return np.diff(offsets), memoryview(large.buffers()[2])[int(offsets[0]) : int(offsets[-1])]


def _fixed_values(array: pa.Array, width: int, valid: npt.NDArray[np.uint8]) -> memoryview:
    """Return the bytes of fixed-width values, zeros for nulls: a view where no null is."""
    if not len(array) or not width:
        return memoryview(b"")
    data = np.frombuffer(array.buffers()[1], np.uint8, width * len(array), width * array.offset).reshape(-1, width)
    return (data if valid.all() else data * valid[:, None]).reshape(-1).data


def _fixed_bytes(array: pa.Array, kind: pa.DataType) -> bytes:
    if pa.types.is_boolean(kind):
        return np.asarray(pc.fill_null(array, False).to_numpy(zero_copy_only=False), np.uint8).tobytes()
    if pa.types.is_decimal128(kind):
        return b"".join(str(value).encode() + b"\0" for value in array.to_pylist())
    if pa.types.is_timestamp(kind):
        array, kind = array.cast(pa.int64()), pa.int64()
    if pa.types.is_date32(kind):
        array, kind = array.cast(pa.int32()), pa.int32()
    filled = pc.fill_null(array, pa.scalar(0, kind)) if array.null_count else array
    return np.asarray(filled.to_numpy(zero_copy_only=False)).tobytes()


class ContentDigest:
    """Content digest of a table whose record batches stream by; equal however the rows are batched."""

    def __init__(self, schema: pa.Schema) -> None:
        """Start with the schema: names, logical types and order are part of the digest."""
        self._schema = schema
        self._columns = [_ColumnDigest(field.type) for field in schema]
        self._rows = 0

    def update(self, batch: pa.RecordBatch) -> None:
        """Add the rows of `batch`."""
        self._rows += batch.num_rows
        for column, array in zip(self._columns, batch.columns, strict=True):
            column.update(array)

    def hexdigest(self) -> str:
        """Return the digest of the schema and all rows so far."""
        columns = [
            [field.name, logical_type(field.type), column.digest().hex()]
            for field, column in zip(self._schema, self._columns, strict=True)
        ]
        return digest_json({"rows": self._rows, "columns": columns})


def content_digest(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> str:
    """Return the content digest of `batches`."""
    digest = ContentDigest(schema)
    for batch in batches:
        digest.update(batch)
    return digest.hexdigest()


def sum_digest_rows(digests: npt.NDArray[np.uint8]) -> int:
    """Return the number that `sum_digests` writes, of digests given as the rows of an array."""
    count, width = digests.shape
    bounds = np.arange(count + 1, dtype=np.int64) * width
    from transforms.many_digests import digests_of  # compiled: most commands make no ids

    words = digests_of(np.ascontiguousarray(digests).reshape(-1), bounds).view("<u4").astype(np.uint64)
    return sum(int(total) << 32 * place for place, total in enumerate(words.sum(axis=0).tolist())) % MODULUS
