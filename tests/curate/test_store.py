"""Publishing: whole or not at all, create if absent, the second comer compared, nothing half-written ever visible."""

from __future__ import annotations

import itertools
import os
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from curate.digests import digest_bytes
from curate.store import POINTS, Store, StoreError, check_self_digest, json_line, self_digested


class Stopped(BaseException):
    """Stands for the death of the process: nothing in the engine catches it."""


def stopping_at(target: str) -> object:
    def fail(passed: str) -> None:
        if passed == target:
            raise Stopped

    return fail


def spooled(store: Store, content: bytes) -> Path:
    folder = store.root / "spool"
    folder.mkdir(exist_ok=True)
    path = folder / "mine"
    path.write_bytes(content)
    return path


def test_published_file_is_whole_and_its_spool_file_is_gone(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.publish_bytes(b"content", "a/b/c.json") == digest_bytes(b"content")
    assert (tmp_path / "a/b/c.json").read_bytes() == b"content"
    assert store.exists("a/b/c.json") and not list((tmp_path / "spool").iterdir())
    assert os.stat(tmp_path / "a/b/c.json").st_nlink == 1


def test_second_comer_with_equal_bytes_is_fine_and_changes_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path)
    first = store.publish_bytes(b"content", "a/f")
    before = (tmp_path / "a/f").stat()
    assert store.publish_bytes(b"content", "a/f") == first
    after = (tmp_path / "a/f").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert not list((tmp_path / "spool").iterdir())


def test_second_comer_with_other_bytes_is_an_error_that_names_both(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.publish_bytes(b"one", "a/f")
    with pytest.raises(StoreError) as error:
        store.publish_bytes(b"two", "a/f")
    for part in (str(tmp_path / "a/f"), digest_bytes(b"one"), digest_bytes(b"two"), "not deterministic"):
        assert part in str(error.value)
    assert (tmp_path / "a/f").read_bytes() == b"one"
    assert not list((tmp_path / "spool").iterdir())


@pytest.mark.parametrize("point", POINTS)
def test_process_stopped_while_publishing_leaves_the_whole_file_or_none(tmp_path: Path, point: str) -> None:
    store = Store(tmp_path, stopping_at(f"a/f:{point}"))  # type: ignore[arg-type]
    with pytest.raises(Stopped):
        store.publish(spooled(store, b"content"), "a/f")
    visible = [path for path in tmp_path.rglob("*") if path.is_file() and "spool" not in path.parts]
    assert [path.read_bytes() for path in visible] == ([] if point == "spooled" else [b"content"])
    Store(tmp_path).publish_bytes(b"content", "a/f")
    assert (tmp_path / "a/f").read_bytes() == b"content"


def test_points_are_passed_in_order_once_per_file(tmp_path: Path) -> None:
    passed: list[str] = []
    store = Store(tmp_path, passed.append)
    store.publish_bytes(b"x", "a/f")
    assert passed == [f"a/f:{point}" for point in POINTS]


def test_spool_file_is_removed_when_its_writer_raises(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with pytest.raises(ValueError, match="half"), store.spool() as path:
        path.write_bytes(b"half")
        raise ValueError("half")
    assert not list((tmp_path / "spool").iterdir())


def test_files_are_synced_before_they_are_linked_and_the_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    link, fsync = os.link, os.fsync

    def noting_link(source: Path, target: Path) -> None:
        done.append("link")
        link(source, target)

    def noting_fsync(descriptor: int) -> None:
        done.append("sync folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "sync file")
        fsync(descriptor)

    store = Store(tmp_path)
    store.publish_bytes(b"x", "a/first")
    monkeypatch.setattr(os, "link", noting_link)
    monkeypatch.setattr(os, "fsync", noting_fsync)
    store.publish_bytes(b"x", "a/second")
    assert done == ["sync file", "link", "sync folder"]
    done.clear()
    store.publish_bytes(b"x", "new/f")
    assert done == ["sync folder", "sync file", "link", "sync folder"] or done == [
        "sync file", "sync folder", "link", "sync folder",
    ]  # fmt: skip


def test_many_writers_of_one_name_leave_one_file(tmp_path: Path) -> None:
    store, digests = Store(tmp_path), []

    def write() -> None:
        digests.append(store.publish_bytes(b"x" * 100_000, "a/f"))

    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(digests) == {digest_bytes(b"x" * 100_000)} and len(digests) == 8
    assert not list((tmp_path / "spool").iterdir())


def test_spool_files_of_processes_that_are_gone_are_removed_and_no_others(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    (tmp_path / "spool").mkdir()
    host = socket.gethostname()
    names = {
        f"{host}-{gone.pid}-ab": False,
        f"{host}-{os.getpid()}-cd": True,
        f"{host}-other-ef": True,
        f"elsewhere-{gone.pid}-gh": True,
    }
    for name in names:
        (tmp_path / "spool" / name).write_bytes(b"")
    assert Store(tmp_path).remove_stale_spool_files() == 1
    assert {name: (tmp_path / "spool" / name).exists() for name in names} == names


def test_store_without_a_spool_has_nothing_stale(tmp_path: Path) -> None:
    assert Store(tmp_path / "nowhere").remove_stale_spool_files() == 0


# --- JSON ------------------------------------------------------------------------------------------------------------


def test_json_that_is_missing_or_damaged_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with pytest.raises(StoreError, match="is missing: run the recipe again"):
        store.read_json("a.json")
    for content in (b"{", b"\xff", b"", b"1.5\n", b"{} \n", b"[" * 100_000):
        (tmp_path / "a.json").write_bytes(content)
        with pytest.raises(StoreError, match=r"is damaged .*: remove it and run the recipe again"):
            store.read_json("a.json")


def test_any_bit_of_a_self_digested_file_flipped_is_an_error_that_names_it(tmp_path: Path) -> None:
    store, path = Store(tmp_path), tmp_path / "f.json"
    value = self_digested({"format": 1, "name": "\u00e4", "rows": [1, 2, None], "files": {"a": {"b": True}}})
    content = json_line(value)
    path.write_bytes(content)
    assert check_self_digest(store.read_json("f.json"), "f.json") == value
    unnoticed = []
    for place, bit in itertools.product(range(len(content)), range(8)):
        flipped = bytearray(content)
        flipped[place] ^= 1 << bit
        path.write_bytes(flipped)
        try:
            check_self_digest(store.read_json("f.json"), str(path))
        except StoreError as error:
            assert str(path) in str(error)
            continue
        unnoticed.append((place, bit))
    assert unnoticed == []


@pytest.mark.parametrize("value", [[], 1, "x", None, {"a": 1}])
def test_json_without_a_digest_field_is_refused(value: object) -> None:
    with pytest.raises(StoreError, match="has no digest field"):
        check_self_digest(value, "f")
