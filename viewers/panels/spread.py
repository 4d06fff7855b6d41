"""Measures around their thresholds: for the panel on distributions, what each rule saw on either side of its bound."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from transforms.spread import BINS, EDGE
from viewers.loading import Report
from viewers.markup import Child, Markup, element
from viewers.numbers import grouped
from viewers.spreads import RuleSpread, spreads_of
from viewers.tables import Group, Mark, left_out, table
from viewers.visible import shortened

SHOWN: Final = 16
"""Rules that are shown, those that most documents fail."""

HEIGHT: Final = 100
WIDTH: Final = 100
"""Units of a bin."""

HEADS: Final = ("to ¼", "to ½", "to ¾", "to 1", "to 1¼", "to 1½", "to 1¾", "to 2", "beyond")

LEGEND: Final = (("kept", "passes"), ("dropped", "fails"))


def measures(report: Report) -> Iterator[Markup | None]:
    """Yield the picture and the table of the rules that most documents fail."""
    found = spreads_of(report)
    shown = [spread for spread in found if spread.failing][:SHOWN]
    if not shown:
        return
    yield element("h3", "Measures around their thresholds")
    note = (
        "A rule of a filter measures every document that comes to the filter, whatever other rules say. Across: the "
        "value, from nothing to twice the threshold and, last, beyond; the line is the threshold. A heap next to the "
        "line, on the side that fails, is a threshold that decides much."
    )
    yield element("p", note, class_="note")
    yield _picture(shown)
    filters = dict.fromkeys(_filter(spread) for spread in shown)
    groups = [Group(name, [_row(spread) for spread in shown if _filter(spread) == name]) for name in filters]
    columns = ("Rule", "Fail", *HEADS, "No evidence")
    yield table("Documents by their value, in quarters of the threshold", Mark.EXACT, columns, groups)
    yield left_out(len(found) - len(shown), "rules that fewer documents fail, or none,")


def _filter(spread: RuleSpread) -> str:
    return shortened(f"{spread.transform} in {spread.stage.name}", 100)


def _row(spread: RuleSpread) -> list[Child]:
    rule = f"{shortened(spread.measure, 60)} {shortened(spread.bound)}"
    return [rule, grouped(spread.failing), *map(grouped, spread.bins), grouped(spread.without)]


def _picture(shown: list[RuleSpread]) -> Markup:
    items = []
    for spread in shown:
        label = _label(spread)
        value = f"{grouped(spread.failing)} of {grouped(spread.judged)} fail"
        items.append(
            element(
                "li",
                element("span", label, class_="label"),
                _histogram(spread),
                element("span", value, class_="value"),
            )
        )
    keys = [element("span", element("span", class_=f"key {tone}"), meaning) for tone, meaning in LEGEND]
    caption = element("figcaption", "Values around thresholds", element("span", *keys, class_="legend"))
    return element("figure", caption, element("ul", *items), class_="bars strips")


def _label(spread: RuleSpread) -> str:
    """Return what a rule measures, its bound, and where."""
    return f"{shortened(spread.measure, 60)} {shortened(spread.bound)}: {shortened(spread.stage.name, 40)}"


def _histogram(spread: RuleSpread) -> Markup:
    most = max(spread.bins)
    paths = {"kept": "", "dropped": ""}
    for place, documents in enumerate(spread.bins):
        height = -(-documents * HEIGHT // most)
        passes = (place >= EDGE) == spread.keeps_above
        if height:
            paths["kept" if passes else "dropped"] += f"M{place * WIDTH + 2} {HEIGHT}v-{height}h{WIDTH - 4}v{height}z"
    shapes = [element("path", d=path, class_=tone) for tone, path in paths.items() if path]
    shapes.append(element("path", d=f"M{EDGE * WIDTH} 0V{HEIGHT}", class_="border"))
    return element(
        "svg",
        *shapes,
        viewBox=f"0 0 {BINS * WIDTH} {HEIGHT}",
        preserveAspectRatio="none",
        aria_hidden="true",
        focusable="false",
    )
