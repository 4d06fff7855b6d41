"""Files of lines on places that cannot append: parts, `<name>.<nanoseconds>-<random>`, written anew while they grow.

A part is put again with each flush until it is large; so a run of many days leaves a part for each megabyte, not for
each flush. The name of a part orders it; the time in it is of no consequence but for that order.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import Final

FLUSH_SECONDS: Final = 5.0
PART_BYTES: Final = 1 << 20


class PartsAppender:
    """A file of lines, open for adding to it: kept every few seconds, when there is much, and at the end."""

    def __init__(self, name: str, put: Callable[[str, bytes], None]) -> None:
        """Open `name`; `put` writes a part in place of what it held."""
        self._name, self._put = name, put
        self._kept = time.monotonic() - FLUSH_SECONDS  # the first lines are kept at once: they say who runs
        self._begin()

    def _begin(self) -> None:
        self._part = f"{self._name}.{time.time_ns():020d}-{uuid.uuid4().hex[:8]}"
        self._lines: list[bytes] = []
        self._bytes = self._written = 0

    def write(self, lines: bytes) -> None:
        """Add whole lines; when this raises, they are not added, and may be given again."""
        self._lines.append(lines)
        self._bytes += len(lines)
        if self._bytes < PART_BYTES and time.monotonic() - self._kept < FLUSH_SECONDS:
            return
        try:
            self._flush()
        except BaseException:
            self._bytes -= len(self._lines.pop())
            raise

    def close(self) -> None:
        """Keep what waits."""
        self._flush()

    def _flush(self) -> None:
        if self._bytes > self._written:
            self._put(self._part, b"".join(self._lines))
            self._written = self._bytes
        self._kept = time.monotonic()
        if self._written >= PART_BYTES:
            self._begin()
