from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from curate.accounting.ledger import SAMPLE_KINDS
from curate.datasets import Dataset
from curate.run import open_result
from curate.store import Store, StoreError
from tests.viewers.parsed import Node, number, parse, tables
from tests.viewers.stores import HOSTILE, Made, documents, hostile_stage, make_store, report, sample, stage
from viewers import write_report
from viewers.frame import POLICY
from viewers.markup import INSIDE, element
from viewers.numbers import grouped, ratio
from viewers.panels.rights import BASES, SIGNALS
from viewers.panels.samples import ORDER
from viewers.report import render
from viewers.scripts import script
from viewers.tables import Mark
from viewers.visible import HIDDEN, NAME_LENGTH, plain, shortened

LARGEST = 2_000_000
NAMED = [*HOSTILE, "x" * 1_000_000, "\u0301" * 10_000]


@pytest.fixture(scope="module")
def root(page: Path) -> Node:
    return parse(page.read_text("utf-8"))


@pytest.fixture(scope="module")
def cells(root: Node) -> dict[str, list[list[str]]]:
    return tables(root)


def shown(name: str) -> str:
    """Return a name as the text of a page has it."""
    return parse(element("p", shortened(name)).html).text


def flows(dataset: Dataset, source: str) -> list[dict[str, Any]]:
    """Return the step counters of a source, straight from the statistics."""
    steps = dataset.statistics.get("steps", {})
    return [
        {"name": steps[i]["name"], **steps[i]["sources"][source]}
        for i in sorted(steps)
        if source in steps[i]["sources"]
    ]


def test_report_outputs_equal_the_manifest(made: Made, cells: dict[str, list[list[str]]]) -> None:
    for name, dataset in made.result.outputs.items():
        (row,) = [row for row in cells["What came out"] if row[0] == shown(name)]
        groups = dataset.statistics["groups"]["source"]
        assert number(row[1]) == dataset.manifest["rows"] > 0
        assert number(row[2]) == sum(group["characters"] for group in groups.values())
        assert number(row[3]) == len(groups) == 2
        assert number(row[4]) == dataset.manifest["shards"]


def test_report_funnel_equals_the_statistics(made: Made, cells: dict[str, list[list[str]]]) -> None:
    for source in ('crawl"><script>', "shelf"):
        steps = [step for dataset in made.result.stages for step in flows(dataset, source)]
        rows = cells[f"{shown(source)} through each step"][1:]
        assert [row[0] for row in rows] == [shown(step["name"]) for step in steps]
        for row, step in zip(rows, steps, strict=True):
            drops = [c for reasons in step.get("dropped", {}).values() for c in reasons.values()]
            edits = list(step.get("edits", {}).values())
            expected = [step["documents_in"], sum(d["documents"] for d in drops), step["documents_out"]]
            expected += [step["characters_in"], sum(e["inserted"] for e in edits), sum(d["characters"] for d in drops)]
            expected += [sum(e["cut"] for e in edits), step["characters_out"]]
            assert [number(cell) for cell in row[1:]] == expected


def test_report_reasons_and_edits_equal_the_statistics(made: Made, cells: dict[str, list[list[str]]]) -> None:
    source = 'crawl"><script>'
    reasons, edits = [], []
    for dataset in made.result.stages:
        for step in flows(dataset, source):
            for transform, counted in step.get("dropped", {}).items():
                reasons += [[shown(r), shown(transform), grouped(c["documents"])] for r, c in counted.items()]
            edits += [[shown(r), shown(step["name"]), grouped(c["cut"])] for r, c in step.get("edits", {}).items()]
    assert len(reasons) >= 3 and len(edits) == 2
    assert sorted(row[:3] for row in cells[f"Why documents of {shown(source)} go"][1:]) == sorted(reasons)
    assert sorted([*row[:2], row[4]] for row in cells[f"What is changed in {shown(source)}"][1:]) == sorted(edits)


def test_report_reading_equals_the_statistics(made: Made, cells: dict[str, list[list[str]]]) -> None:
    source = 'crawl"><script>'
    (reading,) = [
        s.statistics["reading"][source] for s in made.result.stages if source in s.statistics.get("reading", {})
    ]
    found = {
        row[0]: (number(row[1]), number(row[2])) for row in cells[f"Records, refusals and gaps of {shown(source)}"][1:]
    }
    for kind in ("refused", "structural", "gaps"):
        for reason, counted in reading.get(kind, {}).items():
            assert found[reason] == (counted["count"], counted["stored"])
    assert found["read"] == (reading["records"]["read"]["count"], reading["records"]["read"]["stored"])
    assert len(reading["refused"]) and len(reading["structural"])
    assert sum(amount for _, amount in found.values()) == reading["total"]["stored"]


def test_report_sums_hold_as_printed(root: Node) -> None:
    lines = [line.text for line in root.all(class_="identities") for line in line_items(line)]
    assert len(lines) > 20
    for line in lines:
        left, right = (
            sum(number(n) for n in re.findall(r"\d[\d\u202f]*(?= \+|$)", side)) for side in line.split(" = ")
        )
        assert left == right, line


def line_items(node: Node) -> list[Node]:
    return node.all(class_="sum")


def test_report_rights_equal_the_statistics(made: Made, cells: dict[str, list[list[str]]]) -> None:
    (dataset,) = made.result.outputs.values()
    rights, optout = dataset.statistics["rights"], dataset.statistics["optout"]
    expected = [
        [shown(source), shown(licence), BASES[basis], grouped(c["documents"]), grouped(c["characters"])]
        for source, licences in rights.items()
        for licence, bases in licences.items()
        for basis, c in bases.items()
    ]
    found = [[*row[:4], row[5]] for row in cells[f"Licences of {shown('docs <&>')}"][1:]]
    assert sorted(found) == sorted(expected) and len(found) == 3
    answers = {row[0]: row[1:] for row in cells[f"Opt-out signals of {shown('docs <&>')}: answers and documents"][1:]}
    for source, signals in optout.items():
        assert answers[shown(source)] == [f"not checked {grouped(signals[s]['not checked'])}" for s in SIGNALS]


def test_report_duplicates_equal_statistics_and_ledger(
    made: Made, root: Node, cells: dict[str, list[list[str]]]
) -> None:
    last = made.result.stages[-1]
    counts = last.statistics["duplicates"]
    pairs = [number(row[1]) for row in cells["Pairs"][1:]]
    assert pairs == [counts[n] for n in ("proposed", "compared", "edges", "given_up", "split_buckets")]
    assert counts["edges"] > 0
    ledger = [row for batch in last.ledger() for row in batch.to_pylist()]
    for source in ('crawl"><script>', "shelf"):
        (row,) = [row for row in cells["What each source loses"] if row[0] == shown(source)]
        reasons = [r["reason"] for r in ledger if r["source"] == source]
        assert [number(c) for c in row[2:5]] == [
            reasons.count(r) for r in ("empty text", "equal text", "near duplicate")
        ]
    near = [row for row in ledger if row["reason"] == "near duplicate"]
    pictured = root.one("section", id="duplicates").text
    assert near
    for row in sorted(near, key=lambda row: (row["text_digest"], row["id"]))[:8]:
        assert row["id"].hex() in pictured
        assert ratio(row["numerator"], row["denominator"]) in pictured


def test_report_pairs_name_survivors_that_survive(made: Made, root: Node) -> None:
    kept = {value.as_py().hex() for batch in made.result.stages[-1].batches(["id"]) for value in batch.column("id")}
    articles = root.one("section", id="duplicates").all("article")
    assert articles
    for article in articles:
        stays = article.all("h5")[1]
        survivor = next(code.text for code in article.all("code") if code.text in kept)
        assert stays.text == "stays" and survivor in kept


def test_report_lineage_has_every_key_digest_and_version(made: Made, root: Node) -> None:
    lineage = root.one("section", id="lineage").text
    for dataset in made.result.stages:
        if dataset.name.startswith("compact "):
            assert dataset.key not in lineage
            continue
        for value in (dataset.key, dataset.content, dataset.manifest["digest"], dataset.manifest["ledger"]):
            assert value in lineage
    compacted = sum(dataset.name.startswith("compact ") for dataset in made.result.stages)
    assert compacted > 1 and f"Left out: {compacted} compact stages" in lineage
    assert made.result.digest in lineage
    assert "curate verify DIR" in lineage
    versions = {row[0]: row[1] for row in tables(root.one("section", id="lineage"))["Versions"][1:]}
    assert versions["GopherQuality"] == "1" and versions["MinHash"] == "1"


def test_report_samples_show_measure_and_threshold(made: Made, root: Node) -> None:
    panel = root.one("section", id="samples").text
    dropped = [s for d in made.result.stages[:-1] for s in d.samples() if s["kind"] == "dropped" and s["measure"]]
    assert dropped
    for found in dropped:
        assert (
            f"{found['measure']} {ratio(found['numerator'], found['denominator'])} · must be {found['threshold']}"
            in panel
        )
        assert found["id"].hex() in panel


def test_report_source_that_forbids_excerpts_shows_none(made: Made, root: Node) -> None:
    assert "This source does not allow its texts to be shown." in root.text
    for article in root.all("article"):
        if "shelf," in article.text and not article.all("h5"):
            assert not article.all(class_="text")


def test_report_hostile_store_makes_no_element_of_its_own(root: Node, page: Path) -> None:
    tags = {node.tag for node in root.all()}
    assert not tags & {"script", "img", "iframe", "object", "embed", "form", "textarea", "base", "video", "i"}
    assert len(root.all("style")) == len(root.all("title")) == len(root.all("body")) == 1
    for node in root.all():
        for name, value in node.attributes.items():
            assert not name.startswith("on") and name not in ("style", "src", "srcset", "action", "xlink:href")
            if name == "href":
                assert value is not None and INSIDE.fullmatch(value) and "report.html" not in value
    assert not HIDDEN.search(page.read_text("utf-8").replace("\r", "\x00"))
    for text in HOSTILE[:5]:
        assert text in root.text


def test_report_page_is_closed_to_scripts_and_requests(root: Node, page: Path) -> None:
    (policy,) = [m for m in root.all("meta") if m.attributes.get("http-equiv") == "Content-Security-Policy"]
    admitted = b64encode(sha256(script().encode()).digest()).decode()
    assert policy.attributes["content"] == f"{POLICY}; script-src 'sha256-{admitted}'"
    assert POLICY.startswith("default-src 'none'") and "script" not in POLICY
    assert page.read_text("utf-8").count(script()) == page.read_text("utf-8").count("<script") == 1
    assert root.one("html").attributes["lang"] == "en"
    style = root.one("style").text
    assert "http" not in style and "url(" not in style
    assert page.read_bytes().startswith(b'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">')


def test_report_tables_and_anchors_are_accessible(root: Node) -> None:
    for table in root.all("table"):
        assert table.one("caption").text.split()[-1] in {kind.value for kind in Mark}
        assert all(cell.attributes.get("scope") in ("col", "row", "rowgroup") for cell in table.all("th"))
    ids = [node.attributes["id"] for node in root.all() if "id" in node.attributes]
    assert len(ids) == len(set(ids))
    links = [str(a.attributes["href"])[1:] for a in root.all("a") if "download" not in a.attributes]
    assert links and set(links) <= set(ids)
    labels = [node.attributes["aria-labelledby"] for node in root.all() if "aria-labelledby" in node.attributes]
    assert set(labels) <= set(ids)
    assert root.one("main").all("h2")[0].text == "Verdicts"
    for section in [node for node in root.one("main").parts if isinstance(node, Node)]:
        assert len(section.all(class_="look")) == 1


def test_report_same_store_gives_same_bytes_anywhere(made: Made, page: Path, tmp_path: Path) -> None:
    again = write_report(Store(made.root), made.folder, tmp_path / "again.html")
    other = make_store(tmp_path / "elsewhere")
    moved = write_report(Store(other.root), other.folder, tmp_path / "moved.html")
    assert again.read_bytes() == page.read_bytes() == moved.read_bytes()
    assert len({path.with_suffix(".json").read_bytes() for path in (again, page, moved)}) == 1
    content = page.read_text("utf-8")
    assert str(made.root) not in content and str(made.root.parent) not in content
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "again.html",
        "again.json",
        "elsewhere",
        "moved.html",
        "moved.json",
    ]


def test_report_damaged_statistics_are_refused(tmp_path: Path) -> None:
    made = make_store(tmp_path / "in")
    store = Store(made.root)
    folder = open_result(store, made.folder).stages[0].folder
    path = store.path(f"{folder}/statistics.json")
    path.write_bytes(path.read_bytes().replace(b'"documents":', b'"documents":1', 1))
    target = tmp_path / "report.html"
    with pytest.raises(StoreError):
        write_report(store, made.folder, target)
    assert not target.exists()


@pytest.mark.parametrize("name", NAMED, ids=lambda name: plain(name)[:20])
def test_report_hostile_name_everywhere_stays_text(name: str) -> None:
    html = render(report(hostile_stage(name, 1), hostile_stage(name, 2), name=name))
    root = parse(html)
    assert not {"script", "img", "svg onload", "b><i"} & {node.tag for node in root.all()}
    assert len(root.all("style")) == len(root.all("title")) == 1
    assert all(not key.startswith("on") for node in root.all() for key in node.attributes)
    assert not HIDDEN.search(html)
    assert shown(name) in root.text
    assert len(html.encode()) < LARGEST
    longest = max(len(part) for node in root.one("body").all() for part in node.parts if isinstance(part, str))
    assert longest <= max(1600, NAME_LENGTH * 30)


def test_report_enormous_result_stays_small_and_says_what_is_left_out() -> None:
    counted = {"documents": 1, "characters": 1}
    stages = []
    for place in range(8):
        reasons = {f"reason {place} {i}": counted for i in range(1000)}
        step = {"documents_in": 1000, "documents_out": 0, "characters_in": 1000, "characters_out": 0}
        sources = {f"source {i}": {**step, "dropped": {"T": reasons}} for i in range(4)}
        many = [sample('\x00\x01<&"' * 300, i, reason=f"reason {i}", kind="dropped") for i in range(1000)]
        statistics = {
            "groups": {
                "source": {f"source {i}": {"documents": 0, "characters": 0} for i in range(300)},
            },
            "rights": {"source 1": {f"licence {i}": {"page": counted} for i in range(5000)}},
            "steps": {f"{i:02d}": {"name": f"step {i}", "sources": sources} for i in range(3)},
        }
        stages.append(stage(f"stage {place}", statistics=statistics, samples=tuple(many)))
    html = render(report(*stages))
    assert len(html.encode()) < LARGEST
    omitted = [node.text for node in parse(html).all(class_="left-out")]
    assert any("texts left out" in sentence for sentence in omitted)
    assert any("reasons left out" in sentence for sentence in omitted)
    assert any("sources left out" in sentence for sentence in omitted)


def test_report_shows_every_kind_of_sample() -> None:
    assert {*ORDER, "cell", "survivor", "pair"} == set(SAMPLE_KINDS)


def test_report_samples_are_taken_in_rounds() -> None:
    long = [sample("word " * 300, n, reason="common") for n in range(8)]
    rare = [sample("word " * 300, 9, reason="rare")]
    html = render(report(stage(samples=(*long, *rare), statistics=documents("web", 0))))
    headings = [h.text for h in parse(html).one("section", id="samples").all("h4")]
    assert headings == ["common", "rare"]


def test_report_without_documents_is_a_page() -> None:
    root = parse(render(report(stage())))
    assert "0 documents in docs" in root.text
    assert [h.text for h in root.one("main").all("h2")] == [
        "Verdicts",
        "Rights by source",
        "Funnel by source",
        "Kept, dropped, near misses",
        "Contamination",
        "Duplicates",
        "Personal data",
        "Hold-out",
        "Datasheet and known gaps",
        "Lineage",
        "Words",
    ]


def test_report_hosts_are_marked_as_sketched_when_they_are() -> None:
    hosts = {"most": {"least": {"0": {"name": "a"}, "1": {"name": ""}}, "k": 2}, "distinct": {"hll": "01" * 4096}}
    sketched = parse(render(report(stage(statistics=documents("web", 0, hosts=hosts)))))
    assert "≈" in tables(sketched)["What came out"][1][5]
    assert any("HyperLogLog" in note.text for note in sketched.all(class_="note"))
    exact = parse(
        render(report(stage(statistics=documents("web", 0, hosts={**hosts, "most": {**hosts["most"], "k": 9}}))))
    )
    assert tables(exact)["What came out"][1][5] == "1"
