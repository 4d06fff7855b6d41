"""Licences of what training reads: as the plan draws, shared out where a cache has several."""

from __future__ import annotations

from dataclasses import replace

import pytest

from curate.store import Store
from tests.viewers.parsed import parse
from tests.viewers.stores import Made
from viewers.checks import check_report
from viewers.estimates import Rate
from viewers.loading import Report, load_report
from viewers.numbers import grouped, share
from viewers.panels.mixture import mixture
from viewers.panels.rights import rights
from viewers.trained import trained_by_licence
from viewers.verdict import Verdict


@pytest.fixture(scope="module")
def trained_report(trained: Made) -> Report:
    return load_report(Store(trained.root), trained.folder)


def test_trained_tokens_are_those_that_the_plan_reads(trained_report: Report) -> None:
    found = trained_by_licence(trained_report)
    assert trained_report.plan is not None
    assert {one.source: one.read for one in found} == trained_report.plan.tokens_read()
    assert all(one.is_exact and one.is_unknown for one in found)


def test_trained_lead_tells_unknown_licences_of_tokens_not_of_documents(trained_report: Report) -> None:
    words = parse(rights(trained_report).markup().html).text
    whole = sum(one.read for one in trained_by_licence(trained_report))
    assert f"Of the {grouped(whole)} tokens that training reads, {share(1, 1)} are under an unknown licence" in words


def test_trained_caches_of_two_columns_are_exact_where_the_dataset_has_one_licence(graded: Made) -> None:
    report = load_report(Store(graded.root), graded.folder)
    (one,) = trained_by_licence(report)
    tokens = sum(cell.description.tokens for cell in report.cells if cell.output == "training")
    assert one.held == tokens and one.is_exact
    assert report.plan is not None and one.read == sum(report.plan.tokens_read().values())


def test_trained_tokens_of_several_licences_are_shared_by_characters(trained_report: Report) -> None:
    kinds = {name: {"user": {"documents": 1, "characters": size}} for name, size in (("A", 1), ("B", 2))}
    stages = tuple(
        replace(stage, statistics={**stage.statistics, "rights": dict.fromkeys(stage.sources, kinds)})
        for stage in trained_report.stages
    )
    found = trained_by_licence(replace(trained_report, stages=stages))
    assert trained_report.plan is not None
    for source, read in trained_report.plan.tokens_read().items():
        mine = {one.licence: one for one in found if one.source == source}
        assert mine["B"].read == read * 2 // 3 or mine["A"].read == read // 3
        assert mine["A"].read + mine["B"].read == read and not mine["A"].is_exact


def test_trained_rate_is_that_of_the_source_and_exact_where_caches_hold_it(trained_report: Report) -> None:
    rate = Rate.of(trained_report)
    assert rate is not None
    for source, amount in rate.sources.items():
        assert rate.held(source, amount.documents, amount.characters) == amount.tokens
        assert rate.held(source, amount.documents - 1, amount.characters) is None
        assert rate.estimate(source, amount.characters) == amount.tokens
    assert rate.estimate("of no cache", rate.whole.characters) == rate.whole.tokens


def test_trained_a_share_that_the_cap_keeps_down_warns_and_says_why(trained_report: Report) -> None:
    (check,) = [check for check in check_report(trained_report) if check.id == "shares-met"]
    panel = mixture(trained_report)
    assert panel is not None
    assert ("AtMost(epochs)" in panel.markup().html) == (check.verdict is Verdict.WARN)
