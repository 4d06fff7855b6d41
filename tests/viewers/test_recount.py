"""Every number of the report, counted again by DuckDB over the store's files: equal in `report.json`, so on the page.

`test_report_data` holds that JSON, CSV and visible table are the same cells; here these cells meet the files.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from tests.viewers.books import Books
from tests.viewers.recounts import APART, NotRecounted, findings, recount_of, squeezed, totals
from tests.viewers.stores import Made
from viewers.numbers import MINUS
from viewers.visible import HIDDEN, code_points, shortened

STORES = {"made": "page", "trained": "token_page", "graded": "graded_page", "sheep": "sheep_page"}


@pytest.fixture(scope="module", params=STORES)
def both(request: pytest.FixtureRequest) -> tuple[Books, dict[str, Any]]:
    made: Made = request.getfixturevalue(request.param)
    page: Path = request.getfixturevalue(STORES[request.param])
    logs = request.getfixturevalue("logged").parent if request.param == "trained" else made.root.parent
    return Books(made.root, made.folder, made.root.parent, logs), json.loads(page.with_suffix(".json").read_bytes())


def tables_of(told: dict[str, Any]) -> list[dict[str, Any]]:
    return [table for panel in told["panels"] for table in panel["tables"]]


def cell(value: Any) -> str:
    text = HIDDEN.sub(lambda run: code_points(run[0]), shortened(str(value)))  # as the page shows what hides
    return text.replace(MINUS, "-")


def test_recount_each_table_has_a_query_or_a_reason(both: tuple[Books, dict[str, Any]]) -> None:
    for table in tables_of(both[1]):
        found = recount_of(table["caption"])
        assert found is not None, f"{table['caption']}: name in tests/viewers/recounts.py how it is counted again"
        if not isinstance(found[0], NotRecounted):
            assert set(found[0].apart) <= set(table["columns"])


def captions() -> list[str]:
    """Return the captions of all tables in the code of the panels, "x" standing for what is named."""
    found = []
    for path in Path("viewers/panels").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "table":
                parts = node.args[0].values if isinstance(node.args[0], ast.JoinedStr) else [node.args[0]]
                found.append("".join(str(p.value) if isinstance(p, ast.Constant) else "x" for p in parts))
    return found


def test_recount_each_table_in_the_code_has_a_query_or_a_reason() -> None:
    found = captions()
    assert len(found) > 30
    assert [caption for caption in found if caption not in ("x", "x, by x") and recount_of(caption) is None] == []


def test_recount_equals_report(both: tuple[Books, dict[str, Any]]) -> None:
    books, told = both
    counted = 0
    for table in tables_of(told):
        one, named = recount_of(table["caption"]) or pytest.fail(table["caption"])
        if isinstance(one, NotRecounted):
            continue
        apart = [table["columns"].index(column) for column in one.apart]
        shown = [[APART if at in apart else cell(c) for at, c in enumerate(row)] for row in table["rows"]]
        expected = [
            [APART if at in apart else cell(c) for at, c in enumerate(row)] for row in one.count(books, table, named)
        ]
        assert sorted(shown) == sorted(expected), table["caption"]
        counted += sum(len(row) - len(apart) for row in shown)
    assert counted > 60


def test_recount_equals_checks_and_totals(both: tuple[Books, dict[str, Any]]) -> None:
    books, told = both
    shown = {check["id"]: squeezed(check["finding"]) for check in told["checks"]}
    expected = findings(books)
    assert {check: shown[check] for check in expected} == expected
    assert told["totals"] == totals(books)


def test_recount_a_number_that_is_off_by_one_fails(both: tuple[Books, dict[str, Any]]) -> None:
    books, told = both
    (table,) = [table for table in tables_of(told) if table["caption"] == "All sources"]
    wrong = {**told, "panels": [{"tables": [{**table, "rows": [[*row[:-1], row[-1] + 1] for row in table["rows"]]}]}]}
    with pytest.raises(AssertionError, match="All sources"):
        test_recount_equals_report((books, wrong))
