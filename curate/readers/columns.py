"""Names and rows of records given as columns: the ids, record digests and rows that one record at a time would get.

A digest is made of the same bytes as for one record (`curate.digests.document_id`, `chunks.record_digest`); those of a
batch are put together by Arrow and digested together. Cost: about 1 µs per row, and one copy of keyed records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curate.digests import ID_CONTEXT, id_part
from curate.readers.reader import Reader
from transforms.many_digests import short_digests
from transforms.schema import ID, NOT_CHECKED, OPTOUT, ORIGIN, UNKNOWN
from transforms.segmentation import text_buffers

Integers = npt.NDArray[np.int64]
Columns = Mapping[str, pa.Array]


def place_ids(
    source: str, path: str, place: str, offsets: Integers, parts: Integers | None = None
) -> pa.FixedSizeBinaryArray:
    """Return the ids of the records at these places, of these parts or the first of each."""
    start = ID_CONTEXT + b"".join(map(id_part, (source, path, place)))
    end = (id_part(0),) if parts is None else _parts(_decimals(parts), b"int")
    return _digested(start, *_parts(_decimals(offsets), b"int"), *end)


def key_ids(
    reader: Reader, path: str, place: str, keys: pa.LargeBinaryArray, offsets: Integers
) -> pa.FixedSizeBinaryArray:
    """Return the ids of records with these natural keys, null where a key is."""
    start = ID_CONTEXT + id_part(reader.source)
    if reader.on_clash != "place":
        return _digested(start, *_parts(keys, b"bytes"), id_part(0))
    middle = b"".join(map(id_part, (path, place)))
    return _digested(start, *_parts(keys, b"bytes"), middle, *_parts(_decimals(offsets), b"int"), id_part(0))


def record_digests(values: Columns, texts: pa.FixedSizeBinaryArray) -> pa.FixedSizeBinaryArray:
    """Return `chunks.record_digest` of each row; `texts` are the digests of the column `text`."""
    pieces: list[Any] = []
    for name in sorted(values):
        if name == "text":
            pieces += [b"text:", pc.cast(texts, pa.large_binary())]
            continue
        written, kind = _written(values[name])
        size = pc.binary_length(written).cast(pa.large_string()).cast(pa.large_binary())
        head = _joined(f"{name}:{kind}:".encode(), size, b":")
        if name == "extra":  # the one value that every record has, if only as None
            head = pc.fill_null(head, f"{name}:NoneType:4:None".encode())
        pieces += [head, written]
    return _digests(_joined(*pieces, null_handling="skip"))


def _written(array: pa.Array) -> tuple[pa.LargeBinaryArray, str]:
    """Return the values as Python's `str` writes them, and the name of their type in Python."""
    if array.type == pa.large_string():
        return array.cast(pa.large_binary()), "str"
    if pa.types.is_boolean(array.type):
        return pc.if_else(array, pa.scalar(b"True", pa.large_binary()), pa.scalar(b"False", pa.large_binary())), "bool"
    return array.cast(pa.int64()).cast(pa.large_string()).cast(pa.large_binary()), "int"


def _decimals(numbers: Integers) -> pa.LargeBinaryArray:
    return pa.array(numbers).cast(pa.large_string()).cast(pa.large_binary())


def _parts(array: pa.LargeBinaryArray, kind: bytes) -> tuple[Any, bytes, Any]:
    """Return what `id_part` makes of each value of Python's type `kind`."""
    lengths = np.ascontiguousarray(pc.fill_null(pc.binary_length(array), 0).to_numpy(), "<i8")
    bounds = np.arange(0, 8 * len(array) + 1, 8, dtype=np.int64)
    sizes = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(array), [None, pa.py_buffer(bounds), pa.py_buffer(lengths)]
    )
    return sizes, kind + b"\0", array


def _joined(*pieces: Any, null_handling: str = "emit_null") -> pa.LargeBinaryArray:
    given = [pa.scalar(piece, pa.large_binary()) if isinstance(piece, bytes) else piece for piece in pieces]
    return pc.binary_join_element_wise(*given, pa.scalar(b"", pa.large_binary()), null_handling=null_handling)


def _digested(*pieces: Any) -> pa.FixedSizeBinaryArray:
    return _digests(_joined(*pieces))


def _digests(messages: pa.LargeBinaryArray) -> pa.FixedSizeBinaryArray:
    found = short_digests(*text_buffers(messages.view(pa.large_string())))
    if not messages.null_count:
        return found
    return pc.if_else(messages.is_valid(), found, pa.scalar(None, found.type))


def rows_of(reader: Reader, ids: pa.Array, origin: pa.StructArray, values: Columns) -> pa.RecordBatch:
    """Return rows of `reader`'s schema; rights that nobody states are "unknown", columns that nobody has are null."""
    count, schema = len(ids), reader.schema()
    given: dict[str, pa.Array] = {
        **values,
        "id": ids,
        "origin": origin,
        "source": _constant(reader.source, count),
        "optout": pa.repeat(pa.scalar(NOT_CHECKED, OPTOUT), count),
        **_licences(reader, values.get("licence"), count),
    }
    arrays = [given[item.name] if item.name in given else pa.nulls(count, item.type) for item in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _licences(reader: Reader, stated: pa.Array | None, count: int) -> dict[str, pa.Array]:
    if reader.licence:
        return {"licence": _constant(reader.licence, count), "licence_basis": _constant("user", count)}
    if stated is None:
        return {"licence": _constant(UNKNOWN, count), "licence_basis": _constant(UNKNOWN, count)}
    known = pc.fill_null(pc.not_equal(stated, ""), False)
    unknown, source = (pa.scalar(word, pa.large_string()) for word in (UNKNOWN, "source"))
    return {"licence": pc.if_else(known, stated, unknown), "licence_basis": pc.if_else(known, source, unknown)}


def _constant(word: str, count: int) -> pa.LargeStringArray:
    return pa.repeat(pa.scalar(word, pa.large_string()), count)


@dataclass(frozen=True, slots=True)
class Places:
    """Where records lie in one file: the columns of `origin` but for its path."""

    place: pa.LargeStringArray
    offset: Integers
    length: Integers
    part: Integers

    def origins(self, path: str) -> pa.StructArray:
        """Return the column `origin` of records of the file `path`."""
        numbers = [pa.array(values) for values in (self.offset, self.length, self.part.astype(np.int32))]
        columns = [_constant(path, len(self.offset)), self.place, *numbers]
        return pa.StructArray.from_arrays(columns, fields=list(ORIGIN))


def row_places(place: str, offsets: Integers) -> Places:
    """Return the places of records of length 1."""
    count = len(offsets)
    return Places(_constant(place, count), offsets, np.ones(count, np.int64), np.zeros(count, np.int64))


def places_of(places: Sequence[tuple[str, int, int, int]]) -> Places:
    """Return places given one by one: unit, offset, length, part."""
    place, offset, length, part = zip(*places, strict=True) if places else ((), (), (), ())
    numbers = np.array(offset, np.int64), np.array(length, np.int64), np.array(part, np.int64)
    return Places(pa.array(place, pa.large_string()), *numbers)


def ids_of(source: str, path: str, places: Places, known: Sequence[bytes | None]) -> pa.FixedSizeBinaryArray:
    """Return the `known` ids, and the ids by place of the records of which none is known."""
    ids = pa.array(known, ID)
    for place in pc.unique(places.place).to_pylist() if ids.null_count else ():
        here = places.place if ids.null_count == len(ids) else pc.if_else(ids.is_null(), places.place, None)
        rows = np.flatnonzero(pc.fill_null(pc.equal(here, place), False))
        if len(rows) == len(ids):
            return place_ids(source, path, place, places.offset, places.part)
        found = place_ids(source, path, place, places.offset[rows], places.part[rows])
        mask = np.zeros(len(ids), np.bool_)
        mask[rows] = True
        ids = pc.replace_with_mask(ids, pa.array(mask), found)
    return ids
