"""What must be the same on every node of a run: Python, curate's own source, and the libraries it stands on.

Equal output to the bit is promised under one lock file, so a cluster whose nodes differ is refused, with a list.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import blake3

PACKAGES: Final = ("transforms", "curate", "mixtures")
"""Our packages that reach what tasks make."""

BENEATH: Final = ("llvmlite", "lxml")
"""Libraries below those that curate names which reach its output, too."""


@lru_cache(maxsize=1)
def versions_here() -> Mapping[str, str]:
    """Return name → version on this node; 0.1 s the first time."""
    named = [
        re.split(r"[^A-Za-z0-9_.-]", need, maxsplit=1)[0] for need in requires("curate") or () if "extra" not in need
    ]
    found = {"python": platform.python_version(), "curate": f"source {_source_digest()[:16]}"}
    return found | {name: _version(name) for name in sorted({*named, *BENEATH}, key=str.lower)}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _source_digest() -> str:
    digest = blake3.blake3()
    for package in PACKAGES:
        spec = find_spec(package)
        if spec is None or spec.origin is None:
            continue
        root = Path(spec.origin).parent
        for path in sorted(root.rglob("*.py")):
            digest.update(f"{package}/{path.relative_to(root).as_posix()}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def differences(wanted: Mapping[str, str], found: Mapping[str, str]) -> Sequence[str]:
    """Return what differs, as "numba: 0.67 there, 0.68 here"."""
    return [
        f"{name}: {found.get(name, 'not installed')} there, {wanted.get(name, 'not installed')} here"
        for name in sorted({*wanted, *found})
        if found.get(name) != wanted.get(name)
    ]
