"""Checkpoints: a folder with the arrays and a manifest, whole or not there at all; NumPy suffices to read one.

    <folder>/checkpoints/step-00000100/  arrays.npz  manifest.json

The manifest is canonical JSON: format, step, digest of the plan, flat configuration, environment, and for each array
its type, shape and the BLAKE3 digest of its bytes; `state` is the digest over all arrays, `file` that of the arrays'
file, `digest` the manifest's own. A save
writes a hidden folder beside, syncs it, renames it and syncs the parent, so a kill at any moment leaves the old
checkpoints and at most a hidden folder, which the next start removes. Opening one checks every digest.

One process writes to a folder at a time; `Checkpoints.locked` sees to it. Cost: one pass over the arrays and one sync.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
import numpy.typing as npt
from blake3 import blake3

from curate.digests import digest_file, digest_json
from curate.formats import Format, FormatError
from curate.store import Store, StoreError, check_self_digest, json_line, self_digested

FORMAT: Final = Format(
    1, "go on with the version that wrote it, or train again in another folder", prefix="curate checkpoint "
)
POINTS: Final = ("arrays", "manifest", "synced", "renamed", "pruned")
"""Moments of a save at which a test may stop the process."""

_REMOVE: Final = "Remove that folder, and the run goes on from the checkpoint before it"

NamedArrays = Mapping[str, npt.NDArray[np.generic]]


class CheckpointError(RuntimeError):
    """A checkpoint that is damaged, or belongs to another run than the one that asks for it."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How many updates it holds, of which plan and flat configuration, made where; its arrays and their digest."""

    step: int
    plan: str
    config: dict[str, int | str]
    environment: dict[str, str]
    arrays: NamedArrays
    state: str


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The checkpoints of the run in `folder`, of which the last `keep` stay.

    `failpoint` is called with each of `POINTS` during a save; tests pass one that kills the process.
    """

    folder: Path
    keep: int = 2
    failpoint: Callable[[str], None] = lambda point: None

    def __post_init__(self) -> None:
        """Refuse to keep nothing.

        Raises:
            ValueError: `keep` is below 1.
        """
        if self.keep < 1:
            raise ValueError(f"keep is the number of checkpoints that stay, at least 1, got {self.keep}")

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

    def save(self, checkpoint: Checkpoint) -> None:
        """Save `checkpoint` and remove those beyond the last `keep`.

        Raises:
            CheckpointError: there is one of this step with another state.
        """
        target = self._path(checkpoint.step)
        if target.exists():
            _refuse_other(target, checkpoint.state)
        else:
            self._write(checkpoint, target)
        self._prune()

    def load(self, step: int) -> Checkpoint:
        """Return the checkpoint of `step` after checking each of its digests.

        Raises:
            CheckpointError: it is damaged or has another format; the message says what to do.
        """
        path = self._path(step)
        manifest = _read_manifest(path)
        arrays = _read_arrays(path, manifest)
        return Checkpoint(
            manifest["step"], manifest["plan"], manifest["config"], manifest["environment"], arrays, manifest["state"]
        )

    @property
    def _root(self) -> Path:
        return self.folder / "checkpoints"

    def _path(self, step: int) -> Path:
        return self._root / f"step-{step:08d}"

    def _write(self, checkpoint: Checkpoint, target: Path) -> None:
        hidden = self._root / f".{target.name}"
        hidden.mkdir()
        with (hidden / "arrays.npz").open("wb") as file:
            np.savez(file, allow_pickle=False, **checkpoint.arrays)
            _sync(file)
        self.failpoint("arrays")
        with (hidden / "manifest.json").open("wb") as file:
            file.write(json_line(_manifest(checkpoint, digest_file(hidden / "arrays.npz"))))
            _sync(file)
        self.failpoint("manifest")
        _sync_folder(hidden)
        self.failpoint("synced")
        hidden.rename(target)
        self.failpoint("renamed")
        _sync_folder(self._root)

    def _prune(self) -> None:
        for step in self.steps()[: -self.keep]:
            hidden = self._root / f".old-{step:08d}"
            self._path(step).rename(hidden)
            self.failpoint("pruned")
            shutil.rmtree(hidden)


def digest_arrays(arrays: NamedArrays) -> str:
    """Return the digest of `arrays`: their names, types, shapes and bytes, in their order."""
    return digest_json(_describe(arrays))


def _describe(arrays: NamedArrays) -> list[dict[str, Any]]:
    return [
        {"name": name, "dtype": array.dtype.name, "shape": list(array.shape), "digest": _digest_values(array)}
        for name, array in arrays.items()
    ]


def _digest_values(array: npt.NDArray[np.generic]) -> str:
    return blake3(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data).hexdigest()


def _manifest(checkpoint: Checkpoint, file_digest: str) -> dict[str, Any]:
    return self_digested(
        {
            "format": FORMAT.stamp,
            "step": checkpoint.step,
            "plan": checkpoint.plan,
            "config": checkpoint.config,
            "environment": checkpoint.environment,
            "arrays": _describe(checkpoint.arrays),
            "file": file_digest,
            "state": checkpoint.state,
        }
    )


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = check_self_digest(Store(path).read_json("manifest.json"), str(path / "manifest.json"))
    except StoreError as error:
        raise CheckpointError(f"{error}. {_REMOVE}") from None
    try:
        return FORMAT.lift(manifest, str(path))
    except FormatError as error:
        raise CheckpointError(str(error)) from None


def _read_arrays(path: Path, manifest: Mapping[str, Any]) -> dict[str, npt.NDArray[np.generic]]:
    file = path / "arrays.npz"
    if not file.exists() or digest_file(file) != manifest["file"]:
        raise CheckpointError(f"{file} is not the file that was saved: it is damaged or missing. {_REMOVE}")
    with np.load(file, allow_pickle=False) as stored:
        arrays = {entry["name"]: stored[entry["name"]] for entry in manifest["arrays"]}
    if digest_arrays(arrays) != manifest["state"]:
        raise CheckpointError(f"{file} holds other arrays than its manifest says. {_REMOVE}")
    return arrays


def _refuse_other(target: Path, state: str) -> None:
    stored = _read_manifest(target)["state"]
    if stored != state:
        raise CheckpointError(
            f"{target} holds the state {stored}, this attempt came to {state} after as many updates: "
            f"the two ran in different environments, or something is not deterministic. {_REMOVE}"
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
