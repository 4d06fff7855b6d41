"""A stream of blocks cut at a separator. Memory: one record of at most `limit` bytes, and a block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain


def cut_at(blocks: Iterable[bytes], separator: bytes, limit: int) -> Iterator[tuple[bytes | None, int]]:
    """Yield (record, its length), with the separator behind it; the record is None where it is longer than `limit`."""
    held = _Held(limit)
    width, rest = len(separator), b""
    for block in chain(blocks, (None,)):
        last = block is None
        block = rest if block is None else rest + block
        start = 0
        while (end := block.find(separator, start)) >= 0:
            held.add(block, start, end + width)
            yield held.take()
            start = end + width
        kept = len(block) if last else max(start, len(block) - width + 1)  # a separator may begin behind it
        held.add(block, start, kept)
        rest = block[kept:]
    if held.size:
        yield held.take()


class _Held:
    """The record that is being read."""

    def __init__(self, limit: int) -> None:
        self.limit, self.size = limit, 0
        self._parts: list[bytes] = []

    def add(self, block: bytes, start: int, end: int) -> None:
        self.size += end - start
        if self.size > self.limit:
            self._parts.clear()
        elif end > start:
            self._parts.append(block[start:end] if end - start < len(block) else block)

    def take(self) -> tuple[bytes | None, int]:
        """Return the record and its length, and keep nothing of it: it may be long."""
        parts, size = self._parts, self.size
        self._parts, self.size = [], 0
        if size > self.limit:
            return None, size
        return parts[0] if len(parts) == 1 else b"".join(parts), size
