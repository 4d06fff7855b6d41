"""What takes most away: every reason and edit of every source added up, the largest first; for the panel of the funnel.

What is held out is not taken away and stands in no row. Texts that go are never tokenized, so their tokens are
estimated: their characters times the tokens per character of the token caches.
"""

from __future__ import annotations

from viewers.budget import ROWS
from viewers.estimates import Rate
from viewers.flows import all_flows
from viewers.loading import Report
from viewers.markup import Child, Markup, element, join
from viewers.numbers import grouped, share
from viewers.tables import Mark, left_out, mark, table
from viewers.visible import shortened


def taken(report: Report) -> Markup | None:
    """Return the table; None where nothing goes."""
    sums = _sums(report)
    if not sums:
        return None
    ordered = sorted(sums.items(), key=lambda item: (-item[1][1], -item[1][0], item[0]))
    whole = sum(characters for _, characters in sums.values())
    rate = Rate.of(report)
    rows: list[list[Child]] = []
    for (kind, reason, transform), (documents, characters) in ordered[:ROWS]:
        estimate = "–" if rate is None else rate.tokens(characters)
        cells = [grouped(documents), grouped(characters), share(characters, whole), estimate]
        rows.append([shortened(reason), shortened(transform), kind, *cells])
    columns = ("Reason", "Transform", "What goes", "Documents", "Characters", "of all that go", "Tokens, estimated")
    built = table("What takes most away", Mark.EXACT, columns, rows, frozenset({"Transform", "What goes"}))
    return join([built, _note(rate), left_out(len(ordered) - len(rows), "reasons")])


def _sums(report: Report) -> dict[tuple[str, str, str], tuple[int, int]]:
    """Return (what goes, reason, transform) → documents that it concerns, and characters that go."""
    sums: dict[tuple[str, str, str], tuple[int, int]] = {}
    for flow in all_flows(report):
        if flow.stage.holds_out:
            continue
        drops = [drop for step in flow.steps for drop in step.drops] + list(flow.quarantined)
        found = [("documents", d.reason, d.transform, d.documents, d.characters) for d in drops]
        found += [
            ("parts", e.reason, step.name, e.documents, e.cut) for step in flow.steps for e in step.edits if e.cut
        ]
        for kind, reason, transform, documents, characters in found:
            before = sums.get((kind, reason, transform), (0, 0))
            sums[kind, reason, transform] = before[0] + documents, before[1] + characters
    return sums


def _note(rate: Rate | None) -> Markup | None:
    if rate is None:
        return None
    sentence = "Tokens: characters times tokens per character of the token caches, for what goes is never tokenized "
    return element("p", sentence, mark(Mark.SKETCHED), class_="note")
