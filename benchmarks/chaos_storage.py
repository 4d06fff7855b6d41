"""Storage that fails: a disk that is full, and a server of objects that refuses, breaks off and forgets to answer."""

from __future__ import annotations

import http.client
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from benchmarks.chaos_look import Outcome
from benchmarks.chaos_points import in_child, run_local
from benchmarks.chaos_processes import start
from benchmarks.chaos_recipe import outputs
from curate.store import StorageOptions, Store

BUCKET: Final = "bucket"
CREDENTIALS: Final = {
    "AWS_ACCESS_KEY_ID": "chaos",
    "AWS_SECRET_ACCESS_KEY": "chaos",
    "AWS_EC2_METADATA_DISABLED": "true",
}
FAULTS: Final = ("busy", "broken", "silent", "internal")
"""What happens to a request: 503 or cut off before it counts, done but never answered, 500 after it counts."""

SHARE: Final = 0.04
"""Of the requests that write, how many go wrong."""

MOST_RUNS: Final = 5
"""How many runs in a row may fail on spoilt requests."""


def fill_disks(root: Path, work: Path, expected: Mapping[str, str], kills: int, seed: int, until: float) -> Outcome:
    """Run on disks that are too small, give them room, and run again; nothing where disks cannot be mounted."""
    outcome, draw, log = Outcome(), random.Random(f"{seed} disks"), work / "disk.log"
    size = sum(path.stat().st_size for path in (work / "undisturbed").rglob("*") if path.is_file())
    for number in range(kills):
        if time.monotonic() > until:
            break
        store = work / f"disk-{number}"
        with _disk(store, int(size * draw.uniform(0.1, 0.9))) as grown:
            if not grown:
                outcome.missed.append("disks cannot be mounted here")
                return outcome
            outcome.tried += 1
            status = in_child(partial(run_local, outputs(root), store / "store"), log)
            outcome.hit += status != 0 and "No space left" in log.read_text()
            subprocess.run(["mount", "-o", f"remount,size={size * 8}", str(store)], check=True)
            in_child(partial(run_local, outputs(root), store / "store"), log)
            outcome.look(Store(store / "store"), expected, f"disk {number} full")
    return outcome


@contextmanager
def _disk(folder: Path, size: int) -> Iterator[bool]:
    """Mount a disk of `size` bytes at `folder`; yield whether that is allowed."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)], capture_output=True, check=False
    )
    try:
        yield mounted.returncode == 0
    finally:
        if mounted.returncode == 0:
            subprocess.run(["umount", str(folder)], check=False)


@dataclass(slots=True)
class Unreliable:
    """What a proxy does to requests: which go wrong, and how many did."""

    target: int
    draw: random.Random
    share: float
    faults: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def fate(self, method: str) -> str:
        """Return what happens to the next request."""
        with self.lock:
            if method not in ("PUT", "POST", "DELETE") or self.draw.random() >= self.share:
                return "well"
            self.faults += 1
            return self.draw.choice(FAULTS)


def spoil_requests(root: Path, work: Path, expected: Mapping[str, str], kills: int, seed: int, until: float) -> Outcome:
    """Run on a server of objects behind a proxy that spoils requests that write, until `kills` were spoilt."""
    outcome, log = Outcome(), work / "objects.log"
    with _objects() as target:
        rules = Unreliable(target, random.Random(f"{seed} objects"), SHARE)
        with _proxy(rules) as endpoint:
            number = 0
            while rules.faults < kills and time.monotonic() < until:
                number += 1
                url = f"s3://{BUCKET}/{number}"
                statuses = []
                while len(statuses) < MOST_RUNS and 0 not in statuses:
                    statuses.append(_run_apart(root, url, endpoint, work / "node", log))
                outcome.tried += len(statuses)
                if 0 not in statuses:
                    outcome.failed += 1
                    print(f"{MOST_RUNS} runs in a row failed:\n{log.read_text()}", flush=True)
                outcome.look(_objects_store(url, target, work / "node"), expected, f"spoilt requests {number}")
        outcome.hit = rules.faults
    return outcome


def compare_with_objects(root: Path, work: Path, expected: Mapping[str, str]) -> Outcome:
    """Run undisturbed on a server of objects and compare with the local store."""
    outcome = Outcome(tried=1)
    with _objects() as port:
        url, log = f"s3://{BUCKET}/plain", work / "plain.log"
        outcome.hit = int(_run_apart(root, url, f"http://127.0.0.1:{port}", work / "node-plain", log) == 0)
        outcome.look(_objects_store(url, port, work / "node-plain"), expected, "objects")
    return outcome


def _run_apart(root: Path, url: str, endpoint: str, cache: Path, log: Path) -> int:
    """Run in a fresh process, as this one has threads, and return its exit status."""
    arguments = ["run", str(root), url, "--endpoint", endpoint, "--cache", str(cache)]
    return start("benchmarks.chaos_child", arguments, log, CREDENTIALS).wait()


def _objects_store(url: str, port: int, cache: Path) -> Store:
    options = StorageOptions(endpoint=f"http://127.0.0.1:{port}", region="us-east-1", cache=cache)
    return Store(url, options=options)


@contextmanager
def _objects() -> Iterator[int]:
    """Yield the port of a moto server with an empty bucket."""
    import boto3

    os.environ.update(CREDENTIALS)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        client = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}", region_name="us-east-1")
        client.create_bucket(Bucket=BUCKET)
        yield port
    finally:
        server.kill()
        server.wait()


@contextmanager
def _proxy(rules: Unreliable) -> Iterator[str]:
    """Yield the endpoint of a proxy that spoils some requests."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_request(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            fate = rules.fate(self.command)
            if fate == "broken":
                self._break()
            elif fate == "busy":
                self._answer(503, {}, b"<Error><Code>SlowDown</Code></Error>")
            else:
                status, headers, content = self._forward(body)
                if fate == "silent":
                    self._break()
                elif fate == "internal":
                    self._answer(500, {}, b"<Error><Code>InternalError</Code></Error>")
                else:
                    self._answer(status, headers, content)

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = do_request  # noqa: N815

        def _break(self) -> None:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

        def _forward(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
            connection = http.client.HTTPConnection("127.0.0.1", rules.target, timeout=60)
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            content = answer.read()
            connection.close()
            return answer.status, dict(answer.getheaders()), content

        def _answer(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
            self.send_response_only(status)
            for name, value in headers.items():
                if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                    self.send_header(name, value)
            length = headers.get("Content-Length") or headers.get("content-length") or str(len(content))
            self.send_header("Content-Length", length)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def log_message(self, *arguments: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
