"""The contract of benchmarks, what is kept of their runs, and the page that is written from it."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import asdict
from pathlib import Path

import pytest

from benchmarks import comparisons, contract, dedup_estimate
from benchmarks.comparisons import KEPT, PAGE, page, records
from benchmarks.contract import KEYS, NAMES, faults_of
from benchmarks.install_peers import environments

FOLDER = Path(__file__).parents[2] / "benchmarks"
LINE = {
    "name": "made up",
    "unit": "MB/s",
    "ours": 3.0,
    "peers": {"slow": 1.5, "fast": 4.0},
    "ratio": 0.75,
    "rows": [{"what": "another way", "ours": 8.0, "peers": {"slow": 2.0}}],
    "checks": {"texts kept": [3, "≥ 4", False]},
    "versions": {"python": "3.11"},
}


@pytest.mark.parametrize("name", NAMES)
def test_benchmark_takes_a_size_and_prints_what_the_contract_asks(name: str) -> None:
    if not (FOLDER / f"{name}.py").exists():
        pytest.skip(f"benchmarks.{name} is not there yet")
    tree = ast.parse((FOLDER / f"{name}.py").read_text("utf-8"))
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    assert {"--size", *KEYS} <= texts, {"--size", *KEYS} - texts
    options = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "main"]
    assert len(options) == 1 and ast.get_docstring(options[0])
    assert re.search(rf"benchmarks\.{name} \[[^`\n]*--size [a-z|]*small\|full", ast.get_docstring(tree) or "")


def test_kept_lines_obey_the_contract_and_name_no_machine() -> None:
    kept = records()
    assert kept
    for it in kept:
        assert faults_of(it["result"]) == [], it["benchmark"]
        assert it["status"] == int(not all(holds for _, _, holds in it["result"]["checks"].values()))
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", it["date"])
        assert re.fullmatch(r"\d+ cores of [\w-]+( with AVX-?\w+)?, \d+ GiB, \w+", it["machine"])
    assert not re.search(r"/(?:home|root|work|tmp)/|https?://", KEPT.read_text("utf-8"))


def test_page_is_what_the_module_writes_from_what_is_kept() -> None:
    assert PAGE.read_text("utf-8") == page(), "run python -m benchmarks.comparisons write"


def test_page_marks_lost_rows_and_missed_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparisons, "KEPT", tmp_path / "kept.jsonl")
    monkeypatch.setattr(comparisons, "PAGE", tmp_path / "page.md")
    comparisons.keep("readers", ["--size", "full"], 1, 0.5, LINE)
    comparisons.keep("readers", ["--size", "full"], 1, 0.5, LINE)
    comparisons.write()
    text = (tmp_path / "page.md").read_text("utf-8")
    assert len(records_of := (tmp_path / "kept.jsonl").read_text().splitlines()) == 1 and json.loads(records_of[0])
    assert "| [readers](#readers) | 3 | MB/s | fast 4 | 0.75 ×, **lost** | 0 of 1, **missed** |" in text
    assert "| another way | 8 | slow | 2 | 4 × | MB/s |" in text
    assert "| texts kept | 3 | ≥ 4 | **missed** |" in text
    assert "Not kept yet: extraction," in text


def test_writing_the_page_writes_the_estimate_of_the_guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = {
        **LINE,
        dedup_estimate.MEASURED: asdict(dedup_estimate.Figures(1000, 10**6, 1.0, 1e-3, 1e-3, 9, 9, 9, 9)),
    }
    for module, name, path in ((comparisons, "KEPT", "kept.jsonl"), (comparisons, "PAGE", "page.md")):
        monkeypatch.setattr(module, name, tmp_path / path)
    monkeypatch.setattr(dedup_estimate, "PAGE", guide := tmp_path / "guide.md")
    guide.write_text(f"before\n{dedup_estimate.BEGIN}\nold\n{dedup_estimate.END}\nafter\n")
    comparisons.keep("dedup", ["--size", "full"], 0, 0.5, measured)
    comparisons.write()
    assert (
        "Measured on one core: 1,000 documents of 1,000 bytes" in guide.read_text() and "old" not in guide.read_text()
    )


@pytest.mark.parametrize(
    "change",
    [
        {"ours": "fast"},
        {"peers": None},
        {"peers": {"slow": {"MB/s": 3}}},
        {"checks": {}},
        {"checks": {"texts kept": [3, "≥ 4"]}},
        {"versions": {"numpy": "2"}},
        {"rows": [{"what": "another way"}]},
    ],
    ids=str,
)
def test_faults_of_a_line_that_breaks_the_contract_are_named(change: dict[str, object]) -> None:
    assert faults_of(LINE) == []
    assert faults_of({**LINE, **change})
    assert faults_of({key: value for key, value in LINE.items() if key != "ratio"}) == ["no ratio"]


def test_environments_of_peers_pin_every_package_and_say_what_for() -> None:
    found = environments()
    assert {"datatrove", "text-dedup", "rensa", "datasketch", "dolma", "nemo", "data-juicer", "tokens", "grain"} <= {
        each.name for each in found
    }
    for each in found:
        lines = [line for line in each.pins.read_text("utf-8").splitlines() if not line.startswith("#")]
        assert lines and all(re.fullmatch(r"[A-Za-z0-9._-]+==[^\s=]+", line) for line in lines), each.name
        assert re.fullmatch(r"3\.1[1-3]", each.said("python")) and each.said("why")
        assert set(each.said("tools").split(", ")) <= set(each.versions()), each.name
    named = {name for name in contract.NAMES if any(name in each.said("why") for each in found)}
    assert {"readers", "filters", "language", "minhash", "dedup", "windows", "loader"} <= named
