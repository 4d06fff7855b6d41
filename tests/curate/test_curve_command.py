"""`curate dedup-curve`: the table, the measured points, the plot, and errors that say what to do."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from curate.command_line import main
from curate.commands.curve_plot import curve_svg
from curate.run import Result
from tests.curate.corpus import changed, sentence
from transforms.minhash import MinHash

TEXTS = [text for number in range(12) for text in (sentence(number), changed(sentence(number)))]


def test_curve_prints_the_probabilities_of_bandings_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dedup-curve"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("20 bands of 6 rows, threshold 0.8")
    (row,) = (line.split() for line in lines if line.split()[0] == "0.8")
    assert row[1:] == ["0.997712", "0.997712", "0.923548", "0.903207"]


def test_curve_chooses_bands_and_rows_for_a_recall(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dedup-curve", "--threshold", "0.72", "--recall", "0.95"]) == 0
    chosen = MinHash.for_recall("0.72", 0.95)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{chosen.bands} bands of {chosen.rows} rows, threshold 0.72")
    assert f"   0.72         {chosen.recall(0.72):.6f}" in [line[:24] for line in lines]


@pytest.mark.parametrize("name", ["texts.parquet", "texts.jsonl"])
def test_measured_points_stand_below_the_curve(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if name.endswith(".parquet"):
        pq.write_table(pa.table({"content": TEXTS}), tmp_path / name)
    else:
        (tmp_path / name).write_text("".join(json.dumps({"content": text}) + "\n" for text in [*TEXTS, ""]))
    command = ["dedup-curve", "--bands", "30", "--rows", "2", "--measured", str(tmp_path / name), "--column", "content"]
    assert main([*command, "--documents", "20"]) == 0
    lines = capsys.readouterr().out.split("measured, all pairs compared exactly:\n")[1].splitlines()
    (row,) = lines[1:]
    assert row.split()[:5] == ["0.85", "…", "0.90", "10", "10"]


def test_plot_is_well_formed_whatever_the_names(tmp_path: Path) -> None:
    assert main(["dedup-curve", "--svg", str(tmp_path / "plot.svg")]) == 0
    root = ElementTree.parse(tmp_path / "plot.svg").getroot()
    assert len(root.findall("{http://www.w3.org/2000/svg}polyline")) == 4
    hostile = curve_svg({'<script>&"': MinHash()}, (), MinHash().ratio)
    assert "<script>" not in hostile
    ElementTree.fromstring(hostile)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--recall", "0.9", "--bands", "3"], "give either"),
        (["--threshold", "1.5"], "threshold is a decimal"),
        (["--recall", "1"], "recall is a probability"),
        (["--measured", "nowhere.parquet"], "is not a file"),
    ],
)
def test_wrong_options_are_refused(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dedup-curve", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_file_without_such_a_column_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.jsonl").write_text('{"other": "x"}\n')
    assert main(["dedup-curve", "--measured", str(tmp_path / "a.jsonl")]) == 2
    assert "--column" in capsys.readouterr().err


def test_points_of_a_store_are_those_of_its_documents(
    undisturbed: Result, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = str(undisturbed.store.root)
    assert main(["dedup-curve", "--measured", store, "--bands", "40", "--rows", "1"]) == 0
    assert capsys.readouterr().out.startswith("40 bands of 1 rows")
    assert main(["dedup-curve", "--measured", store, "--column", "pages of it"]) == 2
    assert "no documents with 'pages of it'; there is id, text" in capsys.readouterr().err
    assert main(["dedup-curve", "--measured", str(tmp_path)]) == 2
