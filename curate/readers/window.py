"""A forward window over a stream of bytes, addressed by absolute offsets.

Bytes are pulled once, in order, and kept until they are dropped; nothing seeks. So a reader can look ahead as far as
its bounds allow, go back inside what it kept to resynchronise after damage, and the file below can be hashed while
it is read. Cost: memory of what is kept plus one piece.
"""

from __future__ import annotations

import re
from collections.abc import Callable


class Window:
    """Bytes [start, end) of a stream, extended by `fill` and forgotten by `drop`.

    Args:
        pull: returns the next piece of the stream, b"" at its end.
        start: offset of the first piece.
    """

    __slots__ = ("_buffer", "_done", "_pull", "start")

    def __init__(self, pull: Callable[[], bytes], start: int = 0) -> None:
        self._pull = pull
        self._buffer = bytearray()
        self._done = False
        self.start = start

    @property
    def end(self) -> int:
        """Offset after the last byte pulled so far; the length of the stream once `fill` reaches no further."""
        return self.start + len(self._buffer)

    def fill(self, end: int) -> int:
        """Pull until the window reaches `end` or the stream ends; return where the window ends then."""
        while self.end < end and not self._done:
            piece = self._pull()
            self._done = not piece
            self._buffer += piece
        return self.end

    def drop(self, before: int) -> None:
        """Forget bytes before offset `before`; they cannot be asked for again."""
        count = min(max(before - self.start, 0), len(self._buffer))
        del self._buffer[:count]
        self.start += count

    def find(self, needle: bytes, begin: int, end: int) -> int:
        """Return the offset of the first `needle` wholly within [begin, end) of what is kept, or -1."""
        begin = max(begin - self.start, 0)
        found = self._buffer.find(needle, begin, max(end - self.start, begin))
        return found if found < 0 else found + self.start

    def rfind(self, needle: bytes, begin: int, end: int) -> int:
        """Return the offset of the last `needle` wholly within [begin, end) of what is kept, or `begin` - 1."""
        begin = max(begin, self.start)
        found = self._buffer.rfind(needle, begin - self.start, max(end, begin) - self.start)
        return found + self.start if found >= 0 else begin - 1

    def search(self, pattern: re.Pattern[bytes], begin: int, end: int) -> int:
        """Return the offset of the first match of `pattern` wholly within [begin, end) of what is kept, or -1."""
        begin = max(begin - self.start, 0)
        found = pattern.search(self._buffer, begin, max(end - self.start, begin))
        return found.start() + self.start if found is not None else -1

    def copy(self, begin: int, end: int) -> bytes:
        """Return the kept bytes of [begin, end)."""
        with memoryview(self._buffer) as view:
            return bytes(view[max(begin - self.start, 0) : max(end - self.start, 0)])
