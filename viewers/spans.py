"""Where in its text a document was found guilty: spans of evidence, marked in the excerpt.

Evidence counts code points of the document; an excerpt has the same ones only up to where it is cut, and none where
something in it is masked: what cannot be marked is named by its place alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from curate.accounting.samples import AROUND, HEAD
from viewers.differences import Piece

Span = tuple[int, int]


def spans_in(value: Any) -> list[Span]:
    """Return the pairs of whole numbers in the list `value`; none where it is no list."""
    pairs = value if isinstance(value, list) else []
    return [(p[0], p[1]) for p in pairs if isinstance(p, list) and len(p) == 2 and all(type(n) is int for n in p)]


def spans_of(evidence: str | None) -> list[Span]:
    """Return what `evidence` says of places: a list of spans, or an object with such a list as `spans`."""
    try:
        value = json.loads(evidence or "null")
    except ValueError:
        return []
    return spans_in(value.get("spans") if isinstance(value, dict) else value)


def marked(sample: Mapping[str, Any], spans: Sequence[Span], masks: Sequence[str]) -> list[Piece] | None:
    """Return the excerpt from a little before its first span on, spans marked; None when none can be placed."""
    text: str = sample["excerpt"] or ""
    limit = len(text) if len(text) == sample["characters"] else min(len(text), HEAD)
    placed = sorted((begin, end) for begin, end in spans if 0 <= begin < end <= limit)
    if not placed or any(mask in text for mask in masks):
        return None
    place = max(0, placed[0][0] - AROUND)
    pieces = [Piece("… ", False)] if place else []
    for begin, end in placed:
        if end > place:
            pieces += [Piece(text[place : max(begin, place)], False), Piece(text[max(begin, place) : end], True)]
            place = end
    return [piece for piece in [*pieces, Piece(text[place:], False)] if piece.text]
