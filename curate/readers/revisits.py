"""Where the records lie that revisits refer to: by record id, else by URI and date, else by the digest of the payload.

WARC 1.1, section 6.7: a revisit record names its original by WARC-Refers-To, or by WARC-Refers-To-Target-URI and
-Date; older writers give the payload digest alone. The original is read again at its place, so nothing but places is
remembered. Memory: about 300 bytes per record, of at most `MOST` records; later ones are not found.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import BinaryIO, Final

from curate.readers.archives import READ, kind_of, records_of
from curate.readers.framing import Frame
from curate.readers.window import Window

MOST: Final = 1_000_000

_Name = tuple[bytes, ...]


class Originals:
    """The records of one archive that revisits may refer to; `again` opens it once more."""

    def __init__(self, again: Callable[[], BinaryIO], name: str, max_block: int) -> None:
        self._again, self._name, self._max_block = again, name, max_block
        self._places: dict[_Name, int] = {}
        self._count = 0

    def add(self, place: str, offset: int, length: int, record: Frame) -> None:
        """Remember where a record lies; one among several in a member cannot be read alone, and is not found."""
        if place != "stored" or self._count >= MOST:
            return
        self._count += 1
        fields = record.fields
        uri, date = fields.get(b"warc-target-uri", b""), fields.get(b"warc-date", b"")
        for name in (
            (fields.get(b"warc-record-id", b""),),
            (uri, date),
            (b"", fields.get(b"warc-payload-digest", b"")),
        ):
            if name[-1]:
                self._places.setdefault(name, offset)

    def of(self, revisit: Frame) -> Frame | None:
        """Return the record that `revisit` refers to, None where it is not there."""
        fields = revisit.fields
        uri, date = fields.get(b"warc-refers-to-target-uri", b""), fields.get(b"warc-refers-to-date", b"")
        names: tuple[_Name, ...] = ((fields.get(b"warc-refers-to", b""),), (uri, date))
        if not any(name[-1] for name in names):
            names = ((b"", fields.get(b"warc-payload-digest", b"")),)
        at = next((self._places[name] for name in names if name[-1] and name in self._places), None)
        return None if at is None else self._read(at)

    def _read(self, at: int) -> Frame | None:
        with closing(self._again()) as file:
            kind = kind_of(Window(lambda: file.read(READ)), self._name)
            file.seek(at)
            stored = Window(lambda: file.read(READ), at)
            placed = next(records_of(stored, kind, self._max_block), None)
        item = None if placed is None else placed.item
        return item if isinstance(item, Frame) else None
