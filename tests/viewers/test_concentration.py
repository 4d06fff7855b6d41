"""Concentration on hosts: Gini, largest hosts and explained variance, against a recount with floats from the rows."""

from __future__ import annotations

import random
from typing import Any

import pytest

from curate.accounting.statistics import least
from curate.store import Store
from tests.viewers.parsed import parse, tables
from tests.viewers.stores import Made, documents, report, stage
from viewers.concentration import concentrations, explained, gini
from viewers.loading import load_report
from viewers.numbers import grouped, share
from viewers.panels.concentration import concentration


def test_figures_are_those_of_the_rows(graded: Made) -> None:
    rows = [row for batch in graded.result.outputs["documents"].batches() for row in batch.to_pylist() if row["url"]]
    hosts: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        hosts.setdefault(row["url"].split("/")[2], []).append(row)
    (found,) = concentrations(load_report(Store(graded.root), graded.folder))
    assert found.is_exact and (found.hosts, found.documents) == (len(hosts), len(rows))
    assert found.gini / 1e6 == pytest.approx(differences([len(mine) for mine in hosts.values()]), abs=2e-6)
    sizes = [sum(len(row["text"]) for row in mine) for mine in hosts.values()]
    assert found.gini_characters / 1e6 == pytest.approx(differences(sizes), abs=2e-6)
    scores = {
        host: [r["quality_score"] for r in mine if r["quality_score"] is not None] for host, mine in hosts.items()
    }
    (told,) = found.explained
    assert told.column == "quality_score" and told.documents == sum(map(len, scores.values()))
    assert told.share is not None and 0 < told.share / 1e6 == pytest.approx(adjusted(list(scores.values())), abs=2e-6)
    panel = concentration(load_report(Store(graded.root), graded.folder))
    assert panel is not None
    shown = tables(parse(panel.markup().html))["Largest hosts of graded"][1:]
    largest = sorted(hosts, key=lambda host: (-len(hosts[host]), host))
    assert shown == [[h, grouped(len(hosts[h])), share(len(hosts[h]), len(rows))] for h in largest]


def differences(amounts: list[int]) -> float:
    """Return the Gini coefficient as half the relative mean absolute difference."""
    pairs = sum(abs(a - b) for a in amounts for b in amounts)
    return pairs / (2 * len(amounts) * sum(amounts))


def adjusted(groups: list[list[int]]) -> float:
    """Return ε² from the deviations themselves."""
    whole = [score for group in groups for score in group]
    mean = sum(whole) / len(whole)
    within = sum((score - sum(group) / len(group)) ** 2 for group in groups for score in group)
    total = sum((score - mean) ** 2 for score in whole)
    return 1 - (within / (len(whole) - len(groups))) / (total / (len(whole) - 1))


def test_gini_is_nought_of_equals_and_near_one_of_one_that_has_all() -> None:
    assert gini([5] * 9) == gini([]) == gini([0, 0]) == 0
    assert gini([0] * 999 + [7]) == 999_000


def test_explained_variance_is_all_nothing_or_unknown() -> None:
    assert explained("s", [(2, 10, 50), (2, 0, 0)]).share == 1_000_000
    assert explained("s", [(2, 5, 25), (2, 5, 25)]).share == 0
    for alone in ([], [(9, 3, 7)], [(1, 3, 9), (1, 4, 16)], [(2, 6, 18), (2, 6, 18)]):
        assert explained("s", alone).share is None
    draw = random.Random(1)
    groups = [[draw.randrange(-(2**31), 2**31) for _ in range(draw.randrange(1, 9))] for _ in range(500)]
    sums = [(len(group), sum(group), sum(score * score for score in group)) for group in groups]
    assert (explained("s", sums).share or 0) / 1e6 == pytest.approx(max(adjusted(groups), 0), abs=2e-6)


def test_largest_hosts_are_of_drawn_documents_where_not_all_hosts_are_kept() -> None:
    most = least({f"h{n}": {"documents": 1, "characters": 10} for n in range(9)}, 8)
    drawn = {f"{n:04x}": {"name": "big" if n < 200 else f"h{n}", "documents": 1} for n in range(400)}
    hosts = {"most": most, "drawn": {"least": drawn, "k": 512}, "distinct": {"hll": "01" * 4096}}
    panel = concentration(report(stage(statistics=documents("web", 9, hosts=hosts))))
    assert panel is not None
    root = parse(panel.markup().html)
    shown = tables(root)
    assert shown["Largest hosts of stage"][1:] == [["big", "200", "50.0\u202f%", "45.1 – 54.9 %"]]
    assert "≈" in shown["How unequal hosts are"][1][1] and len(root.all(class_="sampled")) == 2


def test_results_without_hosts_have_no_panel() -> None:
    assert concentration(report(stage(statistics=documents("web", 3)))) is None
