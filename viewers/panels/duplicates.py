"""Duplicates: what each source loses to equal and near-equal texts, and pairs with the survivor and the similarity."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

from curate.accounting.samples import PER_REASON
from transforms.exact import decimal_text
from viewers.bars import Bar, Segment, chart
from viewers.budget import DUPLICATE_BYTES, ROWS, fitting
from viewers.flows import Flow, flow_of
from viewers.loading import Report, StageView
from viewers.markup import Child, Markup, element, join
from viewers.numbers import counted, fixed, grouped, ratio, rounded, share
from viewers.panels.panel import Panel
from viewers.sample_card import Excerpts, excerpt, origin
from viewers.settings import decimal_of
from viewers.tables import Mark, left_out, mark, table
from viewers.visible import shortened

REASONS: Final = ("empty text", "equal text", "near duplicate")
TONES: Final = {"empty text": "structural", "equal text": "equal", "near duplicate": "dropped"}


def duplicates(report: Report) -> Panel:
    """Return the panel."""
    stages = [stage for stage in report.stages if stage.is_deduplication]
    lede = (
        "Look for a source that loses a large part of itself, and read a pair: each document that goes has a partner "
        "that stays in this stage, with their similarity computed over all shingles, not estimated."
    )
    if not stages:
        body = element("p", "No stage of this recipe removes duplicates: equal texts may be there.", class_="note")
    else:
        body = join(_stage(report, stage) for stage in stages)
    return Panel("duplicates", "Duplicates", lede, body)


def _stage(report: Report, stage: StageView) -> Markup:
    flows = [flow_of(stage, source) for source in report.sources if source in stage.sources]
    title = element("h3", stage.title) if sum(s.is_deduplication for s in report.stages) > 1 else None
    return join(
        [
            title,
            element("p", describe(stage)),
            _picture(flows),
            _counts(stage, flows),
            _pairs(stage),
            _samples(report, stage),
        ]
    )


def describe(stage: StageView) -> str:
    """Return in words what is compared and who stays."""
    fields = stage.operation.get("fields", {})
    method = fields.get("method")
    prefer = " then ".join(fields.get("prefer", []))
    within = f"within each {fields['within']}" if fields.get("within") else "all with all"
    stays = f"Who stays: by {prefer or 'text digest'} (“-” for larger first), then digest of the text, then id."
    if not method:
        return f"Equal texts are compared {within}; near duplicates are not looked for. {stays}"
    of = method["fields"]
    threshold = Fraction(decimal_of(of["threshold"]))
    candidate = 1 - (1 - threshold ** of["rows"]) ** of["bands"]
    chance = fixed(rounded(candidate.numerator, candidate.denominator, 4), 4)
    measure = "Jaccard similarity" if of.get("measure", "jaccard") == "jaccard" else of["measure"]
    stay = "one that stays" if fields.get("keep", 1) == 1 else f"{fields['keep']} that stay"
    unit = of.get("unit", "word")
    return (
        f"Equal texts collapse first. Then MinHash over {unit} {of['ngram']}-grams in {of['bands']} bands of "
        f"{of['rows']} rows proposes pairs {within}, and each pair is compared on its shingles: a document goes if its "
        f"{measure} with {stay} is at least {decimal_text(threshold)}. A pair of that Jaccard similarity is "
        f"proposed with probability {chance}. {stays}"
    )


def _counts(stage: StageView, flows: list[Flow]) -> Markup:
    bounds = dict(stage.operation.get("fields", {}).get("max_removed", []))
    rows = []
    for flow in flows[:ROWS]:
        counts = _by_reason(flow)
        came = flow.documents_in
        bound = bounds.get(flow.source)
        rows.append(
            [
                shortened(flow.source),
                grouped(came),
                *(grouped(counts[reason]) for reason in REASONS),
                grouped(flow.documents_out),
                share(came - flow.documents_out, came),
                "–" if bound is None else shortened(str(bound)),
            ]
        )
    columns = ("Source", "Documents in", *(reason.capitalize() for reason in REASONS), "Stay", "Removed", "Bound")
    note = left_out(len(flows) - len(rows), "sources")
    return join([table("What each source loses", Mark.EXACT, columns, rows), note])


def _by_reason(flow: Flow) -> dict[str, int]:
    counts = dict.fromkeys(REASONS, 0)
    for step in flow.steps:
        for drop in step.drops:
            counts[drop.reason] = counts.get(drop.reason, 0) + drop.documents
    return counts


def _picture(flows: list[Flow]) -> Markup | None:
    bars = []
    for flow in flows[:ROWS]:
        counts = _by_reason(flow)
        segments = [Segment(flow.documents_out, "kept"), *(Segment(counts[r], TONES[r]) for r in REASONS)]
        bars.append(
            Bar(shortened(flow.source), segments, f"{grouped(flow.documents_in)} → {grouped(flow.documents_out)}")
        )
    legend = [("kept", "stay"), *((TONES[reason], reason) for reason in REASONS)]
    return chart("Documents into and out of the comparison", bars, legend)


def _pairs(stage: StageView) -> Markup | None:
    counts = stage.statistics.get("duplicates")
    if not counts:
        return None
    compared = counts.get("compared", 0)
    rows: list[list[Child]] = [
        ["proposed: two texts share a bucket, each bucket counted", grouped(counts.get("proposed", 0)), "–"],
        ["compared on their shingles, each pair once", grouped(compared), share(compared, compared)],
        ["at or above the threshold", grouped(counts.get("edges", 0)), share(counts.get("edges", 0), compared)],
        ["given up when a bucket was too large", grouped(counts.get("given_up", 0)), "–"],
        ["buckets split because they were too large", grouped(counts.get("split_buckets", 0)), "–"],
    ]
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
        f": {shortened(sample['measure'] or 'Jaccard similarity')} ",
        element("b", similarity),
        join([" · must be ", element("b", shortened(sample["threshold"]))]) if sample["threshold"] else None,
        class_="measure",
    )
    other = known.get(survivor)
    stays = excerpt(other, excerpts) if other else None
    equal = element("p", "equal to ", element("code", evidence["equal_to"])) if "equal_to" in evidence else None
    dropped = element("div", element("h5", "goes"), excerpt(sample, excerpts), origin({**sample, "evidence": None}))
    kept = element("div", element("h5", "stays"), element("p", element("code", survivor)), equal, stays)
    return element("article", header, element("div", dropped, kept, class_="difference"), class_="sample")
