"""Input files: listing them, fingerprinting them once, and hashing what is read.

A fingerprint is the BLAKE3 digest of the stored bytes. A stat index in the store's unhashed journal remembers it under
(size, times, inode), so that files which did not change are not read twice; nothing in a key or receipt depends on the
index. The reading task hashes what it reads, and a file that changed in between is an error. A listing
(`curate.inputs.listings`) takes the place of the first pass.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Final

from curate.configuration import ConfigurationError
from curate.digests import digest_bytes
from curate.inputs.listings import CHECKSUMS, check_listing, expected_checksums, read_listing
from curate.inputs.splitting import is_large, split
from curate.readers.chunks import InputError
from curate.readers.parts import Part
from curate.readers.reader import Reader
from curate.running.jobs import Item
from curate.storage.patterns import matcher
from curate.store import Store

FINGERPRINTS: Final = "runs/fingerprints.jsonl"
"""The stat index within a store."""

HASHED_BYTES: Final = 256 << 20
HASHED_FILES: Final = 128
"""Bytes, and files, of one task of the first pass at most; a larger file has a task of its own."""


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file of a source: `path` below the root with "/" between parts, and its size in bytes.

    `version` is that of an object, from its listing; local files are asked when it matters.
    """

    root: Path | Store
    path: str
    size: int
    version: str = ""

    @property
    def url(self) -> str:
        """Where the file lies, for messages."""
        return place_of(self.root).url(self.path)


@dataclass(frozen=True, slots=True)
class FileUnit:
    """An input file with its fingerprint: a unit of reading.

    `repeats` holds ids of records that an earlier file holds too: here they are refused as "same record". `part` is
    what the unit reads of the file; None: all.
    """

    root: Path | Store
    path: str
    size: int
    fingerprint: str
    repeats: frozenset[bytes] = frozenset()
    part: Part | None = None

    @property
    def url(self) -> str:
        """Where the file lies, for messages."""
        return place_of(self.root).url(self.path)

    def open(self) -> BinaryIO:
        """Open the file for reading, unbuffered where it is local."""
        if isinstance(self.root, Path):
            return (self.root / self.path).open("rb", buffering=0)
        if self.path.endswith(".parquet"):  # its reader wants it whole on this node, so it need not come twice
            return self.local().open("rb", buffering=0)
        return self.root.open(self.path)

    def local(self) -> Path:
        """Return the path of the file, or of a copy on this node."""
        return place_of(self.root).local(self.path)

    def described(self) -> dict[str, Any]:
        """Return the unit as it stands in a receipt."""
        part = {} if self.part is None else {"part": self.part.described()}
        return {"path": self.path, "fingerprint": self.fingerprint, **part}


Unhashed = tuple[InputFile, Reader | None]
"""A file to be hashed, with its reader where it is to be cut into parts."""

Hashed = tuple[str, tuple[Part, ...]]
"""The fingerprint of a file, and its parts."""


def list_files(reader: Reader) -> list[InputFile]:
    """Return the files of a reader, ordered by the bytes of their paths.

    Raises:
        ConfigurationError: the root is no folder, no file matches or a name is not UTF-8: said before any work.
    """
    return find_files(reader.root, reader.pattern, f"source {reader.source!r}")


def place_of(root: Path | Store) -> Store:
    """Return the root of a source as a store."""
    return root if isinstance(root, Store) else Store(root)


def find_files(root: Path | Store, pattern: str, who: str) -> list[InputFile]:
    """Return the files below `root` that match `pattern`, ordered by the bytes of their paths; `who` asks for them.

    Raises:
        ConfigurationError: `root` is no folder, no file matches or a name is not UTF-8.
    """
    files = _local_files(root, pattern, who) if isinstance(root, Path) else _objects(root, pattern)
    if not files:
        raise ConfigurationError(f"{who}: no file below {root} matches {pattern!r}")
    for file in files:
        if not _is_utf8(file.path):
            raise ConfigurationError(f"{who}: the file name {file.path!r} is not UTF-8: rename it")
    return sorted(files, key=lambda file: file.path.encode())


def _local_files(root: Path, pattern: str, who: str) -> list[InputFile]:
    if not root.is_dir():
        raise ConfigurationError(f"{who}: {root} is not a folder")
    place = root.absolute()  # workers of a cluster have another working folder
    return [
        InputFile(place, path.relative_to(root).as_posix(), path.stat().st_size)
        for path in root.glob(pattern)
        if path.is_file()
    ]


def _objects(root: Store, pattern: str) -> list[InputFile]:
    wanted = matcher(pattern)
    return [
        InputFile(root, entry.name, entry.size, entry.version)
        for entry in root.entries()
        if wanted.match(entry.name) is not None
    ]


def _is_utf8(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


class StatIndex:
    """Fingerprints of files, and the parts in which large ones are read, under what `stat` says of them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, str] = {}
        self._parts: dict[str, tuple[Part, ...]] = {}
        for line in store.appended(FINGERPRINTS):
            self._learn(line)

    def _learn(self, line: bytes) -> None:
        try:
            entry = json.loads(line)
            if "parts" in entry:
                self._parts[entry["stat"]] = tuple(Part.from_json(part) for part in entry["parts"])
            else:
                self._known[entry["stat"]] = entry["fingerprint"]
        except (ValueError, KeyError, TypeError):
            return  # a line cut short by a kill: the file is hashed again

    def get(self, file: InputFile) -> str | None:
        """Return the fingerprint of `file`, or None when it must be hashed."""
        return self._known.get(_stat_key(file))

    def parts(self, file: InputFile, reader: Reader) -> tuple[Part, ...] | None:
        """Return the parts in which `reader` reads `file`, none where it reads it whole; None: they must be found."""
        return self._parts.get(_parts_key(file, reader))

    def put(self, fingerprints: Mapping[InputFile, str]) -> None:
        """Remember fingerprints."""
        self._known.update({_stat_key(file): value for file, value in fingerprints.items()})
        self._append([{"stat": _stat_key(file), "fingerprint": value} for file, value in fingerprints.items()])

    def put_parts(self, found: Mapping[tuple[InputFile, Reader], tuple[Part, ...]]) -> None:
        """Remember parts."""
        keyed = {_parts_key(file, reader): parts for (file, reader), parts in found.items()}
        self._parts.update(keyed)
        self._append([{"stat": key, "parts": [part.to_json() for part in parts]} for key, parts in keyed.items()])

    def put_hashed(self, files: Sequence[Unhashed], found: Sequence[Hashed]) -> None:
        """Remember what `FingerprintJob` found of `files`."""
        pairs = list(zip(files, found, strict=True))
        self.put({file: fingerprint for (file, _), (fingerprint, _) in pairs})
        self.put_parts({(file, reader): parts for (file, reader), (_, parts) in pairs if reader is not None})

    def _append(self, lines: Sequence[Mapping[str, Any]]) -> None:
        if lines:
            added = self._store.appender(FINGERPRINTS)
            added.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
            added.close()


def _parts_key(file: InputFile, reader: Reader) -> str:
    how = (reader.format, reader.unit_bytes, reader.max_record_bytes)
    return digest_bytes(repr((_stat_key(file), *how)).encode())[:32]


def _stat_key(file: InputFile) -> str:
    if isinstance(file.root, Store):
        return digest_bytes(repr((file.root.url(file.path), file.size, file.version)).encode())[:32]
    stat = (file.root / file.path).stat()
    seen = (file.path, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino, stat.st_dev)
    return digest_bytes(repr(seen).encode())[:32]


@dataclass(frozen=True, slots=True)
class FingerprintJob:
    """Hashes input files, those of an item one after the other, and finds the parts of large ones."""

    store: Store
    name: str = "fingerprint inputs"

    def run(self, item: Item) -> list[Hashed]:
        """Return BLAKE3 over the stored bytes of each file, and its parts."""
        files: tuple[Unhashed, ...] = item.unit
        return [_hashed(file, reader) for file, reader in files]


def _hashed(file: InputFile, reader: Reader | None) -> Hashed:
    place = place_of(file.root)
    if reader is None:
        return place.digest(file.path), ()
    return split(reader, lambda: place.open(file.path), file.path, file.size)


def fingerprint_items(files: Sequence[Unhashed]) -> list[Item]:
    """Return items that hash `files`: small ones share a task."""
    groups: list[list[Unhashed]] = []
    size = 0
    for file, reader in files:
        if not groups or size + file.size > HASHED_BYTES or len(groups[-1]) == HASHED_FILES:
            groups.append([])
            size = 0
        groups[-1].append((file, reader))
        size += file.size
    return [Item("", group[0][0].path, tuple(group), sum(file.size for file, _ in group)) for group in groups]


def unhashed(reader: Reader, files: Sequence[InputFile]) -> list[Unhashed]:
    """Return what is to be hashed of `files`, with the reader where one is read in parts."""
    return [(file, reader if is_large(reader, file.size) else None) for file in files]


def units_of(reader: Reader, files: Sequence[InputFile], index: StatIndex) -> tuple[list[FileUnit], list[InputFile]]:
    """Return the units whose fingerprint a listing or the index knows, and the files that must be hashed first.

    Raises:
        ConfigurationError: the reader has a listing, and the files are others than it says.
    """
    if reader.listing is not None:
        listed = read_listing(reader.listing)
        found = {file.path: (file.size, file.version) for file in files}
        check_listing(reader.source, reader.listing, listed, found)
        return [FileUnit(reader.root, file.path, file.size, file.fingerprint) for file in listed], []
    known, unknown = [], []
    for file in files:
        value = index.get(file)
        parts = index.parts(file, reader) if is_large(reader, file.size) else ()
        if value is None or parts is None:
            unknown.append(file)
        else:
            unit = FileUnit(file.root, file.path, file.size, value)
            known += [_part_of(unit, part) for part in parts] or [unit]
    return known, unknown


def _part_of(unit: FileUnit, part: Part) -> FileUnit:
    return replace(unit, size=part.stop - part.begin.at, part=part)


class _Hashed(io.RawIOBase):
    """A file that hashes and counts what is read from it, forwards only; of a part its own bytes, `size` of them."""

    def __init__(self, file: BinaryIO, checksums: Iterable[str], most: int | None) -> None:
        super().__init__()
        self.file, self.most = file, most
        self.hashers = {kind: CHECKSUMS[kind][0]() for kind in checksums if kind in CHECKSUMS}
        self.size = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = int(self.file.readinto(buffer))  # type: ignore[attr-defined]
        own = count if self.most is None else max(min(count, self.most - self.size), 0)
        self.size += count
        for hasher in self.hashers.values():
            hasher.update(memoryview(buffer)[:own])
        return count

    def found(self) -> dict[str, Any]:
        """Return the checksums and the size of what was read."""
        return {"size": self.size, **{kind: hasher.hexdigest() for kind, hasher in self.hashers.items()}}


@contextmanager
def open_hashed(unit: FileUnit) -> Iterator[BinaryIO]:
    """Open the file of `unit`; on leaving, read what is left and compare it with the fingerprint.

    Raises:
        InputError: the file is not the one that was fingerprinted or listed.
    """
    part = unit.part
    expected = expected_checksums(unit.fingerprint) if part is None else {"blake3": part.digest}
    with unit.open() as raw:
        if part is not None:
            raw.seek(part.begin.at)
        hashed = _Hashed(raw, expected, None if part is None else unit.size)
        reader = io.BufferedReader(hashed, 1 << 20)
        yield reader
        rest = bytearray(1 << 20)
        while (part is None or hashed.size < unit.size) and reader.readinto(rest):
            pass
        found = hashed.found()
    for what, value in expected.items():
        if found[what] != value:
            raise InputError(
                f"{unit.url} has the {what} {found[what]}, it was fingerprinted as {value}: it changed while the "
                "recipe ran, or is not the file that its listing names. Run again when it no longer changes; where "
                "there is a listing, fetch the file again or list the folder again"
            )
