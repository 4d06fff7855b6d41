"""What every reader yields: records, refusals, structural records and gaps that tile a unit of input, then its end.

Invariant: in one unit of input the ranges (offset, length) of `Read` (its first part), `Refused`, `Structural` and
`Gap` do not overlap, are in order of offset, and their lengths add up to `End.total` for each `place`. So each byte
(or row) of a file is a record or a recorded gap, and nothing disappears silently. A reader never raises for what a
file holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


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


Event = Read | Refused | Structural | Gap | End


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
