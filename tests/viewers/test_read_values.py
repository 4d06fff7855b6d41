"""What training reads by value, on made-up counts: shares in whole tokens, others, and what nothing can be told of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.accounting.statistics import least
from curate.store import Store
from tests.viewers.parsed import parse, tables
from tests.viewers.stores import Made
from viewers.loading import Report, load_report
from viewers.numbers import grouped
from viewers.panels.mixture import mixture
from viewers.panels.read_values import SHOWN
from viewers.read_values import NONE, OTHERS, Taken, apportioned, columns_counted, held_by, read_of_cell
from viewers.tokens import CellView
from viewers.trained import trained_by_licence


@pytest.fixture(scope="module")
def loaded(trained: Made) -> Report:
    return load_report(Store(trained.root), trained.folder)


def counted(cell: CellView, values: Mapping[str, int], most: int = 256, **more: Any) -> dict[str, Any]:
    """Return made-up counts: these documents by value, each of one token, and the rest of the cell in `all`."""
    described = cell.description
    whole = {"documents": described.documents, "tokens": described.tokens}
    return {
        "all": whole,
        "values": least({name: {"documents": n, "tokens": n} for name, n in values.items()}, most),
        **more,
    }


def with_counts(report: Report, column: str, values: Mapping[str, int], **more: Any) -> Report:
    cells = tuple(
        replace(
            cell,
            description=replace(
                cell.description,
                statistics={**cell.description.statistics, "by": {column: counted(cell, values, **more)}},
            ),
        )
        for cell in report.cells
    )
    return replace(report, cells=cells)


def rows_of(report: Report, column: str) -> list[list[str]]:
    panel = mixture(report)
    assert panel is not None
    found = tables(parse(panel.markup().html))
    (rows,) = [rows for caption, rows in found.items() if caption.startswith(f"What training reads by {column}")]
    return rows[1:]


@given(st.integers(0, 10**18), st.lists(st.integers(0, 10**12), min_size=1, max_size=20))
def test_apportioned_parts_add_up_and_are_within_one_of_their_share(amount: int, weights: list[int]) -> None:
    parts, whole = apportioned(amount, weights), sum(weights)
    if whole:
        assert sum(parts) == amount
        assert all(abs(part * whole - amount * weight) < whole for part, weight in zip(parts, weights, strict=True))
    else:
        assert parts == [0] * len(weights)


def test_values_beyond_those_with_rows_are_one_row_and_all_adds_up(loaded: Report) -> None:
    values = {f"v{number:03d}": 1 for number in range(SHOWN + 5)}
    rows = rows_of(with_counts(loaded, "topic", values, without={"documents": 1, "tokens": 100}), "topic")
    names = [row[0] for row in rows]
    assert len(rows) == SHOWN + 2 and names[-2:] == ["all others by topic", "no topic"]
    assert loaded.plan is not None
    read = sum(int("".join(filter(str.isdigit, row[3]))) for row in rows)
    assert read == sum(loaded.plan.tokens_read().values())


def test_values_that_were_not_counted_one_by_one_are_others(loaded: Report) -> None:
    cell = with_counts(loaded, "topic", {"a": 3, "b": 4}, without={"documents": 1, "tokens": 1}).cells[0]
    found = held_by(cell, "topic")
    assert found is not None and found[OTHERS, ""] == (cell.description.documents - 8, cell.description.tokens - 8)
    assert found[NONE, ""] == (1, 1)


def test_reads_are_exact_of_whole_passes_and_of_caches_with_one_value(loaded: Report) -> None:
    cell = with_counts(loaded, "language", {"de": 5}).cells[0]
    amounts = Taken((64, 128, 0), (False, True, False))
    assert {one.exact for one in read_of_cell(cell, "language", amounts)} == {(False, True, True)}
    (alone,) = read_of_cell(cell, "topic", amounts)
    assert alone.exact == (True, True, True) and alone.name == (NONE, "")


def test_caches_that_did_not_count_say_so(loaded: Report) -> None:
    cells = tuple(
        replace(
            cell,
            description=replace(
                cell.description, statistics={n: v for n, v in cell.description.statistics.items() if n != "by"}
            ),
        )
        for cell in loaded.cells
    )
    old = replace(loaded, cells=cells)
    assert columns_counted(old) == []
    panel = mixture(old)
    assert panel is not None and "made by an earlier curate" in parse(panel.markup().html).text


def test_counts_of_another_number_of_documents_are_not_believed(loaded: Report) -> None:
    report = with_counts(loaded, "language", {"de": 5}, all={"documents": 5, "tokens": 5})
    assert held_by(report.cells[0], "language") is None
    assert columns_counted(report) == []


def test_licences_of_the_panel_on_rights_are_those_of_the_mixture(loaded: Report) -> None:
    kinds = {name: {"user": {"documents": 1, "characters": size}} for name, size in (("A", 1), ("B", 2))}
    stages = tuple(
        replace(stage, statistics={**stage.statistics, "rights": dict.fromkeys(stage.sources, kinds)})
        for stage in loaded.stages
    )
    cells = []
    for cell in loaded.cells:
        whole = cell.description.documents, cell.description.tokens
        values = {
            "A": {"documents": 1, "tokens": whole[1] // 7},
            "B": {"documents": whole[0] - 1, "tokens": whole[1] - whole[1] // 7},
        }
        told = {"licence": {**counted(cell, {}), "values": least(values, 256)}}
        statistics = {**cell.description.statistics, "by": told}
        cells.append(replace(cell, description=replace(cell.description, statistics=statistics)))
    report = replace(loaded, stages=stages, cells=tuple(cells))
    sums: dict[str, int] = {}
    for one in trained_by_licence(report):
        sums[one.licence] = sums.get(one.licence, 0) + one.read
    assert {row[0]: row[3] for row in rows_of(report, "licence")} == {
        name: f"≈ {grouped(read)}" for name, read in sums.items()
    }
