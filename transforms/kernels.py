"""The decorator of compiled kernels, and where their compiled code is kept.

numba caches a function under the time stamp of its own file only: an edited callee in another module leaves the
caller's old code in use. So the code of a module's kernels lies in a node-local folder named by the digest of the
numba version, the module and all of ours that it imports, directly or not; editing one of them starts a new folder
for it and its callers. No kernel uses fastmath on floats.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., object])


ROOT = Path(__file__).parents[1]
IMPORT = re.compile(r"^from (transforms|mixtures)(\.[\w.]+)? import (.*)", re.MULTILINE | re.ASCII)


@cache
def cache_folder(module: str) -> Path:
    """Return the node-local folder of the compiled kernels of `module`, "transforms.shingles" for one."""
    digest = hashlib.blake2b(numba.__version__.encode(), digest_size=8)
    for name in sorted(_sources(module)):
        digest.update(name.encode() + b"\0" + _source(name) + b"\0")
    return _kernels_folder() / digest.hexdigest()


def _sources(module: str) -> set[str]:
    """Return `module` and the modules of ours that it imports, and those that they import."""
    found, ahead = set[str](), [module]
    while ahead:
        name = ahead.pop()
        if name not in found:
            found.add(name)
            ahead.extend(_imported(name))
    return found


@cache
def _imported(module: str) -> list[str]:
    """Return the modules of ours that `module` imports by name. A package's own file holds no kernel."""
    found = []
    for package, below, names in IMPORT.findall(_source(module).decode()):
        found += [package + below] if below else [f"{package}.{name}" for name in names.split(", ")]
    return [name for name in found if _source(name)]


@cache
def _source(module: str) -> bytes:
    """Return the source of a module of ours, empty for a name that is no module."""
    path = ROOT.joinpath(*module.split(".")).with_suffix(".py")
    return path.read_bytes() if path.is_file() else b""


@cache
def _kernels_folder() -> Path:
    return own_folder() / "kernels"


def own_folder() -> Path:
    """Return a folder on this node that we can write and nobody else: numba loads as code what lies there.

    The user's cache, or, for a user without a home that can be written, a folder among the temporary ones.
    """
    with suppress(OSError, RuntimeError):
        folder = Path.home() / ".cache" / "curate"
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    folder = Path(tempfile.gettempdir()) / f"curate-{os.getuid()}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise PermissionError(f"{folder} is there and others can write it: remove it, or give the user a home to write")
    return folder


def kernel(function: F) -> F:
    """Compile `function` with numba on first call (no Python objects, GIL released, cached on this node).

    Pass `np.int64(…)` rather than literals and keep argument types fixed: numba compiles once per set of types.
    """
    return _compiled(function)


def inlined(function: F) -> F:
    """Compile `function` as a part of each kernel that calls it: a loop over calls can then become vector code."""
    return _compiled(function, forceinline=True)


def _compiled(function: F, **options: bool) -> F:
    previous = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(cache_folder(function.__module__))
    try:
        return cast(F, numba.njit(cache=True, nogil=True, **options)(function))
    finally:
        numba.config.CACHE_DIR = previous


@intrinsic  # type: ignore[untyped-decorator]
def prefetch(context: Any, data: Any, place: Any) -> Any:
    """Ask for data[place], which need not be there, to be in the processor's cache soon. It changes nothing."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(data)(context, builder, arguments[0])
        address = builder.gep(array.data, [arguments[1]])
        pointer = builder.bitcast(address, cgutils.voidptr_t)
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [pointer, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(data, place), generate
