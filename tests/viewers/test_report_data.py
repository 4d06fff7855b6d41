"""`report.json` and the tables behind links: what the page shows, as values."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from curate.digests import digest_bytes
from curate.formats import FormatError
from curate.store import StoreError, json_line, self_digested
from tests.viewers.parsed import Node, parse
from tests.viewers.stores import HOSTILE, Made, hostile_stage, report
from viewers.markup import element
from viewers.numbers import MINUS, THIN, grouped
from viewers.report import compose
from viewers.report_data import failed_checks, read_report_json
from viewers.table_data import MEDIA_TYPE, Table, number_in, shown
from viewers.tables import Group, Mark, table
from viewers.visible import HIDDEN


def values(page: Path) -> dict[str, Any]:
    return read_report_json(page.with_suffix(".json").read_bytes(), "report.json")


def rows_of(link: Node) -> list[list[str]]:
    """Return the rows of the table that a link holds."""
    address = str(link.attributes["href"])
    assert address.startswith(MEDIA_TYPE) and address.isascii()
    return list(csv.reader(io.StringIO(unquote(address.removeprefix(MEDIA_TYPE)))))


def as_csv(value: int | str) -> str:
    text = str(value)
    return f"'{text}" if isinstance(value, str) and text[:1] in ("=", "+", "-", "@", "\t") else text


def squeezed(text: str) -> str:
    return "".join(text.split()).replace(MINUS, "-")


@pytest.mark.parametrize("name", ["page", "token_page"])
def test_downloads_and_json_equal_the_visible_tables(name: str, request: pytest.FixtureRequest) -> None:
    page: Path = request.getfixturevalue(name)
    root = parse(page.read_text("utf-8"))
    found = [table for panel in values(page)["panels"] for table in panel["tables"]]
    tables, links = root.one("main").all("table"), root.one("main").all(class_="download")
    assert len(found) == len(tables) == len(links) > 8
    for told, table_, link in zip(found, tables, links, strict=True):
        assert table_.one("caption").text == f"{told['caption']} {told['mark']}"
        assert rows_of(link.all("a")[0]) == [[as_csv(v) for v in row] for row in [told["columns"], *told["rows"]]]
        rows = [[cell.text for cell in row.parts if isinstance(cell, Node)] for row in table_.all("tr")]
        heads = [row for row in rows[1:] if len(row) == 1]
        cells = [row for row in rows[1:] if len(row) > 1 or len(rows[0]) == 1]
        mine = [row[1:] if told["columns"][0] == "group" else row for row in told["rows"]]
        assert [[squeezed(str(v)) for v in row] for row in mine] == [[squeezed(c) for c in row] for row in cells]
        if heads:
            assert list(dict.fromkeys(row[0] for row in told["rows"])) == [row[0] for row in heads]


def test_json_names_the_result_its_checks_and_facts(made: Made, page: Path) -> None:
    found = values(page)
    (docs,) = made.result.outputs.values()
    assert found["content"] == made.result.digest
    assert found["totals"]["documents"] == docs.rows and found["totals"]["sources"] == 2
    assert found["totals"]["tokens"] == 0 and found["plan"] is None
    root = parse(page.read_text("utf-8"))
    assert [panel["id"] for panel in found["panels"]] == [
        part.attributes["id"] for part in root.one("main").parts if isinstance(part, Node)
    ]
    assert [c["id"] for c in found["checks"]][:2] == ["documents-conserved", "characters-conserved"]
    assert failed_checks(found) == []
    assert ["Result", made.result.digest] in found["panels"][0]["facts"][0]
    (checks,) = [t for t in found["panels"][0]["tables"] if t["caption"] == "Checks"]
    for check in found["checks"]:
        assert any(row[0].endswith(check["verdict"]) and row[1].endswith(f" {check['id']}") for row in checks["rows"])
    quoted = root.one("footer", **{"class": "colophon"}).all("code")[-1].text
    assert quoted == digest_bytes(page.with_suffix(".json").read_bytes())


@pytest.mark.parametrize("name", [*HOSTILE, "=1+2", "@x\u0301" * 4000, "𝕏" * 300])
def test_json_hostile_names_hide_nothing(name: str) -> None:
    made = compose(report(hostile_stage(name, 1), hostile_stage(name, 2), name=name))
    text = made.data.decode()
    assert not HIDDEN.search(text) and "\n" not in text[:-1]
    assert len(made.data) < 200_000
    for link in parse(made.page.decode()).one("main").all(class_="download"):
        for cell in (cell for row in rows_of(link.all("a")[0]) for cell in row):
            assert not HIDDEN.search(cell) and cell[:1] not in ("=", "+", "@")


def test_json_damaged_or_of_another_kind_is_refused(page: Path) -> None:
    content = page.with_suffix(".json").read_bytes()
    with pytest.raises(StoreError, match="is damaged"):
        read_report_json(content.replace(b'"sources":2', b'"sources":3'), "x.json")
    with pytest.raises(StoreError, match=r"x.json is no report.json.*curate report"):
        read_report_json(b"<html>", "x.json")
    with pytest.raises(StoreError, match="kind"):
        read_report_json(json_line(self_digested({"kind": "recipe"})), "x.json")
    newer = {name: value for name, value in json.loads(content).items() if name != "digest"}
    with pytest.raises(FormatError, match="format 99"):
        read_report_json(json_line(self_digested({**newer, "format": 99})), "x.json")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (grouped(1_234_567), 1_234_567),
        (grouped(-1_234), -1_234),
        (f"12.3{THIN}%", "12.3%"),
        (f"≈ 1{THIN}234", "≈ 1234"),
        ("007", "007"),
        ("–", "–"),
        (f"a{THIN}b", f"a{THIN}b"),
    ],
)
def test_values_of_numbers_are_integers_or_lose_only_grouping(text: str, value: int | str) -> None:
    assert number_in(element("td", text).html) == value


def test_tables_keep_groups_and_equal_column_names_apart() -> None:
    made = table("T <1>", Mark.EXACT, ("A", "out", "out "), [Group("g&h", [["x", "1", "2"]]), ["y", "3", "4"]])
    (found,) = made.data
    assert found == Table("T <1>", "exact", ("group", "A", "out", "out 2"), (("g&h", "x", 1, 2), ("", "y", 3, 4)))
    assert found.name == "t-1" and element("div", made).data == made.data
    assert shown("<th>a<br><code>&lt;b&gt; &amp;amp;</code></th>") == "a <b> &amp;"
