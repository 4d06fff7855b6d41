"""The decorator of kernels that only other kernels call: compiled without what Python would need to call them.

A pass over a page is a hundred small functions, and each would be compiled a second time as a function for Python, with
code that counts references to the page's arrays, which outlive the pass. Without both the whole compiles in a third of
the time. Such a function allocates nothing; its constants are `np.int64`, for literals would be compiled apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba
import numpy as np

from transforms.kernels import cache_folder

Int = int | np.int64
"""A whole number in a kernel."""

Bool = bool | np.bool_
"""A truth in a kernel."""

F = TypeVar("F", bound=Callable[..., object])


def inner(function: F) -> F:
    """Compile `function` for other kernels (GIL released, cached on this node as theirs)."""
    return _compiled(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def entry(function: F) -> F:
    """Compile `function` for Python, as `transforms.kernels.kernel` does, where it allocates nothing."""
    return _compiled(function)


def _compiled(function: F, **options: bool) -> F:
    previous = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(cache_folder(function.__module__))
    try:
        return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy", _nrt=False, **options)(function))
    finally:
        numba.config.CACHE_DIR = previous
