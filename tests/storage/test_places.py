"""One behaviour of every place: local folders, file systems without links, S3 (moto), Google's interface (a stub)."""

from __future__ import annotations

import errno
import io
import os
import random
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from curate.digests import digest_bytes
from curate.storage.options import StorageOptions
from curate.store import POINTS, PUT_POINTS, REMOVE_POINTS, Store, StoreError
from tests.storage.servers import credentials, google, moto, store_at

PLACES = ("local", "without links", "s3", "gs")


@pytest.fixture(scope="module")
def endpoints() -> Iterator[dict[str, str]]:
    with credentials(), moto() as s3, google() as (gs, _):
        yield {"s3": s3, "gs": gs}


@pytest.fixture(params=PLACES)
def store(
    request: pytest.FixtureRequest, tmp_path: Path, endpoints: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> Store:
    if request.param == "without links":
        monkeypatch.setattr(os, "link", refusing_link)
    if request.param in endpoints:
        return store_at(endpoints[request.param], tmp_path / "node", request.param)
    return Store(tmp_path / "store")


def refusing_link(source: Path, target: Path) -> None:
    raise OSError(errno.EPERM, "Operation not permitted")


def test_published_file_is_read_back_whole_and_in_parts(store: Store) -> None:
    content = random.Random(1).randbytes(3_000_000)
    name = "shards/0a/part é+%.parquet"
    assert store.publish_bytes(content, name) == digest_bytes(content) == store.digest(name)
    assert store.exists(name) and store.size(name) == len(content)
    assert store.read_bytes(name) == content
    assert store.read_bytes(name, 10, 20) == content[10:20] and store.read_bytes(name, len(content) - 5) == content[-5:]
    assert store.read_bytes(name, 5, 5) == b"" and store.read_bytes(name, len(content), len(content) + 9) == b""
    assert store.local(name, digest_bytes(content)).read_bytes() == content
    assert Path(store.file(name)).read_bytes() == content


def test_empty_file_is_published_and_read(store: Store) -> None:
    assert store.publish_bytes(b"", "a/empty") == digest_bytes(b"") == store.digest("a/empty")
    assert store.read_bytes("a/empty") == b"" and store.local("a/empty").read_bytes() == b""


def test_open_file_can_be_sought_and_read_in_any_order(store: Store) -> None:
    content = random.Random(2).randbytes(2_000_000)
    store.publish_bytes(content, "a/f")
    with store.open("a/f") as file:
        assert file.seek(0, io.SEEK_END) == len(content)
        assert file.seek(-16, io.SEEK_END) == len(content) - 16 and file.read() == content[-16:]
        assert file.read() == b""
        for start in (1_500_000, 3, 700_000, 0):
            file.seek(start)
            assert file.read(1000) == content[start : start + 1000]
        file.seek(0)
        assert b"".join(iter(lambda: file.read(65_537), b"")) == content


def test_file_that_is_not_there_is_told_apart(store: Store) -> None:
    assert not store.exists("a/f") and store.names("a") == [] and store.folders("a") == []
    for read in (store.read_bytes, store.size, store.open, store.digest):
        with pytest.raises(FileNotFoundError):
            read("a/f")
    with pytest.raises(StoreError, match=r"a/f.* is missing: run the recipe again"):
        store.read_json("a/f.json")
    store.remove("a/f")


def test_second_comer_is_fine_with_equal_bytes_and_told_of_others(store: Store) -> None:
    first = store.publish_bytes(b"one", "a/f")
    assert store.publish_bytes(b"one", "a/f") == first
    with pytest.raises(StoreError) as error:
        store.publish_bytes(b"two", "a/f")
    for part in (store.url("a/f"), digest_bytes(b"one"), digest_bytes(b"two"), "not deterministic"):
        assert part in str(error.value)
    assert store.read_bytes("a/f") == b"one"


def test_many_writers_of_one_name_leave_one_file_and_no_spool_file(store: Store) -> None:
    outcomes: list[str] = []

    def write(content: bytes) -> None:
        try:
            outcomes.append(store.publish_bytes(content, "a/f"))
        except StoreError as error:
            outcomes.append("refused" if "two attempts" in str(error) else str(error))

    threads = [threading.Thread(target=write, args=(b"xy"[i % 2 : i % 2 + 1] * 9_000,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == sorted([store.digest("a/f")] * 4 + ["refused"] * 4)
    assert not list(store.files.spool.iterdir())


def test_files_and_folders_are_listed_in_order(store: Store) -> None:
    names = ["a/b/c.json", "a/b.json", "a/b-c/d", "z/1", "m/manifest.json", "a/b/d/e"]
    for name in names:
        store.publish_bytes(name.encode(), name)
    assert [name for name in store.names() if not name.startswith("spool/")] == sorted(names)
    assert store.names("a/b") == ["a/b/c.json", "a/b/d/e"] and store.names("a/b/c.json") == []
    assert [folder for folder in store.folders() if folder != "spool"] == ["a", "m", "z"]
    assert store.folders("a") == ["a/b", "a/b-c"]
    (entry,) = store.entries("z")
    assert (entry.name, entry.size) == ("z/1", 3) and entry.version and entry.modified > 1_700_000_000
    assert store.within("a").names("b") == ["b/c.json", "b/d/e"]
    store.remove("z/1")
    assert store.names("z") == [] and "z" not in store.folders()


def test_replaceable_files_lie_below_runs_alone(store: Store) -> None:
    store.put("runs/state.json", b"1")
    store.put("runs/state.json", b"2")
    assert store.read_bytes("runs/state.json") == b"2"
    for name in ("shards/a/receipt.json", "x", "runs"):
        with pytest.raises(ValueError, match="may be replaced"):
            store.put(name, b"")
        with pytest.raises(ValueError, match="may be replaced"):
            store.appender(name)


def test_lines_of_two_writers_are_all_kept(store: Store) -> None:
    assert store.appended("runs/a/journal.jsonl") == []
    one, two = store.appender("runs/a/journal.jsonl"), store.appender("runs/a/journal.jsonl")
    one.write(b"1\n")
    two.write(b"2\n")
    one.write(b"3\n4\n")
    one.close()
    two.close()
    again = store.appender("runs/a/journal.jsonl")
    again.write(b"5\n")
    again.close()
    found = store.appended("runs/a/journal.jsonl")
    assert sorted(found) == [b"1", b"2", b"3", b"4", b"5"] and found[-1] == b"5"


def test_store_is_opened_for_writing_and_leaves_nothing(store: Store) -> None:
    with store.writing():
        store.publish_bytes(b"x", "a/f")
    assert [name for name in store.names() if not name.startswith("spool/")] == ["a/f"]


def test_points_are_passed_around_every_write(store: Store) -> None:
    passed: list[str] = []
    told = Store(store.location, passed.append, store.options)
    told.publish_bytes(b"x", "a/f")
    told.put("runs/x", b"")
    told.remove("a/f")
    expected = [f"a/f:{point}" for point in POINTS] + [f"runs/x:{point}" for point in PUT_POINTS]
    assert passed == expected + [f"a/f:{point}" for point in REMOVE_POINTS]


class Stopped(BaseException):
    """Stands for the death of the process."""


@pytest.mark.parametrize("point", POINTS)
def test_writer_stopped_at_any_point_leaves_the_whole_file_or_none(store: Store, point: str) -> None:
    def stop(passed: str) -> None:
        if passed == f"a/f:{point}":
            raise Stopped

    with pytest.raises(Stopped):
        Store(store.location, stop, store.options).publish_bytes(b"content", "a/f")
    assert store.exists("a/f") == (point != "spooled")
    store.publish_bytes(b"content", "a/f")
    assert store.read_bytes("a/f") == b"content"


def test_exception_inside_a_spool_context_publishes_nothing(store: Store) -> None:
    with pytest.raises(ValueError, match="half"), store.spool() as path:
        path.write_bytes(b"half")
        raise ValueError("half")
    assert [name for name in store.names() if not name.startswith("spool/")] == []


def test_kvstore_is_read_by_tensorstore(store: Store, endpoints: dict[str, str]) -> None:
    if str(store.location).startswith("gs://"):
        assert store.kvstore("c")["driver"] == "gcs"  # TensorStore takes no other endpoint for it
        return
    import tensorstore

    store.publish_bytes(b"stored", "caches/c/x")
    kvstore = tensorstore.KvStore.open(store.kvstore("caches/c")).result()
    assert bytes(kvstore.read("x").result().value) == b"stored"
    assert [bytes(key) for key in kvstore.list().result()] == [b"x"]


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("s3://key:secret@bucket/x", "holds more than bucket and prefix"),
        ("s3://bucket/x?AWSAccessKeyId=secret", "holds more than bucket and prefix"),
        ("s3:///x", "give a path"),
        ("http://host/x", "give a path"),
        ("ftp://host/x", "give a path"),
    ],
)
def test_other_urls_are_refused_without_repeating_secrets(location: str, said: str) -> None:
    with pytest.raises(StoreError, match=said) as error:
        Store(location)
    assert "secret" not in str(error.value)


def test_options_that_cannot_work_are_refused_without_repeating_secrets() -> None:
    wrong: list[Callable[[], StorageOptions]] = [
        lambda: StorageOptions(endpoint="http://user:secret@host"),
        lambda: StorageOptions(endpoint="host:9000/secret"),
        lambda: StorageOptions(requests=0),
        lambda: StorageOptions(retries=-1),
    ]
    for make in wrong:
        with pytest.raises(StoreError, match="give") as error:
            make()
        assert "secret" not in str(error.value)


@pytest.mark.parametrize("location", [Path("s3://bucket/x"), "s3:/bucket/x", Path("gs://bucket")])
def test_url_that_became_a_path_is_refused(location: Path | str) -> None:
    with pytest.raises(StoreError, match="is a URL that became a path"):
        Store(location)


def test_no_module_but_storage_knows_where_a_store_lies() -> None:
    root = Path(__file__).parents[2]
    lines = [
        f"{path.relative_to(root)}: {line.strip()}"
        for package in ("curate", "mixtures", "trainers", "viewers")
        for path in sorted((root / package).rglob("*.py"))
        if "storage" not in path.parts and path.name != "store.py"
        for line in path.read_text("utf-8").splitlines()
        if re.search(r"store\.(path\(|root\b)|\blocation\.", line)
    ]
    known = (
        "curate/run.py: return self.store.path(self.name)",
        "curate/readers/reader.py: ",
        "curate/commands/records.py: ",
        "viewers/index.py: ",  # links from one folder to another
    )
    assert [line for line in lines if not line.startswith(known)] == []


def test_path_of_a_remote_store_is_an_error_that_says_so(tmp_path: Path) -> None:
    store = Store("s3://bucket/prefix/")
    assert store.location == "s3://bucket/prefix" and store.url("a/b") == "s3://bucket/prefix/a/b"
    for ask in (lambda: store.root, lambda: store.path("x")):
        with pytest.raises(StoreError, match="s3://bucket/prefix is no local folder"):
            ask()
