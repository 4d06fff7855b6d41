"""Tables that anyone can read: a caption with its mark, scoped headers, a region that scrolls on narrow screens."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from viewers.markup import Child, Markup, element, join, text
from viewers.numbers import grouped
from viewers.table_data import GROUP, Facts, LeftOut, Table, Value, number_in, shown, unique


class Mark(Enum):
    """How far a number can be trusted: where it was counted, seen, estimated or measured."""

    EXACT = "exact"
    SAMPLED = "sampled"
    SKETCHED = "sketched"
    ESTIMATED = "estimated"
    TESTED = "tested"


MEANINGS: Final = {
    Mark.EXACT: "counted over every document",
    Mark.SAMPLED: "seen on some documents, drawn by digests",
    Mark.SKETCHED: "estimated from a sketch, error stated",
    Mark.ESTIMATED: "shared out in proportion, of counts that are exact",
    Mark.TESTED: "measured on texts written for the test",
}


SHORT: Final = 16
"""Code points of code that is not broken over lines: short keys are as long."""

READ: Final[Mapping[str, Callable[[str], Value]]] = {"words": shown, "number": number_in}
"""How a cell is read, by the style of its column."""


@dataclass(frozen=True, slots=True)
class Group:
    """Rows under a heading of their own; the first cell of a row is its header."""

    title: Child
    rows: Sequence[Sequence[Child]]


def mark(kind: Mark) -> Markup:
    """Return the mark that stands beside a number or a caption."""
    return element("span", kind.value, class_=f"mark {kind.name.lower()}")


def table(
    caption: str,
    kind: Mark,
    columns: Sequence[str],
    rows: Sequence[Sequence[Child] | Group],
    words: frozenset[str] = frozenset(),
) -> Markup:
    """Return a table and a link to its values; `columns` named in `words` hold words, the others numbers.

    The first column heads its rows.
    """
    styles = ["words" if number == 0 or name in words else "number" for number, name in enumerate(columns)]
    head = element(
        "thead",
        element("tr", *(element("th", name, scope="col", class_=s) for name, s in zip(columns, styles, strict=True))),
    )
    bodies = [_body(row, styles) for row in rows if isinstance(row, Group)]
    plain = [row for row in rows if not isinstance(row, Group)]
    bodies += [_body(Group(None, plain), styles)] if plain else []
    inner = element("table", element("caption", caption, " ", mark(kind)), head, *bodies)
    data = _values(caption, kind, columns, rows, styles)
    csv = element("a", "CSV", href=data.address(), download=f"{data.name}.csv", aria_label=f"CSV: {caption}")
    link = element("a", "Link", href=f"#table-{data.name}", aria_label=f"Link to {caption}")
    place = f"table-{data.name}"
    return join(
        [
            element("div", inner, class_="scroll", role="region", aria_label=caption, tabindex="0", id=place),
            Markup(element("p", csv, link, class_="download").html, (data,)),
        ]
    )


def _values(
    caption: str, kind: Mark, columns: Sequence[str], rows: Sequence[Sequence[Child] | Group], styles: Sequence[str]
) -> Table:
    """Return the same cells as values; headings of groups are a first column."""
    heads = any(isinstance(row, Group) and row.title is not None for row in rows)
    bodies = [row for row in rows if isinstance(row, Group)]
    bodies.append(Group(None, [row for row in rows if not isinstance(row, Group)]))
    found: list[tuple[Value, ...]] = []
    for body in bodies:
        heading = (shown(join([body.title]).html),) if heads else ()
        for row in body.rows:
            cells = [READ[style](join([cell]).html) for cell, style in zip(row, styles, strict=True)]
            found.append((*heading, *cells))
    names = [shown(text(name).html) for name in columns]
    return Table(shown(text(caption).html), kind.value, unique([*([GROUP] if heads else []), *names]), tuple(found))


def _body(group: Group, styles: Sequence[str]) -> Markup:
    heading = None
    if group.title is not None:
        cell = element("th", group.title, scope="rowgroup", colspan=len(styles))
        heading = element("tr", cell, class_="group")
    return element("tbody", heading, *(_row(row, styles) for row in group.rows))


def _row(row: Sequence[Child], styles: Sequence[str]) -> Markup:
    first, *others = row
    cells = [element("td", cell, class_=style) for cell, style in zip(others, styles[1:], strict=True)]
    return element("tr", element("th", first, scope="row", class_="words"), *cells)


def facts(pairs: Sequence[tuple[str, Child]]) -> Markup:
    """Return names and values as a definition list."""
    told = tuple((shown(join([name]).html), number_in(join([value]).html)) for name, value in pairs)
    listed = [element("div", element("dt", name), element("dd", value)) for name, value in pairs]
    return Markup(element("dl", *listed, class_="facts").html, (Facts(told),))


def left_out(count: int, what: str) -> Markup | None:
    """Return the sentence that says how much was left out, None when nothing was."""
    if not count:
        return None
    said = element("p", f"{grouped(count)} {what} left out to keep the page small.", class_="left-out")
    return Markup(said.html, (LeftOut(count, what),))


def code(value: str) -> Markup:
    """Return `value` set as code: keys, digests, identifiers; short ones stay on one line."""
    return element("code", value, class_="short" if len(value) <= SHORT else None)


def paragraphs(*sentences: Child) -> Markup:
    """Return each of `sentences` as a paragraph."""
    return join([element("p", sentence) for sentence in sentences if sentence is not None])
