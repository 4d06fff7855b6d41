"""Filters: transforms that keep or drop a document by measures, each an exact ratio with a bound.

Invariants: a measure is a ratio of two integers per document; bounds are exact decimals; the first measure that fails,
in the order in which the filter states them, is the reason; a kept document is a near miss if a measure lies within
5 % of its threshold (|value - t| ≤ t / 20, in integers). The same filter behind `.tag()` drops nothing and writes its
measures as columns. Cost: that of the measures, plus a few integer operations per document and measure.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transforms.canonical import canonical_json
from transforms.exact_numbers import Integers, Number, decimal_text, exact, product
from transforms.outcome import DROPPED, Outcome, SchemaError, kept, name_of, nothing, require
from transforms.schema import set_columns, with_columns
from transforms.spread import Spread, counts_of

Flags = npt.NDArray[np.bool_]

NEAR: Final = Fraction(1, 20)
"""A kept document is a near miss if a measure differs from its threshold by at most this part of the threshold."""

MEASURED: Final = pa.struct(
    [pa.field("numerator", pa.int64(), nullable=False), pa.field("denominator", pa.int64(), nullable=False)]
)
"""Type of the columns in which a tag writes a measure."""


@dataclass(frozen=True, slots=True)
class Bound:
    """What a measure of a kept document satisfies: it is `sense` ("≥" or "≤") `value`."""

    sense: str
    value: Fraction

    def __str__(self) -> str:
        """Return the bound as the ledger states it: "≥ 2", "≤ 0.1"."""
        return f"{self.sense} {decimal_text(self.value)}"


def at_least(value: Number) -> Bound:
    """Return the bound "≥ value", a float taken as the decimal that it is written as."""
    return Bound("≥", exact(value))


def at_most(value: Number) -> Bound:
    """Return the bound "≤ value", a float taken as the decimal that it is written as."""
    return Bound("≤", exact(value))


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure of each document of a batch, and its bound.

    `reason` says what is wrong with a document that fails ("too few stop words"), `name` what is measured ("stop
    words"). The value of a document is numerator / denominator; 0 / 0 is no evidence and passes every bound.
    """

    reason: str
    name: str
    numerator: Integers
    denominator: Integers
    bound: Bound

    def passes(self) -> Flags:
        """Return for which documents the bound holds, exactly."""
        value, threshold = self._scaled()
        return np.asarray(value >= threshold if self.bound.sense == "≥" else value <= threshold, np.bool_)

    def is_near(self) -> Flags:
        """Return for which documents |value - threshold| ≤ threshold / 20 (never for a threshold of 0)."""
        value, threshold = self._scaled()
        distance = product(np.abs(value - threshold), NEAR.denominator)
        return np.asarray((distance <= threshold) & (threshold > 0), np.bool_)

    def distance(self, row: int) -> Fraction:
        """Return |value - threshold| / threshold of a document that `is_near`."""
        value = Fraction(int(self.numerator[row]), int(self.denominator[row]))
        return abs(value - self.bound.value) / self.bound.value

    def spread(self, transform: str) -> Spread:
        """Return how the values of the documents lie around the threshold, as a rule of `transform`."""
        counts = counts_of(self.numerator, self.denominator, self.bound.sense, self.bound.value)
        return Spread(transform, self.reason, self.name, str(self.bound), counts)

    def of(self, rows: Integers) -> Measure:
        """Return the measure of some of the documents."""
        return replace(self, numerator=self.numerator[rows], denominator=self.denominator[rows])

    def _scaled(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return value and threshold of each document, both times its denominator and the bound's."""
        return (
            product(self.numerator, self.bound.value.denominator),
            product(self.denominator, self.bound.value.numerator),
        )


def rule(
    reason: str,
    name: str,
    numerator: Integers,
    denominator: Integers,
    threshold: Number | None,
    bound: Callable[[Number], Bound],
) -> list[Measure]:
    """Return the one measure of a rule, or none where the rule is off: its threshold is None."""
    return [] if threshold is None else [Measure(reason, name, numerator, denominator, bound(threshold))]


class Filter(ABC):
    """Base of filters: a concrete filter is a frozen dataclass that says how it measures."""

    __slots__ = ()

    version: ClassVar[int]
    libraries: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def measures(self, batch: pa.RecordBatch) -> list[Measure]:
        """Return the measures of the rows of `batch`, most telling reason first.

        Which measures there are, their names and bounds depend on the filter's fields only, not on the rows.
        """

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return `schema`: a filter adds no columns.

        Raises:
            SchemaError: there is no column `text`.
        """
        require(schema, name_of(self), text=pa.large_string())
        return schema

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Keep the rows for which all measures pass; drop the others under the first that fails."""
        return self.decide(batch, self.measures(batch))

    def decide(self, batch: pa.RecordBatch, measures: list[Measure]) -> Outcome:
        """Return the outcome for `batch`, whose rows have these measures."""
        return decide(name_of(self), batch, measures, measures)

    def tag(self, prefix: str = "") -> Tag:
        """Return the transform that keeps every row and writes this filter's verdict and measures as columns.

        `prefix` starts the names of the columns; without one it is the filter's name in snake case.
        """
        return Tag(self, prefix or snake_case(name_of(self)))

    def all_reasons(self) -> AllReasons:
        """Return the filter with the same verdicts whose ledger names every rule that a document fails."""
        return AllReasons(self)


@dataclass(frozen=True, slots=True)
class Tag:
    """Keeps every row; writes `<prefix>_reason` (null: passes) and `<prefix>_<measure>` (numerator, denominator)."""

    filter: Filter
    prefix: str

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    @property
    def name(self) -> str:
        """The name in ledgers and pages: "GopherQuality.tag"."""
        return f"{name_of(self.filter)}.tag"

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return `schema` with the columns of the tag.

        Raises:
            SchemaError: the filter cannot be applied, or a column of the tag is there already.
        """
        fields = self._fields(_by_name(self.filter.measures(nothing(self.filter.output_schema(schema)))))
        for field in fields:
            if schema.get_field_index(field.name) >= 0:
                raise SchemaError(f"the column {field.name!r} is there already; give the tag another prefix")
        return with_columns(schema, *fields)

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Return all rows with the columns of the tag."""
        return self.decide(batch, self.filter.measures(batch))

    def decide(self, batch: pa.RecordBatch, measures: list[Measure]) -> Outcome:
        """Return `batch` with the columns of the tag; its rows have these measures."""
        failing = first_failing(measures, batch.num_rows)
        reasons = pa.array(
            [None if index < 0 else measures[index].reason for index in failing.tolist()], pa.large_string()
        )
        distinct = _by_name(measures)
        values = [
            pa.StructArray.from_arrays(
                [pa.array(measure.numerator), pa.array(measure.denominator)], fields=list(MEASURED)
            )
            for measure in distinct.values()
        ]
        return kept(set_columns(batch, dict(zip(self._fields(distinct), [reasons, *values], strict=True))))

    def _fields(self, names: Iterable[str]) -> list[pa.Field[Any]]:
        return [
            pa.field(f"{self.prefix}_reason", pa.large_string()),
            *(pa.field(f"{self.prefix}_{snake_case(name)}", MEASURED) for name in names),
        ]


@dataclass(frozen=True, slots=True)
class AllReasons:
    """Drops what `filter` drops under the same reason; the evidence has `fails`: all rules that the document fails.

    The first rule that fails hides the others, so by itself it cannot say what a rule adds to the ones before it.
    """

    filter: Filter

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    @property
    def name(self) -> str:
        """The name in ledgers and pages: that of the filter."""
        return name_of(self.filter)

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return what the filter does."""
        return self.filter.output_schema(schema)

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Keep the rows for which all measures pass."""
        return self.decide(batch, self.filter.measures(batch))

    def decide(self, batch: pa.RecordBatch, measures: list[Measure]) -> Outcome:
        """Return the outcome for `batch`, whose rows have these measures."""
        outcome = self.filter.decide(batch, measures)
        rows = np.flatnonzero(first_failing(measures, batch.num_rows) >= 0)
        failing = [(measure.reason, ~measure.passes()) for measure in measures]
        fails = [list(dict.fromkeys(reason for reason, failed in failing if failed[row])) for row in rows.tolist()]
        before = outcome.dropped.column("evidence").to_pylist()
        evidence = [
            canonical_json({**(json.loads(own) if own else {}), "fails": reasons})
            for own, reasons in zip(before, fails, strict=True)
        ]
        place = DROPPED.get_field_index("evidence")
        dropped = outcome.dropped.set_column(place, DROPPED.field(place), pa.array(evidence, pa.large_string()))
        return replace(outcome, dropped=dropped)


def decide(name: str, batch: pa.RecordBatch, measures: Sequence[Measure], nearing: Sequence[Measure]) -> Outcome:
    """Return the outcome for `batch` of the transform `name`, by the measures of its rows.

    `nearing` are the first of `measures`: those of which a row that is kept can be a near miss.
    """
    failing = first_failing(measures, batch.num_rows)
    passes = failing < 0
    return kept(
        batch if passes.all() else batch.filter(pa.array(passes)),
        dropped=_ledger(batch, name, measures, failing),
        near=_ledger(batch, name, nearing, nearest(nearing, passes)),
        spreads=tuple(measure.spread(name) for measure in nearing),
    )


def _by_name(measures: Sequence[Measure]) -> dict[str, Measure]:
    """Return the measures by name: one with bounds on both sides stands there once."""
    return {measure.name: measure for measure in measures}


def snake_case(name: str) -> str:
    """Return `name` as a column name: "GopherQuality" and "gopher quality" are "gopher_quality"."""
    result, previous = "", "_"
    for character in name:
        if "A" <= character <= "Z":
            result += ("" if previous == "_" or "A" <= previous <= "Z" else "_") + chr(ord(character) + 32)
        elif "a" <= character <= "z" or "0" <= character <= "9":
            result += character
        elif previous != "_":
            character = "_"
            result += character
        previous = character
    return result.rstrip("_")


def first_failing(measures: Sequence[Measure], rows: int) -> Integers:
    """Return, per row, the index of the first measure that fails, or -1."""
    failing = np.full(rows, -1, np.int64)
    for index in range(len(measures) - 1, -1, -1):
        failing[~measures[index].passes()] = index
    return failing


def nearest(measures: Sequence[Measure], passes: Flags) -> Integers:
    """Return, per row, the index of the measure that is nearest to its threshold, or -1; ties go to the first.

    Rows that do not pass, or of which no measure is near, have -1.
    """
    best = np.full(len(passes), -1, np.int64)
    for index, measure in enumerate(measures):
        for row in np.flatnonzero(measure.is_near() & passes).tolist():
            if best[row] < 0 or measure.distance(row) < measures[best[row]].distance(row):
                best[row] = index
    return best


def _ledger(batch: pa.RecordBatch, name: str, measures: Sequence[Measure], chosen: Integers) -> pa.RecordBatch:
    """Return the rows of `batch` for which a measure is `chosen` (index, or -1) as rows of schema `DROPPED`."""
    rows = np.flatnonzero(chosen >= 0)
    if len(rows) == 0:
        return nothing(DROPPED)
    which = chosen[rows].tolist()
    numerators = [int(measures[index].numerator[row]) for index, row in zip(which, rows, strict=True)]
    denominators = [int(measures[index].denominator[row]) for index, row in zip(which, rows, strict=True)]
    columns: list[pa.Array[Any]] = [
        batch.column("id").take(pa.array(rows, pa.int64())),
        pa.array([name] * len(rows), pa.large_string()),
        pa.array([measures[index].reason for index in which], pa.large_string()),
        pa.array([measures[index].name for index in which], pa.large_string()),
        pa.array(numerators, pa.int64()),
        pa.array(denominators, pa.int64()),
        pa.array([str(measures[index].bound) for index in which], pa.large_string()),
        pa.nulls(len(rows), pa.large_string()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=DROPPED)
