"""The front page over many stores and reports."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import pytest

from curate.command_line import main
from curate.configuration import ConfigurationError
from curate.store import Store, json_line, self_digested
from tests.viewers.browser import Browser
from tests.viewers.parsed import number, parse, tables
from tests.viewers.stores import HOSTILE, Made
from viewers import write_index
from viewers.index import Entry, Shelf, render_index
from viewers.visible import HIDDEN

ERROR = "<script>ValueError</script>: step \u202e9"


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of which two runs failed and a third was killed."""
    root = tmp_path_factory.mktemp("broken & <b>")
    started = {"time": 1, "event": "started", "host": "h", "pid": 1}
    job = {"time": 2, "event": "job", "job": "read <i>", "total": 2, "missing": 2, "bytes": 9}
    stopped = {"time": 3, "event": "stopped", "error": ERROR}
    for name, events in {"r1": [started, job, stopped], "r2": [started, stopped], "r3": [started, job]}.items():
        path = root / f"runs/{name}/journal.jsonl"
        path.parent.mkdir(parents=True)
        path.write_text("".join(json.dumps(event) + "\n" for event in events))
    return root


@pytest.fixture(scope="module")
def published(page: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the page of the first store and its values, as somebody would publish them."""
    folder = tmp_path_factory.mktemp("a published #1?")
    (folder / "report.html").write_bytes(page.read_bytes())
    (folder / "report.json").write_bytes(page.with_suffix(".json").read_bytes())
    return folder


@pytest.fixture(scope="module")
def front(made: Made, trained: Made, broken: Path, published: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("front") / "index.html"
    write_index([Store(place) for place in (made.root, trained.root, broken, published)], path)
    return path


def test_index_lists_results_of_all_stores_and_runs_that_failed(front: Path, made: Made, trained: Made) -> None:
    shown = tables(parse(front.read_text("utf-8")))
    first, second, third = shown["Results"][1:]
    assert first[0] == "<b>hostile & co</b>" and second[0] == "all <the> way"
    (docs,) = made.result.outputs.values()
    assert number(first[1]) == docs.rows and first[2] == "–" and number(first[3]) == 2
    assert number(second[2]) == sum(
        cell["tokens"] for caches in trained.result.caches.values() for cell in caches.manifest["cells"].values()
    )
    assert first[6] == made.result.digest[:16] and second[6] == trained.result.digest[:16]
    assert third[:7] == first[:7] and first[4] == "none"
    runs = shown["Runs that did not finish"][1:]
    assert [row[0] for row in runs] == ["r1", "r2", "r3"]
    assert [row[1] for row in runs] == ["read <i>", "–", "read <i>"]
    assert [row[2] for row in runs] == [ERROR.replace("\u202e", "U+202E")] * 2 + [
        "its journal has no end: killed, or still running"
    ]


def test_index_links_lead_to_pages_beside_it_only(front: Path, published: Path, browser: Browser) -> None:
    root = parse(front.read_text("utf-8"))
    links = [str(a.attributes["href"]) for a in root.one("main").all("a") if "download" not in a.attributes]
    links = [link for link in links if not link.startswith("#table-")]
    assert links == [f"../{quote(published.name)}/report.html"]
    assert not root.all("script") and not HIDDEN.search(front.read_text("utf-8"))
    opened = browser.open(front, 360)
    assert opened.noise == [] and opened.overflow <= 0
    assert opened.evaluate("document.querySelector('main a').href") == (published / "report.html").as_uri()


def test_index_same_stores_give_same_bytes(front: Path, made: Made, broken: Path, tmp_path: Path) -> None:
    for name in "ab":
        write_index([Store(made.root), Store(broken)], tmp_path / f"{name}.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


@pytest.mark.parametrize("name", [*HOSTILE, "x" * 5000])
def test_index_hostile_names_stay_text(name: str, tmp_path: Path) -> None:
    checks = [{"id": name, "verdict": "fail", "question": name, "finding": name}]
    totals = {"documents": 1, "tokens": 2, "sources": 3}
    data = {"name": name, "content": name, "manifest": name, "totals": totals, "checks": checks}
    html = render_index([Shelf(name, (Entry(name, name, data, None),), (), ((name, name),))], tmp_path)
    root = parse(html)
    assert not {"script", "img", "svg"} & {node.tag for node in root.all()} and not HIDDEN.search(html)
    assert len(html.encode()) < 90_000


def test_index_command_says_what_cannot_be_read(
    published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged, empty, out = tmp_path / "damaged", tmp_path / "empty", tmp_path / "index.html"
    damaged.mkdir()
    empty.mkdir()
    (damaged / "report.json").write_bytes((published / "report.json").read_bytes().replace(b"fail", b"pass", 1)[:-9])
    assert main(["index", str(published), str(damaged), "--out", str(out)]) == 1
    assert "report.json of damaged cannot be read" in capsys.readouterr().err
    shown = tables(parse(out.read_text("utf-8")))
    assert len(shown["Results"]) == 2 and shown["What cannot be read"][1][0] == "report.json"
    wrong = {"format": 1, "kind": "report", "name": 5, "totals": {}, "checks": [], "panels": []}
    (damaged / "report.json").write_bytes(json_line(self_digested(wrong)))
    assert main(["index", str(damaged), "--out", str(out)]) == 1
    assert "missing or of another type" in out.read_text("utf-8")
    torn = tmp_path / "torn/result-0/manifest.json"
    torn.parent.mkdir(parents=True)
    torn.write_text('{"kind": "rec')
    assert main(["index", str(published), str(tmp_path / "torn"), "--out", str(out)]) == 1
    shown = tables(parse(out.read_text("utf-8")))
    assert len(shown["Results"]) == 2 and shown["What cannot be read"][1][0] == "store"
    assert main(["index", str(published), "--out", str(out)]) == 0
    with pytest.raises(ConfigurationError, match="holds no result"):
        write_index([Store(empty)], out)
