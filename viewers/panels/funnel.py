"""Funnel: for each source, what came in and where it went, step by step, with the sums that must hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from curate.holdout.apply import HELD_OUT
from viewers.bars import Bar, Segment, chart
from viewers.budget import LONG_ROWS, ROWS, SOURCE_BYTES, fitting
from viewers.flows import KINDS, Flow, Lost, Reading, Step, flows_of, place_name
from viewers.identities import identity_line
from viewers.loading import Report
from viewers.markup import Child, Markup, element, join
from viewers.numbers import counted, grouped, share
from viewers.panels.panel import Panel
from viewers.panels.taken import taken
from viewers.rules import Overlap, overlaps
from viewers.tables import Group, Mark, left_out, mark, table
from viewers.totals import path_to, total_identities
from viewers.visible import shortened

MEANINGS: Final = {
    "records": "records read",
    "structural": "records that are no documents",
    "refused": "records refused",
    "gaps": "gaps",
}
FILTERS: Final = 8
"""Filters of which the overlap of rules is shown."""
RULES: Final = 12
"""Rules of a filter in the table of their overlap."""

LEGEND: Final = (("kept", "goes on"), ("dropped", "dropped"))


def funnel(report: Report) -> Panel:
    """Return the panel."""
    sources = list(enumerate(report.sources, 1))
    shown = fitting(sources, lambda numbered: _source(report, *numbered), SOURCE_BYTES)
    entries = tuple((f"source-{number}", shortened(source, 40)) for number, source in sources[: len(shown)])
    body = join(
        [_overview(report), taken(report), *_overlaps(report), *shown, left_out(len(sources) - len(shown), "sources")]
    )
    lede = "Look for the step at which a source loses most, then at its reasons: is that what you meant to remove?"
    return Panel("funnel", "Funnel by source", lede, body, entries)


def _overview(report: Report) -> Markup:
    rows, bars = [], []
    for source in report.sources[:ROWS]:
        flows = flows_of(report, source)
        read = sum(flow.reading.count("records") for flow in flows if flow.reading is not None)
        lost = sum(flow.reading.count("refused") for flow in flows if flow.reading is not None)
        reached = {name: stage for name, stage in report.outputs.items() if source in stage.sources}
        for name, stage in (reached or report.outputs).items():
            kept = [flow for flow in flows if flow.stage is stage]
            out = sum(flow.documents_out for flow in kept)
            characters = sum(flow.characters_out for flow in kept)
            row = [grouped(read), grouped(lost), grouped(out), share(out, read), grouped(characters)]
            rows.append([shortened(source), shortened(name), *row])
            bars.append(
                Bar(shortened(source), (Segment(out, "kept"), Segment(max(read - out, 0), "dropped")), share(out, read))
            )
    columns = ("Source", "Output", "Records read", "Refused", "Documents kept", "Kept", "Characters kept")
    picture = chart(
        "Documents read, and what of them is kept", bars[:ROWS], (("kept", "kept"), ("dropped", "not kept"))
    )
    built = table("All sources", Mark.EXACT, columns, rows[:ROWS], frozenset({"Output"}))
    omitted = left_out(max(len(report.sources) - ROWS, 0), "sources")
    return element("div", picture, built, omitted, class_="overview")


def _overlaps(report: Report) -> list[Markup]:
    """Return, filter by filter, which rules the same documents fail."""
    found = overlaps(report)
    if not found:
        return []
    sentence = (
        "The first rule that a document fails is its reason and hides the others. Of these filters all are known: "
        "a rule that few documents fail alone could go without much change."
    )
    shown = [_overlap(overlap) for overlap in found[:FILTERS]]
    omitted = left_out(len(found) - len(shown), "filters")
    return [element("h3", "Rules that the same documents fail"), element("p", sentence), *shown, omitted or join([])]


def _overlap(overlap: Overlap) -> Markup:
    rules = overlap.rules[:RULES]
    columns = ["Rule", "Fail it", "Fail it only", *(f"and {number}" for number in range(1, len(rules) + 1))]
    rows = [
        [
            f"{number}. {shortened(rule, 60)}",
            grouped(overlap.together(rule, rule)),
            grouped(overlap.alone.get(rule, 0)),
            *("–" if rule == other else grouped(overlap.together(rule, other)) for other in rules),
        ]
        for number, rule in enumerate(rules, 1)
    ]
    where = f"{shortened(overlap.transform)} in {shortened(overlap.stage.name)}"
    built = table(f"Documents that fail two rules of {where}", Mark.EXACT, columns, rows)
    return join([_alone(overlap, rules, where), built, left_out(len(overlap.rules) - len(rules), "rules")])


def _alone(overlap: Overlap, rules: Sequence[str], where: str) -> Markup | None:
    bars = []
    for rule in rules:
        alone, fail = overlap.alone.get(rule, 0), overlap.together(rule, rule)
        segments = (Segment(alone, "kept"), Segment(fail - alone, "dropped"))
        bars.append(Bar(shortened(rule, 60), segments, f"{grouped(alone)} of {grouped(fail)}"))
    return chart(f"Documents that fail a rule of {where}", bars, (("kept", "and no other"), ("dropped", "and others")))


def _source(report: Report, number: int, source: str) -> Markup:
    flows = flows_of(report, source)
    return element(
        "section",
        element("h3", shortened(source), id=f"source-{number}"),
        *(_reading(source, flow.reading) for flow in flows if flow.reading is not None),
        _picture(flows),
        _steps(source, flows),
        _drops(source, flows),
        _edits(source, flows),
        _sums(report, source, flows),
        class_="source",
        aria_labelledby=f"source-{number}",
    )


def _reading(source: str, reading: Reading) -> Markup:
    places = sorted(reading.totals)
    columns = ["What the files hold", "Count"]
    for place in places:
        columns += [_heading(place), f"of all {place_name(place).split()[0]}"]
    groups = []
    for kind in KINDS:
        rows = [
            [
                shortened(part.reason if kind != "records" else "read"),
                grouped(part.count),
                *(cell for place in places for cell in _amount(part, place, reading)),
            ]
            for part in reading.parts
            if part.kind == kind
        ]
        if rows:
            groups.append(Group(MEANINGS[kind].capitalize(), rows[:ROWS]))
    bars = [
        Bar(
            _heading(place),
            [Segment(reading.amount(kind, place), "kept" if kind == "records" else kind) for kind in KINDS],
            grouped(reading.totals[place]),
        )
        for place in places
    ]
    legend = [("kept" if kind == "records" else kind, MEANINGS[kind]) for kind in KINDS if reading.count(kind)]
    picture = chart("What the files hold", bars, legend)
    return join([picture, table(f"Records, refusals and gaps of {shortened(source)}", Mark.EXACT, columns, groups)])


def _amount(part: Lost, place: str, reading: Reading) -> tuple[Child, Child]:
    amount = part.amounts.get(place, 0)
    return grouped(amount), share(amount, reading.totals[place])


def _heading(place: str) -> str:
    return place_name(place).capitalize()


def _picture(flows: Sequence[Flow]) -> Markup | None:
    bars = [
        Bar(
            f"{shortened(step.name, 60)}: {shortened(flow.stage.name, 60)}"
            if flow.stage.holds_out
            else shortened(step.name, 60),
            (Segment(step.documents_out, "kept"), Segment(step.dropped, "dropped")),
            f"{grouped(step.documents_in)} → {grouped(step.documents_out)}",
        )
        for flow in flows
        for step in flow.steps
    ]
    return chart("Documents through each step", bars[:ROWS], LEGEND)


def _steps(source: str, flows: Sequence[Flow]) -> Markup | None:
    columns = (
        "Step",
        "Documents in",
        "dropped",
        "out",
        "Characters in",
        "inserted",
        "characters dropped",
        "cut",
        "characters out",
    )
    groups = []
    for flow in flows:
        rows = [_step(step) for step in flow.steps]
        if flow.quarantined:
            rows.insert(0, ["quarantine", grouped(flow.documents_in), grouped(flow.taken_out), *_dashes(6)])
        if rows:
            groups.append(Group(join(["Stage ", flow.stage.title]), rows[:ROWS]))
    if not groups:
        return None
    return table(f"{shortened(source)} through each step", Mark.EXACT, columns, groups)


def _dashes(number: int) -> list[Child]:
    return ["–"] * number


def _step(step: Step) -> list[Child]:
    begins = step.payload_bytes > 0
    came: Child = f"from {counted(step.payload_bytes, 'byte')}" if begins else grouped(step.characters_in)
    return [
        shortened(step.name),
        grouped(step.documents_in),
        grouped(step.dropped),
        grouped(step.documents_out),
        came,
        *(_dashes(3) if begins else [grouped(step.inserted), grouped(step.dropped_characters), grouped(step.cut)]),
        grouped(step.characters_out),
    ]


def _drops(source: str, flows: Sequence[Flow]) -> Markup | None:
    found = [(flow.documents_in, drop) for flow in flows for drop in flow.quarantined]
    found += [(step.documents_in, drop) for flow in flows for step in flow.steps for drop in step.drops]
    found.sort(key=lambda pair: (pair[1].reason == HELD_OUT, -pair[1].documents))
    if not found:
        return None
    rows = [
        [
            shortened(drop.reason),
            shortened(drop.transform),
            grouped(drop.documents),
            share(drop.documents, came),
            grouped(drop.characters),
        ]
        for came, drop in found[:LONG_ROWS]
    ]
    columns = ("Reason", "Transform", "Documents", "of its input", "Characters")
    built = table(f"Why documents of {shortened(source)} go", Mark.EXACT, columns, rows, frozenset({"Transform"}))
    apart = f"“{HELD_OUT}” is not lost: these texts are kept apart, to validate on."
    is_apart = any(drop.reason == HELD_OUT for _, drop in found[:LONG_ROWS])
    note = element("p", apart, class_="note") if is_apart else None
    return join([built, note, left_out(len(found) - len(rows), "reasons")])


def _edits(source: str, flows: Sequence[Flow]) -> Markup | None:
    found = [(step, edit) for flow in flows for step in flow.steps for edit in step.edits]
    found.sort(key=lambda pair: -pair[1].documents)
    if not found:
        return None
    rows = [
        [
            shortened(edit.reason),
            shortened(step.name),
            grouped(edit.documents),
            share(edit.documents, step.documents_in),
            grouped(edit.cut),
            grouped(edit.inserted),
        ]
        for step, edit in found[:ROWS]
    ]
    columns = ("Edit", "Step", "Documents", "of its input", "Characters cut", "inserted")
    built = table(f"What is changed in {shortened(source)}", Mark.EXACT, columns, rows, frozenset({"Step"}))
    return join([built, left_out(len(found) - len(rows), "edits")])


def _sums(report: Report, source: str, flows: Sequence[Flow]) -> Markup:
    """Return the sums from files to outputs, and folded those of every step."""
    whole = [
        identity_line(f"files to {shortened(name, 60)}", identity)
        for name, output in list(report.outputs.items())[:ROWS]
        for identity in total_identities(path_to(report, output, source))
    ]
    files = [identity_line("files", i) for flow in flows if flow.reading is not None for i in flow.reading.identities()]
    found = [(flow, step, identity) for flow in flows for step, identity in flow.identities()]
    lines = [
        identity_line(f"{shortened(flow.stage.name, 60)} · {shortened(step, 60)}", identity)
        for flow, step, identity in found[: 2 * ROWS]
    ]
    wrong = sum(not identity.holds for _, _, identity in found)
    summary = f"{counted(len(found), 'sum')} step by step: {f'{grouped(wrong)} wrong' if wrong else 'all hold'}"
    return element(
        "div",
        element("p", "The sums ", mark(Mark.EXACT), class_="sums-title"),
        element("ul", *files, *whole, class_="identities"),
        element(
            "details",
            element("summary", summary),
            element("ul", *lines, class_="identities"),
            left_out(len(found) - len(lines), "sums"),
            open="" if wrong else None,
        ),
        class_="sums",
    )
