"""`curate audit`: the page of somebody else's Parquet says what the files hold, and names what they do not say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from curate.command_line import main
from curate.configuration import ConfigurationError
from curate.recipes.audit import audit_recipe, look_into
from tests.viewers.parsed import parse
from tests.viewers.stores import HOSTILE, words


def write(path: Path, **columns: list[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def texts(count: int) -> list[str]:
    return [f"{words(n, 60)} number {n} mail to someone{n}@example.org" for n in range(count)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("audit") / "theirs"
    addresses = [f"https://h{n % 3}.example/{n}" for n in range(30)]
    write(root / "web/0.parquet", Content=texts(30), url=addresses, license=["MIT"] * 30, id=list(range(30)))
    write(root / "books/0.parquet", body=[*texts(12), *HOSTILE, ""], number=list(range(13 + len(HOSTILE))))
    write(root / "books/numbers.parquet", number=[1, 2])
    (root / "books/broken.parquet").write_bytes(b"PAR1 this is none")
    whole = (root / "web/0.parquet").read_bytes()
    (root / "web/cut.parquet").write_bytes(whole[: len(whole) // 2])
    return root


@pytest.fixture(scope="module")
def page(folder: Path) -> Path:
    bench = folder.parent / "bench.jsonl"
    bench.write_text(json.dumps({"q": f"{words(500, 30)} what is asked here?", "a": "42"}) + "\n")
    out = folder.parent / "page.html"
    assert main(["audit", str(folder), "--out", str(out), "--benchmark", f"bench={bench},question=q,answer=a"]) == 0
    return out


@pytest.fixture(scope="module")
def tables(page: Path) -> dict[str, list[list[Any]]]:
    panels = json.loads(page.with_suffix(".json").read_bytes())["panels"]
    return {table["caption"]: table["rows"] for panel in panels for table in panel["tables"]}


def test_audit_counts_what_the_files_hold(tables: dict[str, list[list[Any]]], folder: Path) -> None:
    books = pq.read_table(folder / "books/0.parquet")["body"].to_pylist()
    came = {row[0]: row[1:3] for row in tables["What came out"]}
    assert came["all of books"] == [len(books), sum(map(len, books))]
    assert came["all of web"][0] == 30
    loses = {row[0]: row[1:5] for row in tables["What each source loses"]}
    assert loses == {"books": [len(books), 1, 0, 0], "web": [30, 0, 12, 0]}
    assert [row[0] for row in tables["Largest hosts of without duplicates"]] == [
        "h0.example",
        "h1.example",
        "h2.example",
    ]
    licences = [tables[f"Licences of all of {source}"][0][1] for source in ("books", "web")]
    assert licences == ["unknown", "MIT"]
    masked = next(rows for caption, rows in tables.items() if caption.startswith("Masked in after usual filters: web"))
    assert masked[0][:4] == ["web", "e-mail", 30, 30]
    assert tables["Benchmarks looked for"][0][0] == "bench"


def test_audit_records_damage_and_names_what_is_not_known(page: Path, tables: dict[str, list[list[Any]]]) -> None:
    for source in ("books", "web"):
        assert ["Gaps", "not Parquet", 1] in [row[:3] for row in tables[f"Records, refusals and gaps of {source}"]]
    text = parse(page.read_text("utf-8")).one("section", id="datasheet").text
    for said in (
        "made from the files alone",
        "1 files were not read: books/numbers.parquet (no column of texts)",
        "Columns that were not looked at: id, number",
        "2 of 4 files have no column of addresses",
    ):
        assert said in text, said


def test_audit_leaves_the_files_as_they_are_and_nothing_else(page: Path, folder: Path) -> None:
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    assert names == [
        "books/0.parquet",
        "books/broken.parquet",
        "books/numbers.parquet",
        "web/0.parquet",
        "web/cut.parquet",
    ]
    assert not page.with_name("store").exists()


def test_look_into_finds_columns_by_name_then_by_size(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", Text=["x"], URL=["u"], LANG=["en"])
    write(tmp_path / "b.parquet", label=["x"], prose=["much longer than a label" * 9], n=[1])
    write(tmp_path / "c.parquet", text=["x"], content=["y" * 100])
    pq.write_table(pa.table({"text": pa.array(["x", "x"]).dictionary_encode()}), tmp_path / "d.parquet")
    found = {file.path: dict(file.columns) for files in look_into(tmp_path).sources.values() for file in files}
    assert found["a.parquet"] == {"text": "Text", "url": "URL", "language": "LANG"}
    assert found["b.parquet"] == {"text": "prose"} and found["c.parquet"] == {"text": "text"}
    assert found["d.parquet"] == {"text": "text"}
    chosen = look_into(tmp_path, "content")
    assert [file.path for files in chosen.sources.values() for file in files] == ["c.parquet"]
    assert chosen.left_out["b.parquet"] == "no column 'content' of texts"


def test_look_into_more_folders_than_are_told_apart_is_one_source(tmp_path: Path) -> None:
    for number in range(33):
        write(tmp_path / f"{number}/a.parquet", text=["x"])
    assert list(look_into(tmp_path).sources) == [tmp_path.name]


def test_audit_recipe_reads_each_source_with_its_own_columns(tmp_path: Path) -> None:
    write(tmp_path / "in/a.parquet", text=["x"], license=["MIT"])
    write(tmp_path / "in/b.parquet", body=["y"])
    audit = look_into(tmp_path / "in")
    assert list(audit.sources) == ["in (body)", "in (text, license)"]
    outputs = audit_recipe(audit, tmp_path / "view", licence="CC0-1.0", sample="0.1")
    assert outputs.datasheet.gaps[0].startswith("All numbers are of a sample: a share of 0.1")
    assert "all of in (body)" in outputs.products and "without duplicates" in outputs.products
    assert any("CC0-1.0 was asserted" in gap for gap in outputs.datasheet.gaps)


@pytest.mark.parametrize(
    ("made", "error"),
    [
        ({}, "has no Parquet files"),
        ({"a.parquet": b"none"}, "none of 1 files can be opened"),
        ({"n.parquet": None}, "n.parquet has no column of texts; name the column of texts with --text"),
    ],
)
def test_look_into_a_folder_without_texts_is_an_error(
    tmp_path: Path, made: dict[str, bytes | None], error: str
) -> None:
    for name, content in made.items():
        if content is None:
            write(tmp_path / name, n=[1])
        else:
            (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigurationError, match=error):
        look_into(tmp_path)


def test_audit_of_no_folder_or_a_wrong_benchmark_is_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", str(tmp_path / "none")]) == 2
    write(tmp_path / "a.parquet", text=["x"])
    assert main(["audit", str(tmp_path), "--benchmark", "x.jsonl"]) == 2
    assert "give NAME=FILE" in capsys.readouterr().err
