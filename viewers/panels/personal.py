"""Personal data: what was masked, by source and kind, how well each kind is found, and where nothing was masked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from typing import Final

from transforms.pii.found import REASONS
from transforms.pii.measured import Measured, measured
from viewers.bars import Bar, Segment, chart
from viewers.budget import ROWS
from viewers.flows import Edit, flow_of
from viewers.loading import Report, StageView
from viewers.markup import Child, Markup, element, join
from viewers.masking import Masking, maskings_of, unmasked_sources
from viewers.numbers import counted, grouped, share
from viewers.panels.panel import Panel
from viewers.tables import Mark, left_out, table
from viewers.visible import shortened


def personal(report: Report) -> Panel:
    """Return the panel."""
    maskings = list(maskings_of(report))
    lede = (
        "Read the recall before the counts: what is not found is not counted, and a kind without a mask is not looked "
        "for at all."
    )
    if not maskings:
        body = element(
            "p", "No stage of this recipe masks personal data: the texts have what was in them.", class_="note"
        )
    else:
        stages = list({masking.stage.key: masking.stage for masking in maskings}.values())
        body = join(
            [
                _precision(),
                _picture(stages, maskings),
                *(_masked(stage, [m for m in maskings if m.stage.key == stage.key]) for stage in stages[:ROWS]),
                _unmasked(report),
            ]
        )
    return Panel("personal-data", "Personal data", lede, body)


def _picture(stages: Sequence[StageView], maskings: Sequence[Masking]) -> Markup | None:
    """Return in how many documents of all sources something was masked, by kind."""
    masked: Counter[str] = Counter()
    for stage in stages:
        steps = {masking.step for masking in maskings if masking.stage.key == stage.key}
        for edit in (edit for source in stage.sources for edit in _edits_of(stage, steps, source)):
            masked[edit.reason] += edit.documents
    bars = [
        Bar(reason, (Segment(masked[reason], "kept"),), counted(masked[reason], "document"))
        for reason in REASONS.values()
        if masked[reason]
    ]
    return chart("Documents in which something was masked, by kind", bars, ())


def _edits_of(stage: StageView, steps: Set[str], source: str) -> list[Edit]:
    return [edit for step in flow_of(stage, source).steps if step.name in steps for edit in step.edits]


def _masked(stage: StageView, maskings: list[Masking]) -> Markup:
    """Return what a stage masked; a number of masks is known where all masks of the kind have one length."""
    steps = {masking.step for masking in maskings}
    lengths = {kind: {len(m.masks[kind]) for m in maskings if kind in m.masks} for kind in REASONS}
    rows: list[list[Child]] = []
    for source in stage.sources:
        edits = _edits_of(stage, steps, source)
        for kind, reason in REASONS.items():
            mine = [edit for edit in edits if edit.reason == reason]
            if mine:
                rows.append([shortened(source), reason, *_counts(mine, lengths[kind])])
    kinds = [reason for kind, reason in REASONS.items() if not lengths[kind]]
    sentence = f"Stage {stage.title} masks {', '.join(r for k, r in REASONS.items() if lengths[k])}."
    if kinds:
        sentence += f" Not looked for: {', '.join(kinds)}."
    if not rows:
        return element("p", sentence, " Nothing of these was found.")
    columns = ("Source", "Kind", "Documents", "Masked", "Characters cut")
    built = table(f"Masked in {stage.title}", Mark.EXACT, columns, rows[:ROWS], frozenset({"Kind"}))
    return join([element("p", sentence), built, left_out(max(len(rows) - ROWS, 0), "rows")])


def _counts(edits: list[Edit], lengths: set[int]) -> list[Child]:
    inserted = sum(edit.inserted for edit in edits)
    masked = grouped(inserted // min(lengths)) if len(lengths) == 1 else "not known"
    return [grouped(sum(edit.documents for edit in edits)), masked, grouped(sum(edit.cut for edit in edits))]


def _unmasked(report: Report) -> Markup | None:
    others = [shortened(source) for source in unmasked_sources(report)]
    if not others:
        return None
    sentence = (
        "Nothing was masked in the documents that come out of these sources, for no step on their way looks for "
        f"personal data: {', '.join(others[:ROWS])}."
    )
    return element("p", sentence, class_="note")


def _precision() -> Markup:
    """Return how well each kind is found, as the card beside the code says."""
    rows = [_measured(kind, counts) for kind, counts in measured().items()]
    columns = ("Kind", "Recall", "Precision", "Spans there", "missed", "masked wrongly")
    sentence = (
        "How well each kind is found was measured on texts made for it, half of them with what only looks like "
        "personal data (python -m benchmarks.pii_cases): recall is how many of the spans that are there were found, "
        "precision how many of those found are some. Texts of the web have forms that nobody thought of: there, recall "
        "is lower."
    )
    return join(
        [element("p", sentence), table("Personal data: how well each kind is found", Mark.TESTED, columns, rows)]
    )


NAMES: Final = {
    "email": "e-mail",
    "ipv4": "ip address, version 4",
    "ipv6": "ip address, version 6",
    "phone": "phone number",
}
"""Kinds of the card, as the tables of masks call them; the others keep their names."""


def _measured(kind: str, counts: Measured) -> list[Child]:
    there, found = counts.right + counts.missed, counts.right + counts.wrong
    return [
        NAMES.get(kind, kind.replace("_", " ")),
        share(counts.right, there),
        share(counts.right, found),
        grouped(there),
        grouped(counts.missed),
        grouped(counts.wrong),
    ]
