"""What the panel on the mixture says of sources, topics, levels, languages and licences that training reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from curate.caches.values import MOST
from mixtures.plan import Plan
from viewers.bars import Bar, Segment, chart
from viewers.estimates import about
from viewers.language_names import language_name
from viewers.loading import Report
from viewers.markup import Child, Markup, element
from viewers.numbers import fixed, grouped, rounded, share
from viewers.read_values import NONE, OTHERS, VALUE, Name, ReadValue, columns_counted, read_by, taken_of
from viewers.tables import Mark, left_out, table
from viewers.visible import shortened

SHOWN: Final = 40
"""Values of a column that have a row; the others are one row."""

PHASES: Final = 4
"""Phases that have columns."""

DRAWN: Final = 8
"""Values of a column in its picture."""

PARTS: Final = ("source", "topic", "language", "licence")
"""Columns by which a reader may want to know what training reads, besides a column of levels."""

RULE: Final = (
    "Caches count their tokens by value; what is read of a value is its share of each component, times what the plan "
    "reads of that. It is exact where a component has one value or is read in whole passes; else ≈, the expectation: "
    "sequences are drawn in a permuted order. The {shown} values that are read most have rows, and of {most} per "
    "component those with the lowest digests are counted one by one: all others are one row."
)


def read_parts(report: Report, plan: Plan) -> Iterator[Markup | None]:
    """Yield a picture and a table for each column, and by what columns nothing can be told."""
    columns = columns_counted(report)
    if columns:
        yield element("h3", "What training reads")
        yield element("p", RULE.format(shown=SHOWN, most=MOST), class_="note")
    taken = taken_of(plan)
    for column in columns:
        yield from _of_column(plan, column, read_by(report, column, taken))
    yield _not_told(report, columns)


def _of_column(plan: Plan, column: str, found: Sequence[ReadValue]) -> Iterator[Markup | None]:
    rows, named = _within(found), shortened(column)
    phases = range(min(len(plan.segments), PHASES)) if len(plan.segments) > 1 else range(0)
    whole = [sum(one.phases[at] for one in found) for at in range(len(plan.segments))]
    total = sum(whole)
    bars = [
        Bar(_told(one.name, column), (Segment(one.read, "kept"),), share(one.read, total))
        for one in rows[:DRAWN]
        if one.name[0] != NONE
    ]
    names = [shortened(plan.segments[at].phase, 30) for at in phases]
    heads = [told for name in names for told in (name, f"of {name}")]
    head = named.capitalize() if column in PARTS else named
    columns = [head, "Documents", "Tokens", "Tokens read", "of all", "Times", *heads]
    lines = [_row(one, column, phases, whole) for one in rows]
    kind = Mark.EXACT if all(all(one.exact) for one in rows) else Mark.ESTIMATED
    if len(rows) > 1:
        yield chart(f"Tokens that training reads, by {named}", bars, ())
    without = sum(one.read for one in rows if one.name[0] == NONE)
    if without and len(rows) > 1:
        yield element("p", f"Of all that is read, {share(without, total)} has no {named}: the last row.", class_="note")
    yield table(f"What training reads by {named}", kind, columns, lines)
    yield left_out(max(len(found) - len(rows), 0), "values, in the row of the others,")
    yield left_out(max(len(plan.segments) - len(phases), 0) if phases else 0, "phases")


def _row(one: ReadValue, column: str, phases: Sequence[int], whole: Sequence[int]) -> list[Child]:
    cells: list[Child] = [
        _told(one.name, column),
        grouped(one.documents),
        grouped(one.held),
        grouped(one.read) if all(one.exact) else about(one.read),
        share(one.read, sum(whole)),
        fixed(rounded(one.read, one.held, 2), 2) if one.held else "–",
    ]
    for at in phases:
        cells.append(grouped(one.phases[at]) if one.exact[at] else about(one.phases[at]))
        cells.append(share(one.phases[at], whole[at]))
    return cells


def _within(found: Sequence[ReadValue]) -> list[ReadValue]:
    """Return the first `SHOWN` values, what is left of them with the others, and what has none."""
    values = [one for one in found if one.name[0] == VALUE]
    most = sorted(values, key=lambda one: (-one.read, one.name))[:SHOWN]
    kept = [one for one in values if one in most]
    rest = [one for one in found if one.name[0] == OTHERS] + [one for one in values if one not in most]
    return [*kept, *([_sum(rest)] if rest else []), *(one for one in found if one.name[0] == NONE)]


def _sum(rest: Sequence[ReadValue]) -> ReadValue:
    phases = tuple(sum(amounts) for amounts in zip(*(one.phases for one in rest), strict=True))
    exact = tuple(all(told) for told in zip(*(one.exact for one in rest), strict=True))
    return ReadValue((OTHERS, ""), sum(o.documents for o in rest), sum(o.held for o in rest), phases, exact)


def _told(name: Name, column: str) -> str:
    if name[0] == OTHERS:
        return f"all others by {shortened(column)}"
    if name[0] == NONE:
        return f"no {shortened(column)}"
    return shortened(language_name(name[1]) if column == "language" else name[1], 60)


def _not_told(report: Report, columns: Sequence[str]) -> Markup | None:
    """Return by what nothing can be told; None where all can."""
    lacks = [name for name in PARTS if name not in columns]
    lacks += [] if any(column not in PARTS for column in columns) else ["level"]
    if not lacks or not report.cells:
        return None
    why = (
        "the documents that are tokenized have no such column."
        if columns
        else "the token caches were made by an earlier curate, which did not count it. Tokenize into a new store."
    )
    return element("p", f"What training reads by {' or '.join(lacks)} is not told: {why}", class_="note")
