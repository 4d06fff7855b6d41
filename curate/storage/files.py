"""What a place of files must do. Names have "/" between their parts and are relative to the root; "" is the root.

Files are written once, whole, and never changed; what `put` writes is the exception, which nothing hashes.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol


@dataclass(frozen=True, slots=True)
class Entry:
    """A file in a listing.

    Attributes:
        name: below the root of the place.
        size: in bytes.
        version: what changes when the file does: version id or etag of an object, times and inode of a local file.
        modified: seconds since 1970 at which it got its name, by the clock of the place.
    """

    name: str
    size: int
    version: str
    modified: float


class Appender(Protocol):
    """A file of lines, open for adding to it."""

    def write(self, lines: bytes) -> None:
        """Add whole lines; they are kept at once, or within seconds where every write costs a request."""
        ...

    def close(self) -> None:
        """Keep what was added, and end."""
        ...


class Files(Protocol):
    """A place of files. A file that is not there is a `FileNotFoundError`."""

    def url(self, name: str) -> str:
        """Return where `name` lies, for messages."""
        ...

    def exists(self, name: str) -> bool:
        """Return whether the file `name` is there."""
        ...

    def size(self, name: str) -> int:
        """Return how many bytes the file has."""
        ...

    def read(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        """Return bytes `start` to `stop` of the file, or to its end."""
        ...

    def open(self, name: str) -> BinaryIO:
        """Open the file for reading; seeking is free."""
        ...

    def local(self, name: str, digest: str | None = None) -> Path:
        """Return the path of the file on this node; a copy is checked against `digest`, where it is given."""
        ...

    def entries(self, folder: str) -> list[Entry]:
        """Return the files below a folder, at any depth, ordered by name; none when there is no such folder."""
        ...

    def folders(self, folder: str) -> list[str]:
        """Return the names of the folders directly below a folder, ordered."""
        ...

    def create(self, source: Path, name: str, digest: str) -> str:
        """Give the closed local file `source` the name `name` unless it is taken; return the digest of what is there.

        Once this returns, the file is there whole and stays; when it raises, it is there whole or not at all.
        """
        ...

    def put(self, name: str, content: bytes) -> None:
        """Write the file whole, in place of the one that is there."""
        ...

    def appender(self, name: str) -> Appender:
        """Open a file of lines for adding to it; whoever else does meanwhile adds lines of their own."""
        ...

    def appended(self, name: str) -> bytes:
        """Return what was added to `name`; nothing when nothing was. The last line may be cut short by a kill."""
        ...

    def writing(self) -> AbstractContextManager[None]:
        """Make sure that this place can be written to as the options say, for as long as the context lasts."""
        ...

    def remove(self, name: str) -> None:
        """Remove the file; one that is not there is removed already."""
        ...

    def kvstore(self, folder: str) -> dict[str, Any]:
        """Return the specification of a folder as TensorStore's key-value store."""
        ...

    @property
    def spool(self) -> Path:
        """The folder for spool files, on this node and, for local places, on the same file system."""
        ...
