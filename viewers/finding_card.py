"""A document in which a benchmark item was found: which item, how much of it, and its words marked in the text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from viewers.markup import Markup, element, join
from viewers.numbers import grouped, share
from viewers.sample_card import MASKS, Excerpts, excerpt, folded, measure, origin
from viewers.spans import marked, spans_in
from viewers.visible import shortened

SHOWN: Final = 5
"""Findings and stretches of text shown of one document."""


def finding_card(sample: Mapping[str, Any], excerpts: Excerpts) -> Markup:
    """Return the card of `sample`, a document that `Decontaminate` dropped, or found something in and left."""
    found = _findings(sample["evidence"])
    lines = [element("p", _in_words(finding), class_="evidence") for finding in found[:SHOWN]]
    pieces = marked(sample, [span for finding in found for span in spans_in(finding.get("spans"))], MASKS)
    text = excerpt(sample, excerpts) if pieces is None else folded(pieces)
    left = "" if sample["kind"] == "dropped" else ", left"
    title = element("p", element("b", shortened(sample["reason"]) + left), class_="measure")
    body = join([title, measure(sample), text, *lines, origin({**sample, "evidence": None})])
    return element("article", body, class_="sample")


def _findings(evidence: str | None) -> list[Mapping[str, Any]]:
    try:
        found = json.loads(evidence or "{}").get("found", [])
    except (ValueError, AttributeError):
        return []
    return [finding for finding in found if isinstance(finding, dict)] if isinstance(found, list) else []


def _in_words(finding: Mapping[str, Any]) -> str:
    parts = [f"{shortened(str(finding.get('benchmark')))}, item {shortened(str(finding.get('item')), 40)}"]
    parts.append(f"{shortened(str(finding.get('part')), 40)}: {shortened(str(finding.get('verdict')), 40)}")
    match finding.get("coverage"):
        case [int(covered), int(of)]:
            parts.append(f"{share(covered, of)} of its weight")
    changed = finding.get("changed")
    if isinstance(changed, dict):
        others = [f"{grouped(n)} {shortened(what, 40)}" for what, n in changed.items() if isinstance(n, int) and n]
        parts.append(f"other or missing: {', '.join(others)}" if others else "no word changed")
    if spans := spans_in(finding.get("spans")):
        parts.append("characters " + ", ".join(f"{grouped(begin)}–{grouped(end)}" for begin, end in spans[:SHOWN]))
    return ", ".join(parts)
