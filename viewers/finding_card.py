"""A document in which a benchmark item was found: which item, how much of it, and its words marked in the text.

Evidence counts code points of the document; an excerpt has the same ones only up to where it is cut, and none where
something in it is masked: what cannot be marked is named by its place alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from curate.accounting.samples import AROUND, HEAD
from viewers.differences import Piece
from viewers.markup import Markup, element, join
from viewers.numbers import grouped, share
from viewers.sample_card import MASKS, Excerpts, excerpt, folded, measure, origin
from viewers.visible import shortened

SHOWN: Final = 5
"""Findings and stretches of text shown of one document."""

Span = tuple[int, int]


def finding_card(sample: Mapping[str, Any], excerpts: Excerpts) -> Markup:
    """Return the card of `sample`, a document that `Decontaminate` dropped."""
    found = _findings(sample["evidence"])
    lines = [element("p", _in_words(finding), class_="evidence") for finding in found[:SHOWN]]
    marked = _marked(sample, [span for finding in found for span in _spans(finding)])
    text = excerpt(sample, excerpts) if marked is None else folded(marked)
    title = element("p", element("b", shortened(sample["reason"])), class_="measure")
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
    if spans := _spans(finding):
        parts.append("characters " + ", ".join(f"{grouped(begin)}–{grouped(end)}" for begin, end in spans[:SHOWN]))
    return ", ".join(parts)


def _spans(finding: Mapping[str, Any]) -> list[Span]:
    spans = finding.get("spans")
    pairs = spans if isinstance(spans, list) else []
    return [(p[0], p[1]) for p in pairs if isinstance(p, list) and len(p) == 2 and all(isinstance(n, int) for n in p)]


def _marked(sample: Mapping[str, Any], spans: Sequence[Span]) -> list[Piece] | None:
    """Return the excerpt from a little before its first span on, spans marked; None when none can be placed."""
    text: str = sample["excerpt"] or ""
    limit = len(text) if len(text) == sample["characters"] else min(len(text), HEAD)
    placed = sorted((begin, end) for begin, end in spans if 0 <= begin < end <= limit)
    if not placed or any(mask in text for mask in MASKS):
        return None
    place = max(0, placed[0][0] - AROUND)
    pieces = [Piece("… ", False)] if place else []
    for begin, end in placed:
        if end > place:
            pieces += [Piece(text[place : max(begin, place)], False), Piece(text[max(begin, place) : end], True)]
            place = end
    return [piece for piece in [*pieces, Piece(text[place:], False)] if piece.text]
