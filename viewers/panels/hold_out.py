"""Hold-out: what was kept from training to validate on, what left training because of it, whether they are apart."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from curate.holdout.apply import EQUAL, HELD_OUT, NEAR
from transforms.exact_numbers import decimal_text
from viewers.bars import Bar, Segment, chart
from viewers.budget import ROWS
from viewers.flows import Flow, flow_of
from viewers.loading import Report, StageView
from viewers.markup import Child, Markup, element, join
from viewers.numbers import counted, grouped, rounded, share
from viewers.panels.panel import Panel
from viewers.settings import decimal_of
from viewers.tables import Mark, left_out, mark, table
from viewers.visible import shortened


def hold_out(report: Report) -> Panel:
    """Return the panel."""
    parts = [stage for stage in report.stages if stage.holds_out]
    firsts = [s for s in parts if s.part == "train" or report.sibling(s) is None]
    lede = (
        "Look for a source with nothing held out: its loss is not measured. And for documents that left training "
        "because they are near a held-out one: without that, validation would be too kind."
    )
    if not parts:
        body = element("p", "No stage of this recipe holds texts out of training.", class_="note")
    else:
        body = join([*(_stage(report, stage) for stage in firsts[:ROWS]), _apart(report)])
    return Panel("hold-out", "Hold-out", lede, body)


def _stage(report: Report, stage: StageView) -> Markup:
    train, valid = (stage, report.sibling(stage)) if stage.part == "train" else (None, stage)
    title = element("h3", stage.title) if sum(s.holds_out for s in report.stages) > 2 else None
    table_ = _training(train) if train is not None else _validation(valid) if valid is not None else None
    return join([title, element("p", describe(stage)), table_])


def describe(stage: StageView) -> str:
    """Return in words how much is held out, and what leaves training because of it."""
    fields: dict[str, Any] = stage.operation.get("fields", {})
    limits = [f"{grouped(fields[unit])} {unit}" for unit in ("documents", "characters") if fields.get(unit)]
    of = f"of each {shortened(str(fields['per']))}" if fields.get("per") else "of all documents"
    method = fields.get("method")
    unit = "documents" if fields.get("documents") else "characters"
    near = "Equal texts leave training"
    if method:
        threshold = decimal_text(Fraction(decimal_of(method["fields"]["threshold"])))
        ngram = method["fields"]["ngram"]
        near = (
            f"Texts equal to a held-out one leave training, and so do all with a Jaccard similarity of at least "
            f"{threshold} over word {ngram}-grams to one: found by comparison with every held-out text, not by chance"
        )
    return (
        f"Held out are up to {' and '.join(limits) or 'a number of documents'} {of}, never more than half of its "
        f"{unit}, chosen by a keyed digest of the text; a text that alone is longer than that is passed over. {near}."
    )


def _training(stage: StageView) -> Markup:
    flows = [flow_of(stage, source) for source in stage.sources]
    rows = [_row(shortened(flow.source), [flow]) for flow in flows[:ROWS]]
    if len(flows) > 1:
        rows.append(_row("all sources", flows))
    columns = (
        "Source", "Documents in", "held out", "equal to one", "near one", "stay",
        "Characters held out", "of all",
    )  # fmt: skip
    built = table(f"Held out by {stage.title}", Mark.EXACT, columns, rows)
    return join([_picture(flows[:ROWS]), built, left_out(max(len(flows) - ROWS, 0), "sources")])


def _picture(flows: Sequence[Flow]) -> Markup | None:
    """Return the shares of each source, on one scale of a hundred for all: small sources are seen as well."""
    bars = []
    for flow in (flow for flow in flows if flow.documents_in):
        drops = [drop for step in flow.steps for drop in step.drops]
        held, left = (
            sum(drop.documents for drop in drops if drop.reason in reasons) for reasons in ((HELD_OUT,), (EQUAL, NEAR))
        )
        parts = ((flow.documents_out, "kept"), (held, "equal"), (left, "dropped"))
        segments = [Segment(rounded(documents, flow.documents_in, 4), tone) for documents, tone in parts]
        bars.append(Bar(shortened(flow.source, 60), segments, f"{share(held, flow.documents_in)} held out"))
    legend = (("kept", "to train on"), ("equal", "held out"), ("dropped", "equal or near to held out"))
    return chart("Documents of each source: where they go", bars, legend)


def _row(name: str, flows: list[Flow]) -> list[Child]:
    drops = [drop for flow in flows for step in flow.steps for drop in step.drops]
    documents = {r: sum(d.documents for d in drops if d.reason == r) for r in (HELD_OUT, EQUAL, NEAR)}
    characters = sum(drop.characters for drop in drops if drop.reason == HELD_OUT)
    came = sum(step.characters_in for flow in flows for step in flow.steps[:1])
    return [
        name,
        grouped(sum(flow.documents_in for flow in flows)),
        *(grouped(documents[reason]) for reason in (HELD_OUT, EQUAL, NEAR)),
        grouped(sum(flow.documents_out for flow in flows)),
        grouped(characters),
        share(characters, came),
    ]


def _validation(stage: StageView) -> Markup:
    flows = [flow_of(stage, source) for source in stage.sources]
    rows: list[list[Child]] = [
        [shortened(f.source), grouped(f.documents_out), grouped(f.characters_out)] for f in flows[:ROWS]
    ]
    built = table(f"Held out by {stage.title}", Mark.EXACT, ("Source", "Documents", "Characters"), rows)
    note = element("p", "The part to train on is no output of this result.", class_="note")
    return join([built, left_out(len(flows) - len(rows), "sources"), note])


def _apart(report: Report) -> Markup:
    meeting = report.meeting
    if meeting is None:
        why = "This result has no caches both to train and to validate on, so that texts of the two could be compared. "
        return element("p", why, class_="note")
    sentence = (
        f"Of {counted(meeting.training, 'distinct text')} in the training caches and "
        f"{grouped(meeting.others)} in those held out, {grouped(meeting.shared)} are the same, by text digest. A plan "
        "is not compiled unless there are none. "
    )
    return element("p", sentence, mark(Mark.EXACT))
