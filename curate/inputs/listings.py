"""Listings: the files of a source pinned by name, size and checksum, for inputs too large to hash before a run.

A listing has one canonical JSON object a line: `path` below the root, `size`, and at least one checksum of the stored
bytes (`blake3`, `sha256` or `md5`), or the `version` of an object (version id or etag). `curate list` writes one, with
BLAKE3 of its own or with the checksums that came with the data; of an object store it takes the versions and reads no
data. Modification times and inodes say nothing of content and have no place in it.

The fingerprint of a file is its BLAKE3 digest where the listing has it, so that pinning files which were hashed before
reruns nothing; else the line without the path. Nothing is hashed before a run; the task that reads a file checks size
and checksums, and a file that is not the listed one is an error. Versions are compared before any work. Cost: a
`stat` per file or the listing of the objects.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from blake3 import blake3

from curate.configuration import ConfigurationError
from transforms.canonical import canonical_json


class Hasher(Protocol):
    """A digest under way."""

    def update(self, data: Any, /) -> Any:
        """Add bytes."""
        ...

    def hexdigest(self) -> str:
        """Return the digest of what was added."""
        ...


CHECKSUMS: Final[Mapping[str, tuple[Callable[[], Hasher], int]]] = {
    "blake3": (blake3, 64),
    "sha256": (hashlib.sha256, 64),
    "md5": (lambda: hashlib.md5(usedforsecurity=False), 32),
}
"""Name of a checksum → how it is made, and its hex digits."""

NAMED: Final = 5
"""Files named in a message; the others are counted."""


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A line of a listing: `path` below the root, `size` in bytes, `checksums` by name, `version` of an object."""

    path: str
    size: int
    checksums: Mapping[str, str]
    version: str = ""

    @property
    def fingerprint(self) -> str:
        """What stands for the content in keys; see the module docstring."""
        return self.checksums.get("blake3") or canonical_json({"size": self.size, **self._marks()})

    def line(self) -> bytes:
        """Return its line of a listing."""
        return canonical_json({"path": self.path, "size": self.size, **self._marks()}).encode() + b"\n"

    def _marks(self) -> dict[str, str]:
        return {**self.checksums, **({"version": self.version} if self.version else {})}


def expected_checksums(fingerprint: str) -> dict[str, Any]:
    """Return what a task that reads a file can compare: checksums by name, and `size` where it is known."""
    if not fingerprint.startswith("{"):
        return {"blake3": fingerprint}
    return {name: value for name, value in json.loads(fingerprint).items() if name != "version"}


def read_listing(path: Path) -> list[ListedFile]:
    """Return the files of a listing, ordered by the bytes of their paths.

    Raises:
        ConfigurationError: it is missing, a line is no file with size and checksum, or a file is listed twice.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise ConfigurationError(f"listing {path}: {error.strerror}; `curate list ROOT > {path}` makes one") from error
    files = [_parse(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if repeated := sorted(name for name, count in Counter(file.path for file in files).items() if count > 1):
        raise ConfigurationError(f"listing {path}: {named(repeated)} stands in it twice: remove one of the lines")
    if not files:
        raise ConfigurationError(f"listing {path} is empty: `curate list ROOT > {path}` makes one")
    return sorted(files, key=lambda file: file.path.encode())


def _parse(path: Path, number: int, line: bytes) -> ListedFile:
    try:
        value = json.loads(line)
        name, size = value.pop("path"), value.pop("size")
        if not isinstance(name, str) or type(size) is not int or size < 0:
            raise ValueError("path is a text and size a number of bytes")
        version = value.pop("version", "")
        if not isinstance(version, str):
            raise ValueError("version is a text")
        for kind, digest in value.items():
            if kind not in CHECKSUMS:
                raise ValueError(f"{kind!r} is not one of {', '.join(CHECKSUMS)}")
            check_hex(kind, digest)
        if not value and not version:
            raise ValueError(f"it has none of the checksums {', '.join(CHECKSUMS)}, so nothing could tell another file")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise ConfigurationError(
            f'listing {path} line {number}: {what}. A line looks like {{"blake3":"…","path":"a/b.warc.gz","size":123}}'
        ) from None
    return ListedFile(name, size, value, version)


def check_hex(kind: str, digest: Any) -> None:
    """Check a checksum of this kind.

    Raises:
        ValueError: it has not so many lower-case hex digits.
    """
    digits = CHECKSUMS[kind][1]
    if not isinstance(digest, str) or len(digest) != digits or set(digest) - set("0123456789abcdef"):
        raise ValueError(f"{kind} is {digest!r}, not {digits} lower-case hex digits")


def check_listing(
    source: str, listing: Path, listed: Sequence[ListedFile], found: Mapping[str, tuple[int, str]]
) -> None:
    """Compare a listing with the files `found`, path → size and version ("" of a local file), before any work.

    Raises:
        ConfigurationError: a file lacks a line, a line lacks a file, or size or version differ; or a local file has a
            version only, which nothing could be compared with.
    """
    sizes = {file.path: file.size for file in listed}
    versions = {file.path: file.version for file in listed if file.version}
    blind = {file.path for file in listed if not file.checksums}
    for what, names, remedy in (
        ("in the folder, not in the listing", found.keys() - sizes.keys(), "list the folder again, or move them away"),
        ("in the listing, not in the folder", sizes.keys() - found.keys(), "fetch them, or list the folder again"),
        (
            "of another size than listed",
            {name for name in found.keys() & sizes.keys() if found[name][0] != sizes[name]},
            "fetch them again, or list the folder again",
        ),
        (
            "of another version than listed",
            {name for name in found.keys() & versions.keys() if found[name][1] not in ("", versions[name])},
            "list them again",
        ),
        (
            "listed by version alone, which local files do not have",
            {name for name in found.keys() & blind if not found[name][1]},
            "list the folder with checksums",
        ),
    ):
        if names:
            raise ConfigurationError(
                f"source {source!r}, listing {listing}: {len(names):,} files {what} ({named(sorted(names))}): "
                f"{remedy}, with the pattern that the recipe has"
            )


def named(names: Sequence[str]) -> str:
    """Return the first few of `names`, and how many more there are."""
    return ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED:,} more" if len(names) > NAMED else "")
