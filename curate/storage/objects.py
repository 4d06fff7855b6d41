"""Files as objects behind S3's or Google's interface.

A file is created by one conditional request, or in parts that become visible by one: whole or not at all. Who finds the
name taken, also by an earlier attempt of its own whose answer was lost, compares digests, which objects carry. A store
with one writer, on a server that ignores conditions, looks before it writes and reads back what it wrote.
"""

from __future__ import annotations

import io
import os
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, Final
from urllib.parse import urlsplit

from curate.digests import digest_bytes, digest_stream
from curate.storage.admission import check_conditions, one_writer
from curate.storage.client import ObjectClient, ObjectInfo, pieces
from curate.storage.errors import StoreError
from curate.storage.files import Entry
from curate.storage.node_cache import NodeCache
from curate.storage.options import StorageOptions
from curate.storage.parts import PartsAppender
from curate.storage.reading import ObjectReader
from curate.storage.requests import Requests, TakenError
from curate.storage.spool import SPOOL, remove_stale, spool_name

FETCH_BYTES: Final = 16 << 20
FETCHES_AT_ONCE: Final = 4
BUFFER: Final = 64 << 10


@dataclass(frozen=True, slots=True)
class ObjectFiles:
    """Objects whose keys begin with `prefix`, which is empty or ends with a slash."""

    location: str
    prefix: str
    client: ObjectClient
    options: StorageOptions
    node: Path

    def url(self, name: str) -> str:
        """Return the URL of `name`."""
        return f"{self.location}/{name}" if name else self.location

    def exists(self, name: str) -> bool:
        """Return whether the file `name` is there."""
        try:
            self._head(name)
        except FileNotFoundError:
            return False
        return True

    def size(self, name: str) -> int:
        """Return how many bytes the file has."""
        return self._head(name).size

    def read(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        """Return bytes `start` to `stop` of the file, or to its end."""
        return self.client.get(self.prefix + name, start, stop)

    def open(self, name: str) -> BinaryIO:
        """Open the file for reading; what is read is fetched in ranges."""
        key = self.prefix + name
        raw = ObjectReader(self._head(name).size, lambda start, stop: self.client.get(key, start, stop))
        return io.BufferedReader(raw, BUFFER)

    def local(self, name: str, digest: str | None = None) -> Path:
        """Return the path of a copy on this node, made when it is not here; see `NodeCache`."""
        cache = NodeCache(self.node, self.options.cache_bytes)
        place = f"{self.options.endpoint or ''} {self.url(name)}"
        version = digest or self._head(name).version  # files do not change: one of this digest needs no look
        return cache.copy(place, version, digest, lambda path: self._fetch(name, path))

    def _fetch(self, name: str, path: Path) -> None:
        info = self._head(name)
        descriptor = os.open(path, os.O_CREAT | os.O_WRONLY, 0o666)
        try:

            def part(span: tuple[int, int]) -> int:
                return os.pwrite(descriptor, self.client.get(info.key, *span), span[0])

            with ThreadPoolExecutor(FETCHES_AT_ONCE) as pool:
                written = sum(pool.map(part, pieces(info.size, FETCH_BYTES, 1 << 20)))
        finally:
            os.close(descriptor)
        if written != info.size:
            raise StoreError(f"{info.key}: {written} of {info.size} bytes came: it was changed while it was read")

    def entries(self, folder: str) -> list[Entry]:
        """Return the files below a folder, at any depth, ordered by name."""
        found = [info for info, _ in self._list(folder, "") if info is not None and not info.key.endswith("/")]
        names = [(info.key.removeprefix(self.prefix), info) for info in found]
        return sorted(
            (Entry(name, info.size, info.version, info.modified) for name, info in names), key=lambda entry: entry.name
        )

    def folders(self, folder: str) -> list[str]:
        """Return the names of the folders directly below a folder, ordered."""
        return sorted(
            prefix.removeprefix(self.prefix).rstrip("/") for _, prefix in self._list(folder, "/") if prefix is not None
        )

    def _list(self, folder: str, delimiter: str) -> Iterator[tuple[ObjectInfo | None, str | None]]:
        prefix, token = self.prefix + (f"{folder}/" if folder else ""), None
        while True:
            page = self.client.page(prefix, delimiter, token)
            yield from ((info, None) for info in page.objects)
            yield from ((None, below) for below in page.prefixes)
            if (token := page.token) is None:
                return

    def create(self, source: Path, name: str, digest: str) -> str:
        """Write `source` as the object `name` unless there is one; return the digest of what is there."""
        if self.options.writers == "one":
            return self._create_alone(source, name, digest)
        try:
            self.client.put(self.prefix + name, source, digest, create=True)
        except TakenError:
            return self._digest(name)
        except StoreError:
            with suppress(StoreError, FileNotFoundError):  # the last attempt may have got through: its answer was lost
                if self._digest(name) == digest:
                    return digest
            raise
        return digest

    def _create_alone(self, source: Path, name: str, digest: str) -> str:
        with suppress(FileNotFoundError):
            return self._digest(name)
        self.client.put(self.prefix + name, source, digest, create=False)
        return self._digest(name)

    def put(self, name: str, content: bytes) -> None:
        """Write the file whole, in place of the one that is there."""
        self.spool.mkdir(parents=True, exist_ok=True)
        path = self.spool / spool_name()
        try:
            path.write_bytes(content)
            self.client.put(self.prefix + name, path, digest_bytes(content), create=False)
        finally:
            path.unlink(missing_ok=True)

    def appender(self, name: str) -> PartsAppender:
        """Open a file of lines for adding to it, in parts."""
        return PartsAppender(name, self.put)

    def appended(self, name: str) -> bytes:
        """Return what was added to `name`: its parts one after the other."""
        folder, _, _ = name.rpartition("/")
        parts = [entry.name for entry in self.entries(folder) if entry.name.startswith(f"{name}.")]
        return b"".join(map(self.read, parts))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Settle who writes; see `curate.storage.admission`."""
        if self.options.writers == "one":
            with one_writer(self):
                yield
        else:
            check_conditions(self)
            yield

    def remove(self, name: str) -> None:
        """Remove the file."""
        self.client.delete(self.prefix + name)

    def kvstore(self, folder: str) -> dict[str, Any]:
        """Return the specification of a folder as TensorStore's key-value store."""
        return self.client.kvstore(f"{self.prefix}{folder}/")

    @property
    def spool(self) -> Path:
        """The folder for spool files, on this node."""
        return self.node / SPOOL

    def _head(self, name: str) -> ObjectInfo:
        return self.client.head(self.prefix + name)

    def _digest(self, name: str) -> str:
        """Return the digest that the object carries, or that of its bytes."""
        carried = self._head(name).digest
        if carried is not None:
            return carried
        with self.open(name) as file:
            return digest_stream(file)


def open_objects(location: str, options: StorageOptions) -> ObjectFiles:
    """Return the files at `location`; nothing is asked of the server yet.

    Raises:
        StoreError: what the place needs is not installed, or there are no credentials.
    """
    parts = urlsplit(location)
    with _OPENING:  # else threads that come at once would each open the bucket
        client = _bucket(parts.scheme, parts.netloc, options)
    prefix = parts.path.strip("/")
    return ObjectFiles(location, f"{prefix}/" if prefix else "", client, options, options.cache or node_folder())


@lru_cache(maxsize=64)
def _bucket(scheme: str, name: str, options: StorageOptions) -> ObjectClient:
    """Open a bucket, once per process: its requests are counted together."""
    remove_stale((options.cache or node_folder()) / SPOOL)  # of killed workers: the driver does not see every node
    requests = Requests(options.requests, options.retries)
    if scheme == "s3":
        from curate.storage.s3 import S3Client

        return S3Client(name, options, requests)
    from curate.storage.gcs import GcsClient

    return GcsClient(name, options, requests)


_OPENING: Final = threading.Lock()


def node_folder() -> Path:
    """Return the folder of this user on this node for copies and spool files, in the system's for temporary files.

    Raises:
        StoreError: it is somebody else's.
    """
    folder = Path(tempfile.gettempdir()) / f"curate-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise StoreError(f"{folder} is not yours: give another folder for copies of remote files (--node-cache)")
    return folder
