"""Topics: what the documents are about, how clear that is, and how tokens spread over cells of two columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from viewers.budget import ROWS
from viewers.loading import ProductView, Report
from viewers.markup import Child, Markup, element, join
from viewers.numbers import counted, grouped, share
from viewers.panels.cells import cell_parts
from viewers.panels.panel import Panel
from viewers.tables import Mark, code, facts, left_out, table
from viewers.visible import shortened


def topics(report: Report) -> Panel | None:
    """Return the panel; None for a result without fitted topics and without cells of two columns."""
    models = [model for model in report.products if "adjusted_rand" in model.manifest.get("card", {})]
    parts = [part for model in models[:ROWS] for part in _model(model)]
    parts += cell_parts(report)
    if not any(parts):
        return None
    lede = (
        "Look for a topic whose terms name a template or a language instead of a subject, for a cell with nearly no "
        "tokens (a weight on it repeats few texts), and for a subject that good levels have too much or too little of."
    )
    return Panel("topics", "Topics and quality", lede, join([*parts, left_out(max(len(models) - ROWS, 0), "models")]))


def _model(model: ProductView) -> Iterator[Markup | None]:
    card: Mapping[str, Any] = model.manifest["card"]
    digests = [entry["digest"] for entry in model.manifest["files"].values()]
    seen = card["documents"] - card["without_words"]
    pairs: list[tuple[str, Child]] = [
        ("Fitted to", f"{grouped(card['documents'])} of {counted(card['of'], 'document')}"),
        ("Of these without words", grouped(card["without_words"])),
        ("Vectors", shortened(str(card["embedder"]["class"]))),
        ("Two seeds agree (adjusted Rand index)", str(card["adjusted_rand"])),
        ("Digest of the topics", code(digests[0])),
    ]
    rows: list[list[Child]] = [
        [
            shortened(topic["name"]),
            grouped(topic["documents"]),
            share(topic["documents"], seen),
            str(topic["similarity"]),
            shortened(" ".join(topic["terms"]), 120),
        ]
        for topic in card["topics"][:ROWS]
    ]
    columns = ("Topic", "documents", "share", "similarity", "telling words")
    yield element("h3", shortened(model.name))
    yield facts(pairs)
    yield table("Topics, of the documents looked at", Mark.SAMPLED, columns, rows, words=frozenset({"telling words"}))
    yield left_out(max(len(card["topics"]) - ROWS, 0), "topics")
    yield element("p", "Similarity: mean cosine of the documents with the centre of their topic.", class_="note")
