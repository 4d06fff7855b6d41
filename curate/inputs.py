"""Input files: listing them, fingerprinting them once, and hashing what is read.

A fingerprint is the BLAKE3 digest of the stored bytes. A stat index in the store's unhashed journal remembers it under
(size, times, inode), so that files which did not change are not read twice; nothing in a key or receipt depends on the
index. The reading task hashes what it reads, and a file that changed in between is an error.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from blake3 import blake3

from curate.configuration import ConfigurationError
from curate.digests import digest_bytes, digest_file
from curate.jobs import Item
from curate.readers.chunks import InputError
from curate.readers.reader import Reader
from curate.store import Store

FINGERPRINTS: Final = "runs/fingerprints.jsonl"
"""The stat index within a store."""


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file of a source: `path` below the root with "/" between parts, and its size in bytes."""

    root: Path
    path: str
    size: int


@dataclass(frozen=True, slots=True)
class FileUnit:
    """An input file with its fingerprint: a unit of reading.

    `repeats` holds ids of records that an earlier file holds too: here they are refused as "same record".
    """

    root: Path
    path: str
    size: int
    fingerprint: str
    repeats: frozenset[bytes] = frozenset()

    def described(self) -> dict[str, str]:
        """Return the unit as it stands in a receipt."""
        return {"path": self.path, "fingerprint": self.fingerprint}


def list_files(reader: Reader) -> list[InputFile]:
    """Return the files of a reader, ordered by the bytes of their paths.

    Raises:
        ConfigurationError: the root is no folder, no file matches or a name is not UTF-8: said before any work.
    """
    root = Path(reader.root)
    if not root.is_dir():
        raise ConfigurationError(f"source {reader.source!r}: {root} is not a folder")
    found = [path for path in root.glob(reader.pattern) if path.is_file()]
    if not found:
        raise ConfigurationError(f"source {reader.source!r}: no file below {root} matches {reader.pattern!r}")
    files = [InputFile(root, path.relative_to(root).as_posix(), path.stat().st_size) for path in found]
    for file in files:
        if not _is_utf8(file.path):
            raise ConfigurationError(f"source {reader.source!r}: the file name {file.path!r} is not UTF-8: rename it")
    return sorted(files, key=lambda file: file.path.encode())


def _is_utf8(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


class StatIndex:
    """Fingerprints of files under what `stat` says of them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, str] = {}
        for line in store.appended(FINGERPRINTS):
            self._learn(line)

    def _learn(self, line: bytes) -> None:
        try:
            entry = json.loads(line)
            self._known[entry["stat"]] = entry["fingerprint"]
        except (ValueError, KeyError, TypeError):
            return  # a line cut short by a kill: the file is hashed again

    def get(self, file: InputFile) -> str | None:
        """Return the fingerprint of `file`, or None when it must be hashed."""
        return self._known.get(_stat_key(file))

    def put(self, fingerprints: Mapping[InputFile, str]) -> None:
        """Remember fingerprints."""
        lines = []
        for file, fingerprint in fingerprints.items():
            self._known[_stat_key(file)] = fingerprint
            lines.append(json.dumps({"stat": _stat_key(file), "fingerprint": fingerprint}).encode() + b"\n")
        if lines:
            added = self._store.appender(FINGERPRINTS)
            added.write(b"".join(lines))
            added.close()


def _stat_key(file: InputFile) -> str:
    stat = (file.root / file.path).stat()
    seen = (file.path, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino, stat.st_dev)
    return digest_bytes(repr(seen).encode())[:32]


@dataclass(frozen=True, slots=True)
class FingerprintJob:
    """Hashes input files; the result of an item is the fingerprint of its file."""

    store: Store
    name: str = "fingerprint inputs"

    def run(self, item: Item) -> str:
        """Return BLAKE3 over the stored bytes of the file."""
        file: InputFile = item.unit
        return digest_file(file.root / file.path)


def units_of(files: Sequence[InputFile], index: StatIndex) -> tuple[list[FileUnit], list[InputFile]]:
    """Return the units that the index knows, and the files that must be hashed first."""
    known, unknown = [], []
    for file in files:
        value = index.get(file)
        if value is None:
            unknown.append(file)
        else:
            known.append(FileUnit(file.root, file.path, file.size, value))
    return known, unknown


class _Hashed(io.RawIOBase):
    """A file that hashes what is read from it, forwards only."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self.file = file
        self.hasher = blake3()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self.file.readinto(buffer)  # type: ignore[attr-defined]
        self.hasher.update(memoryview(buffer)[:count])
        return int(count)


@contextmanager
def open_hashed(unit: FileUnit) -> Iterator[BinaryIO]:
    """Open the file of `unit`; on leaving, read what is left and compare the digest with the fingerprint.

    Raises:
        InputError: the file is not the one that was fingerprinted.
    """
    path = unit.root / unit.path
    with path.open("rb", buffering=0) as raw:
        hashed = _Hashed(raw)
        reader = io.BufferedReader(hashed, 1 << 20)
        yield reader
        while reader.read(1 << 20):
            pass
        found = hashed.hasher.hexdigest()
    if found != unit.fingerprint:
        raise InputError(
            f"{path} has the digest {found}, it was fingerprinted as {unit.fingerprint}: it changed while the recipe "
            "ran. Run again when it no longer changes"
        )
