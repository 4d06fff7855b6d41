"""Rights: under which licence the documents stand, who says so, and whether opt-out signals were looked at."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from transforms.schema import UNKNOWN
from viewers.bars import Bar, Segment, chart
from viewers.budget import ROWS
from viewers.dates import span_of_dates
from viewers.estimates import Rate, about, licence_tokens
from viewers.flows import all_flows
from viewers.loading import Report, StageView
from viewers.markup import Child, Markup, element, join
from viewers.numbers import counted, grouped, share
from viewers.panels.panel import Panel
from viewers.rights import Licence, OptOut, rights_of
from viewers.tables import Mark, left_out, mark, table
from viewers.trained import Trained, trained_by_licence
from viewers.visible import shortened

BASES: Final = {
    "page": "declared in the page",
    "source": "by the source’s own metadata",
    "user": "asserted by the user of the recipe",
    UNKNOWN: "nobody says",
}

NON_COMMERCIAL: Final = re.compile(r"(?i)(?<![a-z])(nc|non-?commercial|research-only)(?![a-z])", re.ASCII)
"""Parts of names of licences that forbid commercial use."""

WITHDRAWS: Final = "WithdrawList"
"""The transform that takes out documents that were withdrawn."""

COLUMNS: Final = ("Source", "Licence", "Who says so", "Documents", "of all", "Characters")
TOKENS: Final = "Tokens"

ESTIMATED: Final = (
    "Tokens are counted in the caches, held-out ones with them; ≈ is an estimate: characters times the tokens per "
    "character of the caches of the source."
)

NAMED: Final = 8
"""Licences named in a sentence."""

SIGNALS: Final = {
    "robots_txt": "robots.txt",
    "robots_meta": "robots in page or header",
    "tdm": "text and data mining reservation",
}


def rights(report: Report) -> Panel:
    """Return the panel."""
    rate = Rate.of(report)
    parts = [_output(name, stage, report.sources, rate) for name, stage in list(report.outputs.items())[:ROWS]]
    body = join([*_trained(report), *parts, _withdrawn(report)])
    lede = "Look for “unknown”, and for who says what is said: an asserted licence is only as good as the assertion."
    return Panel("rights", "Rights by source", lede, body)


def _trained(report: Report) -> list[Markup | None]:
    """Return the licences of what training reads, in one sentence and as a table; nothing without caches for it."""
    found = trained_by_licence(report)
    whole = sum(one.read for one in found)
    if not whole:
        return []
    sums: dict[str, int] = {}
    for one in found:
        name = "unknown" if one.is_unknown else shortened(one.licence)
        sums[name] = sums.get(name, 0) + one.read
    unknown = sums.pop("unknown", 0)
    named = sorted(sums.items(), key=lambda item: (-item[1], item[0]))
    known = ", ".join(f"{name} {share(tokens, whole)}" for name, tokens in named[:NAMED])
    known += f" and {grouped(len(named) - NAMED)} more" if len(named) > NAMED else ""
    parts = [
        f"Of the {counted(whole, 'token')} that training reads, {share(unknown, whole)} are under an unknown licence"
    ]
    parts.append(f"; known: {known}. " if known else ". ")
    is_exact = all(one.is_exact for one in found)
    sign = mark(Mark.EXACT if is_exact else Mark.ESTIMATED)
    rows = [_row(one, whole) for one in found[:ROWS]]
    columns = ("Source", "Licence", "Who says so", "Tokens to train on", "Tokens read", "of all that is read")
    kind = Mark.EXACT if is_exact else Mark.ESTIMATED
    built = table("Licences of what training reads", kind, columns, rows, frozenset({"Licence", "Who says so"}))
    omitted = left_out(len(found) - len(rows), "rows")
    shared = "≈: a cache of several licences; its tokens are shared among them by characters."
    note = None if is_exact else element("p", shared, class_="note")
    return [element("p", "".join(parts), sign, class_="opening"), built, note, omitted]


def _row(one: Trained, whole: int) -> list[Child]:
    told = grouped if one.is_exact else about
    return [
        shortened(one.source),
        element("strong", one.licence) if one.is_unknown else shortened(one.licence),
        BASES.get(one.basis, shortened(one.basis)),
        told(one.held),
        told(one.read),
        share(one.read, whole),
    ]


def _output(name: str, stage: StageView, order: Sequence[str], rate: Rate | None) -> Markup:
    found = rights_of(stage, order)
    if not found.licences:
        return element("p", f"{shortened(name)} holds no documents.", class_="note")
    documents = sum(row.documents for row in found.licences)
    rows = [_licence(stage, row, documents, rate) for row in found.licences[:ROWS]]
    columns = (*COLUMNS, *([] if rate is None else [TOKENS]))
    words = frozenset({"Licence", "Who says so"})
    built = table(f"Licences of {shortened(name)}", Mark.EXACT, columns, rows, words)
    return join(
        [
            _commercial(name, found.licences, documents),
            _picture(name, found.licences),
            built,
            left_out(len(found.licences) - len(rows), "rows"),
            None if rate is None else element("p", ESTIMATED, class_="note"),
            element("p", f"Dates: {span_of_dates(stage)}.", class_="note"),
            _optouts(name, found.optouts),
        ]
    )


def _commercial(name: str, licences: tuple[Licence, ...], documents: int) -> Markup:
    """Return what the licences on record say of commercial use, as far as their names tell."""
    sums = {"unknown": 0, "forbidden": 0}
    for row in licences:
        if row.is_unknown:
            sums["unknown"] += row.documents
        elif NON_COMMERCIAL.search(row.licence):
            sums["forbidden"] += row.documents
    known = dict.fromkeys(shortened(row.licence) for row in licences if not row.is_unknown)
    forbidden, unknown = (
        f"{counted(n, 'document')} ({share(n, documents)})" for n in (sums["forbidden"], sums["unknown"])
    )
    parts = [f"May “{shortened(name)}” be used commercially?"]
    if known:
        named = ", ".join(list(known)[:NAMED]) + (
            f" and {grouped(len(known) - NAMED)} more" if len(known) > NAMED else ""
        )
        parts.append(f"Licences on record: {named}.")
        parts.append(
            f"Of these, {forbidden} have one whose name says no: non-commercial."
            if sums["forbidden"]
            else "None of these is of a kind named non-commercial; each has its own conditions."
        )
    if sums["unknown"]:
        parts.append(f"Of {unknown} nobody states the licence: this page cannot answer for them.")
    parts.append("What is said here was declared or asserted, and is no legal advice.")
    return element("p", " ".join(parts))


def _picture(name: str, licences: tuple[Licence, ...]) -> Markup | None:
    by_source: dict[str, list[int]] = {}  # known, unknown
    for row in licences:
        counts = by_source.setdefault(row.source, [0, 0])
        counts[row.is_unknown] += row.documents
    bars = [
        Bar(
            shortened(source),
            (Segment(known, "kept"), Segment(unknown, "dropped")),
            f"{grouped(known)} known, {grouped(unknown)} unknown",
        )
        for source, (known, unknown) in list(by_source.items())[:ROWS]
    ]
    return chart(
        f"Whether the licence is known: {shortened(name)}", bars, (("kept", "licence known"), ("dropped", "unknown"))
    )


def _licence(stage: StageView, row: Licence, documents: int, rate: Rate | None) -> list[Child]:
    return [
        shortened(row.source),
        element("strong", row.licence) if row.is_unknown else shortened(row.licence),
        BASES.get(row.basis, shortened(row.basis)),
        grouped(row.documents),
        share(row.documents, documents),
        grouped(row.characters),
        *([] if rate is None else [licence_tokens(rate, stage, row.source, row.characters)]),
    ]


def _withdrawn(report: Report) -> Markup:
    """Return how many documents went because a list of withdrawn ones names them."""
    drops = [drop for flow in all_flows(report) for step in flow.steps for drop in step.drops]
    gone = sum(drop.documents for drop in drops if WITHDRAWS in drop.transform)
    applied = any(WITHDRAWS in str(step["transform"]) for s in report.stages for step in s.operation.get("steps", ()))
    if not applied:
        return element("p", "Withdrawn: no list of documents to be taken out was applied.", class_="note")
    return element("p", f"Withdrawn: {counted(gone, 'document')} of a list went out.", class_="note")


def _optouts(name: str, optouts: tuple[OptOut, ...]) -> Markup | None:
    if not optouts:
        return None
    found_signals = {row.signal for row in optouts}
    signals = [*(s for s in SIGNALS if s in found_signals), *sorted(found_signals - set(SIGNALS))][:ROWS]
    answers: dict[str, dict[str, list[str]]] = {}
    for row in optouts:
        found = answers.setdefault(row.source, {}).setdefault(row.signal, [])
        found.append(f"{shortened(row.answer)} {grouped(row.documents)}")
    rows: list[list[Child]] = [
        [shortened(source), *(", ".join(found.get(signal, ["–"])[:ROWS]) for signal in signals)]
        for source, found in list(answers.items())[:ROWS]
    ]
    columns = ("Source", *(SIGNALS.get(signal, shortened(signal)) for signal in signals))
    built = table(
        f"Opt-out signals of {shortened(name)}: answers and documents", Mark.EXACT, columns, rows, frozenset(columns)
    )
    note = (
        "“no”: somebody looked, and nothing was reserved; “yes”: something was; “not checked”: nobody looked. These "
        "are the documents that stayed, so what was not checked, or reserved, stayed as well."
    )
    return join([built, element("p", note, class_="note"), left_out(len(answers) - len(rows), "sources")])
