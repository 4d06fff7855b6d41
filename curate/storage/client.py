"""What `curate.storage.objects` needs of a server of objects. Clients make each request through `Requests`.

Errors: `FileNotFoundError` where there is no such object, `TakenError` where a creation found one, `StoreError` else.
No error repeats a header, so no credential gets into a message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

DIGEST: Final = "blake3"
"""Name under which objects carry the digest of their bytes among their metadata."""


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """What a server says of an object: `digest` is None where it was not written by curate."""

    key: str
    size: int
    version: str
    modified: float
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a listing: objects, common prefixes, and the token of the next page."""

    objects: tuple[ObjectInfo, ...]
    prefixes: tuple[str, ...]
    token: str | None


class ObjectClient(Protocol):
    """A bucket on a server."""

    def head(self, key: str) -> ObjectInfo:
        """Return what is known about an object."""
        ...

    def get(self, key: str, start: int, stop: int | None) -> bytes:
        """Return bytes `start` to `stop` of an object, fewer at its end."""
        ...

    def put(self, key: str, source: Path, digest: str, *, create: bool) -> None:
        """Write the file `source` as an object, with a checksum that the server compares; `create`: if absent."""
        ...

    def creations(self) -> Mapping[str, Callable[[str, Path, str], None]]:
        """Return the ways in which objects are created if absent, each a function of key, source and digest."""
        ...

    def delete(self, key: str) -> None:
        """Remove an object, there or not."""
        ...

    def page(self, prefix: str, delimiter: str, token: str | None) -> Page:
        """Return a page of the objects whose keys begin with `prefix`, ordered."""
        ...

    def kvstore(self, prefix: str) -> dict[str, Any]:
        """Return TensorStore's specification of the objects below `prefix`."""
        ...


def pieces(size: int, most: int, count: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges that an object of `size` bytes is sent in: of at least `most` bytes, at most `count` of them."""
    length = max(most, -(-size // count))
    for start in range(0, size, length):
        yield start, min(size, start + length)
