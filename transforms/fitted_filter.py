"""A filter whose bounds were fitted to a corpus, per value of a column: what `fit_thresholds` gives is applied here.

The file of thresholds is canonical JSON: `per`, and `bounds`: group → reason → decimal. Groups that it does not have,
and rows without a value, keep the filter's own bounds. Invariants: those of `transforms.filters`. Cost: that of the
filter, and a selection of rows per group.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, cast

import numpy as np
import pyarrow as pa

from transforms.chain import together
from transforms.exact_numbers import exact
from transforms.filters import Bound, Filter, Measure
from transforms.fitted import LocalFile, file_of
from transforms.models import Model
from transforms.outcome import Outcome, name_of, require

Bounds = Mapping[str, Mapping[str, str]]
"""Group → reason of a rule → its bound as a decimal."""


@dataclass(frozen=True, slots=True)
class FittedFilter:
    """Applies `filter` with the bounds that belong to a row's value in the string column `per`.

    Attributes:
        filter: whose rules these are.
        thresholds: what `fit_thresholds` gives, or the file that it made, as a path or pinned as a `LocalFile`.
        per: the column that `thresholds` were fitted per.
    """

    filter: Filter
    thresholds: Model | LocalFile
    per: str

    version: ClassVar[int] = 2
    libraries: ClassVar[tuple[str, ...]] = ()

    @property
    def name(self) -> str:
        """The name in ledgers and pages: that of the filter."""
        return name_of(self.filter)

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return `schema`.

        Raises:
            SchemaError: the column `per` or what the filter needs is missing.
        """
        require(schema, self.name, **{self.per: pa.large_string()})
        return self.filter.output_schema(schema)

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Keep the rows for which all measures pass the bounds of their group."""
        bounds = self._bounds()
        measures = self.filter.measures(batch)
        self._check(bounds, measures)
        known = {group: number for number, group in enumerate(sorted(bounds))}
        groups = np.array([known.get(value, -1) for value in batch.column(self.per).to_pylist()], np.int64)
        own = {-1: {}, **{number: bounds[group] for group, number in known.items()}}
        outcomes = []
        for group in sorted(set(groups.tolist())):
            rows = np.flatnonzero(groups == group)
            mine = [_bounded(measure.of(rows), own[group]) for measure in measures]
            outcomes.append(self.filter.decide(batch.take(pa.array(rows, pa.int64())), mine))
        return together(batch, outcomes) if outcomes else self.filter.decide(batch, measures)

    def _check(self, bounds: Bounds, measures: Sequence[Measure]) -> None:
        """Raise where the thresholds are those of another filter: none of its rules is among them."""
        fitted = {reason for rules in bounds.values() for reason in rules}
        if fitted and fitted.isdisjoint(measure.reason for measure in measures):
            raise ValueError(
                f"{self.name} has thresholds of another filter ({', '.join(sorted(fitted))}): fit them to this one"
            )

    def _bounds(self) -> Bounds:
        fitted = _load(cast(Hashable, file_of(self.thresholds, f"FittedFilter({self.name})")))
        if fitted["per"] != self.per:
            raise ValueError(f"{self.name}: thresholds fitted per {fitted['per']!r}, not per {self.per!r}")
        bounds: Bounds = fitted["bounds"]
        return bounds


@lru_cache(maxsize=8)
def _load(file: Any) -> Any:
    try:
        fitted = json.loads(file.read())
    except ValueError:
        fitted = None
    if not isinstance(fitted, dict) or not {"per", "bounds"} <= fitted.keys():
        raise ValueError(f"{file} holds no thresholds: give the file that fit_thresholds made")
    return fitted


def _bounded(measure: Measure, bounds: Mapping[str, str]) -> Measure:
    bound = bounds.get(measure.reason)
    return measure if bound is None else replace(measure, bound=Bound(measure.bound.sense, exact(bound)))
