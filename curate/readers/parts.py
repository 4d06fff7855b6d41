"""Parts of a file: what lies between two borders, read as if all before had been read (`curate.inputs.splitting`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Border:
    """Where a part begins.

    Attributes:
        at: the stored byte from which on the file is read.
        base: the offset, in the place that its records have, of what is read first: of the decompressed stream, or the
            number of the row; 0 where that is the stored byte itself.
        skip: bytes of the stream before the first record of the part.
        group: number of the row group.
    """

    at: int
    base: int = 0
    skip: int = 0
    group: int = 0

    @property
    def first(self) -> int:
        """Offset of the first record in a stream."""
        return self.base + self.skip


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a file, from one border to the next, or to the end of the file where `end` is None.

    `stop` is the stored byte where it ends, `digest` that of the stored bytes between.
    """

    begin: Border
    end: Border | None
    stop: int
    digest: str

    def described(self) -> list[int]:
        """Return the part as it stands in keys and receipts: first and last stored byte."""
        return [self.begin.at, self.stop]

    def to_json(self) -> list[object]:
        """Return it as it stands in the stat index."""
        end = None if self.end is None else _numbers(self.end)
        return [_numbers(self.begin), end, self.stop, self.digest]

    @classmethod
    def from_json(cls, value: Sequence[object]) -> Part:
        """Return what `to_json` gave.

        Raises:
            ValueError, TypeError: it is something else.
        """
        begin, end, stop, digest = value
        if not (isinstance(begin, list) and isinstance(end, list | None) and isinstance(stop, int)):
            raise ValueError("no part")
        return cls(Border(*begin), None if end is None else Border(*end), stop, str(digest))


def _numbers(border: Border) -> list[int]:
    return [border.at, border.base, border.skip, border.group]
