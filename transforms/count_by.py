"""Naming columns by which a report tells who loses: what each filter of the chain removes of each of their values.

`CountBy("publisher")` changes no document. The statistics of every step of its chain then count, by the values of the
column, the documents that came in and those that were dropped. Values go into reports: name no column of persons.

Cost: a dictionary encoding of the column per step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pyarrow.types as pt

from transforms.outcome import Outcome, SchemaError, kept


@dataclass(frozen=True, slots=True, init=False)
class CountBy:
    """Has the statistics of the chain that it stands in count by the values of `columns`: strings, integers, booleans.

    Where it stands in the chain does not matter, but all columns must be there at that place. Steps before the one
    that writes a column are not counted by it.
    """

    columns: tuple[str, ...]

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *columns: str) -> None:
        """Name the columns.

        Raises:
            ValueError: none is named, or one twice.
        """
        if not columns or len(set(columns)) != len(columns):
            raise ValueError(f"CountBy{columns}: name at least one column, and each once")
        object.__setattr__(self, "columns", tuple(columns))

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return `schema`.

        Raises:
            SchemaError: it lacks a column, or that has values of a type that cannot be counted by.
        """
        for name in self.columns:
            place = schema.get_field_index(name)
            if place < 0:
                raise SchemaError(f"CountBy needs the column {name!r}; the rows have {', '.join(schema.names)}")
            kind = schema.field(place).type
            if not any(fits(kind) for fits in (pt.is_string, pt.is_large_string, pt.is_integer, pt.is_boolean)):
                raise SchemaError(f"CountBy counts by strings, integers and booleans; {name!r} is {kind}")
        return schema

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Keep all of `batch`."""
        self.output_schema(batch.schema)
        return kept(batch)
