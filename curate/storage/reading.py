"""Reading an object as a file: ranges are fetched as they are asked for, larger ones while reading goes straight on.

Memory: one window per open file, at most `LARGEST`. A fetch is one request, whole before any of it is seen, so that a
lost connection is a matter of trying again.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, Final

SMALLEST: Final = 256 << 10
LARGEST: Final = 8 << 20


class ObjectReader(io.RawIOBase):
    """An object of `size` bytes, read through `fetch(start, stop)`."""

    def __init__(self, size: int, fetch: Callable[[int, int], bytes]) -> None:
        """Open at the beginning."""
        super().__init__()
        self._size, self._fetch = size, fetch
        self._at = 0
        self._start, self._window, self._length = 0, b"", SMALLEST

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the place of the next byte."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to another place; nothing is fetched."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise ValueError(f"seek to {base + offset}")
        self._at = base + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` from the window, which is fetched anew where it does not hold the next byte."""
        view = memoryview(buffer).cast("B")
        if self._at >= self._size or not len(view):
            return 0
        if not self._start <= self._at < self._start + len(self._window):
            self._advance(len(view))
        part = self._window[self._at - self._start : self._at - self._start + len(view)]
        view[: len(part)] = part
        self._at += len(part)
        return len(part)

    def _advance(self, wanted: int) -> None:
        goes_on = bool(self._window) and self._at == self._start + len(self._window)
        self._length = min(LARGEST, self._length * 2) if goes_on else SMALLEST
        stop = min(self._size, self._at + max(wanted, self._length))
        self._window = self._fetch(self._at, stop)
        self._start = self._at
        if not self._window:
            raise OSError(f"the file ends at byte {self._at}, it had {self._size} when it was opened: it was changed")
