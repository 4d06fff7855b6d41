"""What a transform is and what it returns: kept rows, dropped rows with reasons, edits with counts.

A transform is a frozen dataclass whose fields are its whole configuration. It sees one Arrow record batch, knows
nothing of storage, and must give the same rows for any batching: the outcome for a document may depend on that
document alone. The engine checks, per batch, that kept and dropped ids are the ids that came in, and that the
code points add up: in + inserted = out + dropped + cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol, runtime_checkable

import pyarrow as pa

from transforms.schema import ID
from transforms.spread import Spread

DROPPED: Final = pa.schema(
    [
        pa.field("id", ID, nullable=False),
        pa.field("transform", pa.large_string(), nullable=False),
        pa.field("reason", pa.large_string(), nullable=False),
        pa.field("measure", pa.large_string()),  # what was measured, as "stop words"
        pa.field("numerator", pa.int64()),  # measured value = numerator / denominator, exact
        pa.field("denominator", pa.int64()),
        pa.field("threshold", pa.large_string()),  # the bound in force, as "≥ 2" (what a kept document satisfies)
        pa.field("evidence", pa.large_string()),  # canonical JSON: firing spans, survivor, error message …
    ]
)
"""Rows of `Outcome.dropped` and of `Outcome.near`."""

EDITS: Final = pa.schema(
    [
        pa.field("id", ID, nullable=False),
        pa.field("transform", pa.large_string(), nullable=False),
        pa.field("reason", pa.large_string(), nullable=False),
        pa.field("cut", pa.int64(), nullable=False),  # code points removed
        pa.field("inserted", pa.int64(), nullable=False),  # code points added
        pa.field("evidence", pa.large_string()),
    ]
)
"""Rows of `Outcome.edits`: at most one per document, transform and reason; only where something changed."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a transform made of a batch.

    `kept` has the transform's output schema, in input order. `dropped` and `near` have schema `DROPPED`, `edits` has
    `EDITS`. `near` holds kept documents whose measure lies within 5 % of its threshold,
    or in which something was found that this transform was told to leave. `spreads` tell of rules with thresholds how
    the values of all documents lie around them; a transform without such rules has none.
    """

    kept: pa.RecordBatch
    dropped: pa.RecordBatch
    edits: pa.RecordBatch
    near: pa.RecordBatch
    spreads: tuple[Spread, ...] = ()


@runtime_checkable
class Transform(Protocol):
    """The protocol of transforms: two pure functions and what names their behaviour.

    A transform may say more. `isolated = True`: it runs foreign parsers or user code, so the engine applies it in a
    child process. `ready()` loads what it needs, or raises a RuntimeError with the remedy. `name` stands for its class.
    """

    version: ClassVar[int]
    """Raised whenever the output for some input changes; part of every key downstream."""

    libraries: ClassVar[tuple[str, ...]]
    """Distributions whose exact version reaches the output, as ("trafilatura", "lxml")."""

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of kept rows for input rows of `schema`.

        Raises:
            SchemaError: a column that the transform needs is missing or has another type.
        """
        ...

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Transform one batch. Rows of the outcome depend on their own document only."""
        ...


def name_of(transform: object) -> str:
    """Return the name of a transform: its attribute `name` where it has one, else the name of its class."""
    name = getattr(transform, "name", None)
    return name if isinstance(name, str) else type(transform).__name__


class SchemaError(ValueError):
    """A transform was applied to rows that lack a column it needs."""


def require(schema: pa.Schema, transform: str, **columns: pa.DataType) -> None:
    """Raise `SchemaError` unless `schema` has the `columns` with these types."""
    for name, kind in columns.items():
        if schema.get_field_index(name) < 0:
            raise SchemaError(
                f"{transform} needs the column {name!r} ({kind}); the rows have {', '.join(schema.names)}"
            )
        if schema.field(name).type != kind:
            raise SchemaError(f"{transform} needs the column {name!r} as {kind}, it is {schema.field(name).type}")


def rows(schema: pa.Schema, values: Iterable[Mapping[str, Any]]) -> pa.RecordBatch:
    """Return a record batch of `schema`; keys left out are null."""
    items = list(values)
    return pa.RecordBatch.from_arrays(
        [pa.array([item.get(field.name) for item in items], field.type) for field in schema], schema=schema
    )


def nothing(schema: pa.Schema) -> pa.RecordBatch:
    """Return an empty record batch of `schema`."""
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def kept(
    batch: pa.RecordBatch,
    *,
    dropped: Sequence[Mapping[str, Any]] | pa.RecordBatch = (),
    edits: Sequence[Mapping[str, Any]] | pa.RecordBatch = (),
    near: Sequence[Mapping[str, Any]] | pa.RecordBatch = (),
    spreads: tuple[Spread, ...] = (),
) -> Outcome:
    """Return an `Outcome` of the kept rows `batch`, rows of the other tables given as dictionaries or batches."""

    def table(schema: pa.Schema, values: Sequence[Mapping[str, Any]] | pa.RecordBatch) -> pa.RecordBatch:
        return values if isinstance(values, pa.RecordBatch) else rows(schema, values)

    return Outcome(batch, table(DROPPED, dropped), table(EDITS, edits), table(DROPPED, near), spreads)
