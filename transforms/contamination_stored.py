"""Where an index of benchmarks is kept on this node: one file of arrays that every process maps instead of building it.

The file lies in a folder that only we can write, under the digest of what it was built from, the sources of the rules
included; of these files the last `MOST_FILES` are kept. Its first line is JSON (what each array is, and where),
with the BLAKE3 of the arrays behind it. A file that is damaged or cannot be written is as if there were none.

Invariants: what is read has the bytes that were written; arrays are private copies on write, so no process can change
another's. Cost: hashing the file (about 1 ns per byte); its pages are shared by all processes of the node.
"""

from __future__ import annotations

import json
import mmap
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from blake3 import blake3

ALIGNED: Final = 64
"""Arrays begin at multiples of it, from the beginning of the file."""
MOST_FILES: Final = 8
"""Indexes kept in a folder; the least recently written go."""
LARGEST_HEAD: Final = 1 << 16

Arrays = Mapping[str, npt.NDArray[Any]]


def stored(path: Path) -> dict[str, npt.NDArray[Any]] | None:
    """Return the arrays in `path`, mapped; None where there is no such file, or not as it was written."""
    try:
        with path.open("rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except (OSError, ValueError):  # no file, or an empty one
        return None
    head = content[: min(len(content), LARGEST_HEAD)].partition(b"\n")[0]
    try:
        described = json.loads(head)
        if blake3(memoryview(content)[described["first"] :]).hexdigest() != described["digest"]:
            return None
        return {
            name: np.frombuffer(content, kind, count, start).reshape(shape)
            for name, (kind, shape, count, start) in described["arrays"].items()
        }
    except (ValueError, KeyError, TypeError):
        return None


def store(path: Path, arrays: Arrays) -> None:
    """Write `arrays` to `path`, whole or not at all; nothing happens where that cannot be done."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".index-") as file:
            for piece in _pieces(arrays):
                file.write(piece)
            file.flush()
            os.link(file.name, other := f"{file.name}.whole")
            os.replace(other, path)
        _sweep(path.parent, path)


def _pieces(arrays: Arrays) -> Sequence[bytes | memoryview]:
    """Return the file: its head, then the arrays."""
    first, place = LARGEST_HEAD, LARGEST_HEAD
    hasher, described, pieces = blake3(), {}, list[bytes | memoryview]()
    for name, array in arrays.items():
        content = np.ascontiguousarray(array).data.cast("B")
        described[name] = (array.dtype.str, array.shape, array.size, place)
        padding = bytes(-len(content) % ALIGNED)
        for piece in (content, padding):
            hasher.update(piece)
            pieces.append(piece)
        place += len(content) + len(padding)
    head = json.dumps({"first": first, "digest": hasher.hexdigest(), "arrays": described}).encode() + b"\n"
    return [head.ljust(first, b"\0"), *pieces]


def _sweep(folder: Path, written: Path) -> None:
    """Remove all but the last files of `folder`."""
    files = sorted(folder.glob("*.index"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    for path in [path for path in files if path != written][MOST_FILES - 1 :]:
        path.unlink(missing_ok=True)
