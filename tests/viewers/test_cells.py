"""Cells of topic and level on the page, against a recount of the rows; the heat map; larger grids, hostile names."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest

from curate.accounting.samples import PER_CELL
from curate.digests import text_digest
from curate.store import Store
from tests.viewers.parsed import parse, tables
from tests.viewers.stores import HOSTILE, Made, report, stage
from viewers.cells import Grid, grids, samples_in
from viewers.heat import heat, tone_of
from viewers.loading import load_report
from viewers.numbers import fixed, rounded, share
from viewers.panels.cells import cell_parts
from viewers.panels.topics import topics


def test_shares_and_enrichment_are_those_of_the_rows(graded: Made) -> None:
    report_of = load_report(Store(graded.root), graded.folder)
    panel = topics(report_of)
    assert panel is not None
    shown = tables(parse(panel.markup().html))
    documents: Counter[tuple[str, str]] = Counter()
    characters: Counter[tuple[str, str]] = Counter()
    for batch in graded.result.outputs["documents"].batches():
        for row in batch.to_pylist():
            if row["quality_level"] is not None:
                documents[row["topic"], str(row["quality_level"])] += 1
                characters[row["topic"], str(row["quality_level"])] += len(row["text"])
    tokens: Counter[tuple[str, str]] = Counter()
    drawn: Counter[tuple[str, str]] = Counter()
    read = report_of.plan.tokens_read() if report_of.plan else {}
    for name, cache in graded.result.caches["training"].open().items():
        topic, _, level = name.removeprefix("topic=").rpartition("/quality_level=")
        tokens[topic, level], drawn[topic, level] = cache.description.tokens, read.get(name, 0)
    for what, name, counts in (
        ("documents", "documents", documents),
        ("characters", "documents", characters),
        ("tokens", "tokenize", tokens),
        ("tokens drawn in training", "tokenize", drawn),
    ):
        assert_grid(shown, what, name, counts)


def test_hosts_of_cells_are_those_of_their_documents_with_the_lowest_ids(graded: Made) -> None:
    panel = topics(load_report(Store(graded.root), graded.folder))
    assert panel is not None
    head, *shown = tables(parse(panel.markup().html))["Hosts of drawn documents in cells of documents"]
    cells: dict[tuple[str, str], list[tuple[bytes, str]]] = {}
    for batch in graded.result.outputs["documents"].batches():
        for row in batch.to_pylist():
            if row["url"]:
                cell = row["topic"], f"quality_level={row['quality_level']}"
                cells.setdefault(cell, []).append((row["id"], row["url"].split("/")[2]))
    for topic, *told in shown:
        for column, hosts in zip(head[1:], told, strict=True):
            assert hosts.split(", ") == sorted({host for _, host in sorted(cells[topic, column])[:4]})


def assert_grid(shown: dict[str, list[list[str]]], what: str, name: str, counts: Counter[tuple[str, str]]) -> None:
    """See that both tables about `counts` are what they make."""
    whole = counts.total()
    head, *shares = shown[f"Share of {what} in cells of {name}"]
    levels = [column.removeprefix("quality_level=") for column in head[1:-1]]
    enriched = {row[0]: row[1:] for row in shown[f"Enrichment of {what} in cells of {name}"]}
    by_topic = {topic: sum(n for (t, _), n in counts.items() if t == topic) for topic in {t for t, _ in counts}}
    by_level = {level: sum(n for (_, other), n in counts.items() if other == level) for level in levels}
    assert [row[0] for row in shares] == sorted(by_topic, key=lambda topic: (-by_topic[topic], topic))
    for topic, *cells in shares:
        present = [share(counts[topic, level], whole) if (topic, level) in counts else "–" for level in levels]
        assert cells == [*present, share(by_topic[topic], whole)]
        assert enriched[topic] == [
            fixed(rounded(counts[topic, level] * whole, by_topic[topic] * by_level[level], 2), 2)
            if by_topic[topic] and by_level[level]
            else "–"
            for level in levels
        ]


def test_tones_are_by_distance_from_one_on_both_sides() -> None:
    ratios = ((1, 1), (11, 10), (5, 4), (4, 5), (2, 1), (1, 2), (3, 1), (1, 3), (0, 1), (1, 0))
    assert [tone_of(*ratio) for ratio in ratios] == [
        "even", "even", "more1", "less1", "more2", "less2", "more3", "less3", "empty", "empty"]  # fmt: skip


@pytest.mark.parametrize("rows", [40, 200])
def test_large_grid_is_drawn_up_to_a_limit_that_is_said(rows: int) -> None:
    cells = {
        f"topic {n:03}": {str(at): {"documents": n + at + 1, "characters": 9} for at in range(5)} for n in range(rows)
    }
    made = replace(report(stage(statistics={"cells": {"quality_level": cells}})))
    root = parse("".join(part.html for part in cell_parts(made) if part is not None))
    assert len(root.one("svg").all("rect")) == min(rows, 60) * 5
    assert ("140 rows left out" in root.text) == (rows == 200)


def test_levels_stand_in_the_order_of_numbers_and_hostile_names_are_text() -> None:
    grid = Grid("made", "documents", "topic", "level", {(name, str(n)): 9 + n for name in HOSTILE for n in (10, 2, 1)})
    assert list(grid.columns) == ["1", "2", "10"]
    html = heat(grid, list(grid.rows), list(grid.columns)).html
    parse(html)
    assert "<script" not in html and "\u202e" not in html


def test_cells_have_texts_of_their_own_documents(graded: Made) -> None:
    loaded = load_report(Store(graded.root), graded.folder)
    (grid,) = [some[0] for some in grids(loaded) if some and some[0].name == "documents"]
    found = samples_in(loaded, grid)
    rows = [row for batch in graded.result.outputs["documents"].batches() for row in batch.to_pylist()]
    for (topic, level), samples in found.items():
        mine = [row for row in rows if (row["topic"], str(row["quality_level"])) == (topic, level)]
        expected = sorted(mine, key=lambda row: (text_digest(row["text"]), row["id"]))[:PER_CELL]
        assert [sample["id"] for sample in samples] == [row["id"] for row in expected]
        assert json.loads(samples[0]["levels"]) == {"quality_level": int(level)} and samples[0]["topic"] == topic
    assert set(found) == set(grid.amounts)
    panel = topics(loaded)
    assert panel is not None
    text = parse(panel.markup().html).text
    assert all(sample["id"].hex() in text for samples in found.values() for sample in samples)
