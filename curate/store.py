"""The store: a folder of immutable files, each published whole or not at all.

A task writes a spool file on the store's own file system, closes and syncs it, then links it to its name
(create if absent), removes the spool name and syncs the folder. Whoever comes second compares digests: equal is
fine, different is an error that names both. Nothing is ever overwritten, so a killed driver's last writes are harmless.
"""

from __future__ import annotations

import json
import os
import socket
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from curate.digests import digest_file, digest_json
from transforms.outcome import canonical_json

POINTS: Final = ("spooled", "linked", "published")
"""Moments of publishing a file at which a test may stop the process."""


class StoreError(RuntimeError):
    """A broken promise of the store: a missing, damaged or conflicting file."""


@dataclass(frozen=True, slots=True)
class Store:
    """A store under a local folder.

    `failpoint` is called with "<file name>:<point>" at each of `POINTS`; tests pass one that kills the process.
    """

    root: Path
    failpoint: Callable[[str], None] | None = None

    def path(self, name: str) -> Path:
        """Return the path of the file or folder `name`, "/" between parts."""
        return self.root.joinpath(*name.split("/"))

    def exists(self, name: str) -> bool:
        """Return whether `name` has been published."""
        return self.path(name).exists()

    @contextmanager
    def spool(self) -> Iterator[Path]:
        """Yield the path of a new spool file; what is left of it is removed afterwards."""
        folder = self.root / "spool"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex}"
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)

    def publish(self, spooled: Path, name: str) -> str:
        """Publish the closed file `spooled` under `name` and return its digest.

        Raises:
            StoreError: another file is published under `name` and its bytes differ.
        """
        digest = digest_file(spooled)
        target = self.path(name)
        with spooled.open("rb") as file:
            os.fsync(file.fileno())
        _make_folder(target.parent)
        self._reach(name, "spooled")
        try:
            os.link(spooled, target)
        except FileExistsError:
            _refuse_conflict(target, digest)
        self._reach(name, "linked")
        spooled.unlink()
        _sync_folder(target.parent)
        self._reach(name, "published")
        return digest

    def publish_bytes(self, content: bytes, name: str) -> str:
        """Publish `content` under `name` and return its digest; see `publish`."""
        with self.spool() as path:
            path.write_bytes(content)
            return self.publish(path, name)

    def read_json(self, name: str) -> Any:
        """Return the parsed JSON of `name`.

        Raises:
            StoreError: the file is missing, or is not canonical JSON with a line break.
        """
        path = self.path(name)
        try:
            content = path.read_bytes()
            value = json.loads(content)
            if json_line(value) != content:  # a change that parses alike, as a blank
                raise ValueError("not the canonical JSON that curate writes")
            return value
        except FileNotFoundError:
            raise StoreError(f"{path} is missing: run the recipe again to make it") from None
        except (ValueError, TypeError, RecursionError) as error:
            raise StoreError(f"{path} is damaged ({error}): remove it and run the recipe again") from error

    def remove_stale_spool_files(self) -> int:
        """Remove spool files of processes of this host that are gone; return how many."""
        stale = 0
        for path in sorted((self.root / "spool").glob(f"{socket.gethostname()}-*")):
            pid = path.name.removeprefix(f"{socket.gethostname()}-").split("-")[0]
            if pid.isdigit() and not Path(f"/proc/{pid}").exists() and not _is_alive(int(pid)):
                path.unlink(missing_ok=True)
                stale += 1
        return stale

    def _reach(self, name: str, point: str) -> None:
        if self.failpoint is not None:
            self.failpoint(f"{name}:{point}")


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _make_folder(folder: Path) -> None:
    if not folder.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some file systems refuse to sync a folder; the link itself is atomic there too
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _refuse_conflict(target: Path, digest: str) -> None:
    published = digest_file(target)
    if published != digest:
        raise StoreError(
            f"{target} is published with digest {published}, this attempt made {digest}: two attempts at one task "
            "must give the same bytes. Look for a transform that is not deterministic, or remove the folder and rerun"
        )


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
