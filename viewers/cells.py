"""Cells of two columns, as topic and level: how much each holds, and how that stands to what chance would give it.

Enrichment of a cell is its amount over what it would have if both columns were independent: amount × all / (amount of
its row × amount of its column). 1 means that the two have nothing to do with each other.

Cost: the cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from curate.accounting.kept import cell_name
from curate.accounting.samples import CELL
from viewers.loading import ProductView, Report, StageView

TOPIC: Final = "topic"


@dataclass(frozen=True, slots=True)
class Grid:
    """Amounts by cell (row, column): `what` is counted ("documents"), `first` names the rows, `second` the columns."""

    name: str
    what: str
    first: str
    second: str
    amounts: Mapping[tuple[str, str], int]

    @property
    def total(self) -> int:
        """The amount of all cells."""
        return sum(self.amounts.values())

    @property
    def rows(self) -> dict[str, int]:
        """Values of the first column, the largest amount first."""
        sums: dict[str, int] = {}
        for (row, _), amount in self.amounts.items():
            sums[row] = sums.get(row, 0) + amount
        return dict(sorted(sums.items(), key=lambda item: (-item[1], item[0])))

    @property
    def columns(self) -> dict[str, int]:
        """Values of the second column: numbers in their order, then the others."""
        sums: dict[str, int] = {}
        for (_, column), amount in self.amounts.items():
            sums[column] = sums.get(column, 0) + amount
        return dict(sorted(sums.items(), key=lambda item: _place(item[0])))


def _place(value: str) -> tuple[bool, int, str]:
    is_number = value.isascii() and value.isdigit() and len(value) < 10
    return not is_number, int(value) if is_number else 0, value


def grids(report: Report) -> Iterator[tuple[Grid, ...]]:
    """Yield the grids of each set of caches by two columns, and of each output with topics and levels."""
    for made in report.products:
        if made.kind == "caches" and len(columns_of(made)) == 2:
            yield tuple(grid for grid in _of_caches(report, made) if grid.total)
    for name, stage in report.outputs.items():
        for column in sorted(stage.statistics.get("cells", {})):
            yield tuple(_of_stage(name, stage, column))


def columns_of(caches: ProductView) -> tuple[str, ...]:
    """Return the columns whose values name the cells."""
    return tuple(caches.operation["fields"]["by"])


def cell_of(caches: ProductView, name: str) -> tuple[str, str] | None:
    """Return the values of both columns in the name of a cell of `caches`; None for what is none of its cells."""
    first, second = columns_of(caches)
    if name not in caches.manifest["cells"]:
        return None
    row, _, column = name.removeprefix(f"{first}=").rpartition(f"/{second}=")
    return row, column


def _of_caches(report: Report, made: ProductView) -> Iterator[Grid]:
    first, second = columns_of(made)
    read = {} if report.plan is None else report.plan.tokens_read()
    found: dict[str, dict[tuple[str, str], int]] = {"tokens": {}, "documents": {}, "tokens drawn in training": {}}
    for name, entry in made.manifest["cells"].items():
        row, column = cell_of(made, name) or (name, "")
        for what, amount in zip(found, (entry["tokens"], entry.get("documents", 0), read.get(name, 0)), strict=True):
            found[what][row, column] = amount
    for what, amounts in found.items():
        yield Grid(made.name, what, first, second, amounts)


def _of_stage(name: str, stage: StageView, column: str) -> Iterator[Grid]:
    cells = stage.statistics["cells"][column]
    for what in ("documents", "characters"):
        amounts = {(topic, level): counts[what] for topic, levels in cells.items() for level, counts in levels.items()}
        yield Grid(name, what, TOPIC, column, amounts)


def hosts_in(report: Report, grid: Grid) -> dict[tuple[str, str], list[str]]:
    """Return cell → hosts of its documents with the lowest ids, of a grid of an output."""
    stage = report.outputs.get(grid.name)
    cells = {} if stage is None else stage.statistics.get("cells", {}).get(grid.second, {})
    return {
        (topic, level): sorted({entry["name"] for entry in counts["drawn"]["least"].values()})
        for topic, levels in cells.items()
        for level, counts in levels.items()
        if "drawn" in counts
    }


def samples_in(report: Report, grid: Grid) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
    """Return cell → the documents of it that were sampled and may be shown, of a grid of an output."""
    stage = report.outputs.get(grid.name)
    names = {cell_name(row, column, grid.second): (row, column) for row, column in grid.amounts}
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for sample in () if stage is None else stage.samples:
        if sample["kind"] == CELL and sample["transform"] == grid.second and sample["excerpt"]:
            found.setdefault(names[sample["reason"]], []).append(sample)
    return found


def terms_of(report: Report) -> dict[str, str]:
    """Return topic → its telling words, of all topics that were fitted."""
    cards = [made.manifest.get("card", {}) for made in report.products]
    return {topic["name"]: " ".join(topic["terms"]) for card in cards for topic in card.get("topics", ())}
