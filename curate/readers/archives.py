"""How a web archive is packed, and its records one after the other: WARC or ARC; plain, gzip, lz4 or Zstandard.

The content decides, then the name. A Zstandard archive may begin with the dictionary of its frames, in a frame of its
own (IIPC, "Proposal for Zstandard-compressed WARC files", section 3.2): raw, or compressed itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import zstandard

from curate.readers.arc_grammar import ARC
from curate.readers.compression import GZIP, LZ4, WINDOW, ZSTD, Codec, zstd_with
from curate.readers.framing import GapReason, Grammar, Header, Hole, frame
from curate.readers.members import Packing, Placed, begins_member, read_members
from curate.readers.warc_grammar import WARC
from curate.readers.window import Window

READ: Final = 1 << 18
MAX_DICTIONARY: Final = 64 << 20

_GRAMMARS: Final[tuple[Grammar, ...]] = (WARC, ARC)
_CODECS: Final = (GZIP, LZ4, ZSTD)
_WARC_NAMES: Final = (".warc", ".wet", ".wat")
_ARC_NAMES: Final = (".arc",)
_PACKED_NAMES: Final = {".gz": GZIP, ".lz4": LZ4, ".zst": ZSTD}
_DICTIONARY: Final = b"\x5d\x2a\x4d\x18"


@dataclass(frozen=True, slots=True)
class Kind:
    """What an archive is: the grammar of its records, how it is compressed, and where its first record may begin."""

    grammar: Grammar | None
    codec: Codec | None = None
    start: int = 0

    def words(self, reason: GapReason) -> str:
        """Return `reason` in the words of the compression."""
        return reason.value if self.codec is None else reason.value.replace("gzip member", self.codec.member)


def kind_of(stored: Window, name: str) -> Kind:
    """Tell the kind of an archive by its first record, else by its name; the grammar is None where neither tells."""
    stored.fill(16)
    begin, lower = stored.copy(0, 16), name.lower()
    codec, start = _dictionary(stored, begin) if begin.startswith(_DICTIONARY) else (_codec(begin), 0)
    for grammar in _GRAMMARS:
        if codec is not None and begins_member(stored, start, Packing(codec, grammar)):
            return Kind(grammar, codec, start)
        if isinstance(grammar.header(stored, 0), Header):
            return Kind(grammar)
    for ending, named in _PACKED_NAMES.items():
        if lower.endswith(ending):
            return Kind(_grammar(lower.removesuffix(ending)), codec or named, start)
    return Kind(WARC if begin.startswith(b"WARC/") else _grammar(lower))


def _codec(begin: bytes) -> Codec | None:
    return next((codec for codec in _CODECS if codec.begins(begin)), None)


def _grammar(name: str) -> Grammar | None:
    if name.endswith(_ARC_NAMES):
        return ARC
    return WARC if name.endswith(_WARC_NAMES) else None


def _dictionary(stored: Window, begin: bytes) -> tuple[Codec, int]:
    """Return Zstandard with the dictionary that the file begins with, and where the frame behind it begins."""
    size = int.from_bytes(begin[4:8], "little")
    if size > MAX_DICTIONARY or stored.fill(8 + size) < 8 + size:
        return ZSTD, 0
    content = stored.copy(8, 8 + size)
    try:
        if content.startswith(ZSTD.magic):
            unpacked = zstandard.ZstdDecompressor(max_window_size=WINDOW).stream_reader(content)
            content = unpacked.read(MAX_DICTIONARY)
        codec = zstd_with(content)
        codec.start()  # raises where the dictionary is damaged
        return codec, 8 + size
    except (zstandard.ZstdError, ValueError, MemoryError):
        return ZSTD, 0


def records_of(stored: Window, kind: Kind, max_block: int, base: int = 0) -> Iterator[Placed]:
    """Cut an archive into records and holes, from where the window begins; `base` as in `read_members`."""
    if kind.grammar is None:
        yield _unsupported(stored)
    elif kind.codec is not None:
        yield from read_members(
            stored, max_block, Packing(kind.codec, kind.grammar), max(kind.start, stored.start), base
        )
    else:
        for item in frame(stored, max_block, lambda passed: True, kind.grammar):
            yield Placed("stored", item.start, item.end - item.start, item)


def _unsupported(stored: Window) -> Placed:
    """Read the rest of the file, so that whoever hashes it sees all of it, and return it as one gap."""
    while stored.fill(stored.end + READ) > stored.start:
        stored.drop(stored.end)
    return Placed("stored", 0, stored.end, Hole(0, stored.end, GapReason.UNSUPPORTED, begun=False))
