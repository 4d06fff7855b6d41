"""Files that stages fit and transforms use: classifiers, topics, levels.

A transform that needs one has a field for it (see `transforms.models`). In a recipe the field holds the stage that
makes the file, and the engine puts the file in its place before anything runs; a path stands there for a file that was
made, `LocalFile(path, digest)` for one that is published and pinned. What is read is checked by its digest, so a
transform loads a model once per process and never another than the one it was given.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from blake3 import blake3


class FittedError(RuntimeError):
    """A fitted file is missing, was changed, or is of another kind or format than the transform needs."""


@runtime_checkable
class FittedFile(Protocol):
    """A file that was fitted, wherever it lies."""

    @property
    def digest(self) -> str:
        """BLAKE3 of its bytes, 64 hex digits: its identity."""
        ...

    def read(self) -> bytes:
        """Return its bytes.

        Raises:
            FittedError: it is not there, or its bytes have another digest.
        """
        ...


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A fitted file at a path, as one that was published; where it lies is no part of its identity.

    Args:
        path: the file.
        digest: BLAKE3 that it must have; "" takes the one it has when this is made.

    Raises:
        FittedError: it is not there, or has another digest than the one given.
    """

    path: Path = field(compare=False, metadata={"key": False})
    digest: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path))
        found = blake3(_content(self.path)).hexdigest()
        if self.digest not in ("", found):
            raise FittedError(f"{self.path} has the digest {found}, not {self.digest}: give the file that was pinned")
        object.__setattr__(self, "digest", found)

    def read(self) -> bytes:
        """Return its bytes, checked."""
        return checked(_content(self.path), self.digest, str(self.path))


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise FittedError(f"the fitted file {path}: {error.strerror}; give a file that a stage made") from None


def checked(content: bytes, digest: str, where: str) -> bytes:
    """Return `content`.

    Raises:
        FittedError: it has another digest.
    """
    if (found := blake3(content).hexdigest()) != digest:
        raise FittedError(f"{where} has the digest {found}, expected {digest}: it was changed since it was named")
    return content


@dataclass(frozen=True, slots=True)
class _Known:
    """A file at a path, with the digest that it has."""

    path: Path = field(compare=False)
    digest: str

    def read(self) -> bytes:
        return checked(_content(self.path), self.digest, str(self.path))

    def __str__(self) -> str:
        return str(self.path)


def file_of(model: Any, user: str) -> FittedFile:
    """Return the file in the field of a transform: a path, what a stage made, or a file of its own kind.

    Raises:
        FittedError: the file is not there; or a stage of a recipe stands there still, which only a run makes real.
    """
    if isinstance(model, FittedFile):
        return model
    if isinstance(model, str):
        raise FittedError(f"{user} has the text {model!r} for its model: give Path({model!r})")
    if not isinstance(model, os.PathLike):
        raise FittedError(
            f"{user} has {model!r} for its model, which a run of the recipe makes: apply it in a recipe, or give the "
            "path of a file that was made"
        )
    path = Path(model)
    if isinstance(digest := getattr(model, "digest", None), str):
        return _Known(path, digest)
    try:
        status = path.stat()
    except OSError as error:
        raise FittedError(f"the fitted file {path}: {error.strerror}; give a file that a stage made") from None
    return _Known(path, _digest_of(path, status.st_mtime_ns, status.st_size))


@lru_cache(maxsize=64)
def _digest_of(path: Path, changed: int, size: int) -> str:
    return blake3(_content(path)).hexdigest()
