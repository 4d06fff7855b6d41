"""Outcomes of slices on their way from a child to its worker, and how a batch's outcome is put together from them.

Columns that a transform hands on as they came are named, not sent: the worker has them. Empty tables are not sent
either. Cost: one copy of what changed, and one more where a batch took several slices.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any, Final

import pyarrow as pa

from transforms.outcome import DROPPED, EDITS, Outcome, nothing
from transforms.spread import Spread, added

TABLES: Final = {"dropped": DROPPED, "edits": EDITS, "near": DROPPED}


@dataclass(frozen=True, slots=True)
class Part:
    """The outcome of the rows `start` to `stop` - 1 of a batch.

    Attributes:
        rows: rows kept.
        schema: of the kept rows.
        same: kept column -> column of the batch that it is.
        sent: the other kept columns.
    """

    start: int
    stop: int
    rows: int
    schema: pa.Schema
    same: dict[int, int]
    sent: pa.RecordBatch
    dropped: pa.RecordBatch
    edits: pa.RecordBatch
    near: pa.RecordBatch
    spreads: tuple[Spread, ...]

    def column(self, number: int, batch: pa.RecordBatch) -> pa.Array[Any]:
        """Return a kept column; `batch` is the whole batch."""
        if number in self.same:
            return batch.column(self.same[number]).slice(self.start, self.stop - self.start)
        return self.sent.column(sum(1 for other in range(number) if other not in self.same))


@dataclass(frozen=True, slots=True)
class Encoded:
    """A reply: its header, how many bytes its body has, and the tables of that."""

    header: bytes
    size: int
    tables: list[pa.RecordBatch]

    def write(self, target: pa.NativeFile) -> None:
        """Write the body to a file, and close it."""
        with target:
            for table in self.tables:
                _write(target, table)


def encode(outcome: Outcome, rows: pa.RecordBatch) -> Encoded:
    """Return the reply for the slice `rows`."""
    kept = outcome.kept
    same = {number: place for number in range(kept.num_columns) if (place := _same(kept, number, rows)) is not None}
    others = [number for number in range(kept.num_columns) if number not in same]
    sent = pa.RecordBatch.from_arrays(
        [kept.column(number) for number in others], schema=pa.schema([kept.schema.field(number) for number in others])
    )
    tables = [getattr(outcome, name) for name in TABLES]
    sizes = [_size(sent) if others else 0, *(_size(table) if table.num_rows else 0 for table in tables)]
    header = {"rows": kept.num_rows, "columns": kept.num_columns, "same": list(same.items()), "sizes": sizes}
    header |= {"spreads": [astuple(spread) for spread in outcome.spreads]}
    written = [table for table, size in zip([sent, *tables], sizes, strict=True) if size]
    return Encoded(json.dumps(header).encode(), sum(sizes), written)


def decode(header: bytes, body: pa.Buffer, batch: pa.RecordBatch, start: int, stop: int) -> Part:
    """Return the outcome of the rows `start` to `stop` - 1 of `batch` that a reply holds.

    Raises:
        ValueError: the reply makes no sense: its process is not to be trusted.
    """
    said = json.loads(header)
    tables, offset = [], 0
    for size in said["sizes"]:
        tables.append(_parsed(body.slice(offset, size)) if size else None)
        offset += size
    sent = tables[0] if tables[0] is not None else pa.RecordBatch.from_arrays([], names=[])
    same = dict(said["same"])
    rest = iter(sent.schema)
    fields = [batch.schema.field(same[n]) if n in same else next(rest) for n in range(said["columns"])]
    if (sent.num_columns and sent.num_rows != said["rows"]) or (same and said["rows"] != stop - start):
        raise ValueError(f"{said['rows']} rows of {stop - start} in {sent.num_rows}")
    dropped, edits, near = (
        nothing(schema) if found is None else found for found, schema in zip(tables[1:], TABLES.values(), strict=True)
    )
    spreads = tuple(
        Spread(transform, reason, measure, bound, tuple(map(int, counts)))
        for transform, reason, measure, bound, counts in said["spreads"]
    )
    return Part(start, stop, said["rows"], pa.schema(fields), same, sent, dropped, edits, near, spreads)


def joined(parts: Sequence[Part], batch: pa.RecordBatch, schema: pa.Schema) -> Outcome:
    """Return the outcome of `batch` from those of its slices, in order; without any, kept rows have `schema`.

    Raises:
        ValueError: two slices have different columns.
    """
    if not parts:
        return Outcome(nothing(schema), *(nothing(table) for table in TABLES.values()))
    found = parts[0].schema
    if strange := next((part for part in parts if part.schema != found), None):
        raise ValueError(f"rows {strange.start} to {strange.stop} have {strange.schema}, those before them {found}")
    columns = [_column(parts, number, batch) for number in range(len(found))]
    kept = pa.RecordBatch.from_arrays(columns, schema=found)
    spreads = added(spread for part in parts for spread in part.spreads)
    dropped, edits, near = (_table([getattr(part, name) for part in parts]) for name in TABLES)
    return Outcome(kept, dropped, edits, near, spreads)


def _column(parts: Sequence[Part], number: int, batch: pa.RecordBatch) -> pa.Array[Any]:
    places = {part.same.get(number) for part in parts}
    covered = sum(part.stop - part.start for part in parts) == batch.num_rows
    if covered and len(places) == 1 and (place := next(iter(places))) is not None:
        return batch.column(place)
    arrays = [part.column(number, batch) for part in parts]
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)


def _table(tables: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    filled = [table for table in tables if table.num_rows]
    return pa.concat_batches(filled) if filled else tables[0]


def _same(kept: pa.RecordBatch, number: int, rows: pa.RecordBatch) -> int | None:
    """Return the column of `rows` that a kept column is, buffer for buffer."""
    field = kept.schema.field(number)
    place = rows.schema.get_field_index(field.name)
    if place < 0 or kept.num_rows != rows.num_rows or not field.equals(rows.schema.field(place)):
        return None
    return place if _is_same(kept.column(number), rows.column(place)) else None


def _is_same(one: pa.Array[Any], other: pa.Array[Any]) -> bool:
    if (one.offset, len(one)) != (other.offset, len(other)):
        return False
    if pa.types.is_struct(one.type):
        inner = range(one.type.num_fields)
        return _is_same_buffer(one.buffers()[0], other.buffers()[0]) and all(
            _is_same(one.field(i), other.field(i)) for i in inner
        )
    if pa.types.is_nested(one.type) or pa.types.is_dictionary(one.type):
        return False
    return all(map(_is_same_buffer, one.buffers(), other.buffers()))


def _is_same_buffer(one: pa.Buffer | None, other: pa.Buffer | None) -> bool:
    if one is None or other is None:
        return one is other
    return (one.address, one.size) == (other.address, other.size)


def _write(target: pa.NativeFile, batch: pa.RecordBatch) -> None:
    with pa.ipc.new_stream(target, batch.schema) as writer:
        writer.write_batch(batch)


def _size(batch: pa.RecordBatch) -> int:
    measured = pa.MockOutputStream()
    _write(measured, batch)
    return int(measured.size())


def _parsed(buffer: pa.Buffer) -> pa.RecordBatch:
    batch = pa.ipc.open_stream(buffer).read_next_batch()
    batch.validate()
    return batch
