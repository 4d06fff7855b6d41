"""What the panel on topics shows of cells of two columns: a heat map; shares and enrichment, measure by measure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from curate.accounting.samples import PER_CELL
from viewers.budget import CELL_BYTES, ROWS, in_rounds
from viewers.cells import Grid, grids, hosts_in, samples_in, terms_of
from viewers.heat import heat
from viewers.loading import Report
from viewers.markup import Child, Markup, element, join
from viewers.numbers import counted, fixed, grouped, rounded, share
from viewers.sample_card import Excerpts, card
from viewers.tables import Mark, left_out, mark, table
from viewers.visible import shortened

COLUMNS: Final = 16
"""Values of the second column that are shown."""

MEANING: Final = (
    "Enrichment: the amount of a cell over what it would have if both columns had nothing to do with each other. Far "
    "from 1 in the top level, it says that the score knows the subject."
)


def cell_parts(report: Report) -> Iterator[Markup | None]:
    """Yield what is shown of cells."""
    terms = terms_of(report)
    found = [some for some in grids(report) if some]
    for measures in found[:ROWS]:
        first, *others = measures
        yield element("h3", f"Cells of {shortened(first.name)}")
        yield heat(first, list(first.rows)[:ROWS], list(first.columns)[:COLUMNS])
        yield element("p", MEANING, class_="note")
        inner = [_shares(first, terms), *(_shares(grid, {}) for grid in others), *map(_enrichment, measures)]
        inner.append(_hosts(first, hosts_in(report, first)))
        told = ", ".join(grid.what for grid in measures)
        yield element("details", element("summary", f"In numbers: {told}, and enrichment"), *inner, class_="stage")
        yield _samples(report, first)
    yield left_out(max(len(found) - ROWS, 0), "sets of cells")


def _shares(grid: Grid, terms: Mapping[str, str]) -> Markup:
    columns, total = list(grid.columns)[:COLUMNS], grid.total
    has_terms = any(row in terms for row in grid.rows)
    rows: list[list[Child]] = []
    for row, amount in list(grid.rows.items())[:ROWS]:
        cells: list[Child] = [
            share(grid.amounts[row, column], total) if (row, column) in grid.amounts else "–" for column in columns
        ]
        words: list[Child] = [shortened(terms.get(row, ""), 60)] if has_terms else []
        rows.append([shortened(row), *cells, share(amount, total), *words])
    heads = [shortened(grid.first), *_heads(grid, columns), "all", *(["telling words"] if has_terms else [])]
    built = table(
        f"Share of {grid.what} in cells of {shortened(grid.name)}",
        Mark.EXACT,
        heads,
        rows,
        frozenset({"telling words"} if has_terms else ()),
    )
    return join([built, *_cut(grid)])


def _enrichment(grid: Grid) -> Markup:
    columns, sums, total = list(grid.columns)[:COLUMNS], grid.columns, grid.total
    rows: list[list[Child]] = []
    for row, amount in list(grid.rows.items())[:ROWS]:
        cells: list[Child] = [
            fixed(rounded(grid.amounts.get((row, column), 0) * total, amount * sums[column], 2), 2)
            if amount and sums[column]
            else "–"
            for column in columns
        ]
        rows.append([shortened(row), *cells])
    heads = [shortened(grid.first), *_heads(grid, columns)]
    return table(f"Enrichment of {grid.what} in cells of {shortened(grid.name)}", Mark.EXACT, heads, rows)


def _hosts(grid: Grid, hosts: Mapping[tuple[str, str], list[str]]) -> Markup:
    if not hosts:
        return join([])
    columns = list(grid.columns)[:COLUMNS]
    rows: list[list[Child]] = [
        [shortened(row), *(", ".join(shortened(h, 40) for h in hosts.get((row, at), ())) or "–" for at in columns)]
        for row in list(grid.rows)[:ROWS]
    ]
    heads, title = _heads(grid, columns), f"Hosts of drawn documents in cells of {shortened(grid.name)}"
    return table(title, Mark.SAMPLED, [shortened(grid.first), *heads], rows, frozenset(heads))


def _samples(report: Report, grid: Grid) -> Markup | None:
    """Return texts of each cell, folded, in rounds: the first of each, then the second."""
    found, excerpts = samples_in(report, grid), Excerpts.of(report)
    places = [(row, at) for row in grid.rows for at in grid.columns if (row, at) in found]
    cards = in_rounds([found[place] for place in places], lambda one: card(one, (), excerpts), CELL_BYTES)
    if not any(cards):
        return None
    total, shown = sum(map(len, found.values())), sum(map(len, cards))
    rule = (
        f"Of each cell the up to {PER_CELL} documents with the lowest digest of their text; {grouped(shown)} of "
        f"{counted(total, 'text')} fit into {grouped(CELL_BYTES // 1000)} kB. "
    )
    parts = [
        element("div", element("h4", title), element("div", *made, class_="cards"), class_="batch")
        for (row, at), made in zip(places, cards, strict=True)
        for title in [f"{shortened(row)}, {_heads(grid, [at])[0]}"]
        if made
    ]
    note = element("p", rule, mark(Mark.SAMPLED), class_="note")
    summary = element("summary", f"Texts of the cells of {shortened(grid.name)}")
    return element("details", summary, note, *parts, class_="stage")


def _heads(grid: Grid, columns: list[str]) -> list[str]:
    return [shortened(f"{grid.second}={column}") for column in columns]


def _cut(grid: Grid) -> Iterator[Markup | None]:
    yield left_out(max(len(grid.rows) - ROWS, 0), "rows")
    yield left_out(max(len(grid.columns) - COLUMNS, 0), "columns")
