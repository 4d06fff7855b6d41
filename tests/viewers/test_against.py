"""The page about the differences of two results."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from curate.command_line import main
from curate.store import Store
from tests.viewers.browser import Browser
from tests.viewers.parsed import Node, parse, tables
from tests.viewers.stores import HOSTILE, Made, documents, hostile_stage, report, stage
from viewers.against import compare
from viewers.loading import Report, load_report
from viewers.matching import Change, changes
from viewers.report import compose
from viewers.report_data import read_report_json
from viewers.visible import HIDDEN


def data(found: Report) -> dict[str, Any]:
    return read_report_json(compose(found).data, "report.json")


def result(name: str, **kept: int) -> Report:
    groups = {source: {"documents": count, "characters": 10 * count} for source, count in kept.items()}
    rights = {source: {"MIT": {"page": group}} for source, group in groups.items()}
    statistics = {"groups": {"source": groups}, "rights": rights}
    return report(
        stage("read", key=f"{len(kept)}", statistics=statistics, manifest={"rows": sum(kept.values())}), name=name
    )


def differences(here: Report, there: Report) -> dict[str, list[list[str]]]:
    return tables(parse(compare(data(here), data(there))[0].decode()))


def test_differences_are_shown_by_panel_row_and_column() -> None:
    shown = differences(result("new", web=1500, books=20), result("old", web=1200, code=7))
    assert shown["Totals"][1:] == [
        ["Documents", "1\u202f520", "1\u202f207", "+313 (+25.9\u202f%)"],
        ["Tokens", "0", "0", "0"],
        ["Sources", "2", "2", "0"],
    ]
    assert shown["Licences of docs"] == [
        ["What", "Here", "There", "Change"],
        *[[name, *cells, "only here"] for name, *cells in (
            ("Licence", "MIT", "–"), ("Who says so", "declared in the page", "–"),
            ("Documents", "20", "–"), ("of all", "1.3\u202f%", "–"), ("Characters", "200", "–"),
        )],
        ["Documents", "1\u202f500", "1\u202f200", "+300 (+25.0\u202f%)"],
        ["of all", "98.7\u202f%", "99.4\u202f%", "−0.7 points"],
        ["Characters", "15\u202f000", "12\u202f000", "+3\u202f000 (+25.0\u202f%)"],
        *[[name, *cells, "only there"] for name, *cells in (
            ("Licence", "–", "MIT"), ("Who says so", "–", "declared in the page"),
            ("Documents", "–", "7"), ("of all", "–", "0.6\u202f%"), ("Characters", "–", "70"),
        )],
    ]  # fmt: skip


def test_differences_of_estimates_and_decimals_have_sign_and_unit() -> None:
    here, there = data(result("new", web=10)), data(result("old", web=10))
    shown = {"caption": "Epochs", "mark": "exact", "columns": ["Source", "Epochs", "Tokens"]}
    for side, row in ((here, ["web", "1.34", "≈ 15000"]), (there, ["web", "4.00", 20000])):
        side["panels"].append(
            {"id": "mixture", "title": "M", "facts": [], "left_out": [], "tables": [{**shown, "rows": [row]}]}
        )
    found = tables(parse(compare(here, there)[0].decode()))["Epochs"][1:]
    assert [row for row in found if len(row) > 1] == [
        ["Epochs", "1.34", "4.00", "−2.66"],
        ["Tokens", "≈ 15\u202f000", "20\u202f000", "≈ −5\u202f000 (−25.0\u202f%)"],
    ]


def test_differences_of_equal_results_are_none() -> None:
    one, other = data(result("a", web=5)), data(result("b", web=5))
    root = parse(compare(one, other)[0].decode())
    assert list(tables(root)) == ["Totals"]
    assert "Both have the same content digest" in root.text and "checks come out the same" in root.text
    assert all(look.text.startswith("0 tables of") for look in root.one("main").all(class_="look")[1:])


def test_differences_name_checks_that_come_out_otherwise() -> None:
    broken = report(stage(statistics=documents("web", 3), manifest={"rows": 4}))
    rows = differences(broken, report(stage(statistics=documents("web", 4), manifest={"rows": 4})))
    assert rows["Checks that come out otherwise"][1:] == [["manifests-agree", "fail", "pass"]]


def test_rows_are_found_again_by_as_many_cells_as_tell_them_apart() -> None:
    columns = ["Source", "Licence", "Documents"]
    here = {"columns": columns, "rows": [["web", "MIT", 1], ["web", "BSD", 2]]}
    there = {"columns": columns, "rows": [["web", "BSD", 3], ["web", "MIT", 1]]}
    assert list(changes(here, there)) == [Change("web · BSD", "Documents", 2, 3)]
    grouped = {"columns": ["group", "Step", "out"], "rows": [["Stage a (0123456789abcdef)", "x", 1]]}
    other = {"columns": ["group", "Step", "out"], "rows": [["Stage a (fedcba9876543210)", "x", 2]]}
    assert list(changes(grouped, other)) == [Change("Stage a · x", "out", 1, 2)]
    twice = {"columns": ["Name", "n"], "rows": [["a", 1], ["a", 2]]}
    assert list(changes(twice, {**twice, "rows": [["a", 1], ["a", 5]]})) == [Change("a", "n", 2, 5)]


def test_differences_page_and_its_values_are_equal_and_fit(
    made: Made, trained: Made, browser: Browser, tmp_path: Path
) -> None:
    one, other = (data(load_report(Store(found.root), found.folder)) for found in (made, trained))
    page, values = compare(one, other)
    assert (page, values) == compare(one, other)
    path = tmp_path / "against.html"
    path.write_bytes(page)
    root = parse(page.decode())
    told = [table for panel in json.loads(values)["panels"] for table in panel["tables"]]
    assert len(told) == len(root.one("main").all("table")) > 4
    for table, shown in zip(told, root.one("main").all("table"), strict=True):
        rows = [row for row in shown.all("tr") if len([c for c in row.parts if isinstance(c, Node)]) > 1]
        assert len(rows) == len(table["rows"]) + 1
    ids = [node.attributes["id"] for node in root.all() if "id" in node.attributes]
    assert len(ids) == len(set(ids)) and {"verdicts", "funnel", "mixture"} <= set(ids)
    opened = browser.open(path, 360)
    assert opened.noise == [] and opened.overflow <= 0


@pytest.mark.parametrize("name", [*HOSTILE, "x" * 5000])
def test_differences_hostile_names_stay_text(name: str) -> None:
    one, other = data(report(hostile_stage(name, 1), name=name)), data(report(hostile_stage("a", 1)))
    one["panels"][1]["id"] = one["panels"][1]["title"] = name
    for page, values in (compare(one, other), compare(other, one)):
        root = parse(page.decode())
        assert not {"script", "img", "svg"} & {node.tag for node in root.all()}
        assert not HIDDEN.search(page.decode()) and not HIDDEN.search(values.decode())


def test_report_command_compares_results_stores_and_published_values(
    made: Made, trained: Made, page: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(made.root, tmp_path / "store")
    store = str(tmp_path / "store")
    for other, name in ((made.folder, "<b>hostile & co</b>"), (str(trained.root), "all <the> way")):
        assert main(["report", store, f"--against={other}"]) == 0
        assert capsys.readouterr().out.splitlines() == [f"{store}/report.html", f"{store}/against.html"]
        head = parse((tmp_path / "store/against.html").read_text("utf-8")).one("header")
        named = head.one("h1").text, head.one("em").text
        assert named == ("<b>hostile & co</b>", name) or {text.rpartition(" ")[0] for text in named} == {name}
    assert main(["report", store, "--against", str(page.with_suffix(".json"))]) == 0
    assert main(["verify", store]) == 0
    assert main(["report", store, "--against", str(tmp_path)]) == 2
    assert "is no result of" in capsys.readouterr().err
