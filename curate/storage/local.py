"""Files in a local folder, or on a file system that many nodes mount.

Publishing: the spool file is synced, linked to its name (which fails when the name is taken), and the folder synced.
File systems without hard links are served by `curate.storage.claims`. Either way a name is taken once, by a whole file.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any, BinaryIO, Final

from curate.digests import digest_file
from curate.storage.claims import create_by_claim
from curate.storage.errors import StoreError
from curate.storage.files import Entry
from curate.storage.spool import SPOOL, spool_name

ELSEWHERE: Final = "give a folder that you may write, or one that is not there yet"
_NO_LINKS: Final = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """Files below the folder `root`."""

    root: Path

    def path(self, name: str) -> Path:
        """Return the path of the file or folder `name`."""
        return self.root.joinpath(*name.split("/")) if name else self.root

    def url(self, name: str) -> str:
        """Return the path in words."""
        return str(self.path(name))

    def exists(self, name: str) -> bool:
        """Return whether the file `name` is there."""
        return self.path(name).exists()

    def size(self, name: str) -> int:
        """Return how many bytes the file has."""
        return self.path(name).stat().st_size

    def read(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        """Return bytes `start` to `stop` of the file, or to its end."""
        with self.path(name).open("rb") as file:
            file.seek(start)
            return file.read() if stop is None else file.read(max(0, stop - start))

    def open(self, name: str) -> BinaryIO:
        """Open the file for reading."""
        return self.path(name).open("rb")

    def local(self, name: str, digest: str | None = None) -> Path:
        """Return the path of the file: it is here already, and whoever reads it checks it."""
        return self.path(name)

    def entries(self, folder: str) -> list[Entry]:
        """Return the files below a folder, at any depth, ordered by name."""
        top = self.path(folder)
        found = []
        for place, _, names in os.walk(top):
            below = Path(place).relative_to(self.root).as_posix()
            for name in names:
                try:
                    status = os.stat(os.path.join(place, name))
                except FileNotFoundError:  # removed meanwhile, as spool files are
                    continue
                version = f"{status.st_mtime_ns}-{status.st_ctime_ns}-{status.st_ino}-{status.st_dev}"
                modified = max(status.st_mtime, status.st_ctime)  # a link gives the file's times, but for ctime
                found.append(Entry(name if below == "." else f"{below}/{name}", status.st_size, version, modified))
        return sorted(found, key=lambda entry: entry.name)

    def folders(self, folder: str) -> list[str]:
        """Return the names of the folders directly below a folder, ordered."""
        top = self.path(folder)
        if not top.is_dir():
            return []
        return sorted(f"{folder}/{entry.name}" if folder else entry.name for entry in os.scandir(top) if entry.is_dir())

    def create(self, source: Path, name: str, digest: str) -> str:
        """Link `source` to `name` unless it is taken; return the digest of what is there."""
        target = self.path(name)
        _sync(source)
        _make_folder(target.parent)
        try:
            os.link(source, target)
        except FileExistsError:
            return digest_file(target)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            digest = create_by_claim(source, target, digest, self.spool)
        _sync_folder(target.parent)
        return digest

    def put(self, name: str, content: bytes) -> None:
        """Write the file whole, in place of the one that is there."""
        target = self.path(name)
        _make_folder(target.parent)
        self.spool.mkdir(parents=True, exist_ok=True)
        beside = self.spool / spool_name()
        try:
            beside.write_bytes(content)
            _sync(beside)
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
        _sync_folder(target.parent)

    def appender(self, name: str) -> LocalAppender:
        """Open a file of lines for adding to it."""
        return LocalAppender(self.path(name))

    def appended(self, name: str) -> bytes:
        """Return what was added to `name`; nothing when nothing was."""
        path = self.path(name)
        return path.read_bytes() if path.exists() else b""

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Make the folder: a local file system needs no more.

        Raises:
            StoreError: it cannot be made or written.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"the store {self.root} cannot be made ({error.strerror}): {ELSEWHERE}") from error
        if not os.access(self.root, os.W_OK | os.X_OK):
            raise StoreError(f"the store {self.root} cannot be written: {ELSEWHERE}")
        yield

    def remove(self, name: str) -> None:
        """Remove the file, and the folders that are empty without it."""
        path = self.path(name)
        path.unlink(missing_ok=True)
        for folder in path.parents:
            if folder == self.root or not folder.is_relative_to(self.root):
                return
            try:
                folder.rmdir()
            except OSError:  # not empty, or gone
                return

    def kvstore(self, folder: str) -> dict[str, Any]:
        """Return the specification of a folder as TensorStore's key-value store."""
        return {"driver": "file", "path": f"{self.path(folder)}/"}

    @property
    def spool(self) -> Path:
        """The folder for spool files: on the file system of the store."""
        return self.root / SPOOL


class LocalAppender:
    """A local file of lines, open for adding to it; each write is one call of the system, so that lines stay whole."""

    def __init__(self, path: Path) -> None:
        """Open `path`; it and its folder are made with the first lines."""
        self._path = path
        self._file: FileIO | None = None

    def write(self, lines: bytes) -> None:
        """Add whole lines."""
        if self._file is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("ab", buffering=0)
        self._file.write(lines)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _make_folder(folder: Path) -> None:
    if not folder.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _sync_folder(folder.parent)


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some file systems refuse to sync a folder; the link itself is atomic there too
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
