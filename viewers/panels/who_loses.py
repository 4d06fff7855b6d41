"""Who loses: what each filter removes by language, script, topic, page type, country domain, host, length, column."""

from __future__ import annotations

from typing import Final

from viewers.budget import fitting
from viewers.dots import Dot, chart
from viewers.intervals import MILLION
from viewers.language_names import language_name
from viewers.loading import Report
from viewers.markup import Child, Markup, element, join
from viewers.numbers import counted, fixed, grouped, rounded, share
from viewers.panels.panel import Panel
from viewers.tables import Group, Mark, left_out, table
from viewers.visible import shortened
from viewers.who import SMALL, Attribute, Lot, Removal, removals

MOST: Final = 20
"""Groups of the picture."""

PER_ATTRIBUTE: Final = 12
"""Rows of an attribute of one filter."""

BYTES: Final = 300_000
"""HTML of the tables of single filters."""

COLUMNS: Final = ("Group", "Came in", "Dropped", "Rate", "To rate of all", "95 % interval")


def who_loses(report: Report) -> Panel | None:
    """Return the panel; None where no filter dropped documents that are counted by what they are."""
    found = [removal for removal in removals(report) if removal.attributes]
    if not found:
        return None
    lede = (
        "Look for a group that a filter removes several times as often as all documents: is that what the filter was "
        "made for, or does it take one language, subject or place for bad quality?"
    )
    rule = (
        "The ratio is the rate at which a filter drops documents of a group, over the rate at which it drops all that "
        "come to it; the interval is Wilson's, with the rate of all taken as it is. Groups of fewer than "
        f"{SMALL} documents stand together as others. Most unequal is what is furthest from 1 by the nearer end of its "
        "interval. Language, script and topic are unknown to filters that come before the step that tells them."
    )
    shown = fitting(found, _filter, BYTES)
    body = join([_overview(found), element("p", rule, class_="note"), *shown, _omitted(len(found) - len(shown))])
    return Panel("who-loses", "Who loses", lede, body)


def _omitted(count: int) -> Markup | None:
    return left_out(count, "filters")


def _overview(found: list[Removal]) -> Markup:
    lots = [(r, a, lot) for r in found for a in r.attributes for lot in a.lots if lot.unequal > MILLION]
    lots.sort(key=lambda one: (-one[2].unequal, -one[2].came, one[0].title, one[1].name, one[2].value))
    if not lots:
        return element("p", "No group is dropped more or less often than all documents, by more than chance explains.")
    dots = [
        _dot(join([_shown(lot, kind), " · ", shortened(removal.filter, 40)]), lot) for removal, kind, lot in lots[:MOST]
    ]
    rows: list[list[Child]] = [
        [_shown(lot, attribute), attribute.name, shortened(removal.title), *_cells(lot)]
        for removal, attribute, lot in lots[:MOST]
    ]
    columns = (COLUMNS[0], "of", "Filter", *COLUMNS[1:])
    sampled = any(attribute.is_sampled for _, attribute, _ in lots[:MOST])
    kind = Mark.SAMPLED if sampled else Mark.EXACT
    built = table("Most unequal of all", kind, columns, rows, frozenset({"of", "Filter"}))
    picture = chart("How much more, or less, often than all documents a group is dropped", dots)
    return join([picture, built, left_out(max(len(lots) - MOST, 0), "groups that are unequal, shown filter by filter")])


def _filter(removal: Removal) -> Markup:
    summary = f"{removal.title}: {share(removal.lost, removal.came)} of {counted(removal.came, 'document')} dropped"
    exact = [attribute for attribute in removal.attributes if not attribute.is_sampled]
    sampled = [attribute for attribute in removal.attributes if attribute.is_sampled]
    tables = [
        table(f"{shortened(removal.title)}, by {what}", kind, COLUMNS, [_group(attribute) for attribute in attributes])
        for what, kind, attributes in (
            ("what documents are", Mark.EXACT, exact),
            ("size of hosts", Mark.SAMPLED, sampled),
        )
        if attributes
    ]
    cut = sum(max(len(attribute.lots) - PER_ATTRIBUTE, 0) for attribute in removal.attributes)
    lots = [(attribute, lot) for attribute in exact for lot in attribute.lots if lot.unequal > MILLION]
    picture = chart("Groups that stand out", [_dot(_shown(lot, kind), lot) for kind, lot in lots[:MOST]])
    return element(
        "details", element("summary", summary), picture, *tables, left_out(cut, "less unequal groups"), class_="stage"
    )


def _group(attribute: Attribute) -> Group:
    return Group(
        shortened(attribute.name), [[_shown(lot, attribute), *_cells(lot)] for lot in attribute.lots[:PER_ATTRIBUTE]]
    )


def _shown(lot: Lot, attribute: Attribute | None = None) -> str:
    named = language_name(lot.value) if attribute is not None and attribute.name == "language" else lot.value
    return shortened(named, 60)


def _cells(lot: Lot) -> list[Child]:
    low, high = (fixed(rounded(end, MILLION, 2), 2) for end in lot.interval)
    return [
        grouped(lot.came),
        grouped(lot.lost),
        share(lot.lost, lot.came),
        fixed(rounded(*lot.ratio, 2), 2),
        f"{low} – {high}",
    ]


def _dot(label: Child, lot: Lot) -> Dot:
    value = f"{fixed(rounded(*lot.ratio, 2), 2)} ×, n {grouped(lot.came)}"
    return Dot(label, lot.ratio, lot.interval, value, lot.unequal > MILLION)
