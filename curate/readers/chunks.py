"""From events of a reader to chunks of rows: ids, rights and `extra` are set here, once for all formats.

A chunk closes after `CHUNK_ROWS` rows or `CHUNK_BYTES` of values; where it closes changes no output. Rows that come as
columns stay columns. Memory: a chunk, and for keyed sources what `Seen` keeps of each record of the unit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from blake3 import blake3

from curate.accounting.measures import Measures, bytes_of, measure_text
from curate.accounting.statistics import Statistics, add
from curate.digests import document_id, text_digest
from curate.readers.columns import ids_of, key_ids, place_ids, places_of, record_digests, row_places, rows_of
from curate.readers.events import End, Event, Gap, Read, Refused, Rows, Structural
from curate.readers.reader import Reader
from curate.readers.seen import Seen
from transforms.outcome import rows as rows_from
from transforms.schema import ID, ORIGIN

CHUNK_ROWS: Final = 8192
CHUNK_BYTES: Final = 8 << 20

RECORD_KEYS: Final = pa.schema(
    [pa.field("id", pa.binary(16), nullable=False), pa.field("record", pa.binary(16), nullable=False)]
)
"""Schema of `keys.parquet`: ids and record digests of a keyed source, to see a record that two files hold."""


class InputError(RuntimeError):
    """Input that breaks a promise: it changed while it was read, or two records share a key and differ."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A refused record or a gap, at its place in the order of the input."""

    ordinal: int
    kind: str  # "dropped" or "gap"
    id: bytes | None
    origin: Mapping[str, Any]
    reason: str
    detail: str | None


@dataclass(slots=True)
class Chunk:
    """Rows of a unit that follow each other, with what was lost between them."""

    rows: pa.RecordBatch
    ordinals: npt.NDArray[np.int64]
    losses: list[Loss]
    counts: Statistics
    keys: pa.RecordBatch = field(default_factory=lambda: rows_from(RECORD_KEYS, []))  # of keyed sources
    measures: Measures | None = None  # where they are known


def chunks_of(
    events: Iterable[Event],
    reader: Reader,
    path: str,
    rows: int = CHUNK_ROWS,
    repeats: frozenset[bytes] = frozenset(),
) -> Iterator[Chunk]:
    """Yield the chunks of one unit of input; records whose id is in `repeats` are refused as "same record".

    Raises:
        InputError: the reader's events do not add up to the file, or a keyed record comes twice with other bytes.
    """
    assembler = _Assembler(reader, path, repeats)
    for event in events:
        if isinstance(event, Rows):
            if assembler.pending:
                yield assembler.close()
            for part in event.cut(rows):
                yield assembler.columns(part)
            continue
        assembler.take(event)
        if len(assembler.taken) >= rows or assembler.size >= CHUNK_BYTES or len(assembler.losses) >= rows:
            yield assembler.close()
    yield assembler.close()
    assembler.check_totals()


class _Assembler:
    def __init__(self, reader: Reader, path: str, repeats: frozenset[bytes]) -> None:
        self.reader, self.path, self.repeats = reader, path, repeats
        self.seen = Seen()
        self.sums: dict[str, int] = {}
        self.totals: dict[str, int] = {}
        self.keyed = reader.keyed
        self.ordinal = 0
        self._start()

    def _start(self) -> None:
        self.taken: list[tuple[Read, int]] = []  # with their ordinals
        self.losses: list[Loss] = []
        self.counts: Statistics = {}
        self.keys = rows_from(RECORD_KEYS, [])
        self.size = 0

    @property
    def pending(self) -> bool:
        """Whether anything waits for its chunk to be closed."""
        return bool(self.taken or self.losses or self.counts)

    def take(self, event: Read | Refused | Structural | Gap | End) -> None:
        ordinal = self.ordinal
        self.ordinal += 1
        if isinstance(event, End):
            self.totals[event.place] = self.totals.get(event.place, 0) + event.total
            self._count(event.total, "total", event.place)
            return
        if isinstance(event, Read):
            self._take_record(event, ordinal)
            return
        self.sums[event.place] = self.sums.get(event.place, 0) + event.length
        origin = self._origin(event.place, event.offset, event.length, 0)
        if isinstance(event, Refused):
            self._lose("refused", event, ordinal, self._id(event.key, origin), origin, event.reason, event.detail)
        elif isinstance(event, Gap):
            self._lose("gaps", event, ordinal, None, origin, event.reason, event.detail)
        else:
            self._count_of("structural", event.kind, event)

    def _origin(self, place: str, offset: int, length: int, part: int) -> dict[str, Any]:
        return {"uri": self.path, "place": place, "offset": offset, "length": length, "part": part}

    def _lose(
        self,
        group: str,
        event: Read | Refused | Gap,
        ordinal: int,
        identity: bytes | None,
        origin: Mapping[str, Any],
        reason: str,
        detail: str | None,
    ) -> None:
        kind = "gap" if group == "gaps" else "dropped"
        self.losses.append(Loss(ordinal, kind, identity, origin, reason, detail))
        self._count_of(group, reason, event)

    def _take_record(self, event: Read, ordinal: int) -> None:
        if event.part == 0:
            self.sums[event.place] = self.sums.get(event.place, 0) + event.length
        self.taken.append((event, ordinal))
        for value in event.values.values():
            if isinstance(value, (str, bytes)):
                self.size += len(value)

    def _repeats(
        self, ids: pa.Array, digests: pa.Array, named: npt.NDArray[np.int64], clash: Callable[[int], tuple[int, bytes]]
    ) -> set[int]:
        """Return which of the rows `named`, which have a key, were there before, here or in an earlier file.

        The others are remembered, and published as keys. `clash` tells offset and key of a row.

        Raises:
            InputError: one was there before with other values.
        """
        rows = pa.array(named)
        met = self.seen.meet(bytes_of(ids.take(rows)), bytes_of(digests.take(rows)))
        if met.clashes is not None:
            raise InputError(clash_message(self.reader.source, self.path, *clash(int(named[met.clashes]))))
        before = {int(named[row]) for row in met.before}
        if self.repeats:
            before |= {row for row in named.tolist() if ids[row].as_py() in self.repeats}
        new = pa.array([row for row in named.tolist() if row not in before], pa.int64())
        self.keys = pa.RecordBatch.from_arrays([ids.take(new), digests.take(new)], schema=RECORD_KEYS)
        return before

    def _id(self, key: bytes | None, origin: Mapping[str, Any]) -> bytes:
        place = (origin["uri"], origin["place"], origin["offset"], origin["part"])
        if key is None:
            return document_id(self.reader.source, *place)
        if self.reader.on_clash == "place":
            return document_id(self.reader.source, key, *place)
        return document_id(self.reader.source, key, origin["part"])

    def columns(self, event: Rows) -> Chunk:
        """Return the chunk of rows that come as columns; no other rows may be pending."""
        ordinal, offsets = self.ordinal, event.offset + np.arange(event.length, dtype=np.int64)
        self.ordinal += event.length
        self.sums[event.place] = self.sums.get(event.place, 0) + event.length
        ids = self._row_ids(event, offsets)
        lost: dict[int, tuple[str, str | None]] = {**event.refused}
        measures = None
        if self.keyed and event.keys is not None:
            measures = measure_text(event.values["text"])
            repeated = self._repeated_rows(event, ids, event.keys, measures.digests)
            lost.update((row, ("same record", None)) for row in sorted(repeated))
        for row, (reason, detail) in lost.items():
            origin = self._origin(event.place, event.offset + row, 1, 0)
            refused = Refused(event.place, event.offset + row, 1, reason, detail, None)
            self._lose("refused", refused, ordinal + row, ids[row].as_py(), origin, reason, detail)
        stays = np.ones(event.length, np.bool_)
        stays[list(lost)] = False
        values: Mapping[str, pa.Array] = event.values
        if lost:
            places = np.flatnonzero(stays)
            kept, measures = pa.array(places), None if measures is None else measures.take(places)
            ids, values = ids.take(kept), {name: array.take(kept) for name, array in values.items()}
        if len(ids):
            self._count_read(len(ids), {event.place: len(ids)})
        origins = row_places(event.place, offsets[stays]).origins(self.path)
        return self._closed(rows_of(self.reader, ids, origins, values), ordinal + np.flatnonzero(stays), measures)

    def _row_ids(self, event: Rows, offsets: npt.NDArray[np.int64]) -> pa.FixedSizeBinaryArray:
        if event.keys is None:
            return place_ids(self.reader.source, self.path, event.place, offsets)
        ids = key_ids(self.reader, self.path, event.place, event.keys, offsets)
        if not ids.null_count:
            return ids
        return pc.coalesce(ids, place_ids(self.reader.source, self.path, event.place, offsets))

    def _repeated_rows(self, event: Rows, ids: pa.Array, keys: pa.LargeBinaryArray, texts: pa.Array) -> set[int]:
        named = np.asarray(keys.is_valid().to_numpy(zero_copy_only=False), np.bool_).copy()
        named[list(event.refused)] = False
        digests = record_digests(event.values, texts)
        return self._repeats(ids, digests, np.flatnonzero(named), lambda row: (event.offset + row, keys[row].as_py()))

    def _count(self, amount: int, *names: str) -> None:
        add(self.counts, (self.reader.source, *names), amount)

    def _count_of(self, group: str, name: str, event: Read | Refused | Structural | Gap) -> None:
        self._count(1, group, name, "count")
        if not isinstance(event, Read) or event.part == 0:
            self._count(event.length, group, name, event.place)

    def _count_read(self, records: int, lengths: Mapping[str, int]) -> None:
        self._count(records, "records", "read", "count")
        for place, length in lengths.items():
            self._count(length, "records", "read", place)

    def close(self) -> Chunk:
        ids = [None if event.key is None else self._id(event.key, self._place(event)) for event, _ in self.taken]
        repeats = self._repeated_records(ids) if self.keyed else set()
        for row in sorted(repeats):
            event, ordinal = self.taken[row]
            self._lose("refused", event, ordinal, ids[row], self._place(event), "same record", None)
        kept = [row for row in range(len(ids)) if row not in repeats]
        events = [self.taken[row][0] for row in kept]
        self._count_records(events)
        places = places_of([(event.place, event.offset, event.length, event.part) for event in events])
        found = ids_of(self.reader.source, self.path, places, [ids[row] for row in kept])
        columns = _columns(self.reader, [event.values for event in events])
        rows = rows_of(self.reader, found, places.origins(self.path), columns)
        return self._closed(rows, np.array([self.taken[row][1] for row in kept], np.int64))

    def _place(self, event: Read) -> dict[str, Any]:
        return self._origin(event.place, event.offset, event.length, event.part)

    def _repeated_records(self, ids: list[bytes | None]) -> set[int]:
        named = np.array([row for row, identity in enumerate(ids) if identity is not None], np.int64)
        digests: list[bytes | None] = [None] * len(ids)
        for row in named.tolist():
            digests[row] = record_digest(self.taken[row][0].values)
        events = [event for event, _ in self.taken]
        return self._repeats(
            pa.array(ids, ID), pa.array(digests, ID), named, lambda row: (events[row].offset, events[row].key or b"")
        )

    def _count_records(self, events: Sequence[Read]) -> None:
        lengths: dict[str, int] = {}
        for event in events:
            if event.part == 0:
                lengths[event.place] = lengths.get(event.place, 0) + event.length
            if event.replaced:
                self._count(event.replaced, "replaced", "lone surrogates")
        if events:
            self._count_read(len(events), lengths)

    def _closed(self, rows: pa.RecordBatch, ordinals: npt.NDArray[np.int64], measures: Measures | None = None) -> Chunk:
        chunk = Chunk(rows, ordinals, self.losses, self.counts, self.keys, measures)
        self._start()
        return chunk

    def check_totals(self) -> None:
        if {place: total for place, total in self.sums.items() if total} != {p: t for p, t in self.totals.items() if t}:
            raise InputError(
                f"{self.path}: records and gaps add up to {self.sums}, the file has {self.totals}: the reader lost "
                "count. Please report this file"
            )


def record_digest(values: Mapping[str, Any]) -> bytes:
    """Return 16 bytes that name a record's values, for telling a record that comes twice from a clash of keys.

    Its text stands there as its digest, which is wanted in any case.
    """
    hasher = blake3()
    for name in sorted(values):
        value = values[name]
        if name == "text" and isinstance(value, str):
            hasher.update(b"text:" + text_digest(value))
            continue
        data = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
        hasher.update(f"{name}:{type(value).__name__}:{len(data)}:".encode() + data)
    return hasher.digest(16)


def clash_message(source: str, path: str, offset: int, key: bytes) -> str:
    """Return the error for two records of one natural key that differ."""
    return (
        f"source {source!r}: two different records have the key {key[:200]!r}; the second is in {path} at "
        f'offset {offset}. Choose another key column, or on_clash="place"'
    )


def build_rows(
    reader: Reader, ids: list[bytes], origins: list[dict[str, Any]], values: list[Mapping[str, Any]]
) -> pa.RecordBatch:
    """Return rows of `reader`'s schema for these records; rights that nobody states are "unknown"."""
    return rows_of(reader, pa.array(ids, ID), pa.array(origins, ORIGIN), _columns(reader, values))


def _columns(reader: Reader, values: list[Mapping[str, Any]]) -> dict[str, pa.Array]:
    special = {"id", "origin", "source", "licence_basis", "optout"}
    return {
        item.name: pa.array([value.get(item.name) for value in values], item.type)
        for item in reader.schema()
        if item.name not in special
    }
