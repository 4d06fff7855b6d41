"""The page of a large run stays small, does not grow with its corpus, and is the same twice."""

from __future__ import annotations

import json

from benchmarks.report import LARGER, bare, bytes_of_samples
from benchmarks.report_shape import shape
from viewers.report import compose


def test_report_of_a_large_run_stays_within_its_budget_and_shows_all_cells() -> None:
    made = compose(shape(200, 50, 1000))
    samples = bytes_of_samples(made.page)
    assert len(made.page) - samples <= 3_000_000
    assert 0 < samples <= 3_000_000
    assert compose(shape(200, 50, 1000)) == made
    tables = {t["caption"]: t for panel in json.loads(made.data)["panels"] for t in panel["tables"]}
    assert len(tables["Token caches"]["rows"]) == 201
    assert len(tables["Components by phase"]["rows"]) == 600
    assert [check["id"] for check in json.loads(made.data)["checks"] if check["verdict"] == "fail"] == []


def test_report_of_a_corpus_a_million_times_as_large_has_more_digits_alone() -> None:
    small, large = compose(shape(20, 5, 50)), compose(shape(20, 5, 50, LARGER))
    assert abs(bare(large) - bare(small)) < bare(small) / 20
    documents = json.loads(large.data)["totals"]["documents"]
    assert documents == LARGER * json.loads(small.data)["totals"]["documents"]
