"""Measures around thresholds, months and languages of what goes: from receipts to the page, for any cut into shards."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.report_shape import shape
from curate import Outputs, read_jsonl
from curate.run import run
from tests.viewers.books import Books
from tests.viewers.recounts import Recount, recount_of
from tests.viewers.stores import words
from transforms.gopher_rules import GopherQuality
from transforms.where import Where, field
from viewers.loading import load_report
from viewers.numbers import grouped
from viewers.panels.distributions import distributions
from viewers.report import compose
from viewers.spreads import spreads_of


def tables(data: bytes) -> dict[str, dict[str, Any]]:
    found = json.loads(data)
    return {table["caption"]: table for panel in found["panels"] for table in panel["tables"]}


@pytest.mark.parametrize("files", [1, 4])
def test_page_shows_values_around_thresholds_and_what_goes_by_month_and_language(tmp_path: Path, files: int) -> None:
    rows = [
        {
            "text": f"the of and to {words(n, 20 + 3 * n)}",
            "lang": ("de", "en")[n % 2],
            "when": f"201{n % 3}-03-01T00:00:00Z",
        }
        for n in range(40)
    ]
    (tmp_path / "in").mkdir()
    for part in range(files):
        (tmp_path / f"in/{part}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[part::files]))
    texts = read_jsonl(tmp_path / "in", source="s", columns={"language": "lang", "crawled_at": "when"})
    kept = texts.apply(Where(field("language") == "en", "not English"), GopherQuality(min_words=80), name="kept")
    result = run(Outputs(kept=kept), tmp_path / "store", runner="local")
    report = load_report(result.store, result.name)
    few = next(spread for spread in spreads_of(report) if spread.measure == "words" and spread.bound == "≥ 80")
    lengths = [24 + 3 * n for n in range(1, 40, 2)]
    assert few.judged == 20 and few.failing == sum(length < 80 for length in lengths)
    assert few.bins == tuple(sum(min(length * 4 // 80, 8) == place for length in lengths) for place in range(9))
    found = tables(compose(report).data)
    values = {row[1]: row[2:] for row in found["Documents by their value, in quarters of the threshold"]["rows"]}
    assert values["words ≥ 80"] == [few.failing, *few.bins, 0]
    stays = {month: sum(n % 2 == 1 and 24 + 3 * n >= 80 and n % 3 == month for n in range(40)) for month in range(3)}
    months = {row[0]: row[1:3] for row in found["Months of crawling, kept against dropped"]["rows"]}
    whole = {month: sum(n % 3 == month for n in range(40)) for month in range(3)}
    assert months == {f"201{month}-03": [stays[month], whole[month] - stays[month]] for month in range(3)}
    languages = {row[0]: row[1:3] for row in found["Languages, kept against dropped"]["rows"]}
    assert languages == {"English (en)": [sum(stays.values()), few.failing], "German (de)": [0, 20]}
    books = Books(tmp_path / "store", result.name, tmp_path, tmp_path)
    for caption in ("Months of crawling, kept against dropped", "Languages, kept against dropped"):
        one, _ = recount_of(caption) or pytest.fail(caption)
        assert isinstance(one, Recount)
        told = found[caption]
        assert [row[:2] for row in one.count(books, told, "")] == [row[:2] for row in told["rows"]]


def test_what_no_step_told_the_language_of_is_said_and_counted() -> None:
    report = shape(4, 5, 10)
    first, *others = report.stages
    who = first.statistics["who"]["steps"]["00"]["by"]
    untold = {name: values for name, values in who.items() if name != "language"}
    before = replace(first, statistics={**first.statistics, "who": {"steps": {"00": {"by": untold}}}})
    flows = first.statistics["steps"]["00"]["sources"].values()
    gone = sum(flow["documents_in"] - flow["documents_out"] for flow in flows)
    assert gone == 10
    rows = report.outputs["documents"].manifest["rows"]
    panel = distributions(replace(report, stages=(before, *others)))
    assert panel is not None
    said = f"language is not known: {grouped(rows)} documents of the outputs and {gone} documents dropped by steps"
    assert said in panel.body.html
