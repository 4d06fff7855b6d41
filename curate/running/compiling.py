"""Saying why nothing happens while kernels are compiled: the first use of something on a machine waits for that.

Cost: nothing where compiled code is in the node's cache, for then numba tells of no compiling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from numba.core import event

from curate.running.progress import say

COMPILING: Final = "compiling kernels for this machine, once: about half a minute"


class _Told(event.Listener):  # type: ignore[misc]
    """Says once that something is compiled."""

    def __init__(self) -> None:
        """Nothing was said yet."""
        self.said = False

    def on_start(self, event: Any) -> None:
        """Say it before the first one."""
        self.tell()

    def tell(self) -> None:
        """Say it, if it was not said."""
        if not self.said:
            self.said = True
            say(COMPILING)

    def on_end(self, event: Any) -> None:
        """Nothing is said at the end."""


@contextmanager
def compiling_told() -> Iterator[Callable[[], None]]:
    """Say on stderr, once, that kernels are compiled, if any is in this process; yield what says so before."""
    told = _Told()
    event.register("numba:compile", told)
    try:
        yield told.tell
    finally:
        event.unregister("numba:compile", told)
