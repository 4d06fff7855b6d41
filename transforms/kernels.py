"""The decorator of compiled kernels, and where their compiled code is kept.

numba caches a function under the time stamp of its own file only: an edited callee in another module leaves the
caller's old code in use. So the cache lies in a node-local folder named by the digest of every kernel source and
the numba version; editing any of them starts a new folder. No kernel uses fastmath on floats.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])


@cache
def cache_folder() -> Path:
    """Return the node-local folder of compiled kernels: one per set of sources, numba version and Python."""
    digest = hashlib.blake2b(numba.__version__.encode(), digest_size=8)
    for source in sorted(Path(__file__).parent.rglob("*.py")):
        content = source.read_bytes()
        if b"kernel" in content:
            digest.update(source.name.encode() + b"\0" + content)
    return Path.home() / ".cache" / "curate" / "kernels" / digest.hexdigest()


def kernel(function: F) -> F:
    """Compile `function` with numba on first call (no Python objects, GIL released, cached on this node).

    Pass `np.int64(…)` rather than literals and keep argument types fixed: numba compiles once per set of types.
    """
    previous = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(cache_folder())
    try:
        return cast(F, numba.njit(cache=True, nogil=True)(function))
    finally:
        numba.config.CACHE_DIR = previous
