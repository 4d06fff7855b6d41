"""The panel on topics: what was fitted, and the grid of cells of two columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.viewers.parsed import parse, tables
from tests.viewers.stores import report, stage
from viewers.loading import ProductView, Report
from viewers.panels.topics import topics

TOPICS = [
    {"name": "tide-harbour", "documents": 60, "terms": ["tide", "<b>"], "similarity": "0.4100", "central": ["00"]},
    {"name": "dough-oven", "documents": 40, "terms": ["dough"], "similarity": "0.3900", "central": ["01"]},
]
CARD = {
    "documents": 101,
    "of": 5000,
    "without_words": 1,
    "asked": 2,
    "embedder": {"class": "HashedTfidf"},
    "adjusted_rand": "0.7000",
    "topics": TOPICS,
}


def product(**manifest: Any) -> ProductView:
    return ProductView({"name": "made", "key": "k" * 64, "inputs": [], **manifest})


def with_products(*products: ProductView) -> Report:
    return replace(report(stage()), products=products)


def cells(*by: str, **tokens: int) -> ProductView:
    made = {name: {"tokens": count} for name, count in tokens.items()}
    return product(kind="caches", operation={"fields": {"by": list(by)}}, cells=made)


def test_topics_are_told_with_share_and_terms() -> None:
    files = {"topics.model": {"bytes": 1, "digest": "d" * 64}}
    panel = topics(with_products(product(kind="model", card=CARD, files=files, operation={})))
    assert panel is not None
    html = panel.markup().html
    rows = tables(parse(html))["Topics, of the documents looked at"]
    assert ["tide-harbour", "60", "60.0\u202f%", "0.4100", "tide <b>"] in rows and len(rows) == 3
    assert "<b>" not in html and "0.7000" in html


def test_topics_cells_of_two_columns_are_a_grid() -> None:
    sizes = {"topic=a/b/level=0": 10, "topic=a/b/level=1": 20, "topic=c/level=1": 70}
    panel = topics(with_products(cells("topic", "level", **sizes)))
    assert panel is not None
    rows = tables(parse(panel.markup().html))["Share of tokens in cells of made"]
    assert rows == [
        ["topic", "level=0", "level=1", "all"],
        ["c", "–", "70.0\u202f%", "70.0\u202f%"],
        ["a/b", "10.0\u202f%", "20.0\u202f%", "30.0\u202f%"],
    ]


def test_topics_result_without_any_has_no_panel() -> None:
    assert topics(with_products(cells("source", web=3))) is None
    assert topics(with_products(product(kind="model", card={"auc": 1}, files={}, operation={}))) is None
