"""What is particular to local places: file systems without links, lock files, patterns."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.digests import digest_bytes
from curate.storage import claims
from curate.storage.claims import PREFIX
from curate.storage.locks import SUFFIX
from curate.storage.patterns import matcher
from curate.store import Store, StoreError


def refusing(number: int) -> object:
    def link(source: Path, target: Path) -> None:
        raise OSError(number, os.strerror(number))

    return link


@pytest.fixture
def linkless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(os, "link", refusing(errno.EOPNOTSUPP))
    return Store(tmp_path / "store")


def claim_of(store: Store, name: str) -> Path:
    return store.root / "spool" / f"{PREFIX}{digest_bytes(os.fsencode(store.path(name)))[:32]}"


def claimed(store: Store, name: str, digest: str) -> Path:
    claim = claim_of(store, name)
    claim.parent.mkdir(parents=True, exist_ok=True)
    claim.write_bytes(digest.encode() + b"\n" + os.fsencode(store.path(name)))
    return claim


def test_error_of_a_link_that_is_no_lack_of_links_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", refusing(errno.ENOSPC))
    with pytest.raises(OSError, match="No space left"):
        Store(tmp_path).publish_bytes(b"x", "a/f")
    assert not (tmp_path / "a/f").exists() and not list((tmp_path / "spool").iterdir())


def test_claim_of_a_dead_writer_of_the_same_bytes_holds_nobody_up(linkless: Store) -> None:
    claim = claimed(linkless, "a/f", digest_bytes(b"content"))
    linkless.publish_bytes(b"content", "a/f")
    assert linkless.read_bytes("a/f") == b"content" and not claim.exists()


def test_claim_for_other_bytes_is_an_error_that_names_both(linkless: Store) -> None:
    claimed(linkless, "a/f", digest_bytes(b"other"))
    with pytest.raises(StoreError) as error:
        linkless.publish_bytes(b"content", "a/f")
    assert digest_bytes(b"other") in str(error.value) and digest_bytes(b"content") in str(error.value)
    assert not linkless.exists("a/f")


def test_torn_claim_is_taken_over(linkless: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "TORN_SECONDS", 0.05)
    claimed(linkless, "a/f", digest_bytes(b"content")).write_bytes(b"12ab")
    linkless.publish_bytes(b"content", "a/f")
    assert linkless.read_bytes("a/f") == b"content" and not list((linkless.root / "spool").iterdir())


def test_claims_of_names_that_are_taken_are_swept_and_no_others(linkless: Store) -> None:
    linkless.publish_bytes(b"content", "a/f")
    done = claimed(linkless, "a/f", digest_bytes(b"content"))
    waiting = claimed(linkless, "a/g", digest_bytes(b"content"))
    assert linkless.remove_stale_spool_files() == 1
    assert waiting.exists() and not done.exists()


# --- lock files ------------------------------------------------------------------------------------------------------

WRITER = """
import sys, time
import fcntl
file = open(sys.argv[1], "r+b")
fcntl.lockf(file, fcntl.LOCK_EX)
print("locked", flush=True)
time.sleep(60)
"""


def test_lock_files_of_killed_writers_are_swept_and_those_of_living_ones_stay(tmp_path: Path) -> None:
    array = tmp_path / "caches/web-0a/tokens/c"
    array.mkdir(parents=True)
    locks = {name: array / f"{name}{SUFFIX}" for name in ("dead", "young", "held")}
    for path in (*locks.values(), array / "0"):
        path.write_bytes(b"")
        os.utime(path, (time.time() - 3600,) * 2)
    os.utime(locks["young"])
    command = [sys.executable, "-c", WRITER, str(locks["held"])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None and holder.stdout.readline() == "locked\n"
            assert Store(tmp_path).sweep_locks() == 1
            assert {path.name for path in array.iterdir()} == {"0", f"young{SUFFIX}", f"held{SUFFIX}"}
        finally:
            holder.kill()
    os.utime(locks["held"], (time.time() - 3600,) * 2)
    assert Store(tmp_path).sweep_locks() == 1 and not locks["held"].exists()
    assert Store(tmp_path / "nowhere").sweep_locks() == 0


# --- patterns --------------------------------------------------------------------------------------------------------

PARTS = ("**", "*", "a", "b", "?", "a*", "*.x", "[ab]", "[!a]", "[a-b]*", "a.x", ".h", "*[", "\u00e4?")


@pytest.fixture(scope="module")
def wood(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root, draw = tmp_path_factory.mktemp("wood"), random.Random(7)
    names = ("a", "b", "a.x", "b.x", ".h", "ab", "\u00e4b", "a[", "^")
    for _ in range(120):
        path = root.joinpath(*(f"d{draw.choice(names)}" for _ in range(draw.randrange(3))), draw.choice(names))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    return root


@settings(max_examples=150)
@given(st.lists(st.sampled_from(PARTS), max_size=3), st.sampled_from([part for part in PARTS if part != "**"]))
def test_pattern_means_the_files_that_glob_finds(wood: Path, folders: list[str], last: str) -> None:
    pattern = "/".join([*(part if part == "**" else f"d{part}" for part in folders), last])
    names = {path.relative_to(wood).as_posix() for path in wood.rglob("*") if path.is_file()}
    found = {path.relative_to(wood).as_posix() for path in wood.glob(pattern) if path.is_file()}
    assert {name for name in names if matcher(pattern).match(name)} == found, pattern
