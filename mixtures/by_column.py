"""Weights of cells by the columns that they were made of: as many tokens as there are, times a factor per column.

    tokenize(documents, tokenizer, by=("topic", "quality_level"))
    Phase("main", tokens=8e6, weights=ByColumn(quality_level={0: 0, 2: 2.5}, topic={"casino-bonus-slots": 0.1}))

So a mixture can be written before the names of topics are known: a level counts the same in each topic. A cell without
a factor has the share that its tokens have. Weights are exact; a plan holds them as integers, as all others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from curate.configuration import ConfigurationError
from mixtures.weights import Number, exact


@dataclass(frozen=True, slots=True, init=False)
class ByColumn:
    """The weight of a cell: its tokens, times the factor of its value in each column.

    Attributes:
        factors: column → value → factor; a value that is not there has the factor 1.
    """

    factors: Mapping[str, Mapping[str, Number]]

    def __init__(self, **factors: Mapping[Any, Number]) -> None:
        """Take factors by column: `quality_level={0: 0, 2: 2.5}`; None is the cells without a value.

        Raises:
            ConfigurationError: no column is named, or a factor is no number, or negative.
        """
        if not factors:
            raise ConfigurationError("ByColumn() names no column: give factors, as ByColumn(quality_level={0: 0})")
        for column, values in factors.items():
            for value, factor in values.items():
                exact(factor, f"the factor of {column}={value!r}")
        given = {
            column: MappingProxyType({_text(v): f for v, f in values.items()}) for column, values in factors.items()
        }
        object.__setattr__(self, "factors", MappingProxyType(given))

    def weights_of(self, tokens: Mapping[str, int], phase: str, length: int) -> dict[str, Fraction]:
        """Return the exact weight of each cell of `tokens`, cell → size.

        Raises:
            ConfigurationError: cells were not made by a column that is named, none has a value that is named, or all
                weights are 0.
        """
        weights = {cell: Fraction(size) for cell, size in tokens.items()}
        for column, factors in self.factors.items():
            values = {cell: self._value(cell, column, phase) for cell in tokens}
            if unknown := sorted(set(factors) - set(values.values())):
                there = ", ".join(sorted(set(values.values()))[:20])
                raise ConfigurationError(f"phase {phase!r}: no cell has {column}={unknown[0]!r}; there are {there}")
            for cell, value in values.items():
                weights[cell] *= exact(factors.get(value, 1), f"the factor of {column}={value!r}")
        if not any(weights.values()):
            raise ConfigurationError(f"phase {phase!r} draws nothing: all its weights are 0")
        return weights

    def _value(self, cell: str, column: str, phase: str) -> str:
        """Return the value of a cell in a column; cells of several columns are called "topic=a/level=1"."""
        start = 0 if cell.startswith(f"{column}=") else cell.find(f"/{column}=") + 1
        if start or cell.startswith(f"{column}="):
            parts = cell[start + len(column) + 1 :].split("/")
            more = next((n for n, part in enumerate(parts) if n and "=" in part), len(parts))
            return "/".join(parts[:more])
        if len(self.factors) == 1 and "=" not in cell:
            return cell
        raise ConfigurationError(
            f"phase {phase!r} weights by {column}, and the cell {cell!r} was not made by it: tokenize(…, by=…) names "
            "the columns of cells"
        )

    def __str__(self) -> str:
        parts = (
            f"{column}={value} × {factor}"
            for column, values in self.factors.items()
            for value, factor in values.items()
        )
        return f"all by their tokens, {', '.join(parts)}"


def _text(value: object) -> str:
    """Return `value` as it stands in the names of cells."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)
