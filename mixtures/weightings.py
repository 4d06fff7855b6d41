"""Weights that follow from sizes, from a table, or from other weights; what `Phase(weights=…)` takes beside a mapping.

    ByTokens(temperature=2)                        sizes, flattened: tokens ^ (1 / temperature)
    UniMax(epochs=4)                               the same for all, as far as that many passes reach
    FromTable(Path("cells.csv"))                   a column of weights, by component
    Blend(old, new, share="1/4")                   three quarters of old, a quarter of new
    Patched(old, {"code": "1/10"})                 these shares as given, the others as they stood to each other
    ByTag({"code": ("py", "rs")}, {"code": 1})     a weight for each tag, within it by tokens

Invariants: exact and the same everywhere (roots are taken in decimals of 40 digits and rounded to 15); weights are
never negative. Cost: nothing to speak of.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

from curate.configuration import ConfigurationError
from mixtures.weights import Number, exact

_CONTEXT: Final = Context(prec=40, rounding=ROUND_HALF_EVEN)
_ROUNDED: Final = Context(prec=15, rounding=ROUND_HALF_EVEN)
_SHOWN: Final = 8


@runtime_checkable
class Weighting(Protocol):
    """What makes weights of the sizes of components."""

    def weights_of(self, tokens: Mapping[str, int], phase: str, length: int) -> dict[str, Fraction]:
        """Return the weight of each component.

        Args:
            tokens: component → its size.
            phase: name of the phase, for errors.
            length: tokens of the phase.

        Raises:
            ConfigurationError: the weights cannot be made of these components.
        """
        ...


Weights = Mapping[str, Number] | Weighting


@dataclass(frozen=True, slots=True)
class ByTokens:
    """The size of each component to the power of 1 / `temperature`.

    1 is in proportion to tokens; the higher it is, the more alike are the shares. 2 is the exponent .5 of XLM's
    sampling (Conneau and Lample 2019, section 3.1), "10/3" the .3 of XLM-R (Conneau et al. 2020, section 3.1).
    """

    temperature: Number = 1

    def __post_init__(self) -> None:
        """Check the temperature.

        Raises:
            ConfigurationError: it is below 1.
        """
        if exact(self.temperature, "ByTokens(temperature)") < 1:
            raise ConfigurationError(f"ByTokens(temperature) is at least 1, got {self.temperature!r}")

    def weights_of(self, tokens: Mapping[str, int], phase: str, length: int) -> dict[str, Fraction]:
        """Return tokens ^ (1 / temperature), in 15 digits where that is not whole."""
        temperature = exact(self.temperature, "ByTokens(temperature)")
        if temperature == 1:
            return {name: Fraction(size) for name, size in tokens.items()}
        power = _CONTEXT.divide(Decimal(temperature.denominator), Decimal(temperature.numerator))
        return {name: Fraction(_ROUNDED.plus(_CONTEXT.power(Decimal(size), power))) for name, size in tokens.items()}

    def __str__(self) -> str:
        return f"by tokens at temperature {self.temperature}"


@dataclass(frozen=True, slots=True)
class UniMax:
    """As even as `epochs` passes over each component allow (Chung et al. 2023, "UniMax", algorithm 1).

    The tokens of the phase are given out from the smallest component on: each gets an equal part of what is left, or
    `epochs` times its size if that is less.
    """

    epochs: Number = 1

    def __post_init__(self) -> None:
        """Check the number of passes.

        Raises:
            ConfigurationError: it is not positive.
        """
        if not exact(self.epochs, "UniMax(epochs)"):
            raise ConfigurationError("UniMax(epochs) must be more than 0")

    def weights_of(self, tokens: Mapping[str, int], phase: str, length: int) -> dict[str, Fraction]:
        """Return the tokens that each component gives.

        Raises:
            ConfigurationError: all components together are too small for the phase.
        """
        epochs, left = exact(self.epochs, "UniMax(epochs)"), Fraction(length)
        given: dict[str, Fraction] = {}
        for place, (name, size) in enumerate(sorted(tokens.items(), key=lambda pair: (pair[1], pair[0]))):
            given[name] = min(left / (len(tokens) - place), epochs * size)
            left -= given[name]
        if left:
            raise ConfigurationError(
                f"phase {phase!r}: {self.epochs} passes over all components are {length - int(left):,} tokens, but the "
                f"phase has {length:,}: shorten it or raise UniMax(epochs)"
            )
        return {name: given[name] for name in tokens}

    def __str__(self) -> str:
        return f"UniMax of {self.epochs} epochs"


@dataclass(frozen=True, slots=True)
class FromTable:
    """Weights from a CSV or Parquet file with a row for each component.

    Attributes:
        path: ends in .csv or .parquet; its content, not its name, is part of the recipe's key.
        component: column of names.
        weight: column of weights. Numbers are taken as they are written.
        others: weight of components without a row; None: there must be none.
    """

    path: Path
    component: str = "component"
    weight: str = "weight"
    others: Number | None = None

    def weights_of(self, tokens: Mapping[str, int], phase: str, length: int) -> dict[str, Fraction]:
        """Return the weights of the file.

        Raises:
            ConfigurationError: it cannot be read, names a component twice or one that is not there, or lacks one.
        """
        rows = self._rows()
        what = f"phase {phase!r}: {self.path}"
        found: dict[str, Fraction] = {}
        for number, (name, weight) in enumerate(rows, start=1):
            if name in found:
                raise ConfigurationError(f"{what}, row {number}: {name!r} has a weight already")
            found[name] = exact(weight, f"{what}, row {number}: the weight of {name!r}")
        given = {name: found.get(name, self.others) for name in tokens}
        return mapped(given, found, tokens, what)

    def names(self) -> list[str]:
        """Return the components that have a row.

        Raises:
            ConfigurationError: the file cannot be read.
        """
        return [name for name, _ in self._rows()]

    def _rows(self) -> list[tuple[str, Number]]:
        try:
            if self.path.suffix == ".parquet":
                import pyarrow.parquet as pq

                table = pq.read_table(self.path, columns=[self.component, self.weight])
                return [(str(row[self.component]), row[self.weight]) for row in table.to_pylist()]
            with self.path.open(encoding="utf-8-sig", newline="") as file:
                return [(row[self.component], row[self.weight]) for row in csv.DictReader(file)]
        except (OSError, KeyError, ValueError) as error:
            raise ConfigurationError(
                f"{self.path}: a CSV or Parquet file with the columns {self.component!r} and {self.weight!r} is needed "
                f"({error})"
            ) from None

    def __str__(self) -> str:
        return f"the table {self.path.name}"


@dataclass(frozen=True, slots=True)
class Blend:
    """Between two weightings: (1 - `share`) of `first`, `share` of `second`, both as shares of 1."""

    first: Weights
    second: Weights
    share: Number

    def __post_init__(self) -> None:
        """Check the share.

        Raises:
            ConfigurationError: it is not from 0 to 1.
        """
        if exact(self.share, "Blend(share)") > 1:
            raise ConfigurationError(f"Blend(share) is from 0 to 1, got {self.share!r}")

    def weights_of(self, tokens: Mapping[str, int], phase: str, length: int) -> dict[str, Fraction]:
        """Return the shares between those of both; a component that a mapping does not name has 0 there."""
        share = exact(self.share, "Blend(share)")
        first, second = (_shares(weights, tokens, phase, length) for weights in (self.first, self.second))
        return {name: (1 - share) * first[name] + share * second[name] for name in tokens}

    def __str__(self) -> str:
        return f"a blend at {self.share} of {shown(self.first)} and {shown(self.second)}"


@dataclass(frozen=True, slots=True)
class Patched:
    """The weighting `base` with the shares of some components set: "1/10" is a tenth of the phase.

    What is left is divided among the others as in `base`.
    """

    base: Weights
    shares: Mapping[str, Number]

    def weights_of(self, tokens: Mapping[str, int], phase: str, length: int) -> dict[str, Fraction]:
        """Return shares of 1.

        Raises:
            ConfigurationError: a component is unknown, the shares are more than 1, or nothing else could take the rest.
        """
        what = f"phase {phase!r}: Patched"
        given = {name: exact(share, f"{what}: the share of {name!r}") for name, share in self.shares.items()}
        if unknown := sorted(set(given) - set(tokens)):
            raise ConfigurationError(f"{what} sets {listed(unknown)}, but the components are {listed(list(tokens))}")
        rest, base = 1 - sum(given.values()), _shares(self.base, tokens, phase, length)
        others = sum(weight for name, weight in base.items() if name not in given)
        if rest < 0 or (rest and not others):
            problem = "more than 1" if rest < 0 else "and nothing else is drawn"
            raise ConfigurationError(f"{what}: shares add up to {1 - rest}, {problem}")
        return {name: given[name] if name in given else rest * base[name] / (others or 1) for name in tokens}

    def __str__(self) -> str:
        return f"{shown(self.base)}, but {', '.join(f'{name} {share}' for name, share in self.shares.items())}"


@dataclass(frozen=True, slots=True)
class ByTag:
    """A weight for each tag; its components share it as their tokens stand to each other.

    Attributes:
        tags: tag → the components that have it; each component has one tag at most.
        weights: tag → weight.
        others: weight of all components without a tag together; None: there must be none.
    """

    tags: Mapping[str, tuple[str, ...]]
    weights: Mapping[str, Number]
    others: Number | None = None

    def weights_of(self, tokens: Mapping[str, int], phase: str, length: int) -> dict[str, Fraction]:
        """Return the weight of each component.

        Raises:
            ConfigurationError: a component has two tags, is unknown, or has none; a tag has no weight, or no component.
        """
        what, of = f"phase {phase!r}: ByTag", dict[str, str]()
        for tag, names in self.tags.items():
            if twice := sorted(set(names) & set(of)):
                raise ConfigurationError(f"{what}: {listed(twice)} has the tags {of[twice[0]]!r} and {tag!r}")
            of |= dict.fromkeys(names, tag)
        if wrong := sorted(set(self.tags) ^ set(self.weights)):
            raise ConfigurationError(f"{what}: {listed(wrong)} needs components and a weight")
        sizes: dict[str | None, int] = {}
        for name, size in tokens.items():
            sizes[of.get(name)] = sizes.get(of.get(name), 0) + size
        given: dict[str, Number | Fraction | None] = {}
        for name, size in tokens.items():
            weight = self.weights.get(of[name]) if name in of else self.others
            given[name] = None if weight is None else exact(weight, what) * size / sizes[of.get(name)]
        return mapped(given, of, tokens, what)

    def __str__(self) -> str:
        parts = [f"{tag} {weight}" for tag, weight in self.weights.items()]
        return f"by tag {', '.join(parts)}" + ("" if self.others is None else f", others {self.others}")


def with_minimum(weights: Mapping[str, Fraction], minimum: Mapping[str, Number], phase: str) -> dict[str, Fraction]:
    """Return shares of 1 in which none is below its `minimum`; the others give way as they stand to each other.

    Raises:
        ConfigurationError: a component is unknown, or the minimum shares add up to more than 1.
    """
    least = {name: exact(share, f"phase {phase!r}: the minimum of {name!r}") for name, share in minimum.items()}
    if unknown := sorted(set(least) - set(weights)):
        raise ConfigurationError(f"phase {phase!r} has a minimum of {listed(unknown)}, which is no component")
    if sum(least.values()) > 1:
        raise ConfigurationError(f"phase {phase!r}: minimum shares add up to {sum(least.values())}, more than 1")
    total = sum(weights.values())
    shares, held = {name: weight / total for name, weight in weights.items()}, set[str]()
    while low := {name for name, share in least.items() if name not in held and shares[name] < share}:
        held |= low
        free = sum(weight for name, weight in weights.items() if name not in held)
        rest = 1 - sum(least[name] for name in held)
        shares = {
            name: least[name] if name in held else rest * weight / (free or 1) for name, weight in weights.items()
        }
    return shares


def mapped(
    given: Mapping[str, Number | Fraction | None], named: Mapping[str, object], tokens: Mapping[str, int], what: str
) -> dict[str, Fraction]:
    """Return the weights `given` to all components of `tokens`, of which some are `named`.

    Raises:
        ConfigurationError: a component is unknown or has no weight, or no weight is positive.
    """
    if unknown := sorted(set(named) - set(tokens)):
        raise ConfigurationError(f"{what} weights {listed(unknown)}, but the components are {listed(list(tokens))}")
    if missing := [name for name, weight in given.items() if weight is None]:
        raise ConfigurationError(
            f"{what} says nothing about {listed(missing)}: give weights, or others=0 to leave them out"
        )
    result = {name: exact(weight, name) for name, weight in given.items() if weight is not None}
    if not any(result.values()):
        raise ConfigurationError(f"{what} draws nothing: all its weights are 0")
    return result


def _shares(weights: Weights, tokens: Mapping[str, int], phase: str, length: int) -> dict[str, Fraction]:
    if isinstance(weights, Weighting):
        found = weights.weights_of(tokens, phase, length)
    else:
        found = mapped({name: weights.get(name, 0) for name in tokens}, weights, tokens, f"phase {phase!r}")
    total = sum(found.values())
    return {name: weight / total for name, weight in found.items()}


def shown(weights: Weights) -> str:
    """Return weights as a person reads them, of a mapping the first few."""
    if isinstance(weights, Weighting):
        return str(weights)
    parts = [f"{name} {weight}" for name, weight in weights.items()]
    more = f" and {len(parts) - _SHOWN:,} more" if len(parts) > 2 * _SHOWN else ""
    return ", ".join(parts[:_SHOWN] if more else parts) + more


def listed(names: list[str]) -> str:
    """Return names for an error, the first twenty."""
    first = ", ".join(repr(name) for name in names[:20])
    return first if len(names) <= 20 else f"{first} and {len(names) - 20:,} more"
