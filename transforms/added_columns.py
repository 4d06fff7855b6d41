"""Columns that a user's function makes of a row: a topic by rule, a score from elsewhere, a flag.

What names the function in keys is said in `transforms.behaviour`. Invariants: rows and texts stay; a function that
raises, or gives other columns than it declares, makes `apply` raise, with the document's id in the error. Cost: a
Python call per row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import pyarrow as pa

from transforms.behaviour import behaviour, function_name
from transforms.outcome import Outcome, kept
from transforms.schema import BASE, EXTRA, set_columns, with_columns
from transforms.user_function import UserFunctionError, call

KEPT: Final = frozenset([*BASE.names, EXTRA.name])
"""Columns that belong to the engine and to transforms that account for what they change."""


@dataclass(frozen=True, slots=True, init=False)
class AddColumns:
    """Writes columns: `function` gets the row as a dictionary and returns one with a value for each of `columns`."""

    function: Callable[[dict[str, Any]], Mapping[str, Any]] = field(compare=False)
    columns: tuple[tuple[str, pa.DataType], ...]
    behaviour: str
    name: str

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()
    isolated: ClassVar[bool] = True

    def __init__(
        self,
        function: Callable[[dict[str, Any]], Mapping[str, Any]],
        columns: Mapping[str, pa.DataType],
        version: int | str | None = None,
        uses: Sequence[object] = (),
        name: str = "AddColumns",
    ) -> None:
        """State what is written.

        Args:
            function: row -> values of the columns; None where a value is missing.
            columns: the columns and their types, in the order in which they stand.
            version: see `KeepIf`.
            uses: see `KeepIf`.
            name: what ledgers and pages call the transform.

        Raises:
            ValueError: there is no column, one of them is a base column, or the function has no digest.
        """
        if not columns:
            raise ValueError(f"AddColumns({function_name(function)}): declare at least one column and its type")
        if taken := KEPT & columns.keys():
            raise ValueError(
                f"AddColumns({function_name(function)}): {sorted(taken)} are columns of every document; texts are "
                "rewritten by EditText, so that the books know of it"
            )
        object.__setattr__(self, "function", function)
        object.__setattr__(self, "columns", tuple(columns.items()))
        object.__setattr__(self, "behaviour", behaviour(function, version, uses))
        object.__setattr__(self, "name", name)

    def description(self) -> dict[str, Any]:
        """Return what names the behaviour, as canonical JSON values."""
        columns = [[name, str(kind)] for name, kind in self.columns]
        return {
            "class": "AddColumns",
            "version": self.version,
            "fields": {"function": self.behaviour, "columns": columns, "name": self.name},
        }

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return `schema` with the columns; one that is there already is replaced."""
        return with_columns(schema, *self._fields())

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Write the columns.

        Raises:
            UserFunctionError: the function raised, or returned other columns or values than it declares.
        """
        rows = [self._values(row) for row in batch.to_pylist()]
        arrays = {field: pa.array([row[field.name] for row in rows], field.type) for field in self._fields()}
        return kept(set_columns(batch, arrays))

    def _fields(self) -> list[pa.Field[Any]]:
        return [pa.field(name, kind) for name, kind in self.columns]

    def _values(self, row: dict[str, Any]) -> Mapping[str, Any]:
        values = call(self.function, row, row["id"])
        names = [name for name, _ in self.columns]
        if not isinstance(values, Mapping) or set(values) != set(names):
            raise UserFunctionError(
                f"AddColumns({function_name(self.function)}): must return a value for each of {names}, "
                f"returned {values!r:.200} for document {row['id'].hex()}"
            )
        for name, kind in self.columns:
            try:
                pa.scalar(values[name], kind)
            except (pa.ArrowException, OverflowError) as error:
                raise UserFunctionError(
                    f"AddColumns({function_name(self.function)}): {values[name]!r:.200} for document "
                    f"{row['id'].hex()} does not fit the column {name!r} of {kind}: {error}"
                ) from error
        return values
