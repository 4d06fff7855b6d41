"""Samples: documents kept, dropped, nearly dropped and edited, each with its measure and the threshold.

Which are shown: for each stage, kind, transform and reason the documents with the lowest digest of their text, as the
stages recorded them; when they do not all fit, in rounds: the first of each reason, then the second of each, and so on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from curate.ledger import SAMPLE_KINDS
from curate.samples import PER_REASON
from viewers.budget import SAMPLE_BYTES
from viewers.flows import flow_of
from viewers.loading import Report, StageView
from viewers.markup import Markup, element, join
from viewers.numbers import counted, grouped
from viewers.panels.panel import Panel
from viewers.sample_card import Excerpts, card
from viewers.tables import Mark, left_out, mark
from viewers.visible import shortened

ORDER: Final = ("dropped", "near miss", "edited", "kept")
TITLES: Final = {
    "dropped": "Dropped",
    "near miss": "Near misses: kept, with a measure within 5 % of its threshold",
    "edited": "Edited",
    "kept": "Kept",
}
assert set(ORDER) == set(SAMPLE_KINDS)


@dataclass(frozen=True, slots=True)
class Batch:
    """Samples of one stage, kind, transform and reason; `documents` is how many there are, None where not counted."""

    stage: StageView
    kind: str
    transform: str
    reason: str
    samples: tuple[Mapping[str, Any], ...]
    documents: int | None


def samples(report: Report) -> Panel:
    """Return the panel."""
    batches = list(_batches(report))
    excerpts = Excerpts.of(report)
    cards = [[card(first, others, excerpts) for first, *others in _by_text(batch)] for batch in batches]
    shown = chosen([[len(made.html.encode()) for made in row] for row in cards], SAMPLE_BYTES)
    sections = [_section(kind, batches, cards, shown) for kind in ORDER]
    total = sum(len(row) for row in cards)
    rule = (
        f"Of each stage, transform and reason the up to {PER_REASON} documents with the lowest digest of their text; "
        f"{grouped(sum(shown))} of {counted(total, 'text')} fit into {grouped(SAMPLE_BYTES // 1000)} kB. E-mail and IP "
        "addresses are masked, long texts shortened. Where only white space changed, · stands for a space, → for a "
        "tab, ↵ for a line break. "
    )
    body = join([element("p", rule, mark(Mark.SAMPLED), class_="note"), *sections])
    entries = tuple((_anchor(kind), TITLES[kind].partition(":")[0]) for kind in ORDER)
    lede = (
        "Read a few of what was dropped: would you have dropped it? Then the near misses, which show whether a "
        "threshold stands in the right place."
    )
    return Panel("samples", "Kept, dropped, near misses", lede, body, entries)


def chosen(sizes: list[list[int]], limit: int) -> list[int]:
    """Return how many samples of each batch to show: one more of each in turn while the bytes stay within `limit`."""
    counts = [0] * len(sizes)
    used = 0
    for turn in range(max(map(len, sizes), default=0)):
        for number, row in enumerate(sizes):
            if turn == counts[number] and turn < len(row) and used + row[turn] <= limit:
                counts[number] += 1
                used += row[turn]
    return counts


def _batches(report: Report) -> Iterable[Batch]:
    outputs = list(report.outputs.values())
    for stage in report.stages:
        totals = _totals(stage)
        found: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
        for sample in stage.samples:
            key = (sample["kind"], sample["transform"], sample["reason"])
            is_pair = stage.is_deduplication and sample["kind"] == "dropped"
            if not is_pair and (sample["kind"] != "kept" or stage in outputs):
                found.setdefault(key, []).append(sample)
        for key in sorted(found):
            documents = stage.manifest["rows"] if key[0] == "kept" else totals.get(key)
            yield Batch(stage, *key, tuple(found[key]), documents)


def _by_text(batch: Batch) -> list[list[Mapping[str, Any]]]:
    found: dict[bytes, list[Mapping[str, Any]]] = {}
    for sample in batch.samples:
        found.setdefault(sample["text_digest"], []).append(sample)
    return list(found.values())


def _totals(stage: StageView) -> dict[tuple[str, str, str], int]:
    totals: dict[tuple[str, str, str], int] = {}
    for source in stage.sources:
        for step in flow_of(stage, source).steps:
            for drop in step.drops:
                key = ("dropped", drop.transform, drop.reason)
                totals[key] = totals.get(key, 0) + drop.documents
    return totals


def _anchor(kind: str) -> str:
    return f"samples-{kind.replace(' ', '-')}"


def _section(kind: str, batches: list[Batch], cards: list[list[Markup]], shown: list[int]) -> Markup:
    groups = [
        _batch(batch, row[:count])
        for batch, row, count in zip(batches, cards, shown, strict=True)
        if batch.kind == kind and count
    ]
    mine = [(len(row), count) for batch, row, count in zip(batches, cards, shown, strict=True) if batch.kind == kind]
    nothing = None if groups else element("p", "None.", class_="note")
    omitted = left_out(sum(there - count for there, count in mine), "texts")
    return element(
        "section",
        element("h3", TITLES[kind], id=_anchor(kind)),
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
