"""Records of archives in gzip members, lz4 or Zstandard frames: one in each, as the formats recommend, or many.

Members are inflated one after the other into a stream that `framing.frame` cuts. An item (record or hole) that
begins and ends where members do is placed by its *stored* bytes; any other by its bytes in the decompressed *stream*,
which counts the members that hold such items and no others. A member that begins with a record is a hard border:
what is open before it ends there, so a wrong length costs one record.

Damage: a member that does not inflate, or whose checksum is wrong, is a gap from its first byte to the next member
that begins with a record; what was read of it is not trusted, except for the whole records of a member that holds
several, which went out before the damage was reached. The search goes back to the byte after the damaged member's
first, so that the members behind it are found wherever inflating stopped.

Cost: linear. Work that damage makes useless is limited to `_RETRIES` bytes per byte of the file (then the search
goes on from where inflating stopped); what a record inflates to beyond the bound is limited to `_BOMB` bytes for each
stored byte. Memory: the blocks of the framing and one member's stored bytes up to the same bound.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Final

from curate.readers.compression import FED, Codec, Inflating
from curate.readers.framing import Frame, GapReason, Grammar, Hole, frame
from curate.readers.window import Window

_LOOKBACK: Final = 1 << 16  # stored bytes kept behind the place of inflation in a stream of many records
_RETRIES: Final = 16
_BOMB: Final = 64


@dataclass(frozen=True, slots=True)
class Packing:
    """What is in an archive, and how it is packed."""

    codec: Codec
    grammar: Grammar


@dataclass(frozen=True, slots=True)
class Placed:
    """A frame or hole, or an empty member (`item` None), at [offset, offset + length) of "stored" or "stream"."""

    place: str
    offset: int
    length: int
    item: Frame | Hole | None


@dataclass(slots=True)
class _Member:
    """A member that is being inflated: [start, at) of the stored bytes is consumed, `piece` not yet handed on.

    `failed` tells why it cannot be inflated beyond `piece`.
    """

    start: int
    at: int
    inflate: Inflating
    piece: bytes = b""
    failed: GapReason | None = None

    def advance(self, stored: Window) -> None:
        """Inflate the next piece, if there is one."""
        while not (self.piece or self.inflate.ended or self.failed):
            found = self.inflate.step(stored.copy(self.at, min(stored.fill(self.at + FED), self.at + FED)))
            self.at += found.used
            self.piece = found.content
            if not found.sound:
                self.failed = GapReason.DAMAGED
            elif found.ended:
                self.at -= len(self.inflate.rest)
            elif not (found.used or found.content):
                self.failed = GapReason.CUT_OFF


def _open_member(stored: Window, start: int, packing: Packing) -> _Member | None:
    """Return the member that begins at `start` with its first bytes inflated, None where there is none."""
    if not packing.codec.begins(stored.copy(start, min(stored.fill(start + 4), start + 4))):
        return None
    member = _Member(start, start, packing.codec.start())
    collected = b""
    while len(collected) < packing.grammar.peek and not (member.inflate.ended or member.failed):
        member.advance(stored)
        collected, member.piece = collected + member.piece, b""
    member.piece = collected
    return member if collected or not member.failed else None


def _next_member(stored: Window, search: int, packing: Packing) -> _Member | None:
    """Return the first member at or after `search` that begins with a record, None where none does."""
    magic = packing.codec.magic
    while True:
        reach = search + _LOOKBACK
        end = min(stored.fill(reach), reach)
        found = stored.find(magic, search, end)
        if found >= 0:
            member = _open_member(stored, found, packing)
            if member is not None and packing.grammar.begins(member.piece):
                return member
            search = found + 1
        elif end < reach:
            return None
        else:
            search = end - len(magic) + 1
        stored.drop(search)


class _Segment:
    """Members read as one stream, up to the next that begins with a record, to damage or to what is no member."""

    def __init__(self, stored: Window, first: _Member, keep: int, packing: Packing) -> None:
        self.stored, self.member, self.keep, self.start = stored, first, keep, first.start
        self.packing = packing
        self.anchor: int | None = first.start  # where the item that is being read begins, if a member does there
        self.borders = {0: first.start}  # offset in the stream -> stored offset, for the borders not passed yet
        self.damage: GapReason | None = None
        self.following: _Member | None = None
        self.inflated = 0
        self.stream = Window(self._pull)

    def _pull(self) -> bytes:
        while not self.member.piece and not self.member.failed:
            self.stored.drop(self._kept_from())
            if self.member.inflate.ended and not self._cross():
                return b""
            self.member.advance(self.stored)
        piece, self.member.piece = self.member.piece, b""
        self.inflated += len(piece)
        self.damage = self.damage or (None if piece else self.member.failed)
        return piece

    def _cross(self) -> bool:
        """Go on to the next member unless a record begins it; return whether there is one to go on to."""
        self.borders[self.inflated] = self.member.at
        member = self.following or _open_member(self.stored, self.member.at, self.packing)
        if member is None:
            return False
        if not member.piece or self.packing.grammar.begins_exactly(member.piece):
            self.following = member
            return False
        self.member = member
        return True

    def _kept_from(self) -> int:
        if self.anchor is None:
            return self.member.at - _LOOKBACK
        return max(self.anchor, self.member.at - self.keep)

    def patient(self, passed: int) -> bool:
        """Return whether passing over `passed` inflated bytes is in proportion to the stored bytes."""
        return passed <= 4 * self.keep + _BOMB * (self.member.at - self.start)

    def after_damage(self) -> int:
        """Return the stored offset from which the next member is looked for."""
        return max(self.member.start + 1, self._kept_from())

    def place(self, item: Frame | Hole, base: int) -> Placed:
        """Return where `item` lies: in stored bytes where members begin and end with it, else in the stream."""
        begin, end = self.borders.get(item.start), self.borders.get(item.end)
        self.borders = {offset: at for offset, at in self.borders.items() if offset >= item.end}
        self.anchor = end
        if begin is not None and end is not None:
            return Placed("stored", begin, end - begin, item)
        return Placed("stream", base, item.end - item.start, item)


def read_members(stored: Window, max_block: int, packing: Packing, at: int = 0, base: int = 0) -> Iterator[Placed]:
    """Cut the members of `stored` into records and holes; see the module for where each is placed.

    The first member begins at `at`; `base` bytes of the stream were counted before.
    """
    wasted = 0
    member: _Member | None = None
    while stored.fill(at + 1) > at:
        member = member or _open_member(stored, at, packing)
        if member is not None and member.inflate.ended and not member.piece:
            yield Placed("stored", at, member.at - at, None)
            at, member = member.at, None
        elif member is None or not packing.grammar.begins(member.piece):
            reason = GapReason.GARBAGE if member else _no_member(stored, at, packing)
            member = _next_member(stored, at + 1, packing)
            yield _gap(at, member.start if member else stored.end, reason)
            at = member.start if member else stored.end
        else:
            segment = _Segment(stored, member, max_block + (1 << 20), packing)
            base, open_at = yield from _read_segment(segment, max_block, base)
            at, member = segment.member.at, segment.following
            if segment.damage is not None:
                wasted += segment.inflated
                affordable = wasted <= _RETRIES * at + segment.keep
                member = _next_member(stored, segment.after_damage() if affordable else at, packing)
                end = member.start if member else stored.end
                yield _gap(min(at, end) if open_at is None else open_at, end, segment.damage)
                at = end


def begins_member(stored: Window, at: int, packing: Packing) -> bool:
    """Return whether a member that begins with a record begins at `at`."""
    member = _open_member(stored, at, packing)
    return member is not None and packing.grammar.begins(member.piece)


def _no_member(stored: Window, at: int, packing: Packing) -> GapReason:
    magic = packing.codec.magic
    return GapReason.DAMAGED if stored.copy(at, at + len(magic)) == magic else GapReason.NOT_GZIP


def _gap(begin: int, end: int, reason: GapReason) -> Placed:
    return Placed("stored", begin, end - begin, Hole(begin, end, reason, begun=False))


def _read_segment(segment: _Segment, max_block: int, base: int) -> Generator[Placed, None, tuple[int, int | None]]:
    """Yield the items of a segment.

    Returns the new base of the stream, and the stored offset from which on the segment is damaged: None where the
    damage lies in a member whose earlier records went out.
    """
    items = frame(segment.stream, max_block, segment.patient, segment.packing.grammar)
    for item, following in pairwise(chain(items, (None,))):
        assert item is not None
        if isinstance(item, Hole) and item.reason is GapReason.ENDLESS:
            segment.damage = item.reason
        last = following if isinstance(following, Hole) and not following.begun else item
        damaged = segment.damage is not None and last.end == segment.stream.end
        if damaged and item.start in segment.borders and item.end not in segment.borders:
            return base, segment.borders[item.start]
        placed = segment.place(item, base)
        base += placed.length if placed.place == "stream" else 0
        yield placed
    return base, None
