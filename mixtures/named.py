"""Components that a mixture names, compared with those that its cells can have: before anything is made of them.

What cells are called is known before they are there where they are made by "source", or by nothing ("all"). A name
that no such cell can have is an error when the recipe is planned, and not after its texts were tokenized. Names that
follow from the texts (languages, topics) are compared when the plan is compiled. Cost: reading the tables of weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from curate.configuration import ConfigurationError
from curate.recipes.cells import Cells
from mixtures.by_column import ByColumn
from mixtures.weightings import Blend, ByTag, FromTable, Patched, Weights, listed


def check_named(
    cells: object, phases: Sequence[tuple[str, Weights, Mapping[str, object]]], views: Sequence[str]
) -> None:
    """Check the components that phases (name, weights, minimum shares) and `views` name against what `cells` can have.

    Raises:
        ConfigurationError: a component can never be there; or a table of weights cannot be read.
    """
    if not isinstance(cells, Cells):
        return
    for phase, weights, minimum in phases:
        _check(cells, (*_named(weights), *minimum), f"phase {phase!r} weights")
        for column, value in _values(weights):
            if len(cells.by) > 1 and column not in cells.by:
                raise ConfigurationError(
                    f"phase {phase!r} weights by {column!r}, but cells are made by {listed(list(cells.by))}"
                )
            if column == "source" and "source" in cells.by and value not in cells.sources:
                raise ConfigurationError(
                    f"phase {phase!r} weights source={value!r}, but the sources are {listed(list(cells.sources))}"
                )
    _check(cells, views, "views rearrange")


def _check(cells: Cells, names: Sequence[str], what: str) -> None:
    known = cells.names
    if known is not None and (unknown := sorted(set(names) - set(known))):
        raise ConfigurationError(f"{what} {listed(unknown)}, but the components are {listed(list(known))}")


def _named(weights: Weights) -> Iterator[str]:
    """Yield the components that weights name."""
    match weights:
        case FromTable():
            yield from weights.names()
        case Blend():
            yield from _named(weights.first)
            yield from _named(weights.second)
        case Patched():
            yield from _named(weights.base)
            yield from weights.shares
        case ByTag():
            for names in weights.tags.values():
                yield from names
        case Mapping():
            yield from weights


def _values(weights: Weights) -> Iterator[tuple[str, str]]:
    """Yield the (column, value) that weights by columns name."""
    match weights:
        case ByColumn():
            yield from ((column, value) for column, factors in weights.factors.items() for value in factors)
        case Blend():
            yield from _values(weights.first)
            yield from _values(weights.second)
        case Patched():
            yield from _values(weights.base)
