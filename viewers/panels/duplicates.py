"""Duplicates: what each source loses to equal and near-equal texts, and pairs with the survivor and the similarity."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from curate.accounting.samples import PER_REASON
from transforms.canonical import canonical_json
from viewers.bars import Bar, Segment, chart
from viewers.budget import DUPLICATE_BYTES, ROWS, fitting
from viewers.comparisons import TONES, describe, reasons_of
from viewers.differences import compare_words
from viewers.flows import Flow, flow_of
from viewers.loading import Report, StageView
from viewers.markup import Child, Markup, element, join
from viewers.numbers import counted, grouped, ratio, share
from viewers.panels.clusters import clusters, matrix
from viewers.panels.panel import Panel
from viewers.panels.recall import recall
from viewers.sample_card import Excerpts, excerpt, folded, origin
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
    tables = [_picture(stage, flows), _counts(stage, flows), matrix(stage), _templates(stage), _pairs(stage)]
    tables += [clusters(stage), recall(report, stage)]
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
    sums: dict[str, int] = {}
    for flow in flows:
        for reason, documents in _by_reason(flow).items():
            sums[reason] = sums.get(reason, 0) + documents
    alike = sum(documents for reason, documents in sums.items() if reason != EMPTY)
    sentence = f"{counted(alike, 'document')} went because another that is like it stays."
    if sums.get(EMPTY):
        sentence += (
            f" {counted(sums[EMPTY], 'document')} more went because the text is empty: no duplicates, but removed here."
        )
    bound = "Bound: the most that may be removed of a source (max_removed); the run stops if more would go."
    told = element("p", bound, class_="note") if bounds else None
    return join([element("p", sentence), table("What each source loses", Mark.EXACT, columns, rows), told, note])


EMPTY = "empty text"


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
    views = [*report.stages, stage]  # what this stage saw of a text comes last, and stays
    known = {sample["id"].hex(): sample for view in views for sample in view.samples if sample["excerpt"]}
    found = [s for s in stage.samples if s["kind"] in ("pair", "dropped") and s["reason"] != "empty text"]
    found.sort(key=lambda s: (s["kind"] != "pair", s["reason"] != "near duplicate", s["text_digest"], s["id"]))
    found = list({sample["id"]: sample for sample in reversed(found)}.values())[::-1]
    prefer = stage.operation.get("fields", {}).get("prefer", [])
    cards = fitting(found, lambda sample: _pair(sample, known, excerpts, prefer), DUPLICATE_BYTES)
    heading = element("h3", "Pairs to read")
    if not cards:
        return join([heading, element("p", "No document goes because of another.", class_="note")])
    rule = (
        f"First near duplicates of the {PER_REASON} survivors with the lowest ids, both texts with what differs "
        f"marked; then of each reason the up to {PER_REASON} dropped documents with the lowest digest of their text. "
        f"{counted(len(cards), 'pair')} in all. "
    )
    note = element("p", rule, mark(Mark.SAMPLED), class_="note")
    return element("div", heading, note, *cards, left_out(len(found) - len(cards), "pairs"), class_="pairs")


def _pair(
    sample: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]], excerpts: Excerpts, prefer: Sequence[str]
) -> Markup:
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
    equal = element("p", "equal to ", element("code", evidence["equal_to"])) if "equal_to" in evidence else None
    goes, stays = _texts(sample, other, excerpts)
    dropped = element("div", element("h5", "goes"), goes, origin({**sample, "evidence": None}))
    place = element("p", element("code", survivor)) if other is None else _survivor(sample, other, prefer)
    kept = element("div", element("h5", "stays"), stays, place, equal)
    return element("article", header, element("div", dropped, kept, class_="difference"), class_="sample")


def _texts(
    sample: Mapping[str, Any], other: Mapping[str, Any] | None, excerpts: Excerpts
) -> tuple[Markup, Markup | None]:
    """Return both texts, what differs marked where both are shown."""
    if other is None or not sample["excerpt"]:
        return excerpt(sample, excerpts), excerpt(other, excerpts) if other else None
    left, right = compare_words(sample["excerpt"], other["excerpt"])
    return folded(left, "del"), folded(right, "ins")


def _survivor(sample: Mapping[str, Any], other: Mapping[str, Any], prefer: Sequence[str]) -> Markup:
    """Return where the survivor is from, and why it stays."""
    evidence = None
    if other["kind"] == "survivor":
        documents = json.loads(other["evidence"] or "{}").get("documents")
        evidence = canonical_json({"near duplicates that go for it": documents})
    reason = element("p", _why(sample, other, prefer), class_="evidence")
    return join([reason, origin({**other, "evidence": evidence})])


def _why(sample: Mapping[str, Any], other: Mapping[str, Any], prefer: Sequence[str]) -> str:
    """Return why `other` stays and `sample` goes, as far as what is sampled of them tells."""
    for criterion in prefer:
        name = criterion.removeprefix("-")
        if name not in ("source", "length"):
            return f"It stays by the column {shortened(name, 40)}, or by what comes after where both have the same."
        if name == "source" and sample["source"] != other["source"]:
            return "It stays because its source comes first."
        if name == "length" and sample["characters"] != other["characters"]:
            return f"It stays because it is {'longer' if criterion[0] == '-' else 'shorter'}."
    return "It stays because the digest of its text is the lower one."
