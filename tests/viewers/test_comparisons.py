"""The panel of duplicates tells of every kind of stage that takes repeats away, with the numbers of its statistics."""

from __future__ import annotations

from pathlib import Path

import pytest

from curate import (
    Column,
    Outputs,
    deduplicate,
    deduplicate_parts,
    deduplicate_semantic,
    deduplicate_spans,
    deduplicate_urls,
    read_jsonl,
    reference,
)
from curate.run import Result
from curate.store import Store
from tests.curate.corpus import run_on, write_lines
from tests.viewers.parsed import Node, number, parse
from tests.viewers.stores import stage
from transforms.minhash import MinHash
from transforms.templates import TemplateRule
from viewers.comparisons import describe
from viewers.loading import load_report
from viewers.panels.duplicates import duplicates

HEADER = "All of this is granted to any person who obtains a copy of it free of charge for ever"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kinds")


@pytest.fixture(scope="module")
def result(root: Path) -> Result:
    given = [f"{HEADER} number {n} of {n * n}\nand a line that stands in all of these texts" for n in range(6)]
    given += ["the same words here", "here the words same"]
    lines = [{"text": text, "url": f"http://example.org/{n // 2}"} for n, text in enumerate(given)]
    write_lines(root / "in" / "a.jsonl", lines)
    write_lines(root / "old" / "a.jsonl", lines[:1])
    run_on(Outputs(old=read_jsonl(root / "old", source="old").keep("old")), root / "earlier")
    web = read_jsonl(root / "in", source="web", columns={"url": Column("url")})
    rule = TemplateRule(".5", least=2)
    method, against = MinHash(threshold=".7"), reference(root / "earlier", "old")
    texts = deduplicate(web, method=method, without_templates=rule, against=against, max_removed={"web": 0.9})
    texts = deduplicate_semantic(deduplicate_urls(texts), similarity=0.9, clusters=1)
    texts = deduplicate_spans(deduplicate_parts(texts, unit="line"), words=8, max_removed={"web": 1})
    return run_on(Outputs(texts=deduplicate_parts(texts, unit="paragraph", more_than=3)), root / "store")


@pytest.fixture(scope="module")
def panel(root: Path, result: Result) -> Node:
    return parse(str(duplicates(load_report(Store(root / "store"), result.folder.name)).markup()))


def test_panel_says_of_each_stage_what_it_compares(panel: Node) -> None:
    for told in (
        "Shingles in more than 0.5 of a source's distinct texts, 2 at least, do not count.",
        "Documents of an earlier dataset come before all",
        "Documents with equal URLs in their normal form (column url): one stays.",
        "Vectors of HashedTfidf are put into 1 clusters; within one a document goes if its cosine with one that stays",
        "A line that stands earlier is cut; the first stays.",
        "Spans of at least 8 words that stand earlier are cut.",
        "Every paragraph that stands more than 3 times is cut, the first too.",
    ):
        assert told in panel.text


def test_rules_of_who_stays_are_told_in_words() -> None:
    fields = {"prefer": ["source", "-length", "quality"], "method": None}
    told = describe(stage(manifest={"operation": {"operation": "deduplicate", "fields": fields}}))
    assert told.endswith(
        "Of two that are alike stays the one with the source that was named earlier, then the longer text, then the "
        "smaller quality, then the lowest digest of the text, then the lowest id."
    )


def test_panel_has_the_numbers_of_the_statistics(result: Result, panel: Node) -> None:
    (near,) = [stage for stage in result.stages if stage.name == "deduplicate"]
    counted = near.statistics["templates"]["web"]
    assert counted["shingles"] > 0 and near.statistics["templates"]["old"]["shingles"] == 0
    assert [number(cell) for cell in row(panel, "Templates", "web")] == [counted["documents"], counted["shingles"]]
    (lines,) = [stage for stage in result.stages if stage.name == "repeated lines"]
    flow = lines.statistics["steps"]["00"]["sources"]["web"]
    cells = row(panel, "What each source loses", "web", skip=3)
    assert number(cells[0]) == flow["characters_in"] and number(cells[3]) == flow["characters_out"]


def row(panel: Node, caption: str, first: str, skip: int = 0) -> list[str]:
    """Return the cells after `first` of a row of a table of that caption, after `skip` such tables."""
    found = [table for table in panel.all("table") if table.one("caption").text.startswith(caption)][skip]
    rows = [[cell.text for cell in line.parts if isinstance(cell, Node)] for line in found.all("tr")]
    return next(cells[1:] for cells in rows if cells[0] == first)
