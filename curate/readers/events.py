"""What every reader yields: records, refusals, structural records and gaps that tile a unit of input, then its end.

Invariant: in one unit of input the ranges (offset, length) of `Read` (its first part), `Rows`, `Refused`, `Structural`
and `Gap` do not overlap, are in order of offset, and their lengths add up to `End.total` for each `place`. So each byte
(or row) of a file is a record or a recorded gap, and nothing disappears silently. A reader never raises for what a
file holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Read:
    """A record that becomes a document.

    Attributes:
        place: unit of `offset` and `length`, one of `transforms.schema.PLACES`.
        offset: where the record begins.
        length: how much of the file belongs to it.
        part: sub-index for readers that make many documents of one record; only part 0 counts for the tiling.
        key: the natural key that the record itself carries, if any (WARC-Record-ID, a key column).
        values: column values.
        replaced: how many lone surrogates in them became U+FFFD.
    """

    place: str
    offset: int
    length: int
    part: int
    key: bytes | None
    values: dict[str, object]
    replaced: int = 0


@dataclass(frozen=True, slots=True)
class Refused:
    """A record that is whole but cannot become a document: a drop with this `reason`.

    `detail` tells more (the HTTP status, the media type), never text of the document.
    """

    place: str
    offset: int
    length: int
    reason: str
    detail: str | None
    key: bytes | None


@dataclass(frozen=True, slots=True)
class Structural:
    """A record that is not meant to be a document (WARC request, warcinfo), counted by `kind`."""

    place: str
    offset: int
    length: int
    kind: str


@dataclass(frozen=True, slots=True)
class Gap:
    """A stretch that could not be read as records: damage, truncation, an unsupported format."""

    place: str
    offset: int
    length: int
    reason: str
    detail: str | None


@dataclass(frozen=True, slots=True)
class End:
    """The last events of every reader: how many bytes or rows the unit has in `place`, one for each place used.

    A file that is compressed as one stream has a total for the decompressed "stream"; when damage ends the stream
    early, what follows is a gap in "stored" bytes whose `End` is its own length.
    """

    place: str
    total: int


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a columnar file that follow each other: what `Read` and `Refused` are for one record, as columns.

    Attributes:
        place: "row".
        offset: number of the first row.
        length: how many rows there are.
        values: our columns, with `length` rows each; those that are missing are null in every row.
        keys: natural keys as binary, null where a row has none; None where no row has one.
        refused: position → (reason, detail) of rows that cannot become documents, in order of position.
    """

    place: str
    offset: int
    length: int
    values: Mapping[str, pa.Array]
    keys: pa.LargeBinaryArray | None = None
    refused: Mapping[int, tuple[str, str]] = field(default_factory=dict)

    def cut(self, most: int) -> Iterator[Rows]:
        """Yield these rows in parts of at most `most`."""
        for start in range(0, self.length, most):
            count = min(most, self.length - start)
            yield Rows(
                self.place,
                self.offset + start,
                count,
                {name: array.slice(start, count) for name, array in self.values.items()},
                None if self.keys is None else self.keys.slice(start, count),
                {row - start: why for row, why in self.refused.items() if start <= row < start + count},
            )


Event = Read | Rows | Refused | Structural | Gap | End


class Stream(Protocol):
    """A file read as a stream: `curate.readers.compression.Stored`."""

    place: str
    taken: int
    damage: tuple[int, str, str] | None


def stored_ends(stored: Stream, total: int) -> Iterator[Event]:
    """Yield the end of a file read as a stream of `total` bytes, after the gap that damage leaves of it."""
    yield End(stored.place, total)
    if stored.damage is not None:
        start, reason, detail = stored.damage
        yield Gap("stored", start, stored.taken - start, reason, detail)
        yield End("stored", stored.taken - start)


def totals(events: Iterable[Event]) -> dict[str, tuple[int, int]]:
    """Return per place (sum of lengths, total of the `End` events); the two are equal for every reader."""
    sums: dict[str, int] = {}
    ends: dict[str, int] = {}
    for event in events:
        if isinstance(event, End):
            ends[event.place] = ends.get(event.place, 0) + event.total
        elif not isinstance(event, Read) or event.part == 0:
            sums[event.place] = sums.get(event.place, 0) + event.length
    return {place: (sums.get(place, 0), ends.get(place, 0)) for place in sorted({*sums, *ends})}
