"""Two results side by side: in the panels of the report, what differs between their tables.

Made from what `report.json` says of either, so one of them may be somebody else's page. Invariants as on a report: the
same two results give the same bytes, nothing is loaded, no script but our own, every text escaped; each
table is a link and stands in the values beside the page too. Pictures and samples are not compared.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from curate.digests import short
from curate.store import json_line, self_digested
from viewers.finder import finder, said
from viewers.frame import document
from viewers.markup import Child, Markup, element, join
from viewers.matching import Change, by_name, changes
from viewers.numbers import MINUS, THIN, counted, fixed, grouped, share
from viewers.panels.panel import Panel
from viewers.report_data import FORMAT
from viewers.scripts import script
from viewers.table_data import Value, json_of
from viewers.tables import Group, Mark, code, left_out, paragraphs, table
from viewers.visible import plain, shortened

MOST: Final = 200
"""Rows of one table of differences."""

COLUMNS: Final = ("What", "Here", "There", "Change")
ABSENT: Final = "–"
CUT: Final = (
    "To stay small the reports leave out some of this panel: what is said to be on one side only may be on both."
)
FOOTER: Final = (
    "Pictures and samples are not compared. Made by curate from the values of two reports. This file loads nothing; "
    "its own script searches and sorts."
)
_ANCHOR: Final = re.compile("[a-z][a-z-]{0,40}")
_SHARE: Final = re.compile(r"([0-9]{1,3})(?:\.([0-9]))?%")
_ESTIMATE: Final = re.compile("≈ ?([0-9]{1,18})")
_DECIMAL: Final = re.compile(f"({MINUS}?)([0-9]{{1,18}})[.]([0-9]{{1,9}})")

Data = Mapping[str, Any]


def compare(here: Data, there: Data) -> tuple[bytes, bytes]:
    """Return the page about the differences of two results, given what `report.json` says of them, and its values."""
    panels = [_overview(here, there), *(panel for panel in _panels(here, there) if panel is not None)]
    about: dict[str, Any] = {
        "format": FORMAT.stamp,
        "kind": "against",
        "here": _about(here),
        "there": _about(there),
        "panels": [{"id": panel.anchor, "title": plain(panel.title), **json_of(panel.body.data)} for panel in panels],
    }
    page = document(
        " against ".join(_names(here, there)),
        element("a", "Skip to the differences", href="#report", class_="skip"),
        _header(here, there),
        element("div", _contents(panels), element("main", *(p.markup() for p in panels), id="report"), class_="page"),
        element("footer", element("p", FOOTER), class_="colophon"),
        said(),
        source=script(),
    )
    return page.encode(), json_line(self_digested(about))


def _about(data: Data) -> dict[str, Any]:
    return {name: plain(shortened(data[name])) for name in ("name", "content", "manifest")}


def _names(here: Data, there: Data) -> tuple[str, str]:
    """Return what both are called: names, with the beginning of their digests where these are the same."""
    one, other = ((shortened(data["name"]), shortened(short(data["content"]))) for data in (here, there))
    return (one[0], other[0]) if one[0] != other[0] else (" ".join(one), " ".join(other))


def _header(here: Data, there: Data) -> Markup:
    name, other = _names(here, there)
    return element(
        "header",
        element("p", "Composition report: differences", class_="kicker"),
        element("h1", name),
        element("p", "against ", element("em", other), class_="subtitle"),
        element("p", "Here: ", code(shortened(here["content"])), class_="digest"),
        element("p", "There: ", code(shortened(there["content"])), class_="digest"),
    )


def _contents(panels: Sequence[Panel]) -> Markup:
    items = [element("li", element("a", panel.title, href=f"#{panel.anchor}")) for panel in panels]
    title = element("h2", "Contents", id="contents", tabindex="-1")
    return element("nav", finder(), title, element("ol", *items), aria_labelledby="contents")


def _overview(here: Data, there: Data) -> Panel:
    rows: list[list[Child]] = [
        [name.capitalize(), *_cells(here["totals"][name], there["totals"][name])]
        for name in ("documents", "tokens", "sources")
    ]
    totals = table("Totals", Mark.EXACT, ("Of all outputs", "Here", "There", "Change"), rows)
    same = here["content"] == there["content"]
    sentence = "Both have the same content digest: the same documents." if same else None
    lede = "Look for a check that came out otherwise, then at the totals: do they differ as you meant?"
    return Panel("verdicts", "Verdicts", lede, join([paragraphs(sentence), totals, _checks(here, there)]))


def _checks(here: Data, there: Data) -> Markup:
    sides = [{check["id"]: check["verdict"] for check in data["checks"]} for data in (here, there)]
    names = list(dict.fromkeys([*sides[0], *sides[1]]))
    rows: list[list[Child]] = [
        [code(shortened(name)), *(shortened(side.get(name, ABSENT)) for side in sides)]
        for name in names
        if sides[0].get(name) != sides[1].get(name)
    ]
    if not rows:
        return element("p", f"All {counted(len(names), 'check')} come out the same.", class_="note")
    columns = ("Check", "Here", "There")
    built = table("Checks that come out otherwise", Mark.EXACT, columns, rows[:MOST], frozenset(columns))
    return join([built, left_out(max(len(rows) - MOST, 0), "checks")])


def _panels(here: Data, there: Data) -> list[Panel | None]:
    left = {panel["id"]: panel for panel in here["panels"] if panel["id"] != "verdicts"}
    right = {panel["id"]: panel for panel in there["panels"] if panel["id"] != "verdicts"}
    return [
        _panel(name if _ANCHOR.fullmatch(name) else f"panel-{number}", left.get(name), right.get(name))
        for number, name in enumerate(dict.fromkeys([*left, *right]))
    ]


def _panel(anchor: str, here: Data | None, there: Data | None) -> Panel | None:
    """Return what differs in a panel, None where neither side has a table in it."""
    sides = [_tables(side) for side in (here, there)]
    names = list(dict.fromkeys([*sides[0], *sides[1]]))
    title = (here or there or {})["title"]
    if not names:
        return None
    parts: list[Markup | None] = []
    alone: list[str] = []
    for name in names:
        left, right = sides[0].get(name), sides[1].get(name)
        if left is not None and right is not None:
            parts.append(_differences(left, list(changes(left, right))))
        else:
            alone.append(f"{shortened(name[0])}: only {'there' if left is None else 'here'}.")
    shown = [part for part in parts if part is not None]
    lede = f"{counted(len(shown), 'table')} of {grouped(len(names))} {'differs' if len(shown) == 1 else 'differ'}."
    cut = any(side is not None and side["left_out"] for side in (here, there))
    items = element("ul", *(element("li", sentence) for sentence in alone[:MOST])) if alone else None
    note = element("p", CUT, class_="note") if cut and shown else None
    body = join([note, *shown, items, left_out(max(len(alone) - MOST, 0), "tables")])
    return Panel(anchor, shortened(title), lede, body)


def _tables(panel: Data | None) -> dict[tuple[str, int], Data]:
    """Return the tables of a panel by caption; names and values are one too, where it has one list of them."""
    if panel is None:
        return {}
    tables = list(panel["tables"])
    if len(panel["facts"]) == 1:
        facts = {"caption": "Names and values", "mark": Mark.EXACT.value, "columns": ["Name", "Value"]}
        tables.append({**facts, "rows": panel["facts"][0]})
    return by_name(tables)


def _differences(here: Data, found: Sequence[Change]) -> Markup | None:
    if not found:
        return None
    groups: dict[str, list[list[Child]]] = {}
    for change in found[:MOST]:
        cells = [shortened(change.column), *_cells(change.here, change.there)]
        groups.setdefault(change.row, []).append(cells)
    rows = [Group(shortened(name), cells) for name, cells in groups.items()]
    mark = next((kind for kind in Mark if kind.value == here["mark"]), Mark.EXACT)
    built = table(shortened(here["caption"], 200), mark, COLUMNS, rows)
    return join([built, left_out(max(len(found) - MOST, 0), "differences")])


def _cells(here: Value | None, there: Value | None) -> tuple[Child, Child, Child]:
    return _shown(here), _shown(there), _change(here, there)


def _shown(value: Value | None) -> str:
    if value is None:
        return ABSENT
    if isinstance(value, int):
        return grouped(value)
    if estimate := _ESTIMATE.fullmatch(value):
        return f"≈ {grouped(int(estimate[1]))}"
    return shortened(value.replace("%", f"{THIN}%"))


def _change(here: Value | None, there: Value | None) -> str:
    """Return by how much `here` is more than `there`: of shares in points, of counts as a share of `there` too."""
    if here is None or there is None:
        return "only there" if here is None else "only here"
    if isinstance(here, int) and isinstance(there, int):
        return _more(here, there)
    counts = _count(here), _count(there)
    if counts[0] is not None and counts[1] is not None:
        return f"≈ {_more(counts[0], counts[1])}"
    decimals = _units(here), _units(there)
    if decimals[0] is not None and decimals[1] is not None and decimals[0][1] == decimals[1][1]:
        more, places = decimals[0][0] - decimals[1][0], decimals[0][1]
        return f"{'+' if more > 0 else ''}{fixed(more, places)}"
    left, right = _tenths(here), _tenths(there)
    if left is None or right is None:
        return ""
    sign = _signed(left - right)[0] if left != right else ""
    return f"{sign}{abs(left - right) // 10}.{abs(left - right) % 10} points"


def _more(here: int, there: int) -> str:
    """Return a difference of counts with its sign, and as a share of `there`."""
    more = here - there
    sign = "+" if more > 0 else MINUS
    relative = f" ({sign}{share(abs(more), there)})" if there > 0 else ""
    return f"{_signed(more)}{relative}" if more else "0"


def _count(value: Value) -> int | None:
    """Return a count, also one that is an estimate; None of anything else."""
    estimate = _ESTIMATE.fullmatch(str(value))
    return value if isinstance(value, int) else int(estimate[1]) if estimate else None


def _units(value: Value) -> tuple[int, int] | None:
    """Return a decimal as units of its last place, and its number of places; None of anything else."""
    found = _DECIMAL.fullmatch(str(value))
    return None if found is None else (int(found[2] + found[3]) * (-1 if found[1] else 1), len(found[3]))


def _signed(number: int) -> str:
    return f"+{grouped(number)}" if number > 0 else f"{MINUS}{grouped(-number)}"


def _tenths(value: Value | None) -> int | None:
    """Return a share as the page shows it, "12.3%", in tenths of a hundredth; None of anything else."""
    found = _SHARE.fullmatch(str(value))
    return None if found is None else int(found[1]) * 10 + int(found[2] or 0)
