"""Files of lines on places that cannot append: each flush writes a part, `<name>.<nanoseconds>-<random>`.

The name of a part orders it; the time in it is of no consequence but for that order.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import Final

FLUSH_SECONDS: Final = 5.0
FLUSH_BYTES: Final = 1 << 20


class PartsAppender:
    """A file of lines, open for adding to it: kept every few seconds, when there is much, and at the end."""

    def __init__(self, name: str, put: Callable[[str, bytes], None]) -> None:
        """Open `name`; `put` writes a part."""
        self._name, self._put = name, put
        self._waiting: list[bytes] = []
        self._bytes = 0
        self._kept = time.monotonic() - FLUSH_SECONDS  # the first lines are kept at once: they say who runs

    def write(self, lines: bytes) -> None:
        """Add whole lines."""
        self._waiting.append(lines)
        self._bytes += len(lines)
        if self._bytes >= FLUSH_BYTES or time.monotonic() - self._kept >= FLUSH_SECONDS:
            self._flush()

    def close(self) -> None:
        """Keep what waits."""
        self._flush()

    def _flush(self) -> None:
        if self._waiting:
            self._put(f"{self._name}.{time.time_ns():020d}-{uuid.uuid4().hex[:8]}", b"".join(self._waiting))
            self._waiting, self._bytes = [], 0
        self._kept = time.monotonic()
