"""A heat map of cells as inline SVG: shares of all as text, enrichment as colour. A table beside it says the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from viewers.cells import Grid
from viewers.intervals import logarithm
from viewers.markup import Markup, element
from viewers.numbers import share
from viewers.visible import plain, shortened

LABEL: Final = 220
ACROSS: Final = 74
DOWN: Final = 22
NAME: Final = 30
BOUNDS: Final = (1024, 3072, 6492)
"""Distances from 1 at which a colour grows stronger: a quarter of a doubling, three quarters, and three times."""


@dataclass(frozen=True, slots=True)
class _Sums:
    rows: dict[str, int]
    columns: dict[str, int]
    total: int


def heat(grid: Grid, rows: Sequence[str], columns: Sequence[str]) -> Markup:
    """Return the picture of these rows and columns of `grid`."""
    axes = f"{plain(shortened(grid.first, NAME // 2))} ↓  {plain(shortened(grid.second, NAME // 2))} →"
    heads = [element("text", axes, x=0, y=14, class_="axes")]
    heads += [
        element("text", plain(shortened(column, 9)), x=LABEL + ACROSS * at + ACROSS // 2, y=14, class_="head")
        for at, column in enumerate(columns)
    ]
    sums = _Sums(grid.rows, grid.columns, grid.total)
    lines = [_row(grid, row, columns, at, sums) for at, row in enumerate(rows)]
    width, height = LABEL + ACROSS * len(columns), DOWN * (len(rows) + 1)
    picture = element(
        "svg",
        *heads,
        *lines,
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        role="img",
        aria_label=f"{plain(grid.what)} of {len(rows)} by {len(columns)} cells; the table below has the same",
    )
    label = f"Heat map of {plain(shortened(grid.name, 40))}"
    keys = [
        element("span", element("span", class_=f"key {tone}"), said)
        for tone, said in (("less3", "a third or less"), ("even", "as chance gives"), ("more3", "three times or more"))
    ]
    title = f"Share of {grid.what} in each cell, and colour by enrichment"
    caption = element("figcaption", title, element("span", *keys, class_="legend"))
    frame = element("div", picture, class_="graph", tabindex="0", role="region", aria_label=label)
    return element("figure", caption, frame, class_="heat")


def _row(grid: Grid, row: str, columns: Sequence[str], at: int, sums: _Sums) -> Markup:
    top = DOWN * (at + 1)
    shapes = [element("text", plain(shortened(row, NAME)), x=0, y=top + 15, class_="name")]
    for place, column in enumerate(columns):
        amount, left = grid.amounts.get((row, column), 0), LABEL + ACROSS * place
        tone = tone_of(amount * sums.total, sums.rows[row] * sums.columns[column])
        shapes.append(element("rect", x=left, y=top, width=ACROSS - 2, height=DOWN - 2, class_=tone))
        shapes.append(element("text", share(amount, sums.total), x=left + ACROSS // 2 - 1, y=top + 15, class_="cell"))
    return element("g", *shapes)


def tone_of(numerator: int, denominator: int) -> str:
    """Return the class of an enrichment: "less3" to "more3", "even" near 1, "empty" of nothing."""
    if not numerator or not denominator:
        return "empty"
    distance = logarithm(numerator, denominator)
    step = sum(abs(distance) >= bound for bound in BOUNDS)
    return "even" if not step else f"{'more' if distance > 0 else 'less'}{step}"
