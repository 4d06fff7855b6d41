"""What may go wrong between a store and its server: busy, lost, cut, taken, refused; and what is sent."""

from __future__ import annotations

import base64
import hashlib
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from curate.digests import digest_bytes
from curate.storage import admission, node_cache, requests, s3
from curate.storage import parts as module_parts
from curate.storage.admission import NOTE
from curate.storage.errors import StoreError
from curate.storage.node_cache import NodeCache
from curate.storage.objects import ObjectFiles
from curate.storage.parts import PartsAppender
from curate.storage.requests import BusyError, Requests
from curate.store import Store
from tests.storage.servers import BUCKET, KEY, SECRET, Proxy, credentials, google, moto, proxied, rclone, store_at


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with credentials(), moto() as found:
        yield found


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(admission, "SETTLE_SECONDS", 0.0)


@pytest.fixture(params=["s3", "gs"])
def behind(request: pytest.FixtureRequest, endpoint: str, tmp_path: Path) -> Iterator[tuple[Store, Proxy]]:
    """A store whose requests pass a proxy."""
    with google() as (stub, _), proxied(endpoint if request.param == "s3" else stub) as (own, proxy):
        yield store_at(own, tmp_path / "node", request.param), proxy


def objects(store: Store) -> ObjectFiles:
    files = store.files
    assert isinstance(files, ObjectFiles)
    return files


def fate(*fates: str | int | None, of: tuple[str, ...] = ("PUT", "POST")) -> Callable[[str], str | int | None]:
    """Return what happens to the requests of these kinds, one after the other; those after the last are passed on."""
    left = list(fates)
    return lambda request: left.pop(0) if left and request.startswith(of) else None


# --- trying again ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", [503, 429, 500, "lose"])
def test_write_to_a_busy_server_is_tried_again(behind: tuple[Store, Proxy], what: str | int) -> None:
    store, proxy = behind
    proxy.meddle = fate(what, what)
    assert store.publish_bytes(b"content", "a/f") == digest_bytes(b"content")
    assert proxy.count("PUT") + proxy.count("POST") == 3 and store.read_bytes("a/f") == b"content"


@pytest.mark.parametrize("what", [503, "lose", "lose answer", "cut answer"])
def test_read_from_a_busy_server_is_tried_again(behind: tuple[Store, Proxy], what: str | int) -> None:
    store, proxy = behind
    content = random.Random(3).randbytes(500_000)
    store.publish_bytes(content, "a/f")
    proxy.meddle = fate(what, what, of=("GET",))
    assert store.read_bytes("a/f") == content
    proxy.meddle = fate(what, None, what, of=("GET",))
    with store.open("a/f") as file:
        assert file.read() == content


def test_server_that_stays_busy_is_an_error_that_says_what_to_do(behind: tuple[Store, Proxy]) -> None:
    store, proxy = behind
    proxy.meddle = lambda request: 503
    with pytest.raises(StoreError, match=r"a/f.*no answer in 3 attempts.*lower the limit of requests"):
        store.publish_bytes(b"content", "a/f")
    assert not list(objects(store).spool.iterdir())


def test_server_that_is_not_there_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with credentials():
        store = store_at(f"http://127.0.0.1:{port}", tmp_path / "node")
        with pytest.raises(StoreError, match=r"a/f.*no answer in 3 attempts"):
            store.exists("a/f")


def test_pauses_double_up_to_a_bound() -> None:
    pauses: list[float] = []
    patient = Requests(1, 12, pauses.append)

    def busy() -> None:
        raise BusyError("x")

    with pytest.raises(StoreError, match="13 attempts"):
        patient.make("x", busy)
    longest = [min(requests.LONGEST_PAUSE, requests.FIRST_PAUSE * 2**n) for n in range(12)]
    assert all(most / 2 <= pause <= most for pause, most in zip(pauses, longest, strict=True))


# --- a write whose outcome is unknown --------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", [1, 3])
def test_lost_answer_to_a_creation_that_got_through_is_no_conflict(behind: tuple[Store, Proxy], lost: int) -> None:
    store, proxy = behind
    proxy.meddle = fate(*["lose answer"] * lost)
    assert store.publish_bytes(b"content", "a/f") == digest_bytes(b"content")
    assert store.read_bytes("a/f") == b"content"


def test_lost_answers_do_not_hide_that_another_attempt_came_first(behind: tuple[Store, Proxy]) -> None:
    store, proxy = behind
    store.publish_bytes(b"first", "a/f")
    proxy.meddle = fate("lose answer")
    with pytest.raises(StoreError, match="two attempts"):
        store.publish_bytes(b"second", "a/f")
    proxy.meddle = fate(*["lose answer"] * 3)
    with pytest.raises(StoreError, match="no answer in 3 attempts"):
        store.publish_bytes(b"second", "a/f")
    proxy.meddle = lambda request: None
    assert store.read_bytes("a/f") == b"first"


# --- what is sent ----------------------------------------------------------------------------------------------------


def sent(proxy: Proxy, kind: str) -> list[tuple[str, dict[str, str]]]:
    return [(a, h) for a, h in zip(proxy.asked, proxy.headers, strict=True) if a.startswith(kind)]


def test_creation_on_s3_sends_condition_and_checksum(endpoint: str, tmp_path: Path) -> None:
    with proxied(endpoint) as (own, proxy):
        store = store_at(own, tmp_path / "node")
        store.publish_bytes(b"content", "a/f")
        store.put("runs/x", b"replaced")
        (_, created), (_, put) = sent(proxy, "PUT")
    assert created["if-none-match"] == "*" and "if-none-match" not in put
    assert created["content-md5"] == base64.b64encode(hashlib.md5(b"content").digest()).decode()
    assert created["x-amz-meta-blake3"] == digest_bytes(b"content")


def test_large_file_on_s3_goes_up_in_parts_on_the_same_condition(endpoint: str, tmp_path: Path) -> None:
    content = random.Random(4).randbytes(11 << 20)
    with proxied(endpoint) as (own, proxy):
        store = store_at(own, tmp_path / "node")
        files = objects(store)
        client = s3.S3Client(BUCKET, store.options, Requests(4, 2), part_bytes=5 << 20)
        parts = replace(files, client=client)
        (tmp_path / "f").write_bytes(content)
        assert parts.create(tmp_path / "f", "a/f", digest_bytes(content)) == digest_bytes(content)
        assert store.read_bytes("a/f") == content and store.files._digest("a/f") == digest_bytes(content)  # type: ignore[attr-defined]
        uploaded = sent(proxy, "PUT")
        (complete,) = [headers for asked, headers in sent(proxy, "POST") if "uploadId" in asked]
        assert len(uploaded) == 3 and all("content-md5" in headers for _, headers in uploaded)
        assert complete["if-none-match"] == "*"
        (tmp_path / "g").write_bytes(content[::-1])
        assert parts.create(tmp_path / "g", "a/f", digest_bytes(content[::-1])) == digest_bytes(content)
        assert store.read_bytes("a/f") == content
        assert proxy.count("DELETE") == 1  # the parts of the second comer
        fast = store.local("a/f", digest_bytes(content))
        assert fast.read_bytes() == content


def test_lost_answer_to_putting_parts_together_is_no_conflict(endpoint: str, tmp_path: Path) -> None:
    with proxied(endpoint) as (own, proxy):
        store = store_at(own, tmp_path / "node")
        client = s3.S3Client(BUCKET, store.options, Requests(4, 2), part_bytes=5 << 20)
        (tmp_path / "f").write_bytes(bytes(6 << 20))
        proxy.meddle = lambda request: "lose answer" if "uploadId" in request and request.startswith("POST") else None
        digest = digest_bytes(bytes(6 << 20))
        assert replace(objects(store), client=client).create(tmp_path / "f", "a/f", digest) == digest
        assert store.size("a/f") == 6 << 20


def test_part_that_fails_leaves_no_object_and_no_parts(endpoint: str, tmp_path: Path) -> None:
    with proxied(endpoint) as (own, proxy):
        store = store_at(own, tmp_path / "node")
        client = s3.S3Client(BUCKET, store.options, Requests(4, 1), part_bytes=5 << 20)
        parts = replace(objects(store), client=client)
        (tmp_path / "f").write_bytes(bytes(11 << 20))
        proxy.meddle = lambda request: 503 if "partNumber=2" in request else None
        with pytest.raises(StoreError, match="no answer in 2 attempts"):
            parts.create(tmp_path / "f", "a/f", "00")
        proxy.meddle = lambda request: None
        assert not store.exists("a/f") and proxy.count("DELETE") == 1


def test_creation_on_google_sends_condition_and_checksum(tmp_path: Path) -> None:
    with google() as (endpoint, state):
        store = store_at(endpoint, tmp_path / "node", "gs")
        store.publish_bytes(b"content", "a/f")
        store.put("runs/x", b"replaced")
        created, put = (asked for asked in state.asked if asked.startswith("POST"))
        (stored,) = (entry for name, entry in state.objects.items() if name.endswith("/a/f"))
    assert "&ifGenerationMatch=0" in created and "ifGenerationMatch" not in put
    assert created.startswith(f"POST /upload/storage/v1/b/{BUCKET}/o?uploadType=multipart")
    assert stored["md5Hash"] == base64.b64encode(hashlib.md5(b"content").digest()).decode()
    assert stored["metadata"] == {"blake3": digest_bytes(b"content")}
    assert not any("authorization" in {name.lower() for name in headers} for headers in state.headers)


def test_object_of_another_writer_is_compared_by_its_bytes(endpoint: str, tmp_path: Path) -> None:
    import boto3

    store = store_at(endpoint, tmp_path / "node")
    client = boto3.session.Session().client("s3", endpoint_url=endpoint, region_name="us-east-1")
    client.put_object(Bucket=BUCKET, Key=objects(store).prefix + "a/f", Body=b"content")
    assert store.publish_bytes(b"content", "a/f") == digest_bytes(b"content")
    with pytest.raises(StoreError, match="two attempts"):
        store.publish_bytes(b"other", "a/f")


# --- what is refused, and what is never said -------------------------------------------------------------------------


@pytest.mark.parametrize("status", [401, 403])
def test_refusal_of_the_server_is_an_error_without_credentials(
    behind: tuple[Store, Proxy], status: int, capfd: pytest.CaptureFixture[str]
) -> None:
    store, proxy = behind
    proxy.meddle = lambda request: status
    for ask in (lambda: store.publish_bytes(b"x", "a/f"), lambda: store.read_bytes("a/f"), store.names):
        with pytest.raises(StoreError, match="credentials") as error:
            ask()
        said = f"{error.value} {error.value.__cause__} {store!r}" + "".join(capfd.readouterr())
        assert SECRET not in said and KEY not in said


def test_missing_credentials_are_an_error_that_says_where_they_come_from(
    endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    with pytest.raises(StoreError, match="as for the SDK: environment, profile or role"):
        store_at(endpoint, tmp_path / "node").exists("a/f")


def test_bucket_that_is_not_there_is_an_error_that_says_so(endpoint: str, tmp_path: Path) -> None:
    store = replace(store_at(endpoint, tmp_path / "node"), location="s3://another-bucket/x")
    with pytest.raises(StoreError, match=r"NoSuchBucket.*make the bucket first"):
        store.publish_bytes(b"x", "a/f")


# --- who may write ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ignoring(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with credentials(), rclone(tmp_path_factory.mktemp("rclone")) as found:
        yield found


def test_server_that_ignores_conditions_is_refused_and_left_clean(ignoring: str, tmp_path: Path) -> None:
    store = store_at(ignoring, tmp_path / "node")
    with pytest.raises(StoreError, match=r"ignores conditions of writes.*--exclusive"), store.writing():
        pass
    assert store.names() == []


def test_one_writer_is_admitted_there_and_compares_what_it_finds(ignoring: str, tmp_path: Path) -> None:
    store = store_at(ignoring, tmp_path / "node", writers="one")
    content = random.Random(5).randbytes(2_000_000)
    with store.writing():
        assert store.publish_bytes(content, "a/f") == digest_bytes(content)
        assert store.publish_bytes(content, "a/f") == digest_bytes(content)
        with pytest.raises(StoreError, match="two attempts"):
            store.publish_bytes(b"other", "a/f")
        with pytest.raises(StoreError, match=f"process {os.getpid()} on .* only one may"), store.writing():
            pass
    assert store.read_bytes("a/f") == content and store.local("a/f").read_bytes() == content
    assert store.names() == ["a/f"] and store.folders() == ["a"]


def test_note_of_a_killed_driver_of_this_host_keeps_nobody_out(endpoint: str, tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    store = store_at(endpoint, tmp_path / "node", writers="one")
    for host, there in ((socket.gethostname(), False), ("elsewhere", True)):
        store.put(NOTE, b'{"host": "%s", "pid": %d, "token": "x"}' % (host.encode(), gone.pid))
        if there:
            with pytest.raises(StoreError, match=f"process {gone.pid} on elsewhere.*if it is dead, remove that object"):
                store.files.writing().__enter__()
        else:
            with store.writing():
                assert store.exists(NOTE)
            assert not store.exists(NOTE)


def test_two_drivers_that_begin_at_once_are_told(endpoint: str, tmp_path: Path) -> None:
    store = store_at(endpoint, tmp_path / "node", writers="one")
    with (
        pytest.raises(StoreError, match="at the same moment"),
        admission.one_writer(objects(store), lambda seconds: store.put(NOTE, b"{}")),
    ):
        pass


# --- how many requests, how many copies ------------------------------------------------------------------------------


def test_requests_in_flight_stay_within_the_limit(endpoint: str, tmp_path: Path) -> None:
    together = threading.Barrier(3)

    def meet(request: str) -> None:
        together.wait(120)
        time.sleep(0.02)  # a fourth, if there is one, comes while they are under way

    with proxied(endpoint) as (own, proxy):
        store = store_at(own, tmp_path / "node", requests=3)
        proxy.meddle = meet
        same = [Store(store.location, None, replace(store.options)).within("b") for _ in range(12)]
        threads = [
            threading.Thread(target=lambda s=s, i=i: s.publish_bytes(b"x", f"a/{i}")) for i, s in enumerate(same)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert proxy.most == 3 and proxy.count("PUT") == 12


COPY = """
import sys
from pathlib import Path
from curate.storage.options import StorageOptions
from curate.store import Store
location, endpoint, node = sys.argv[1:]
store = Store(location, None, StorageOptions(endpoint=endpoint, region="us-east-1", cache=Path(node)))
sys.stdin.readline()
print(len(store.local("a/f").read_bytes()))
"""


def test_file_that_many_workers_want_at_once_comes_once_to_a_node(endpoint: str, tmp_path: Path) -> None:
    content = random.Random(6).randbytes(3_000_000)
    with proxied(endpoint) as (own, proxy):
        store = store_at(own, tmp_path / "node")
        store.publish_bytes(content, "a/f")
        workers = [
            subprocess.Popen(
                [sys.executable, "-c", COPY, str(store.location), own, str(tmp_path / "node")],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )
            for _ in range(2)
        ]  # fmt: skip
        threads = [threading.Thread(target=store.local, args=("a/f",)) for _ in range(16)]
        for thread in threads:
            thread.start()
        said = [worker.communicate("\n")[0] for worker in workers]
        for thread in threads:
            thread.join()
    assert said == [f"{len(content)}\n"] * 2
    assert proxy.count("GET") == 1


def test_copy_that_is_not_what_was_written_is_refused_and_not_kept(endpoint: str, tmp_path: Path) -> None:
    store = store_at(endpoint, tmp_path / "node")
    store.publish_bytes(b"content", "a/f")
    with pytest.raises(StoreError, match=r"a/f is damaged: it has the digest"):
        store.local("a/f", digest_bytes(b"other"))
    assert store.local("a/f", digest_bytes(b"content")).read_bytes() == b"content"
    store.remove("a/f")
    store.publish_bytes(b"changed", "a/f")
    assert store.local("a/f").read_bytes() == b"changed"


def test_copies_go_by_last_use_when_they_are_too_large_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, fetched = NodeCache(tmp_path, 25), []

    def copy(name: str) -> Path:
        def fetch(path: Path) -> None:
            fetched.append(name)
            path.write_bytes(bytes(10))

        return cache.copy(name, "1", None, fetch)

    first, second = copy("a"), copy("b")
    for age, path in ((5000, first), (9000, second)):
        os.utime(path, (time.time() - age, time.time() - age))
    assert copy("a") == first  # used again
    third = copy("c")
    assert not second.exists() and first.exists() and third.exists()
    assert copy("d").exists() and first.exists() and third.exists()  # all were asked for just now
    monkeypatch.setattr(node_cache, "FRESH_SECONDS", -1.0)
    copy("e")
    assert fetched == ["a", "b", "c", "d", "e"] and len(list((tmp_path / "files").iterdir())) == 2


def test_folder_of_somebody_else_is_not_used_for_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from curate.storage import objects as module

    monkeypatch.setattr(module.tempfile, "gettempdir", lambda: str(tmp_path))
    assert module.node_folder().stat().st_mode & 0o777 == 0o700
    me: Any = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: me + 1)
    (tmp_path / f"curate-{me + 1}").mkdir()
    with pytest.raises(StoreError, match="is not yours"):
        module.node_folder()


# --- lines -----------------------------------------------------------------------------------------------------------


def test_parts_of_lines_are_few_and_failed_ones_may_be_given_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now, kept, fails = [100.0], {}, [False]
    monkeypatch.setattr(module_parts.time, "monotonic", lambda: now[0])

    def put(name: str, content: bytes) -> None:
        if fails[0]:
            raise StoreError("busy")
        kept[name] = content

    lines = PartsAppender("runs/a/j", put)
    lines.write(b"1\n")
    assert list(kept.values()) == [b"1\n"]
    lines.write(b"2\n")
    assert list(kept.values()) == [b"1\n"]  # within the next seconds
    now[0] += 10
    fails[0] = True
    with pytest.raises(StoreError):
        lines.write(b"3\n")
    fails[0] = False
    lines.write(b"3\n")
    assert list(kept.values()) == [b"1\n2\n3\n"]
    lines.write(b"x" * module_parts.PART_BYTES + b"\n")
    lines.write(b"4\n")
    lines.close()
    lines.close()
    assert [len(content) for content in kept.values()] == [6 + module_parts.PART_BYTES + 1, 2]
    assert sorted(kept) == list(kept)
