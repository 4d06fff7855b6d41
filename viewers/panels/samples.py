"""Samples: documents kept, dropped, nearly dropped and edited, each with its measure and the threshold.

Which are shown: for each stage, kind, transform and reason the documents with the lowest digest of their text, as the
stages recorded them; when they do not all fit, in rounds: the first of each reason, then the second of each, and so on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from curate.accounting.samples import PER_REASON
from viewers.budget import ROWS, SAMPLE_BYTES, in_rounds
from viewers.contamination import is_guard
from viewers.flows import flow_of
from viewers.loading import Report, StageView
from viewers.markup import Markup, element, join
from viewers.numbers import counted, grouped
from viewers.panels.panel import Panel
from viewers.rules import near_misses
from viewers.sample_card import OFFENSIVE, Excerpts, card
from viewers.tables import Mark, left_out, mark, table
from viewers.toxic import is_toxic
from viewers.visible import shortened

ORDER: Final = ("dropped", "near miss", "edited", "kept")
TITLES: Final = {
    "dropped": "Dropped",
    "near miss": "Near misses: kept, with a measure within 5 % of its threshold",
    "edited": "Edited",
    "kept": "Kept",
}


@dataclass(frozen=True, slots=True)
class Batch:
    """Samples of one stage, kind, transform and reason; `documents` is how many there are, None where not counted."""

    stage: StageView
    kind: str
    transform: str
    reason: str
    samples: tuple[Mapping[str, Any], ...]
    documents: int | None


Texts = list[list[Mapping[str, Any]]]
"""Samples by text: those with the same one stand together."""


def samples(report: Report) -> Panel:
    """Return the panel."""
    batches = list(_batches(report))
    excerpts = Excerpts.of(report)
    texts = [_by_text(batch) for batch in batches]
    cards = in_rounds(texts, lambda same: card(same[0], same[1:], excerpts), SAMPLE_BYTES)
    total, shown = sum(map(len, texts)), sum(map(len, cards))
    before = {"near miss": _near(report)}
    sections = [_section(kind, batches, texts, cards, before.get(kind)) for kind in ORDER]
    asked = sum(is_toxic(same[0]) for there, made in zip(texts, cards, strict=True) for same in there[: len(made)])
    rule = (
        f"Of each stage, transform and reason the up to {PER_REASON} documents with the lowest digest of their text; "
        f"{grouped(shown)} of {counted(total, 'text')} fit into {grouped(SAMPLE_BYTES // 1000)} kB. E-mail and IP "
        "addresses are masked for this page, other personal data where the recipe does; long texts are shortened. "
        "Where only white space changed, · stands for a space, → for a tab, ↵ for a line break; an edit that masks "
        "addresses is shown as it left the text. "
    )
    if asked:
        rule += (
            f"{counted(asked, 'text')}, found by a list of addresses or words or by a score named like toxicity, "
            f"{'stands' if asked == 1 else 'stand'} behind “{OFFENSIVE}”. "
        )
    body = join([element("p", rule, mark(Mark.SAMPLED), class_="note"), *sections])
    entries = tuple((_anchor(kind), TITLES[kind].partition(":")[0]) for kind in ORDER)
    lede = (
        "Read a few of what was dropped: would you have dropped it? Then the near misses, which show whether a "
        "threshold stands in the right place."
    )
    return Panel("samples", "Kept, dropped, near misses", lede, body, entries)


def _batches(report: Report) -> Iterable[Batch]:
    outputs = list(report.outputs.values())
    for stage in report.stages:
        totals = _totals(stage)
        found: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
        for sample in stage.samples:
            key = (sample["kind"], sample["transform"], sample["reason"])
            is_pair = sample["kind"] not in ORDER or (stage.is_deduplication and sample["kind"] == "dropped")
            is_shown = is_pair or (is_guard(sample["transform"] or "") and sample["kind"] in ("dropped", "near miss"))
            if not is_shown and (sample["kind"] != "kept" or stage in outputs):
                found.setdefault(key, []).append(sample)
        for key in sorted(found):
            documents = stage.manifest["rows"] if key[0] == "kept" else totals.get(key)
            yield Batch(stage, *key, tuple(found[key]), documents)


def _by_text(batch: Batch) -> Texts:
    found: dict[bytes, list[Mapping[str, Any]]] = {}
    for sample in batch.samples:
        found.setdefault(sample["text_digest"], []).append(sample)
    return list(found.values())


def _totals(stage: StageView) -> dict[tuple[str, str, str], int]:
    """Return (kind, transform, reason) → documents; an edit inside a branch is not counted by transform."""
    totals: dict[tuple[str, str, str], int] = {("near miss", *rule): n for rule, n in near_misses(stage).items()}
    for source in stage.sources:
        for step in flow_of(stage, source).steps:
            found = [(("dropped", drop.transform, drop.reason), drop.documents) for drop in step.drops]
            found += [(("edited", step.name, edit.reason), edit.documents) for edit in step.edits]
            for key, documents in found:
                totals[key] = totals.get(key, 0) + documents
    return totals


def _near(report: Report) -> Markup | None:
    """Return how many documents each rule nearly dropped, beside those that it dropped."""
    found = []
    for stage in report.stages:
        totals = _totals(stage)
        near = {key[1:]: number for key, number in totals.items() if key[0] == "near miss" and not is_guard(key[1])}
        found += [(stage, rule, number, totals.get(("dropped", *rule), 0)) for rule, number in near.items()]
    found.sort(key=lambda row: (-row[2], row[1]))
    if not found:
        return None
    rows = [
        [shortened(rule[1]), shortened(rule[0]), shortened(stage.name), grouped(number), grouped(dropped)]
        for stage, rule, number, dropped in found[:ROWS]
    ]
    columns = ("Rule", "Transform", "Stage", "Nearly dropped", "Dropped")
    built = table("Near misses by rule", Mark.EXACT, columns, rows, frozenset({"Transform", "Stage"}))
    return join([built, left_out(len(found) - len(rows), "rules")])


def _anchor(kind: str) -> str:
    return f"samples-{kind.replace(' ', '-')}"


def _section(
    kind: str, batches: list[Batch], texts: list[Texts], cards: list[list[Markup]], before: Markup | None
) -> Markup:
    mine = [row for row in zip(batches, texts, cards, strict=True) if row[0].kind == kind]
    groups = [_batch(batch, made) for batch, _, made in mine if made]
    nothing = None if any(there for _, there, _ in mine) else element("p", "None.", class_="note")
    omitted = left_out(sum(len(there) - len(made) for _, there, made in mine), "texts")
    return element(
        "section",
        element("h3", TITLES[kind], id=_anchor(kind)),
        before,
        *groups,
        nothing,
        omitted,
        class_="kind",
        aria_labelledby=_anchor(kind),
    )


def _batch(batch: Batch, cards: list[Markup]) -> Markup:
    title = shortened(batch.reason) if batch.reason else f"What {shortened(batch.stage.name)} keeps"
    where = f"{shortened(batch.transform)} in stage {batch.stage.title}" if batch.transform else batch.stage.title
    exact = None
    if batch.documents is not None:
        exact = join([f"{counted(batch.documents, 'document')} ", mark(Mark.EXACT), ", "])
    line = element("p", f"{where}: ", exact, f"{counted(len(cards), 'text')} ", mark(Mark.SAMPLED))
    return element("div", element("h4", title), line, element("div", *cards, class_="cards"), class_="batch")
