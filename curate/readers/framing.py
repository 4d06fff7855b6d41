"""Where records of an archive begin and end in a stream of bytes, and what lies between them.

`frame` cuts a stream into `Frame`s (whole records) and `Hole`s (everything else) that tile it without overlap, as a
`Grammar` says what a record looks like (`warc_grammar`, `arc_grammar`). A record is whole when its header is sound and
its block is followed by what the format prescribes, by another record, or by the end. A length that is wrong shows
there; then the search for the next record starts inside the block, so that no later record is swallowed.

Why not fastwarc: its iterator gives no offsets of what it skips, ends at the first bad length and raises on bad
chunks; tests compare what both find in undamaged archives.

Cost: linear in the bytes, whatever they are: a header is looked for up to `MAX_HEADER` bytes or the next version
line, and a block is copied only once it is known to be whole. Memory: two blocks of at most `max_block` bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from curate.readers.window import Window

MAX_HEADER: Final = 1 << 16
"""Longest header of a record, in bytes."""

MAX_NEWLINES: Final = 16
"""Line ends after a block that still belong to its record."""


class GapReason(StrEnum):
    """Why a stretch of an archive holds no record. The words appear in ledgers and statistics."""

    UNSUPPORTED = "unsupported format"
    GARBAGE = "no record begins here"
    BAD_HEADER = "bad record header"
    WRONG_LENGTH = "wrong content length"
    TRUNCATED = "truncated record"
    TOO_LARGE = "record too large"
    NOT_GZIP = "no gzip member begins here"
    DAMAGED = "damaged gzip member"
    CUT_OFF = "truncated gzip member"
    ENDLESS = "gzip member inflates too far"


@dataclass(frozen=True, slots=True)
class Frame:
    """A whole record at [start, end) of its stream.

    Attributes:
        fields: header fields, names in lower case, the first of each name.
        size: length of the block in bytes.
        block: the block, or None where it is longer than the bound.
    """

    start: int
    end: int
    fields: dict[bytes, bytes]
    size: int
    block: bytes | None


@dataclass(frozen=True, slots=True)
class Hole:
    """A stretch [start, end) without a whole record. `begun`: it begins like a record."""

    start: int
    end: int
    reason: GapReason
    begun: bool


@dataclass(frozen=True, slots=True)
class Header:
    """A sound header: where it ends, the length of the block behind it, and its fields."""

    end: int
    size: int
    fields: dict[bytes, bytes]


class Grammar(Protocol):
    """What records of a format look like."""

    @property
    def peek(self) -> int:
        """Bytes of a member that tell whether a record begins it."""
        ...

    @property
    def before(self) -> bytes:
        """What stands before a record that lies in the block of one that is too long to be kept."""
        ...

    def begins(self, begin: bytes) -> bool:
        """Return whether a member with these first bytes begins with a record, line ends before it allowed."""
        ...

    def begins_exactly(self, begin: bytes) -> bool:
        """Return whether a record begins with these bytes."""
        ...

    def header(self, stream: Window, at: int) -> Header | GapReason:
        """Return the header that begins at `at`, or why none does."""
        ...

    def candidate(self, stream: Window, begin: int, end: int) -> tuple[int, int]:
        """Return where a record may begin in [begin, end), -1 for nowhere, and from where to look on."""
        ...

    def record_end(self, stream: Window, block_end: int) -> int | None:
        """Return where the record ends whose block ends at `block_end`, None where something else follows it."""
        ...


def frame(stream: Window, max_block: int, patient: Callable[[int], bool], grammar: Grammar) -> Iterator[Frame | Hole]:
    """Cut `stream` into whole records and holes.

    Args:
        stream: the bytes; those of a yielded item and before are dropped.
        max_block: longest block that is kept, in bytes.
        patient: asked with the number of bytes passed over so far in one stretch; False ends the framing with a hole
            `ENDLESS` (a gzip bomb).
        grammar: of the format.
    """
    framing = _Framing(stream, max_block, patient, grammar)
    at = stream.start
    while stream.fill(at + 1) > at:
        item = framing.item(at)
        yield item
        if isinstance(item, Hole) and item.reason is GapReason.ENDLESS:
            return
        at = item.end
        stream.drop(at)


@dataclass(frozen=True, slots=True)
class _Framing:
    stream: Window
    max_block: int
    patient: Callable[[int], bool]
    grammar: Grammar

    def item(self, at: int) -> Frame | Hole:
        header = self.grammar.header(self.stream, at)
        if isinstance(header, GapReason):
            return self._hole(at, at + 1, header)
        return self._record(at, header)

    def _record(self, at: int, header: Header) -> Frame | Hole:
        """Return the record whose header stands at `at`, or the hole that its damage leaves."""
        block_end = header.end + header.size
        if header.size > self.max_block:
            return self._pass_over(at, header)
        available = self.stream.fill(block_end + MAX_NEWLINES + 1)
        end = self.grammar.record_end(self.stream, block_end) if available >= block_end else None
        if end is None:
            reason = GapReason.TRUNCATED if available < block_end else GapReason.WRONG_LENGTH
            return self._hole(at, header.end, reason)
        return Frame(at, end, header.fields, header.size, self.stream.copy(header.end, block_end))

    def _pass_over(self, at: int, header: Header) -> Frame | Hole:
        """Return the record at `at`, which is above the bound, without its block.

        Its bytes are not kept, so a wrong length cannot be found afterwards: a sound record header inside the block
        that stands after the end of another record ends it. (An archive of more than the bound that is stored inside an
        archive, uncompressed, is thereby read as if its records stood in the outer one.)
        """
        stream, block_end = self.stream, header.end + header.size
        inner = self._next_record(header.end, block_end, self.grammar.before)
        if inner is None:
            return Hole(at, stream.end, GapReason.ENDLESS, begun=True)
        if inner < min(block_end, stream.fill(block_end)):
            return Hole(at, inner, GapReason.WRONG_LENGTH, begun=True)
        if stream.end < block_end:
            return Hole(at, stream.end, GapReason.TRUNCATED, begun=True)
        end = self.grammar.record_end(stream, block_end)
        if end is None:
            return self._hole(at, block_end, GapReason.WRONG_LENGTH)
        return Frame(at, end, header.fields, header.size, None)

    def _hole(self, at: int, search: int, reason: GapReason) -> Hole:
        """Return the hole from `at` to the next record at or after `search`."""
        begun = reason is not GapReason.GARBAGE
        end = self._next_record(search, None, b"")
        if end is None:
            return Hole(at, self.stream.end, GapReason.ENDLESS, begun)
        if reason is GapReason.TRUNCATED and end < self.stream.end:
            reason = GapReason.WRONG_LENGTH  # the block was not cut off by the end of the stream: others follow in it
        return Hole(at, end, reason, begun)

    def _next_record(self, search: int, limit: int | None, after: bytes) -> int | None:
        """Return the offset of the first sound record header in [search, limit) that follows `after`.

        Returns `limit` or the end of the stream where there is none, None where patience ended.
        """
        stream, begin, piece = self.stream, search, 1 << 16
        while True:
            reach = begin + piece if limit is None else min(begin + piece, limit)
            end = min(stream.fill(reach), reach)
            found, onwards = self.grammar.candidate(stream, begin, end)
            if found >= 0:
                preceded = stream.copy(max(found - len(after), search), found).endswith(after)
                if preceded and found >= search and isinstance(self.grammar.header(stream, found), Header):
                    return found
                begin = onwards
            elif end < reach or end == limit:
                return end
            else:
                begin = max(begin, onwards)
                stream.drop(begin - KEPT)
                if not self.patient(end - search):
                    return None


KEPT: Final = 1 << 13
"""Bytes kept behind a search: a line of a header may have begun there."""
