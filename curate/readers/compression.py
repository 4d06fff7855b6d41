"""Compressed members one piece at a time: gzip, bzip2, xz, lz4 frames, Zstandard frames.

An `Inflating` is fed the bytes of one member and gives pieces of bounded size, so a bomb costs a piece. It never
raises: what does not inflate is `sound=False`. A `Codec` says how members begin and how to start one. `decompressed`
reads members one after the other as one stream, up to the first damage or, in runs, from one to the next.

Memory: a piece of at most `PIECE` bytes; of Zstandard, whose library cannot be asked for less, what `ZSTD_FED` bytes
inflate to, 64 MiB at worst (it has 32,768 : 1), and a window of at most 128 MiB; of xz its dictionary, 128 MiB at most.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, NamedTuple, Protocol

import zstandard

from curate.configuration import ConfigurationError

PIECE: Final = 1 << 20
"""Inflated bytes at once."""

BLOCK: Final = 1 << 20
"""Bytes of a plain file at once."""

FED: Final = 1 << 15
ZSTD_FED: Final = 2 << 10
BOMB: Final = 1 << 30
BOMB_TIMES: Final = 2000
"""A file is a bomb where it unpacks to more than `BOMB` bytes and `BOMB_TIMES` what was read of it."""

TOO_FAR: Final = "inflates too far"
TRIAL: Final = 1 << 16
"""Bytes, stored or inflated, that must be sound where a member is looked for behind damage."""

TRIALS: Final = 256
"""Most places at which a member is looked for behind one damage: chance makes one in 16 MB, malice one in 3 bytes."""

WINDOW: Final = 1 << 27
"""Most memory for what a Zstandard frame or xz stream refers back to."""


class Piece(NamedTuple):
    """What a step gave: inflated `content`, bytes that it `used`, whether they were sound, whether the member ended."""

    content: bytes
    used: int
    sound: bool = True
    ended: bool = False


class Inflating(Protocol):
    """One member under way."""

    @property
    def ended(self) -> bool:
        """Whether the member has ended."""
        ...

    @property
    def rest(self) -> bytes:
        """Bytes that were used and, once the member has ended, turn out to lie behind it."""
        ...

    def step(self, fed: bytes) -> Piece:
        """Return the next piece, given the bytes after those that were used."""
        ...


class _Gzip:
    """On damage, what lies before the damaged byte is given."""

    rest = b""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(31)

    @property
    def ended(self) -> bool:
        return bool(self._inflate.eof)

    def step(self, fed: bytes) -> Piece:
        before = self._inflate.copy()
        try:
            content = self._inflate.decompress(fed, PIECE)
        except zlib.error:
            return Piece(*_until_damage(before, fed), sound=False)
        used = len(fed) - len(self._inflate.unconsumed_tail) - len(self._inflate.unused_data)
        return Piece(content, used, ended=self.ended)


def _until_damage(inflate: Any, fed: bytes) -> tuple[bytes, int]:
    """Return what `fed` inflates to before the byte at which it fails, and how many bytes come before that one."""
    pieces: list[bytes] = []
    at, step = 0, len(fed)
    while step:
        trial = inflate.copy()
        try:
            pieces.append(trial.decompress(fed[at : at + step]))
        except zlib.error:
            step //= 2
        else:
            inflate, at = trial, at + step
            step = min(step, len(fed) - at)
    return b"".join(pieces), at


class _Buffering:
    """Decompressors in the manner of `bz2`: they keep what they did not get to."""

    def __init__(self, inflate: Any) -> None:
        self._inflate = inflate

    @property
    def ended(self) -> bool:
        return bool(self._inflate.eof)

    @property
    def rest(self) -> bytes:
        return (self._inflate.unused_data or b"") if self._inflate.eof else b""

    def step(self, fed: bytes) -> Piece:
        given = fed if self._inflate.needs_input else b""
        try:
            content = self._inflate.decompress(given, PIECE)
        except (OSError, EOFError, RuntimeError, ValueError, MemoryError, lzma.LZMAError):
            return Piece(b"", 0, sound=False)
        return Piece(content, len(given), ended=self.ended)


class _Zstandard:
    """Fed so little at once that what comes out fits memory."""

    rest = b""

    def __init__(self, dictionary: Any = None) -> None:
        given = {} if dictionary is None else {"dict_data": dictionary}
        self._inflate = zstandard.ZstdDecompressor(max_window_size=WINDOW, **given).decompressobj()

    @property
    def ended(self) -> bool:
        return bool(self._inflate.eof)

    def step(self, fed: bytes) -> Piece:
        given = fed[:ZSTD_FED]
        try:
            content = self._inflate.decompress(given)
        except (zstandard.ZstdError, MemoryError):
            return Piece(b"", 0, sound=False)
        return Piece(content, len(given) - len(self._inflate.unused_data), ended=self.ended)


@dataclass(frozen=True, slots=True)
class Codec:
    """How members of one kind of compression begin, what messages call them, and how one is started."""

    name: str
    member: str
    magic: bytes
    start: Callable[[], Inflating]

    def begins(self, begin: bytes) -> bool:
        """Return whether a member may begin with `begin`, of which four bytes are looked at."""
        if self.name == "gzip":
            return len(begin) >= 4 and begin.startswith(self.magic) and not begin[3] & 0xE0
        return begin.startswith(self.magic) or (self.name == "zstd" and is_skippable(begin))


def is_skippable(begin: bytes) -> bool:
    """Return whether a frame that holds no content of the stream begins so (RFC 8878, section 3.1.2)."""
    return len(begin) >= 4 and begin[1:4] == b"\x2a\x4d\x18" and begin[0] & 0xF0 == 0x50


def _lz4() -> Inflating:
    try:
        import lz4.frame
    except ImportError:
        raise ConfigurationError("reading .lz4 needs the package lz4: pip install 'curate[formats]'") from None
    return _Buffering(lz4.frame.LZ4FrameDecompressor())


GZIP: Final = Codec("gzip", "gzip member", b"\x1f\x8b\x08", _Gzip)
LZ4: Final = Codec("lz4", "lz4 frame", b"\x04\x22\x4d\x18", _lz4)
ZSTD: Final = Codec("zstd", "zstd frame", b"\x28\xb5\x2f\xfd", _Zstandard)
BZIP2: Final = Codec("bzip2", "bzip2 stream", b"BZh", lambda: _Buffering(bz2.BZ2Decompressor()))
XZ: Final = Codec(
    "xz", "xz stream", b"\xfd7zXZ\x00", lambda: _Buffering(lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=WINDOW))
)

ENDINGS: Final = {
    ".gz": GZIP,
    ".tgz": GZIP,
    ".zst": ZSTD,
    ".zstd": ZSTD,
    ".tzst": ZSTD,
    ".bz2": BZIP2,
    ".tbz2": BZIP2,
    ".xz": XZ,
    ".txz": XZ,
    ".lz4": LZ4,
}


def codec_of(name: str) -> Codec | None:
    """Return how a file of this name is compressed as one stream, None for a plain file."""
    ending = "." + name.lower().rpartition(".")[2] if "." in name else ""
    return ENDINGS.get(ending)


def zstd_with(dictionary: bytes) -> Codec:
    """Return Zstandard with the dictionary that a file brings along."""
    data = zstandard.ZstdCompressionDict(dictionary)
    return Codec(ZSTD.name, ZSTD.member, ZSTD.magic, lambda: _Zstandard(data))


class Stored:
    """Bytes of a file as a stream of blocks.

    Attributes:
        place: "stream" where the file is compressed, else "stored".
        taken: stored bytes taken from the file.
        gaps: what lies between runs: stored offset, length, reason, detail.
        damage: where and why the stream stopped early: stored offset, reason, detail.
    """

    def __init__(
        self, file: BinaryIO, name: str, begun: Callable[[int, int], object] = lambda at, given: None, at: int = 0
    ) -> None:
        """Read `file`, which stands at its byte `at`; `begun` is told where members begin, stored and in the stream."""
        self._file, self._codec, self._given, self._begun = file, codec_of(name), 0, begun
        self._pending = b""
        self.place = "stored" if self._codec is None else "stream"
        self.taken = at
        self.gaps: list[tuple[int, int, str, str]] = []
        self.damage: tuple[int, str, str] | None = None

    def blocks(self) -> Iterator[bytes]:
        """Yield the content up to the first damage, in pieces of any size."""
        yield from self._blocks()
        self._drain()

    def runs(self) -> Iterator[Iterator[bytes]]:
        """Yield runs of blocks: behind damage another one begins with the next member that inflates.

        A run is to be read to its end before the next is asked for.
        """
        yield self._blocks()
        while self._codec is not None and self.damage is not None and self._resumed(self._codec, *self.damage):
            yield self._members(self._codec)
        self._drain()

    def _blocks(self) -> Iterator[bytes]:
        if self._codec is not None:
            yield from self._members(self._codec)
            return
        while block := self._take(BLOCK):
            yield block

    def _take(self, size: int) -> bytes:
        block = self._file.read(size)
        self.taken += len(block)
        return block

    def _drain(self) -> None:
        """Take the rest, which is hashed on the way."""
        while self._take(BLOCK):
            pass

    def _members(self, codec: Codec) -> Iterator[bytes]:
        """Yield what the members of the file inflate to, up to the first damage."""
        pending, self._pending = self._pending, b""
        while pending or (pending := self._take(FED)) or not self.taken:
            began, empty, member = self.taken - len(pending), True, codec.start()
            self._begun(began, self._given)
            while not member.ended:
                pending = pending or self._take(FED)
                piece = member.step(pending)
                if piece.content:
                    empty = False
                    self._given += len(piece.content)
                    yield piece.content
                if self._given > BOMB + BOMB_TIMES * self.taken:
                    self.damage = (self.taken - len(pending), TOO_FAR, f"{self._given} bytes")
                    return
                pending = pending[piece.used :]
                if not piece.sound:
                    self.damage = (began if empty else self.taken - len(pending), "damaged compression", codec.name)
                    self._pending = pending
                    return
                if not (piece.content or piece.used or piece.ended):
                    detail = f"the member that begins at byte {began} does not end"
                    self.damage = (began if empty else self.taken, "truncated", detail)
                    return
            pending = member.rest + pending

    def _resumed(self, codec: Codec, damaged: int, reason: str, detail: str) -> bool:
        """Go to the next member that inflates, and note what lies between; False if none of `TRIALS` places has one."""
        if reason == TOO_FAR:
            return False
        held, self._pending = self._pending, b""
        at, trials = max(damaged + 1 - (self.taken - len(held)), 0), 0
        while trials < TRIALS:
            if at >= BLOCK:
                held, at = held[at:], 0
            if (at := held.find(codec.magic, at)) < 0:
                held = held[max(len(held) - len(codec.magic) + 1, 0) :]
                at = 0
                if not (block := self._take(BLOCK)):
                    return False
                held += block
                continue
            inflates, held = self._inflates(codec, held, at)
            if inflates:
                self._pending, self.damage = held[at:], None
                self.gaps.append((damaged, self.taken - len(self._pending) - damaged, reason, detail))
                return True
            at, trials = at + 1, trials + 1
        return False

    def _inflates(self, codec: Codec, held: bytes, at: int) -> tuple[bool, bytes]:
        """Return whether a member begins at byte `at` of `held`, as far as `TRIAL` tells; and what was read for it."""
        member, given, end = codec.start(), 0, at + TRIAL
        while not member.ended and given < TRIAL and at < end:
            if at >= len(held):
                held += self._take(FED)
            piece = member.step(held[at : at + FED])
            given, at = given + len(piece.content), at + piece.used
            if not piece.sound:
                return False, held
            if not (piece.content or piece.used or piece.ended):
                return given > 0, held
        return True, held
