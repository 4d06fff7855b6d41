"""Copies of remote files on this node, made once however many workers ask at once.

A copy is written beside its name, compared with the digest that it must have, and renamed; while one process fetches it
the others wait for its lock, which dies with its holder. The least recently used copies go when all are larger than
the bound; one that was asked for in the last minutes stays, as its reader may not have opened it yet.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from curate.digests import digest_bytes, digest_file
from curate.storage.errors import StoreError
from curate.storage.spool import spool_name

FRESH_SECONDS: Final = 600.0
"""Copies that were asked for in this time are not removed."""


@dataclass(frozen=True, slots=True)
class NodeCache:
    """Copies below `folder`, of `limit` bytes together."""

    folder: Path
    limit: int

    def copy(self, url: str, version: str, digest: str | None, fetch: Callable[[Path], None]) -> Path:
        """Return the copy of the file at `url`; `fetch` writes it to a path when it is not here.

        Raises:
            StoreError: what was fetched has not the digest `digest`; nothing is kept of it.
        """
        path = self.folder / "files" / digest_bytes(f"{url}\0{version}".encode())[:32]
        if self._use(path):
            return path
        with self._locked(path.name):
            if self._use(path):
                return path
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = self.folder / "spool" / spool_name()
            partial.parent.mkdir(exist_ok=True)
            try:
                fetch(partial)
                if digest is not None and (found := digest_file(partial)) != digest:
                    raise StoreError(f"{url} is damaged: it has the digest {found}, written was {digest}")
                partial.replace(path)
            finally:
                partial.unlink(missing_ok=True)
        self._shrink()
        return path

    def _use(self, path: Path) -> bool:
        try:
            os.utime(path)
        except FileNotFoundError:
            return False
        return True

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        locks = self.folder / "locks"
        locks.mkdir(parents=True, exist_ok=True)
        with (locks / name[:2]).open("a") as file:  # few files that stay: removing a lock file would race
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _shrink(self) -> None:
        found = []
        for entry in os.scandir(self.folder / "files"):
            with suppress(FileNotFoundError):
                status = entry.stat()
                found.append((status.st_mtime, status.st_size, entry.path))
        total, now = sum(size for _, size, _ in found), time.time()
        for used, size, path in sorted(found):
            if total <= self.limit or now - used < FRESH_SECONDS:
                return
            Path(path).unlink(missing_ok=True)
            total -= size
