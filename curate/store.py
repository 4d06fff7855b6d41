"""The store: a place of immutable files, each published whole or not at all.

A task writes a spool file on its own node, closes it, then gives it its name, which fails when the name is taken: a
link on a local file system, a conditional PUT on an object store (`curate.storage`). Whoever comes second compares
digests: equal is fine, different is an error that names both. Nothing that is hashed is ever overwritten, so a killed
driver's last writes are harmless.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Final

from curate.digests import digest_file, digest_json, digest_stream
from curate.storage.claims import remove_settled_claims
from curate.storage.errors import MissingError, StoreError
from curate.storage.files import Appender, Entry, Files
from curate.storage.local import LocalFiles
from curate.storage.locks import sweep_locks
from curate.storage.opening import is_remote, joined, normalised, open_files
from curate.storage.options import DEFAULTS, StorageOptions
from curate.storage.spool import remove_stale, spool_name
from transforms.canonical import canonical_json

__all__ = [
    "POINTS",
    "PUT_POINTS",
    "REMOVE_POINTS",
    "REPORT_FILES",
    "Entry",
    "MissingError",
    "StorageOptions",
    "Store",
    "StoreError",
    "StoredFile",
    "check_self_digest",
    "json_line",
    "open_store",
    "self_digested",
]

REPORT_FILES: Final = (
    "report.html",
    "report.json",
    "croissant.json",
    "map.parquet",
    "against.html",
    "against.json",
    "ablation.json",
    "recall.json",
)
"""What report, ablate and dedup-curve write into a store: made from what is verified, and again at any time."""

POINTS: Final = ("spooled", "linked", "published")
"""Moments of publishing a file at which a test may stop the process: before its link or PUT, after it, at the end."""

PUT_POINTS: Final = ("putting", "put")
"""The same for a file that may be replaced: before and after its write."""

REMOVE_POINTS: Final = ("removing", "removed")
"""The same for the removal of a file."""


@dataclass(frozen=True, slots=True)
class Store:
    """A store at a local path, or at "s3://bucket/prefix" or "gs://bucket/prefix".

    Names have "/" between their parts and are relative to the store. Reading a file that is not there is a
    `FileNotFoundError`.

    Attributes:
        location: path or URL. Never with credentials: they are the SDK's own affair.
        failpoint: called with "<file name>:<point>" at each of `POINTS`, `PUT_POINTS` and `REMOVE_POINTS`; tests pass
            one that kills the process.
        options: how a remote store is reached.
    """

    location: Path | str
    failpoint: Callable[[str], None] | None = None
    options: StorageOptions = DEFAULTS

    def __post_init__(self) -> None:
        """Tell paths from URLs.

        Raises:
            StoreError: a URL of another kind, or one that holds credentials.
        """
        object.__setattr__(self, "location", normalised(self.location))

    @property
    def files(self) -> Files:
        """The files of its place; a bucket is opened once per process."""
        return open_files(self.location, self.options)

    @property
    def is_remote(self) -> bool:
        """Whether it lies elsewhere than in a local folder."""
        return is_remote(self.location)

    @property
    def root(self) -> Path:
        """The folder of a local store.

        Raises:
            StoreError: the store is remote.
        """
        if not isinstance(self.location, Path):
            raise StoreError(f"{self.location} is no local folder: copy the store to one for this")
        return self.location

    def path(self, name: str) -> Path:
        """Return the path of the file or folder `name` of a local store.

        Raises:
            StoreError: the store is remote.
        """
        return LocalFiles(self.root).path(name)

    def url(self, name: str) -> str:
        """Return where `name` lies, for messages."""
        return str(joined(self.location, name) if name else self.location)

    def __str__(self) -> str:
        return str(self.location)

    def resolved(self) -> Store:
        """Return the store with an absolute path, where it is a local folder: workers have another working folder."""
        return replace(self, location=self.location.resolve()) if isinstance(self.location, Path) else self

    def within(self, folder: str) -> Store:
        """Return the folder `folder` as a store of its own."""
        return replace(self, location=joined(self.location, folder))

    def above(self) -> tuple[Store, str]:
        """Return the store that this one is a folder of, and the folder's name."""
        if isinstance(self.location, Path):
            return replace(self, location=self.location.parent), self.location.name
        above, _, name = self.location.rpartition("/")
        return replace(self, location=above), name

    def exists(self, name: str) -> bool:
        """Return whether `name` has been published."""
        return self.files.exists(name)

    def size(self, name: str) -> int:
        """Return how many bytes `name` has."""
        return self.files.size(name)

    def read_bytes(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        """Return bytes `start` to `stop` of `name`, or to its end."""
        return self.files.read(name, start, stop)

    def digest(self, name: str) -> str:
        """Return the digest of the bytes of `name`, read where it lies."""
        with self.open(name) as file:
            return digest_stream(file)

    def open(self, name: str) -> BinaryIO:
        """Open `name` for reading and seeking; a remote store sends what is read, in blocks."""
        return self.files.open(name)

    def local(self, name: str, digest: str | None = None) -> Path:
        """Return a path of `name` on this node: the file itself, or a copy that the node keeps.

        Raises:
            StoreError: a copy was made and its digest is not `digest`.
        """
        return self.files.local(name, digest)

    def file(self, name: str) -> StoredFile:
        """Return the file `name`, there or not."""
        return StoredFile(self, name)

    def entries(self, folder: str = "") -> list[Entry]:
        """Return the files below `folder` at any depth, ordered by name, with size and version."""
        return self.files.entries(folder)

    def names(self, folder: str = "") -> list[str]:
        """Return the names of the files below `folder` at any depth, ordered, all relative to the store."""
        return [entry.name for entry in self.entries(folder)]

    def folders(self, folder: str = "") -> list[str]:
        """Return the names of the folders directly below `folder`, ordered, all relative to the store."""
        return self.files.folders(folder)

    def kvstore(self, folder: str) -> dict[str, Any]:
        """Return the specification of `folder` as TensorStore's key-value store."""
        return self.files.kvstore(folder)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Open the store for writing, as a driver does once.

        Raises:
            StoreError: the server ignores conditions of writes, or another driver has the store for itself.
        """
        with self.files.writing():
            yield

    @contextmanager
    def spool(self) -> Iterator[Path]:
        """Yield the path of a new spool file on this node; what is left of it is removed afterwards."""
        folder = self.files.spool
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / spool_name()
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)

    def publish(self, spooled: Path, name: str, digest: str | None = None) -> str:
        """Publish the closed file `spooled` under `name` and return its digest, which a caller who took it gives.

        Raises:
            StoreError: another file is published under `name` and its bytes differ.
        """
        digest = digest or digest_file(spooled)
        self._reach(name, "spooled")
        published = self.files.create(spooled, name, digest)
        if published != digest:
            raise StoreError(
                f"{self.url(name)} is published with digest {published}, this attempt made {digest}: two attempts at "
                "one task must give the same bytes. Look for a transform that is not deterministic, or remove the "
                "folder and rerun"
            )
        self._reach(name, "linked")
        spooled.unlink(missing_ok=True)
        self._reach(name, "published")
        return digest

    def publish_bytes(self, content: bytes, name: str) -> str:
        """Publish `content` under `name` and return its digest; see `publish`."""
        with self.spool() as path:
            path.write_bytes(content)
            return self.publish(path, name)

    def put(self, name: str, content: bytes) -> None:
        """Write `content` as `name` whole, in place of what is there: for what nothing hashes.

        Raises:
            ValueError: `name` is a file that is published.
        """
        _check_unhashed(name)
        self._reach(name, "putting")
        self.files.put(name, content)
        self._reach(name, "put")

    def appender(self, name: str) -> Appender:
        """Open the file of lines `name` for adding to it, as others may meanwhile; a remote store adds parts.

        Raises:
            ValueError: `name` is a file that is published.
        """
        _check_unhashed(name)
        return self.files.appender(name)

    def appended(self, name: str) -> list[bytes]:
        """Return the lines that were added to `name`; the last one may be cut short by a kill."""
        return self.files.appended(name).splitlines()

    def remove(self, name: str) -> None:
        """Remove `name`; a file that is not there is removed already."""
        self._reach(name, "removing")
        self.files.remove(name)
        self._reach(name, "removed")

    def read_json(self, name: str) -> Any:
        """Return the parsed JSON of `name`.

        Raises:
            MissingError: the file is missing.
            StoreError: it is not canonical JSON with a line break.
        """
        try:
            content = self.read_bytes(name)
            value = json.loads(content)
            if json_line(value) != content:  # a change that parses alike, as a blank
                raise ValueError("not the canonical JSON that curate writes")
            return value
        except FileNotFoundError:
            raise MissingError(f"{self.url(name)} is missing: run the recipe again to make it") from None
        except (ValueError, TypeError, RecursionError) as error:
            raise StoreError(f"{self.url(name)} is damaged ({error}): remove it and run the recipe again") from error

    def remove_stale_spool_files(self) -> int:
        """Remove spool files of processes of this host that are gone; return how many."""
        folder = self.files.spool
        return remove_stale(folder) + remove_settled_claims(folder)

    def sweep_locks(self) -> int:
        """Remove the lock files of TensorStore's writers that are gone, in a local store's caches; return how many."""
        return sweep_locks(self.root / "caches") if isinstance(self.location, Path) else 0

    def _reach(self, name: str, point: str) -> None:
        if self.failpoint is not None:
            self.failpoint(f"{name}:{point}")


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of a store, by its name. As an `os.PathLike` it is its copy on this node."""

    store: Store
    name: str

    def exists(self) -> bool:
        """Return whether it has been published."""
        return self.store.exists(self.name)

    def read_bytes(self) -> bytes:
        """Return its content."""
        return self.store.read_bytes(self.name)

    def open(self, mode: str = "rb") -> BinaryIO:
        """Open it for reading; `mode` is always "rb", as a `Path` wants to be told."""
        return self.store.open(self.name)

    def local(self) -> Path:
        """Return its path on this node."""
        return self.store.local(self.name)

    def __fspath__(self) -> str:
        return str(self.local())

    def __str__(self) -> str:
        return self.store.url(self.name)


def open_store(place: Store | Path | str, failpoint: Callable[[str], None] | None = None) -> Store:
    """Return the store at `place`: itself, a URL, or a path, made absolute."""
    if isinstance(place, Store):
        return place if failpoint is None else replace(place, failpoint=failpoint)
    return Store(place, failpoint).resolved()


def _check_unhashed(name: str) -> None:
    if not name.startswith("runs/") and name not in REPORT_FILES:
        files = " or ".join(REPORT_FILES)
        raise ValueError(f"{name} is no file that may be replaced: those lie below runs/, or are {files}")


def self_digested(value: dict[str, Any]) -> dict[str, Any]:
    """Return `value` with its own digest, over the canonical JSON without it, as the field "digest"."""
    return {**value, "digest": digest_json(value)}


def check_self_digest(value: Any, path: str) -> dict[str, Any]:
    """Return `value` if its "digest" field is right.

    Raises:
        StoreError: it is not, or there is none.
    """
    if not isinstance(value, dict) or "digest" not in value:
        raise StoreError(f"{path} has no digest field: it was not written by curate, or is damaged")
    rest = {name: item for name, item in value.items() if name != "digest"}
    found = digest_json(rest)
    if found != value["digest"]:
        raise StoreError(f"{path} says its digest is {value['digest']}, its content has {found}: the file is damaged")
    return value


def json_line(value: object) -> bytes:
    """Return canonical JSON with a line break, as published JSON files hold it."""
    return canonical_json(value).encode() + b"\n"
