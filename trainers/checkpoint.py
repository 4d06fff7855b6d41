"""Checkpoints: a folder with arrays in zarr3 and a manifest, whole or not there at all.

    <folder>/checkpoints/step-00000100/  manifest.json  <array>/zarr.json  <array>/c.0.0 …

The manifest is canonical JSON: format, step, digest of the plan, flat configuration, environment, the link to the run
that it branched from (or null), and for each array its type, shape and BLAKE3 digests (`trainers.stored_arrays`);
`state` is the digest over all arrays, `digest` the manifest's own. A save writes a hidden folder beside, syncs it,
renames it and syncs the parent, so a kill at any moment leaves the old checkpoints and at most a hidden folder, which
the next start removes. What is read is checked against its digests, chunk by chunk.

One process writes to a folder at a time; `Checkpoints.locked` sees to it. `Saver` saves while training goes on.
Cost: one pass over the arrays to hash and one to write, one sync a file.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
import numpy.typing as npt

from curate.formats import Format, FormatError
from curate.store import Store, StoreError, check_self_digest, json_line, self_digested
from trainers.stored_arrays import (
    REMOVE,
    CheckpointError,
    NamedArrays,
    StoredArray,
    describe,
    digest_entries,
    write_arrays,
)

__all__ = ["FORMAT", "POINTS", "Checkpoint", "CheckpointError", "Checkpoints", "Saver", "digest_arrays"]

FORMAT: Final = Format(
    2, "go on with the version that wrote it, or train again in another folder", prefix="curate checkpoint "
)
POINTS: Final = ("begun", "arrays", "manifest", "synced", "renamed", "pruned")
"""Moments of a save at which a test may stop the process."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How many updates it holds, of which plan and flat configuration, made where; its arrays.

    `state` is the digest of the arrays, empty before they are saved. `parent` is the link of a run that branched from
    another one (`trainers.branch`), None otherwise. The arrays of one that was opened are read when they are asked for.
    """

    step: int
    plan: str
    config: dict[str, int | str]
    environment: dict[str, str]
    arrays: Mapping[str, npt.NDArray[np.generic] | StoredArray]
    state: str = ""
    parent: dict[str, Any] | None = None

    def read(self) -> dict[str, npt.NDArray[np.generic]]:
        """Return all arrays in memory, each chunk checked.

        Raises:
            CheckpointError: one is damaged.
        """
        return {name: np.asarray(array) for name, array in self.arrays.items()}


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The checkpoints of the run in `folder`: the last `keep` stay, and those of every `keep_every` updates (0: none).

    `failpoint` is called with each of `POINTS` during a save; tests pass one that kills the process.
    """

    folder: Path
    keep: int = 2
    failpoint: Callable[[str], None] = lambda point: None
    keep_every: int = 0

    def __post_init__(self) -> None:
        """Refuse to keep nothing.

        Raises:
            ValueError: `keep` is below 1, or `keep_every` negative.
        """
        if self.keep < 1:
            raise ValueError(f"keep is the number of checkpoints that stay, at least 1, got {self.keep}")
        if self.keep_every < 0:
            raise ValueError(f"keep_every is a number of updates, or 0, got {self.keep_every}")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes out, and remove what a killed one left: half-written, half-removed, too many.

        Raises:
            CheckpointError: another process trains in this folder.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise CheckpointError(f"another process trains in {self.folder}: wait for it, or end it") from None
            self._root.mkdir(exist_ok=True)
            for left in self._root.glob(".*"):
                shutil.rmtree(left)
            self._prune()
            yield

    def steps(self) -> list[int]:
        """Return the steps of which there is a checkpoint, ascending."""
        return sorted(int(path.name.removeprefix("step-")) for path in self._root.glob("step-*"))

    def save(self, checkpoint: Checkpoint) -> str:
        """Save `checkpoint`, remove those that do not stay, and return the digest of its arrays.

        Raises:
            CheckpointError: there is one of this step with another state.
        """
        arrays = checkpoint.read()
        target = self._path(checkpoint.step)
        if target.exists():
            state = digest_arrays(arrays)
            _refuse_other(target, state)
        else:
            state = self._write(checkpoint, arrays, target)
        self._prune()
        return state

    def load(self, step: int) -> Checkpoint:
        """Return the checkpoint of `step`; its manifest is checked now, each array when it is read.

        Raises:
            CheckpointError: it is damaged or has another format; the message says what to do.
        """
        path = self._path(step)
        manifest = _read_manifest(path)
        if digest_entries(manifest["arrays"]) != manifest["state"]:
            raise CheckpointError(f"{path} lists other arrays than its state has. {REMOVE}")
        return Checkpoint(
            manifest["step"],
            manifest["plan"],
            manifest["config"],
            manifest["environment"],
            {entry["name"]: StoredArray(path, entry) for entry in manifest["arrays"]},
            manifest["state"],
            manifest["parent"],
        )

    @property
    def _root(self) -> Path:
        return self.folder / "checkpoints"

    def _path(self, step: int) -> Path:
        return self._root / f"step-{step:08d}"

    def _write(self, checkpoint: Checkpoint, arrays: NamedArrays, target: Path) -> str:
        hidden = self._root / f".{target.name}"
        hidden.mkdir()
        self.failpoint("begun")
        entries = write_arrays(hidden, arrays)
        self.failpoint("arrays")
        with (hidden / "manifest.json").open("wb") as file:
            file.write(json_line(_manifest(checkpoint, entries)))
            _sync(file)
        self.failpoint("manifest")
        for folder in (*(hidden / name for name in arrays), hidden):
            _sync_folder(folder)
        self.failpoint("synced")
        hidden.rename(target)
        self.failpoint("renamed")
        _sync_folder(self._root)
        return digest_entries(entries)

    def _prune(self) -> None:
        for step in self.steps()[: -self.keep]:
            if not self.keep_every or step % self.keep_every:
                hidden = self._root / f".old-{step:08d}"
                self._path(step).rename(hidden)
                self.failpoint("pruned")
                shutil.rmtree(hidden)


@dataclass(frozen=True, slots=True)
class Saver:
    """Saves in a thread of its own, one checkpoint at a time; `settle` tells `done` of each: (step, state, seconds)."""

    checkpoints: Checkpoints
    done: Callable[[int, str, float], None]
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "checkpoint"))
    _pending: list[tuple[int, Future[tuple[str, float]]]] = field(default_factory=list)

    def save(self, checkpoint: Checkpoint) -> None:
        """Begin to save `checkpoint`, whose arrays nobody changes, once the one before it is saved.

        Raises:
            CheckpointError: the one before it could not be saved.
        """
        self.settle()
        self._pending.append((checkpoint.step, self._pool.submit(self._timed, checkpoint)))

    def settle(self) -> None:
        """Return when everything is saved.

        Raises:
            CheckpointError: something could not be saved.
        """
        while self._pending:
            step, saving = self._pending.pop()
            self.done(step, *saving.result())

    def close(self) -> None:
        """Let what was begun come to its end, and end the thread."""
        self._pool.shutdown()

    def _timed(self, checkpoint: Checkpoint) -> tuple[str, float]:
        begun = time.perf_counter()
        return self.checkpoints.save(checkpoint), time.perf_counter() - begun


def digest_arrays(arrays: NamedArrays) -> str:
    """Return the digest of `arrays`: their names, types, shapes and bytes, in their order."""
    return digest_entries(describe(arrays))


def _manifest(checkpoint: Checkpoint, entries: list[dict[str, Any]]) -> dict[str, Any]:
    return self_digested(
        {
            "format": FORMAT.stamp,
            "step": checkpoint.step,
            "plan": checkpoint.plan,
            "config": checkpoint.config,
            "environment": checkpoint.environment,
            "parent": checkpoint.parent,
            "arrays": entries,
            "state": digest_entries(entries),
        }
    )


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = check_self_digest(Store(path).read_json("manifest.json"), str(path / "manifest.json"))
    except StoreError as error:
        said = str(error).removesuffix(": remove it and run the recipe again")  # here a step is removed whole
        raise CheckpointError(f"{said}. {REMOVE}") from None
    try:
        return FORMAT.lift(manifest, str(path))
    except FormatError as error:
        raise CheckpointError(str(error)) from None


def _refuse_other(target: Path, state: str) -> None:
    stored = _read_manifest(target)["state"]
    if stored != state:
        raise CheckpointError(
            f"{target} holds the state {stored}, this attempt came to {state} after as many updates: "
            f"the two ran in different environments, or something is not deterministic. {REMOVE}"
        )


def _sync(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some file systems refuse to sync a folder
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
