"""Duplicates: what each source loses to equal and near-equal texts, and pairs with the survivor and the similarity."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from curate.accounting.samples import PER_REASON
from viewers.bars import Bar, Segment, chart
from viewers.budget import DUPLICATE_BYTES, ROWS, fitting
from viewers.comparisons import TONES, describe, reasons_of
from viewers.flows import Flow, flow_of
from viewers.loading import Report, StageView
from viewers.markup import Child, Markup, element, join
from viewers.numbers import counted, grouped, ratio, share
from viewers.panels.panel import Panel
from viewers.sample_card import Excerpts, excerpt, origin
from viewers.tables import Mark, left_out, mark, table
from viewers.visible import shortened


def duplicates(report: Report) -> Panel:
    """Return the panel."""
    stages = [stage for stage in report.stages if stage.is_deduplication or stage.cuts_repeats]
    lede = (
        "Look for a source that loses a large part of itself, and read a pair: each document that goes has a partner "
        "that stays in this stage or in an earlier dataset, with their similarity computed exactly, not estimated."
    )
    if not stages:
        body = element("p", "No stage of this recipe removes duplicates: equal texts may be there.", class_="note")
    else:
        body = join(_stage(report, stage, len(stages) > 1) for stage in stages)
    return Panel("duplicates", "Duplicates", lede, body)


def _stage(report: Report, stage: StageView, is_titled: bool) -> Markup:
    flows = [flow_of(stage, source) for source in report.sources if source in stage.sources]
    lead = [element("h3", stage.title) if is_titled else None, element("p", describe(stage))]
    if stage.cuts_repeats:
        return join([*lead, _cuts(stage, flows)])
    tables = [_picture(stage, flows), _counts(stage, flows), _templates(stage), _pairs(stage)]
    return join([*lead, *tables, _samples(report, stage)])


def _cuts(stage: StageView, flows: list[Flow]) -> Markup:
    bounds, rows = dict(stage.operation.get("fields", {}).get("max_removed", [])), []
    for flow in flows[:ROWS]:
        came, stays = sum(step.characters_in for step in flow.steps[:1]), flow.characters_out
        cut, dropped = (sum(getattr(s, name) for s in flow.steps) for name in ("cut", "dropped_characters"))
        bound = bounds.get(flow.source)
        told = "–" if bound is None else shortened(str(bound))
        numbers = [grouped(number) for number in (came, cut, dropped, stays)]
        rows.append([shortened(flow.source), *numbers, share(came - stays, came), told])
    columns = ("Source", "Characters in", "Cut", "In documents of which nothing is left", "Stay", "Removed", "Bound")
    note = left_out(len(flows) - len(rows), "sources")
    return join([table("What each source loses", Mark.EXACT, columns, rows), note])


def _templates(stage: StageView) -> Markup | None:
    counts = stage.statistics.get("templates")
    if not counts:
        return None
    rows = [
        [shortened(source), grouped(mine["documents"]), grouped(mine["shingles"])]
        for source, mine in sorted(counts.items())[:ROWS]
    ]
    columns = ("Source", "Distinct texts", "Shingles that do not count")
    note = left_out(len(counts) - len(rows), "sources")
    return join([table("Templates, left out of every comparison", Mark.EXACT, columns, rows), note])


def _counts(stage: StageView, flows: list[Flow]) -> Markup:
    bounds = dict(stage.operation.get("fields", {}).get("max_removed", []))
    rows, reasons = [], reasons_of(stage)
    for flow in flows[:ROWS]:
        counts = _by_reason(flow)
        came = flow.documents_in
        bound = bounds.get(flow.source)
        rows.append(
            [
                shortened(flow.source),
                grouped(came),
                *(grouped(counts.get(reason, 0)) for reason in reasons),
                grouped(flow.documents_out),
                share(came - flow.documents_out, came),
                "–" if bound is None else shortened(str(bound)),
            ]
        )
    columns = (
        "Source",
        "Documents in",
        *(reason[:1].upper() + reason[1:] for reason in reasons),
        "Stay",
        "Removed",
        "Bound",
    )
    note = left_out(len(flows) - len(rows), "sources")
    return join([table("What each source loses", Mark.EXACT, columns, rows), note])


def _by_reason(flow: Flow) -> dict[str, int]:
    counts: dict[str, int] = {}
    for step in flow.steps:
        for drop in step.drops:
            counts[drop.reason] = counts.get(drop.reason, 0) + drop.documents
    return counts


def _picture(stage: StageView, flows: list[Flow]) -> Markup | None:
    bars, reasons = [], reasons_of(stage)
    for flow in flows[:ROWS]:
        counts = _by_reason(flow)
        segments = [Segment(flow.documents_out, "kept"), *(Segment(counts.get(r, 0), TONES[r]) for r in reasons)]
        bars.append(
            Bar(shortened(flow.source), segments, f"{grouped(flow.documents_in)} → {grouped(flow.documents_out)}")
        )
    legend = [("kept", "stay"), *((TONES[reason], reason) for reason in reasons)]
    return chart("Documents into and out of the comparison", bars, legend)


def _pairs(stage: StageView) -> Markup | None:
    counts = stage.statistics.get("duplicates")
    if not counts:
        return None
    compared = counts.get("compared", 0)
    told: list[tuple[str, str, Child]] = [
        ("proposed", "proposed: two texts share a bucket, each bucket counted", "–"),
        ("compared", "compared exactly", share(compared, compared)),
        ("edges", "at or above the threshold", share(counts.get("edges", 0), compared)),
        ("given_up", "given up when a bucket or cluster was too large", "–"),
        ("split_buckets", "buckets split because they were too large", "–"),
    ]
    rows: list[list[Child]] = [[what, grouped(counts[name]), of] for name, what, of in told if name in counts]
    return table("Pairs", Mark.EXACT, ("What", "Number", "of those compared"), rows)


def _samples(report: Report, stage: StageView) -> Markup:
    excerpts = Excerpts.of(report)
    known = {sample["id"].hex(): sample for view in report.stages for sample in view.samples if sample["excerpt"]}
    found = [s for s in stage.samples if s["kind"] == "dropped" and s["reason"] != "empty text"]
    found.sort(key=lambda s: (s["reason"] != "near duplicate", s["text_digest"], s["id"]))
    cards = fitting(found, lambda sample: _pair(sample, known, excerpts), DUPLICATE_BYTES)
    heading = element("h3", "Pairs to read")
    if not cards:
        return join([heading, element("p", "No document goes because of another.", class_="note")])
    rule = (
        f"Of each reason the up to {PER_REASON} dropped documents with the lowest digest of their text, "
        f"{counted(len(cards), 'pair')} in all. The text of a survivor is shown where it is among the samples. "
    )
    note = element("p", rule, mark(Mark.SAMPLED), class_="note")
    return element("div", heading, note, *cards, left_out(len(found) - len(cards), "pairs"), class_="pairs")


def _pair(sample: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]], excerpts: Excerpts) -> Markup:
    evidence = json.loads(sample["evidence"] or "{}")
    survivor = str(evidence.get("survivor", "not recorded"))
    similarity = "–" if sample["numerator"] is None else ratio(sample["numerator"], sample["denominator"])
    header = element(
        "p",
        shortened(sample["reason"]),
        join([f": {shortened(sample['measure'])} ", element("b", similarity)]) if sample["measure"] else None,
        join([" · must be ", element("b", shortened(sample["threshold"]))]) if sample["threshold"] else None,
        class_="measure",
    )
    other = known.get(survivor)
    stays = excerpt(other, excerpts) if other else None
    equal = element("p", "equal to ", element("code", evidence["equal_to"])) if "equal_to" in evidence else None
    dropped = element("div", element("h5", "goes"), excerpt(sample, excerpts), origin({**sample, "evidence": None}))
    kept = element("div", element("h5", "stays"), element("p", element("code", survivor)), equal, stays)
    return element("article", header, element("div", dropped, kept, class_="difference"), class_="sample")
