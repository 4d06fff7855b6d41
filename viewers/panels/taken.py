"""What takes most away: each filter of all sources added up, its reasons below it; edits apart. For the funnel's panel.

What is held out is not taken away and stands in no row. Texts that go are never tokenized, so their tokens are
estimated: their characters times the tokens per character of the caches of their source.
"""

from __future__ import annotations

from dataclasses import dataclass

from viewers.budget import ROWS
from viewers.estimates import Rate, about
from viewers.flows import all_flows
from viewers.loading import Report
from viewers.markup import Child, Markup, element, join
from viewers.numbers import grouped, share
from viewers.tables import Group, Mark, left_out, mark, table
from viewers.visible import shortened


@dataclass(frozen=True, slots=True)
class Taken:
    """Documents that something concerns, the characters of them that go, and about how many tokens these are."""

    documents: int = 0
    characters: int = 0
    tokens: int = 0

    def __add__(self, other: Taken) -> Taken:
        """Return both together."""
        return Taken(self.documents + other.documents, self.characters + other.characters, self.tokens + other.tokens)


Sums = dict[tuple[str, str], Taken]
"""(Transform, reason) → what goes."""


def taken(report: Report) -> Markup | None:
    """Return the tables; None where nothing goes."""
    rate = Rate.of(report)
    drops, edits = _drops(report, rate), _edits(report, rate)
    if not drops and not edits:
        return None
    return join([_filters(drops, rate) if drops else None, _cuts(edits, rate) if edits else None, _note(rate)])


def _filters(drops: Sums, rate: Rate | None) -> Markup:
    filters: dict[str, list[tuple[str, Taken]]] = {}
    for (transform, reason), one in sorted(drops.items(), key=lambda item: (*_largest(item[1]), item[0])):
        filters.setdefault(transform, []).append((reason, one))
    sums = {name: sum((one for _, one in reasons), Taken()) for name, reasons in filters.items()}
    whole = sum(one.characters for one in sums.values())
    groups: list[Group] = []
    shown = 0
    for name in sorted(filters, key=lambda name: (*_largest(sums[name]), name)):
        reasons = filters[name][: max(ROWS - shown, 0)]
        shown += len(reasons)
        total = [_row("all its reasons", sums[name], whole, rate)] if len(filters[name]) > 1 else []
        if reasons:
            rows = [*total, *(_row(shortened(reason), one, whole, rate) for reason, one in reasons)]
            groups.append(Group(shortened(name), rows))
    columns = ("Reason", "Documents", "Characters", "of all that go", "Tokens, estimated")
    built = table("Which filters take most away", Mark.EXACT, columns, groups)
    return join([built, left_out(len(drops) - shown, "reasons"), _branches(filters)])


def _cuts(edits: Sums, rate: Rate | None) -> Markup:
    ordered = sorted(edits.items(), key=lambda item: (*_largest(item[1]), item[0]))
    rows: list[list[Child]] = [
        [shortened(reason), shortened(transform), grouped(one.documents), grouped(one.characters), _tokens(one, rate)]
        for (transform, reason), one in ordered[:ROWS]
    ]
    columns = ("Edit", "Step", "Documents", "Characters cut", "Tokens, estimated")
    built = table("What edits cut out of documents that stay", Mark.EXACT, columns, rows, frozenset({"Step"}))
    return join([built, left_out(len(ordered) - len(rows), "edits")])


def _row(name: str, one: Taken, whole: int, rate: Rate | None) -> list[Child]:
    return [name, grouped(one.documents), grouped(one.characters), share(one.characters, whole), _tokens(one, rate)]


def _tokens(one: Taken, rate: Rate | None) -> str:
    return "–" if rate is None else about(one.tokens)


def _largest(one: Taken) -> tuple[int, int]:
    return -one.characters, -one.documents


def _drops(report: Report, rate: Rate | None) -> Sums:
    sums: Sums = {}
    for flow in all_flows(report):
        if not flow.stage.holds_out:
            for drop in [*(drop for step in flow.steps for drop in step.drops), *flow.quarantined]:
                key = drop.transform, drop.reason
                sums[key] = sums.get(key, Taken()) + _one(flow.source, drop.documents, drop.characters, rate)
    return sums


def _edits(report: Report, rate: Rate | None) -> Sums:
    sums: Sums = {}
    for flow in all_flows(report):
        for step in () if flow.stage.holds_out else flow.steps:
            for edit in step.edits:
                if edit.cut:
                    key = step.name, edit.reason
                    sums[key] = sums.get(key, Taken()) + _one(flow.source, edit.documents, edit.cut, rate)
    return sums


def _one(source: str, documents: int, characters: int, rate: Rate | None) -> Taken:
    return Taken(documents, characters, 0 if rate is None else rate.estimate(source, characters))


def _branches(filters: dict[str, list[tuple[str, Taken]]]) -> Markup | None:
    branch = next((name for name in filters if name.startswith("Switch(") and ")/" in name), None)
    if branch is None:
        return None
    where, _, what = branch.partition(")/")
    value = where.removeprefix("Switch(")
    sentence = f"“{branch}” is {what} as it is applied to documents with {value} alone: a Switch has a filter for each."
    return element("p", shortened(sentence, 300), class_="note")


def _note(rate: Rate | None) -> Markup | None:
    if rate is None:
        return None
    sentence = (
        "Tokens: characters times tokens per character of the caches of the source, for what goes is never tokenized "
    )
    return element("p", sentence, mark(Mark.ESTIMATED), class_="note")
