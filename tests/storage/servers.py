"""Servers of objects for tests: moto (honours conditions), rclone (ignores them), a stub of Google's."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.message import Message
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from curate.storage.options import StorageOptions
from curate.store import Store
from tests.waiting import wait_for

BUCKET = "bucket"
SECRET = "s3cr3t-that-nobody-may-see"
KEY = "AKIDTHATNOBODYMAYSEE"


@contextmanager
def credentials() -> Iterator[None]:
    """Give the SDK credentials, as a user's environment does."""
    given = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_EC2_METADATA_DISABLED": "true"}
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})


@contextmanager
def moto() -> Iterator[str]:
    """Yield the endpoint of a moto server in a process of its own, with the bucket `BUCKET`."""
    with _served([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "{port}"]) as endpoint:
        make_bucket(endpoint)
        yield endpoint


@contextmanager
def rclone(folder: Path) -> Iterator[str]:
    """Yield the endpoint of an rclone server over `folder`, with the bucket `BUCKET`."""
    (folder / BUCKET).mkdir(parents=True)
    binary = Path(sys.executable).with_name("rclone")
    command = [str(binary), "serve", "s3", str(folder), "--addr", "127.0.0.1:{port}", "--auth-key", f"{KEY},{SECRET}"]
    with _served([*command, "--config", os.devnull, "--vfs-cache-mode", "off"]) as endpoint:
        yield endpoint


@contextmanager
def _served(command: list[str]) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [part.replace("{port}", str(port)) for part in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_for(lambda: _answers(port))
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def _answers(port: int) -> bool:
    with suppress(OSError):
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    return False


def make_bucket(endpoint: str) -> None:
    """Make the bucket."""
    import boto3

    boto3.session.Session().client("s3", endpoint_url=endpoint, region_name="us-east-1").create_bucket(Bucket=BUCKET)


def store_at(endpoint: str, node: Path, scheme: str = "s3", **options: Any) -> Store:
    """Return a new store below the bucket, with its copies in `node`."""
    given = {"endpoint": endpoint, "region": "us-east-1", "cache": node, "retries": 2, **options}
    return Store(f"{scheme}://{BUCKET}/{uuid.uuid4().hex}/run", None, StorageOptions(**given))


Answer = tuple[int, bytes]


@dataclass
class Google:
    """A stub of Google's JSON interface: objects, generations, conditions, checksums, pages of two."""

    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    content: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    headers: list[Message] = field(default_factory=list)
    fail: list[Callable[[str], Answer | None]] = field(default_factory=list)
    generation: int = 1

    def upload(self, query: dict[str, list[str]], headers: Message, body: bytes) -> Answer:
        """Answer an upload."""
        import base64
        import hashlib

        message = BytesParser().parsebytes(b"Content-Type: " + headers["Content-Type"].encode() + b"\r\n\r\n" + body)
        described, _ = message.get_payload()
        metadata = json.loads(described.get_payload())
        start = body.index(b"octet-stream\r\n\r\n") + len(b"octet-stream\r\n\r\n")
        content = body[start : body.rindex(b"\r\n--")]
        if base64.b64encode(hashlib.md5(content).digest()).decode() != metadata["md5Hash"]:
            return 400, b"checksum"
        if query.get("ifGenerationMatch") == ["0"] and metadata["name"] in self.objects:
            return 412, b""
        self.generation += 1
        entry = {"size": str(len(content)), "generation": str(self.generation), "updated": "2026-01-02T03:04:05.678Z"}
        self.objects[metadata["name"]] = {**metadata, **entry}
        self.content[metadata["name"]] = content
        return 200, json.dumps(self.objects[metadata["name"]]).encode()

    def list(self, query: dict[str, list[str]]) -> Answer:
        """Answer a listing, two objects a page."""
        prefix, delimiter = query.get("prefix", [""])[0], query.get("delimiter", [""])[0]
        names = sorted(name for name in self.objects if name.startswith(prefix))
        prefixes = set()
        if delimiter:
            deep = {name for name in names if delimiter in name[len(prefix) :]}
            prefixes = {prefix + name[len(prefix) :].split(delimiter)[0] + delimiter for name in deep}
            names = [name for name in names if name not in deep]
        first = int(query.get("pageToken", ["0"])[0])
        page: dict[str, Any] = {"items": [self.objects[name] for name in names[first : first + 2]]}
        if first == 0:
            page["prefixes"] = sorted(prefixes)
        if first + 2 < len(names):
            page["nextPageToken"] = str(first + 2)
        return 200, json.dumps(page).encode()


@contextmanager
def google() -> Iterator[tuple[str, Google]]:
    """Yield the endpoint of a stub of Google's store, and what it holds."""
    state = Google()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *parts: object) -> None:
            pass

        def answer(self) -> None:
            parts = urlsplit(self.path)
            query = parse_qs(parts.query)
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            state.asked.append(f"{self.command} {self.path}")
            state.headers.append(self.headers)
            status, content = next(
                (found for fail in state.fail if (found := fail(f"{self.command} {self.path}")) is not None), (0, b"")
            )
            if not status:
                status, content = self._right(parts.path, query, body)
            with suppress(BrokenPipeError):
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        def _right(self, path: str, query: dict[str, list[str]], body: bytes) -> Answer:
            if self.command == "POST":
                return state.upload(query, self.headers, body)
            name = unquote(path.partition("/o/")[2])
            if not name:
                return state.list(query)
            if name not in state.objects:
                return 404, b""
            if self.command == "DELETE":
                del state.objects[name], state.content[name]
                return 204, b""
            if query.get("alt") != ["media"]:
                return 200, json.dumps(state.objects[name]).encode()
            return self._media(state.content[name])

        def _media(self, content: bytes) -> Answer:
            span = self.headers.get("Range")
            if span is None:
                return 200, content
            first, _, last = span.removeprefix("bytes=").partition("-")
            if int(first) >= len(content):
                return 416, b""
            return 206, content[int(first) : int(last) + 1 if last else None]

        do_GET = do_POST = do_DELETE = answer  # noqa: N815

    with _in_thread(Handler) as endpoint:
        yield endpoint, state


@dataclass
class Proxy:
    """A server in front of another one that loses, refuses and delays requests; see `proxied`.

    Attributes:
        meddle: is asked of each request before it is passed on, as "PUT /bucket/key?query", and says what happens:
            None passes it on, "lose" closes the connection first, "lose answer" closes it after the request was
            served, "cut answer" sends half of the answer, and a number answers with that status.
        asked: the requests, in the order in which they came.
        headers: their headers.
        most: how many were under way at once.
    """

    meddle: Callable[[str], str | int | None] = lambda request: None
    asked: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    under_way: int = 0
    most: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, kind: str) -> int:
        """Return how many requests began with `kind`."""
        return sum(request.startswith(kind) for request in self.asked)


@contextmanager
def proxied(endpoint: str) -> Iterator[tuple[str, Proxy]]:
    """Yield the endpoint of a proxy in front of `endpoint`, and the proxy."""
    state, target = Proxy(), urlsplit(endpoint)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *parts: object) -> None:
            pass

        def answer(self) -> None:
            request = f"{self.command} {self.path}"
            with state.lock:
                state.asked.append(request)
                state.headers.append({name.lower(): value for name, value in self.headers.items()})
                state.under_way += 1
                state.most = max(state.most, state.under_way)
            try:
                answer = self._passed_on(state.meddle(request))
            finally:
                with state.lock:  # before the client hears of it, and may ask the next
                    state.under_way -= 1
            self.close_connection = True
            if answer is not None:
                self._send(*answer)

        def _passed_on(self, fate: str | int | None) -> tuple[int, list[tuple[str, str]], bytes, bool] | None:
            """Return status, headers, content, and whether it is cut short; None when the connection is lost."""
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if fate == "lose":
                return None
            if isinstance(fate, int):
                code = "AccessDenied" if fate in (401, 403) else "SlowDown"
                return fate, [], f"<Error><Code>{code}</Code></Error>".encode(), False
            onwards = http.client.HTTPConnection(target.hostname or "", target.port or 0, timeout=120)
            onwards.request(self.command, self.path, body, dict(self.headers))
            answer = onwards.getresponse()
            content = answer.read()
            onwards.close()
            return (
                None if fate == "lose answer" else (answer.status, answer.getheaders(), content, fate == "cut answer")
            )

        def _send(self, status: int, headers: list[tuple[str, str]], content: bytes, cut: bool) -> None:
            said = {name.lower(): value for name, value in headers}
            self.send_response(status)
            for name, value in headers:
                if name.lower() not in ("connection", "transfer-encoding", "content-length", "date", "server"):
                    self.send_header(name, value)
            length = said.get("content-length", "0") if self.command == "HEAD" else str(len(content))
            self.send_header("Content-Length", length)
            self.send_header("Connection", "close")
            self.end_headers()
            with suppress(BrokenPipeError):
                self.wfile.write(content[: len(content) // 2] if cut else content)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer  # noqa: N815

    with _in_thread(Handler) as own:
        yield own, state


@contextmanager
def _in_thread(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
