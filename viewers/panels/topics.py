"""Topics: what the documents are about, how clear that is, and how tokens spread over cells of two columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from viewers.budget import ROWS
from viewers.loading import ProductView, Report
from viewers.markup import Child, Markup, element, join
from viewers.numbers import counted, grouped, share
from viewers.panels.panel import Panel
from viewers.tables import Mark, code, facts, left_out, table
from viewers.visible import shortened

COLUMNS: Final = 12
"""Values of the second column of cells beyond which no table is shown."""


def topics(report: Report) -> Panel | None:
    """Return the panel; None for a result without fitted topics and without cells of two columns."""
    models = [model for model in report.products if "adjusted_rand" in model.manifest.get("card", {})]
    caches = [made for made in report.products if made.kind == "caches" and len(_columns(made)) == 2]
    parts = [part for model in models[:ROWS] for part in _model(model)]
    parts += [part for made in caches[:ROWS] if (part := _grid(made)) is not None]
    if not parts:
        return None
    lede = (
        "Look for a topic whose terms name a template or a language instead of a subject, and for a cell with nearly "
        "no tokens: a weight on it repeats few texts."
    )
    return Panel("topics", "Topics", lede, join([*parts, left_out(max(len(models) - ROWS, 0), "models")]))


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


def _columns(caches: ProductView) -> tuple[str, ...]:
    """Return the columns whose values name the cells."""
    return tuple(caches.operation["fields"]["by"])


def _grid(caches: ProductView) -> Markup | None:
    first, second = _columns(caches)
    tokens: dict[str, dict[str, int]] = {}
    for name, cell in caches.manifest["cells"].items():
        row, _, column = name.removeprefix(f"{first}=").rpartition(f"/{second}=")
        tokens.setdefault(row, {})[column] = cell["tokens"]
    columns = sorted({column for row in tokens.values() for column in row})
    if len(columns) > COLUMNS:
        return None
    whole = sum(sum(row.values()) for row in tokens.values())
    ordered = sorted(tokens, key=lambda row: (-sum(tokens[row].values()), row))
    rows: list[list[Child]] = [
        [
            shortened(row),
            *(share(tokens[row][column], whole) if column in tokens[row] else "–" for column in columns),
            share(sum(tokens[row].values()), whole),
        ]
        for row in ordered[:ROWS]
    ]
    heads = (shortened(first), *(shortened(f"{second}={column}") for column in columns), "all")
    built = table(f"Share of tokens in cells of {shortened(caches.name)}", Mark.EXACT, heads, rows)
    return join([built, left_out(max(len(ordered) - ROWS, 0), "rows")])
