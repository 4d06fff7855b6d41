"""What training reads by source, topic, level, language and licence: the plan's draws and the caches' own counts.

The plan draws sequences of whole caches, and each cache counts its tokens by value (`curate.caches.values`). What a
phase reads of a value is its share of the tokens of the cache: exact where the cache holds no other value, or where
the phase begins and ends with whole passes; else the expectation, as each pass is drawn in a permuted order. Tokens are
handed out whole, by largest remainders, so that the values of a column add up to what is read.

Cost: values × components × phases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from mixtures.plan import Plan
from viewers.loading import Report
from viewers.tokens import TRAINING, CellView

ORDER: Final = ("source", "topic", "language", "licence")
"""Columns in the order in which they are shown; columns of levels come after the topic."""

VALUE, OTHERS, NONE = range(3)

Name = tuple[int, str]
"""Kind (`VALUE`, the `OTHERS` that were not counted one by one, `NONE` at all) and value."""


@dataclass(frozen=True, slots=True)
class ReadValue:
    """What there is and what is read of one value: by phase and in total, and whether each is exact."""

    name: Name
    documents: int
    held: int
    phases: tuple[int, ...]
    exact: tuple[bool, ...]

    @property
    def read(self) -> int:
        """Tokens read in all phases."""
        return sum(self.phases)


def columns_counted(report: Report) -> list[str]:
    """Return the columns that caches to train on have, in the order of the page; none unless all of them count."""
    cells = _cells(report)
    if not all("by" in cell.description.statistics for cell in cells):
        return []
    found = {name for cell in cells for name in cell.description.statistics["by"]}
    order = [*ORDER[:2], *sorted(found - set(ORDER)), *ORDER[2:]]
    return [name for name in order if name in found and all(_is_told(cell, name) for cell in cells)]


def _is_told(cell: CellView, column: str) -> bool:
    return column not in cell.description.statistics["by"] or held_by(cell, column) is not None


def held_by(cell: CellView, column: str) -> dict[Name, tuple[int, int]] | None:
    """Return value → documents and tokens of a cache; None where they were not counted over all its documents."""
    told: Mapping[str, Any] | None = cell.description.statistics.get("by", {}).get(column)
    whole = cell.description.documents, cell.description.tokens
    if told is None or _pair(told["all"]) != whole:
        return None
    found: dict[Name, tuple[int, int]] = {}
    for entry in told["values"]["least"].values():
        found[VALUE, entry["name"]] = _pair(entry)
    if "without" in told:
        found[NONE, ""] = _pair(told["without"])
    rest = [amount - sum(pair[place] for pair in found.values()) for place, amount in enumerate(whole)]
    if rest[0]:
        found[OTHERS, ""] = rest[0], rest[1]
    return found


@dataclass(frozen=True, slots=True)
class Taken:
    """What is read of a component: tokens by phase, and whether each begins and ends with whole passes."""

    tokens: tuple[int, ...]
    whole: tuple[bool, ...]


def taken_of(plan: Plan) -> dict[str, Taken]:
    """Return component → what the plan reads of it."""
    draws, tokens = ([count(step) for step in plan.starts] for count in (plan.draws, plan.tokens_read))
    return {
        one.name: Taken(
            tuple(after[one.name] - before[one.name] for before, after in pairwise(tokens)),
            tuple(not any(drawn[one.name] % max(one.sequences, 1) for drawn in pair) for pair in pairwise(draws)),
        )
        for one in plan.components
    }


def read_by(report: Report, column: str, taken: Mapping[str, Taken]) -> list[ReadValue]:
    """Return what is read of each value of `column`, most first, or levels in their order; others, then none last."""
    sums: dict[Name, ReadValue] = {}
    for cell in _cells(report):
        if cell.cell in taken:
            for one in read_of_cell(cell, column, taken[cell.cell]):
                sums[one.name] = _joined(sums[one.name], one) if one.name in sums else one
    return sorted(sums.values(), key=lambda one: _place(one, column))


def read_of_cell(cell: CellView, column: str, taken: Taken) -> list[ReadValue]:
    """Return what is read of each value of `column` in one cache to train on, of which `taken` is read in all."""
    held = held_by(cell, column) or {(NONE, ""): (cell.description.documents, cell.description.tokens)}
    names = sorted(held)
    parts = [apportioned(amount, [held[name][1] for name in names]) for amount in taken.tokens]
    pairs = zip(taken.tokens, taken.whole, strict=True)
    exact = tuple(len(names) == 1 or not amount or is_whole for amount, is_whole in pairs)
    return [ReadValue(name, *held[name], tuple(part[at] for part in parts), exact) for at, name in enumerate(names)]


def _place(one: ReadValue, column: str) -> tuple[Any, ...]:
    kind, name = one.name
    is_level = column not in ORDER and kind == VALUE
    return (kind, int(name), "") if is_level else (kind, -one.read, name)


def _cells(report: Report) -> list[CellView]:
    return [cell for cell in report.cells if cell.output == TRAINING]


def _joined(one: ReadValue, other: ReadValue) -> ReadValue:
    return ReadValue(
        one.name,
        one.documents + other.documents,
        one.held + other.held,
        tuple(a + b for a, b in zip(one.phases, other.phases, strict=True)),
        tuple(a and b for a, b in zip(one.exact, other.exact, strict=True)),
    )


def _pair(counts: Mapping[str, int]) -> tuple[int, int]:
    return counts["documents"], counts["tokens"]


def apportioned(amount: int, weights: Sequence[int]) -> list[int]:
    """Return `amount` in whole parts by `weights`, the largest remainders rounded up, the first of equal ones."""
    whole = sum(weights)
    if not whole:
        return [0] * len(weights)
    parts = [amount * weight // whole for weight in weights]
    order = sorted(range(len(weights)), key=lambda at: (-(amount * weights[at] % whole), at))
    for at in order[: amount - sum(parts)]:
        parts[at] += 1
    return parts
