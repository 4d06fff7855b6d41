"""Columns of what dataset-wide operations are given, and of what they make; checked before any work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import pyarrow as pa

from curate.configuration import ConfigurationError
from curate.recipes.cells import Cells
from curate.recipes.graph import CutRepeats, Deduplicate, DropAlike, DropEqual, Group, HoldOut
from curate.recipes.models import FittedModel
from curate.recipes.stages import Wide
from transforms.schema import BASE, EXTRA

NO_COLUMNS: Final = pa.schema([])

DUPLICATE: Final = pa.field("duplicate", pa.large_string())
"""What `deduplicate(action="tag")` writes: the evidence as canonical JSON, null for what would stay."""

KINDS: Final[Mapping[str, Callable[[pa.DataType], bool]]] = {
    "strings": pa.types.is_large_string,
    "whole numbers": pa.types.is_integer,
}
"""What a fit can ask of a column."""


def union_schema(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """Return the schema that holds the columns of all `schemas`: base columns, further ones in order, `extra` last.

    Raises:
        ConfigurationError: one column has two types.
    """
    fields: dict[str, pa.Field] = {}
    everywhere = set.intersection(*(set(schema.names) for schema in schemas))
    for item in (item for schema in schemas for item in schema):
        known = fields.setdefault(item.name, item if item.name in everywhere else item.with_nullable(True))
        if known.type != item.type:
            raise ConfigurationError(f"column {item.name!r} is {known.type} in one input and {item.type} in another")
    extra = fields.pop(EXTRA.name)
    return pa.schema([*fields.values(), extra])


def merged_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns of documents of which one was made of many: further ones are null where these differ."""
    return pa.schema([column if column.name in BASE.names else column.with_nullable(True) for column in schema])


def told_schema(name: str, operation: Deduplicate, schema: pa.Schema) -> pa.Schema:
    """Return `schema` with the columns that `operation` adds, before `extra`.

    Raises:
        ConfigurationError: there is a column of that name already.
    """
    added = [DUPLICATE] if operation.action == "tag" else []
    added += [pa.field(operation.count, pa.int64(), nullable=False)] if operation.count else []
    names = [*schema.names, *(column.name for column in added)]
    if clashing := sorted({name for name in names if names.count(name) > 1}):
        raise ConfigurationError(
            f"{name} is to add the column {clashing[0]!r}, which the documents have already: give another name, as "
            f'deduplicate(…, count="{clashing[0]}_2"), or tag once'
        )
    return pa.schema([*(f for f in schema if f.name != EXTRA.name), *added, schema.field(EXTRA.name)])


def joined_schema(name: str, schema: pa.Schema, other: pa.Schema, columns: Sequence[tuple[str, str]]) -> pa.Schema:
    """Return `schema` with `columns` (our name, its name in `other`), all nullable, before `extra`.

    Raises:
        ConfigurationError: `other` lacks one, or `schema` has one of that name already.
    """
    if missing := [theirs for _, theirs in columns if theirs not in other.names]:
        raise ConfigurationError(
            f"{name} is to take {', '.join(missing)}; the dataset that is joined has {', '.join(other.names)}"
        )
    if clashing := [ours for ours, _ in columns if ours in schema.names]:
        raise ConfigurationError(
            f"{name} is to take {', '.join(clashing)}, which the documents have already: give another name, as "
            f'columns={{"{clashing[0]}_joined": "{dict(columns)[clashing[0]]}"}}'
        )
    taken = [pa.field(ours, other.field(theirs).type) for ours, theirs in columns]
    fields = [field for field in schema if field.name != EXTRA.name]
    return pa.schema([*fields, *taken, *(field for field in schema if field.name == EXTRA.name)])


def require_columns(name: str, operation: Wide, schema: pa.Schema) -> None:
    """Raise unless documents of `schema` have what `operation` looks at, of the types that it needs.

    Raises:
        ConfigurationError: columns are missing, or of another type; the message lists what is there.
    """
    if "text" not in schema.names:
        raise ConfigurationError(f"{name} needs texts: apply ExtractText() to what read_warc gives")
    if missing := sorted(_looked_at(operation) - set(schema.names)):
        raise ConfigurationError(
            f"{name} is told to use {', '.join(missing)}; the documents have {', '.join(schema.names)}"
        )
    for column, kind in operation.fit.columns().items() if isinstance(operation, FittedModel) else ():
        if not KINDS[kind](found := schema.field(column).type):
            raise ConfigurationError(f"{name} needs {kind} in {column!r}, it is {found}: name another column")
    if isinstance(operation, DropEqual) and not pa.types.is_large_string(schema.field(operation.column).type):
        kind = schema.field(operation.column).type
        raise ConfigurationError(f"{name} compares strings, and {operation.column!r} is {kind}: name another column")


def _looked_at(operation: Wide) -> set[str]:
    """Return the columns that an operation uses beside the text."""
    match operation:
        case Deduplicate():
            found = {operation.within, *_ordering(operation.prefer)}
        case HoldOut():
            found = {operation.per}
        case Group():
            found = {operation.by, *_ordering(operation.order)}
        case DropEqual():
            found = {operation.column, *_ordering(operation.prefer)}
        case CutRepeats() | DropAlike():
            found = {*_ordering(operation.prefer)}
        case Cells():
            found = {*operation.by}
        case FittedModel():
            found = {*operation.fit.columns()}
        case _:
            found = set()
    return {column for column in found if column}


def _ordering(order: Sequence[str]) -> set[str]:
    """Return the columns of an order such as ("source", "-stars"); "source" and "length" are none."""
    return {column.removeprefix("-") for column in order} - {"length", "source"}


def fit_to(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return `batch` with the columns of `schema`: those it lacks are null."""
    names = set(batch.schema.names)
    arrays = [batch.column(f.name) if f.name in names else pa.nulls(batch.num_rows, f.type) for f in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
