"""Sources pinned by a listing: nothing is hashed before a run, and a file that is not the listed one is an error."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from curate import Outputs, read_files, read_jsonl, read_parquet, read_warc
from curate.command_line import main
from curate.configuration import ConfigurationError
from curate.digests import digest_file
from curate.inputs.files import InputFile, StatIndex, find_files, units_of
from curate.inputs.listings import CHECKSUMS, ListedFile, check_listing, read_listing
from curate.inputs.pinning import make_listing, read_sums
from curate.planning.plan import plan
from curate.recipes.graph import Read
from curate.running.jobs import TaskError
from curate.store import Store
from tests.curate.corpus import journal, run_on, sentence, tasks, texts, write_lines


@pytest.fixture
def source(tmp_path: Path) -> Path:
    root = tmp_path / "in"
    for name in ("b", "a", "c d"):
        write_lines(root / "deep" / f"{name}.jsonl", [{"text": sentence(len(name) + ord(name[0]))}])
    return root


def listed(root: Path, **options: Any) -> Outputs:
    return Outputs(read_jsonl(root, source="s", **options))


def write_listing(path: Path, root: Path, kind: str = "blake3") -> Path:
    """Write a listing of all files with one kind of checksum."""
    files = find_files(root, "**/*", "test")
    sums = {file.path: _checksum(kind, root / file.path) for file in files}
    path.write_bytes(b"".join(file.line() for file in make_listing(files, sums, kind)))
    return path


def _checksum(kind: str, path: Path) -> str:
    hasher = CHECKSUMS[kind][0]()
    hasher.update(path.read_bytes())
    return hasher.hexdigest()


@pytest.mark.parametrize("kind", CHECKSUMS)
def test_listed_source_is_read_without_a_first_pass_and_gives_the_same_texts(
    kind: str, source: Path, tmp_path: Path
) -> None:
    listing = write_listing(tmp_path / "listing.jsonl", source, kind)
    result = run_on(listed(source, listing=listing), tmp_path / "listed")
    assert [event for event in journal(tmp_path / "listed") if event.get("job") == "fingerprint inputs"] == []
    plain = run_on(listed(source), tmp_path / "plain")
    assert texts(result.stages[0]) == texts(plain.stages[0])
    assert (result.stages[0].key == plain.stages[0].key) == (kind == "blake3")


def test_pinning_hashed_files_by_blake3_reruns_nothing(source: Path, tmp_path: Path) -> None:
    before = run_on(listed(source), tmp_path / "store")
    listing = write_listing(tmp_path / "listing.jsonl", source)
    after = run_on(listed(source, listing=str(listing)), tmp_path / "store")
    assert tasks(tmp_path / "store") == {} and after.digest == before.digest


def test_plan_over_a_listing_knows_all_keys_before_anything_is_hashed(source: Path, tmp_path: Path) -> None:
    (unknown,) = plan(listed(source), tmp_path / "store")
    assert (unknown.state, unknown.key, unknown.files) == ("unknown until hashed", None, 3)
    listing = write_listing(tmp_path / "listing.jsonl", source, "sha256")
    (known,) = plan(listed(source, listing=listing), tmp_path / "store")
    assert (known.state, known.shards, known.done) == ("to run", 3, 0)
    assert not (tmp_path / "store").exists()
    result = run_on(listed(source, listing=listing), tmp_path / "store")
    assert known.key == result.stages[0].key
    assert set(known.run) == {shard["key"] for shard in result.stages[0].shards()}


def test_changed_line_of_a_listing_reruns_that_file_alone(source: Path, tmp_path: Path) -> None:
    listing = write_listing(tmp_path / "listing.jsonl", source, "md5")
    run_on(listed(source, listing=listing), tmp_path / "store")
    write_lines(source / "deep" / "a.jsonl", [{"text": sentence(99)}])
    run_on(listed(source, listing=write_listing(listing, source, "md5")), tmp_path / "store")
    assert tasks(tmp_path / "store") == {"read s": ["deep/a.jsonl"]}


@pytest.mark.parametrize("kind", CHECKSUMS)
def test_file_of_other_bytes_and_equal_size_is_an_error_that_names_file_and_remedy(
    kind: str, source: Path, tmp_path: Path
) -> None:
    listing = write_listing(tmp_path / "listing.jsonl", source, kind)
    path = source / "deep" / "a.jsonl"
    content = path.read_bytes()
    path.write_bytes(content.replace(b"The", b"Tha"))
    with pytest.raises(TaskError, match=rf"a.jsonl has the {kind} .* or is not the file that its listing names"):
        run_on(listed(source, listing=listing), tmp_path / "store")
    assert not list((tmp_path / "store").glob("*/manifest.json"))
    path.write_bytes(content)
    assert len(texts(run_on(listed(source, listing=listing), tmp_path / "store").stages[0])) == 3


def longer(root: Path) -> None:
    with (root / "deep" / "a.jsonl").open("ab") as file:
        file.write(b"\n")


def unlisted(root: Path) -> None:
    write_lines(root / "deep" / "new.jsonl", [{"text": "x"}])


def missing(root: Path) -> None:
    (root / "deep" / "b.jsonl").unlink()


def renamed(root: Path) -> None:
    (root / "deep" / "b.jsonl").rename(root / "deep" / "e.jsonl")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (longer, r"1 files of another size than listed \(deep/a.jsonl\): fetch them again"),
        (unlisted, r"1 files in the folder, not in the listing \(deep/new.jsonl\): list the folder again"),
        (missing, r"1 files in the listing, not in the folder \(deep/b.jsonl\): fetch them"),
        (renamed, r"1 files in the folder, not in the listing \(deep/e.jsonl\)"),
    ],
)
def test_folder_that_is_not_the_listed_one_is_an_error_before_any_work(
    change: Callable[[Path], None], says: str, source: Path, tmp_path: Path
) -> None:
    listing = write_listing(tmp_path / "listing.jsonl", source)
    change(source)
    with pytest.raises(ConfigurationError, match=says):
        run_on(listed(source, listing=listing), tmp_path / "store")
    with pytest.raises(ConfigurationError, match=says):
        plan(listed(source, listing=listing), tmp_path / "store")
    assert not (tmp_path / "store" / "shards").exists()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ({"size": 1, "md5": "0" * 32}, "'path' is missing"),
        ({"path": "a", "md5": "0" * 32}, "'size' is missing"),
        ({"path": "a", "size": -1, "md5": "0" * 32}, "size a number of bytes"),
        ({"path": "a", "size": True, "md5": "0" * 32}, "size a number of bytes"),
        ({"path": "a", "size": 1}, "none of the checksums blake3, sha256, md5"),
        ({"path": "a", "size": 1, "mtime": 5}, "'mtime' is not one of blake3, sha256, md5"),
        ({"path": "a", "size": 1, "sha256": "0" * 63}, "not 64 lower-case hex digits"),
        ({"path": "a", "size": 1, "md5": "F" * 32}, "not 32 lower-case hex digits"),
        (["a"], "line 2"),
    ],
)
def test_line_that_pins_nothing_is_an_error_with_its_number(line: Any, says: str, tmp_path: Path) -> None:
    path = tmp_path / "listing.jsonl"
    path.write_text(json.dumps({"path": "b", "size": 1, "md5": "0" * 32}) + "\n" + json.dumps(line) + "\n")
    with pytest.raises(ConfigurationError, match=says) as error:
        read_listing(path)
    assert f"listing {path} line 2: " in str(error.value)


def test_listing_that_is_missing_empty_or_names_a_file_twice_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "listing.jsonl"
    with pytest.raises(ConfigurationError, match=r"No such file or directory; `curate list ROOT > .*` makes one"):
        read_listing(path)
    path.write_bytes(b"")
    with pytest.raises(ConfigurationError, match="is empty"):
        read_listing(path)
    path.write_bytes(ListedFile("a", 1, {"md5": "0" * 32}).line() * 2)
    with pytest.raises(ConfigurationError, match="a stands in it twice"):
        read_listing(path)


def test_objects_are_compared_by_version_and_local_files_cannot_be(tmp_path: Path) -> None:
    file = ListedFile("a", 3, {}, "etag-1")
    check_listing("s", tmp_path, [file], {"a": (3, "etag-1")})
    with pytest.raises(ConfigurationError, match=r"1 files of another version than listed \(a\): list them again"):
        check_listing("s", tmp_path, [file], {"a": (3, "etag-2")})
    with pytest.raises(ConfigurationError, match="listed by version alone, which local files do not have"):
        check_listing("s", tmp_path, [file], {"a": (3, "")})
    (line,) = make_listing([InputFile(Store("s3://bucket/prefix"), "a", 3, "etag-1")])
    assert line == file and "etag-1" in line.fingerprint and read_back(line, tmp_path) == line


def read_back(line: ListedFile, folder: Path) -> ListedFile:
    (folder / "one.jsonl").write_bytes(line.line())
    (found,) = read_listing(folder / "one.jsonl")
    return found


# --- curate list -----------------------------------------------------------------------------------------------------


def test_list_command_writes_a_listing_that_pins_what_is_there(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["list", str(source), "--pattern", "**/*.jsonl"]) == 0
    (tmp_path / "listing.jsonl").write_text(capsys.readouterr().out)
    files = read_listing(tmp_path / "listing.jsonl")
    assert [file.path for file in files] == ["deep/a.jsonl", "deep/b.jsonl", "deep/c d.jsonl"]
    assert {file.fingerprint for file in files} == {digest_file(path) for path in source.rglob("*.jsonl")}


def test_list_command_takes_checksums_that_came_with_the_data_and_reads_none(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = [" ./deep/a.jsonl", "*deep/b.jsonl", " deep/c d.jsonl"]
    lines = [f"{number:064x} {name}" for number, name in enumerate(named)]
    (tmp_path / "SUMS").write_text("\n".join(lines) + "\n")
    assert main(["list", str(source), "--sha256", str(tmp_path / "SUMS")]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["sha256"][-1] for line in found] == ["0", "1", "2"] and found[2]["path"] == "deep/c d.jsonl"


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["0" * 32 + "  deep/a.jsonl"], r"2 files of .* have no checksum: deep/b.jsonl, deep/c d.jsonl"),
        (["0" * 32 + f"  deep/{n}.jsonl" for n in ("a", "b", "c d", "z")], "have a checksum and are not there: deep/z"),
        (["nonsense  deep/a.jsonl"], "SUMS line 1: md5 is 'nonsense', not 32 lower-case hex digits"),
    ],
)
def test_checksums_that_do_not_fit_the_folder_are_an_error(
    lines: list[str], says: str, source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "SUMS").write_text("\n".join(lines) + "\n")
    assert main(["list", str(source), "--md5", str(tmp_path / "SUMS")]) == 2
    error = capsys.readouterr().err
    assert re.search(says, error), error


def test_sums_as_the_tools_write_them_are_understood(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"text")
    digest = hashlib.sha256(b"text").hexdigest()
    (tmp_path / "SUMS").write_text(f"{digest}  a\n{digest.upper()} *./b\n")
    assert read_sums(tmp_path / "SUMS", "sha256") == {"a": digest, "b": digest}


def test_every_reader_takes_a_listing(tmp_path: Path) -> None:
    for read in (read_warc, read_jsonl, read_parquet, read_files):
        operation = read(tmp_path, source="s", listing=str(tmp_path / "l")).operation
        assert isinstance(operation, Read) and operation.reader.listing == tmp_path / "l"


def test_units_of_a_listing_need_no_index(source: Path, tmp_path: Path) -> None:
    listing = write_listing(tmp_path / "l", source)
    operation = read_jsonl(source, source="s", listing=listing).operation
    assert isinstance(operation, Read)
    files = find_files(source, "**/*", "test")
    known, unknown = units_of(operation.reader, files, StatIndex(Store(tmp_path / "store")))
    assert [unit.path for unit in known] == [file.path for file in files] and unknown == []
