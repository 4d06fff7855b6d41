"""Predicates on columns: `field("stars") >= 2`, `field("licence").isin(PERMISSIVE)`, joined by & | ~.

A predicate is a tree of frozen dataclasses, so it compares, hashes and digests like any configuration. Invariants: a
predicate is true or false for every row, never null: comparing a null is false (also with !=), and `~` of that is
true; a null is only found by `is_null()`. Values are compared in the column's own type; a value that the type cannot
hold is an error before any row is read. Cost: one pass of Arrow's kernels per node.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transforms.outcome import SchemaError

Flags = npt.NDArray[np.bool_]
Value = str | int | float | bool | bytes
"""What a column can be compared with."""

COMPARISONS: Final[Mapping[str, Callable[..., Any]]] = {
    "==": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


class Predicate(ABC):
    """A condition on the columns of a row. Join predicates by `&`, `|` and `~` (with brackets), not by and, or, not."""

    __slots__ = ()

    @abstractmethod
    def evaluate(self, batch: pa.RecordBatch) -> Flags:
        """Return for which rows of `batch` the condition holds."""

    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns that the condition reads, in the order in which it names them."""

    @abstractmethod
    def check(self, schema: pa.Schema) -> None:
        """Raise `SchemaError` unless the columns are in `schema` and can hold the values compared with them."""

    def __and__(self, other: Predicate) -> Both:
        return Both(self, other)

    def __or__(self, other: Predicate) -> Either:
        return Either(self, other)

    def __invert__(self) -> Not:
        return Not(self)

    def __bool__(self) -> bool:
        raise TypeError("a predicate has no truth value of its own: join predicates by & | ~, each in brackets")


@dataclass(frozen=True, slots=True)
class Comparison(Predicate):
    """`column` compared with `value` by `operator`, one of == != < <= > >=."""

    column: str
    operator: str
    value: Value

    def evaluate(self, batch: pa.RecordBatch) -> Flags:
        """Return for which rows the comparison holds; a null compares false."""
        values = _column(batch, self.column)
        return _flags(COMPARISONS[self.operator](values, _typed(batch.schema, self.column, [self.value])[0]))

    def columns(self) -> tuple[str, ...]:
        """Return the one column."""
        return (self.column,)

    def check(self, schema: pa.Schema) -> None:
        """Raise `SchemaError` unless the column is there and can hold the value."""
        _typed(schema, self.column, [self.value])


@dataclass(frozen=True, slots=True)
class IsIn(Predicate):
    """`column` is one of `values`; a null is none of them."""

    column: str
    values: tuple[Value, ...]

    def evaluate(self, batch: pa.RecordBatch) -> Flags:
        """Return for which rows the column holds one of the values."""
        allowed = _typed(batch.schema, self.column, list(self.values))
        return _flags(pc.is_in(_column(batch, self.column), value_set=allowed))

    def columns(self) -> tuple[str, ...]:
        """Return the one column."""
        return (self.column,)

    def check(self, schema: pa.Schema) -> None:
        """Raise `SchemaError` unless the column is there and can hold the values."""
        _typed(schema, self.column, list(self.values))


@dataclass(frozen=True, slots=True)
class IsNull(Predicate):
    """`column` is null."""

    column: str

    def evaluate(self, batch: pa.RecordBatch) -> Flags:
        """Return for which rows the column is null."""
        return _flags(pc.is_null(_column(batch, self.column)))

    def columns(self) -> tuple[str, ...]:
        """Return the one column."""
        return (self.column,)

    def check(self, schema: pa.Schema) -> None:
        """Raise `SchemaError` unless the column is there."""
        _typed(schema, self.column, [])


@dataclass(frozen=True, slots=True)
class Both(Predicate):
    """`left` and `right`."""

    left: Predicate
    right: Predicate

    def evaluate(self, batch: pa.RecordBatch) -> Flags:
        """Return for which rows both hold."""
        return self.left.evaluate(batch) & self.right.evaluate(batch)

    def columns(self) -> tuple[str, ...]:
        """Return the columns of both, each once."""
        return tuple(dict.fromkeys(self.left.columns() + self.right.columns()))

    def check(self, schema: pa.Schema) -> None:
        """Check both."""
        self.left.check(schema)
        self.right.check(schema)


@dataclass(frozen=True, slots=True)
class Either(Predicate):
    """`left` or `right`, or both."""

    left: Predicate
    right: Predicate

    def evaluate(self, batch: pa.RecordBatch) -> Flags:
        """Return for which rows at least one holds."""
        return self.left.evaluate(batch) | self.right.evaluate(batch)

    def columns(self) -> tuple[str, ...]:
        """Return the columns of both, each once."""
        return tuple(dict.fromkeys(self.left.columns() + self.right.columns()))

    def check(self, schema: pa.Schema) -> None:
        """Check both."""
        self.left.check(schema)
        self.right.check(schema)


@dataclass(frozen=True, slots=True)
class Not(Predicate):
    """Not `operand`: true wherever that is false, rows with nulls among them."""

    operand: Predicate

    def evaluate(self, batch: pa.RecordBatch) -> Flags:
        """Return for which rows the operand does not hold."""
        return ~self.operand.evaluate(batch)

    def columns(self) -> tuple[str, ...]:
        """Return the columns of the operand."""
        return self.operand.columns()

    def check(self, schema: pa.Schema) -> None:
        """Check the operand."""
        self.operand.check(schema)


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """A column, from which comparisons make predicates. Made by `field`; never itself part of a predicate."""

    column: str

    def __eq__(self, value: Value) -> Comparison:  # type: ignore[override]
        return Comparison(self.column, "==", _plain(value))

    def __ne__(self, value: Value) -> Comparison:  # type: ignore[override]
        return Comparison(self.column, "!=", _plain(value))

    def __lt__(self, value: Value) -> Comparison:
        return Comparison(self.column, "<", _plain(value))

    def __le__(self, value: Value) -> Comparison:
        return Comparison(self.column, "<=", _plain(value))

    def __gt__(self, value: Value) -> Comparison:
        return Comparison(self.column, ">", _plain(value))

    def __ge__(self, value: Value) -> Comparison:
        return Comparison(self.column, ">=", _plain(value))

    __hash__ = None  # type: ignore[assignment]

    def isin(self, values: Iterable[Value]) -> IsIn:
        """Return the predicate that the column is one of `values`, whose order and repetition do not matter."""
        distinct = {(type(value).__name__, value): value for value in map(_plain, values)}
        return IsIn(self.column, tuple(distinct[key] for key in sorted(distinct)))

    def is_null(self) -> IsNull:
        """Return the predicate that the column is null."""
        return IsNull(self.column)


def field(column: str) -> Field:
    """Return the column named `column`, to compare: `field("stars") >= 2`."""
    return Field(column)


def _plain(value: Value) -> Value:
    if not isinstance(value, (str, int, float, bytes)):
        raise TypeError(f"a column is compared with a string, number or bytes, got {value!r}; for nulls use is_null()")
    return value


def _typed(schema: pa.Schema, column: str, values: list[Value]) -> pa.Array[Any]:
    """Return `values` in the type of `column`."""
    if schema.get_field_index(column) < 0:
        raise SchemaError(f"there is no column {column!r}; the rows have {', '.join(schema.names)}")
    kind = schema.field(column).type
    try:
        if pa.types.is_temporal(kind):
            return pa.array(values, pa.large_string()).cast(kind)
        typed: pa.Array[Any] = pa.array(values, kind)
        if not pa.types.is_floating(kind) and typed.to_pylist() != values:  # Arrow cuts 1.5 to 1
            raise pa.ArrowInvalid("a value changes in the type of the column")
        return typed
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise SchemaError(f"the column {column!r} is {kind}, which cannot be compared with {values!r}") from error


def _column(batch: pa.RecordBatch, column: str) -> pa.Array[Any]:
    _typed(batch.schema, column, [])
    return batch.column(column)


def _flags(values: Any) -> Flags:
    return np.asarray(pc.fill_null(values, False).to_numpy(zero_copy_only=False), np.bool_)
