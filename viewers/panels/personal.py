"""Personal data: what was masked, by source and kind, how well each kind is found, and what came to no mask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from transforms.pii import MaskPII
from transforms.pii.found import REASONS
from transforms.pii.measured import Measured, measured
from viewers.budget import ROWS
from viewers.flows import Edit, flow_of
from viewers.loading import Report, StageView
from viewers.markup import Child, Markup, element, join
from viewers.numbers import grouped, share
from viewers.panels.panel import Panel
from viewers.tables import Mark, left_out, table
from viewers.visible import shortened

TRANSFORM: Final = MaskPII.__name__


@dataclass(frozen=True, slots=True)
class Masking:
    """A `MaskPII` in a step of a stage, also within a branch: its masks by kind."""

    stage: StageView
    step: str
    masks: Mapping[str, str]


def personal(report: Report) -> Panel:
    """Return the panel."""
    maskings = list(_maskings(report))
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
                *(_masked(stage, [m for m in maskings if m.stage.key == stage.key]) for stage in stages[:ROWS]),
                _unmasked(report, stages),
                _precision(),
            ]
        )
    return Panel("personal-data", "Personal data", lede, body)


def _maskings(report: Report) -> Iterator[Masking]:
    for stage in report.stages:
        for step in stage.operation.get("steps", []):
            for fields in _within(step.get("transform")):
                yield Masking(stage, str(step.get("name", "")), {k: m for k, m in fields.items() if isinstance(m, str)})


def _within(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        if value.get("class") == TRANSFORM:
            yield value["fields"]
            return
        for inner in value.values():
            yield from _within(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _within(inner)


def _masked(stage: StageView, maskings: list[Masking]) -> Markup:
    """Return what a stage masked; a number of masks is known where all masks of the kind have one length."""
    steps = {masking.step for masking in maskings}
    lengths = {kind: {len(m.masks[kind]) for m in maskings if kind in m.masks} for kind in REASONS}
    rows: list[list[Child]] = []
    for source in stage.sources:
        edits = [edit for step in flow_of(stage, source).steps if step.name in steps for edit in step.edits]
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


def _unmasked(report: Report, stages: list[StageView]) -> Markup | None:
    reached = {source for stage in stages for source in stage.sources}
    others = [shortened(source) for source in report.sources if source not in reached]
    if not others:
        return None
    return element("p", f"Sources that came to no mask: {', '.join(others[:ROWS])}.", class_="note")


def _precision() -> Markup:
    """Return how well each kind is found, as the card beside the code says."""
    rows = [_measured(kind, counts) for kind, counts in measured().items()]
    columns = ("Kind", "Precision", "Recall", "Spans", "wrong", "missed")
    sentence = (
        "How well each kind is found was measured on texts made for it, half of them with what only looks like "
        "personal data (python -m benchmarks.pii_cases); texts of the web have forms that nobody thought of."
    )
    return join([element("p", sentence), table("Personal data: measured precision", Mark.SAMPLED, columns, rows)])


def _measured(kind: str, counts: Measured) -> list[Child]:
    there, found = counts.right + counts.missed, counts.right + counts.wrong
    return [
        kind.replace("_", " "),
        share(counts.right, found),
        share(counts.right, there),
        grouped(there),
        grouped(counts.wrong),
        grouped(counts.missed),
    ]
