"""From events of a reader to chunks of rows: ids, rights and `extra` are set here, once for all formats.

A chunk closes after `CHUNK_ROWS` rows or `CHUNK_BYTES` of values; where it closes changes no output. Memory: a chunk,
and for keyed sources 32 bytes for each record of the unit (to see a record that comes twice).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from blake3 import blake3

from curate.digests import document_id, id_after, id_prefix
from curate.readers.events import End, Event, Gap, Read, Refused, Structural
from curate.readers.reader import Reader
from curate.statistics import Statistics, add
from transforms.schema import ID, NOT_CHECKED, OPTOUT, ORIGIN, UNKNOWN

CHUNK_ROWS: Final = 4096
CHUNK_BYTES: Final = 32 << 20


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
    keys: list[tuple[bytes, bytes]] = field(default_factory=list)  # (id, digest of the record) of keyed sources


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
    for ordinal, event in enumerate(events):
        assembler.take(event, ordinal)
        if len(assembler.values) >= rows or assembler.size >= CHUNK_BYTES or len(assembler.losses) >= rows:
            yield assembler.close()
    yield assembler.close()
    assembler.check_totals()


class _Assembler:
    def __init__(self, reader: Reader, path: str, repeats: frozenset[bytes]) -> None:
        self.reader, self.path, self.repeats = reader, path, repeats
        self.seen: dict[bytes, bytes] = {}
        self.sums: dict[str, int] = {}
        self.totals: dict[str, int] = {}
        self.prefixes: dict[str, blake3] = {}
        self._start()

    def _start(self) -> None:
        self.values: list[Mapping[str, Any]] = []
        self.ids: list[bytes] = []
        self.origins: list[dict[str, Any]] = []
        self.ordinals: list[int] = []
        self.losses: list[Loss] = []
        self.counts: Statistics = {}
        self.keys: list[tuple[bytes, bytes]] = []
        self.size = self.records = 0
        self.lengths: dict[str, int] = {}

    def take(self, event: Event, ordinal: int) -> None:
        if isinstance(event, End):
            self.totals[event.place] = self.totals.get(event.place, 0) + event.total
            self._count("total", event.place, event.total)
            return
        if not isinstance(event, Read) or event.part == 0:
            self.sums[event.place] = self.sums.get(event.place, 0) + event.length
        origin = {
            "uri": self.path,
            "place": event.place,
            "offset": event.offset,
            "length": event.length,
            "part": event.part if isinstance(event, Read) else 0,
        }
        if isinstance(event, Read):
            self._take_record(event, origin, ordinal)
        elif isinstance(event, Refused):
            identity = self._id(event.key, origin)
            self.losses.append(Loss(ordinal, "dropped", identity, origin, event.reason, event.detail))
            self._count_of("refused", event.reason, event)
        elif isinstance(event, Gap):
            self.losses.append(Loss(ordinal, "gap", None, origin, event.reason, event.detail))
            self._count_of("gaps", event.reason, event)
        else:
            self._count_of("structural", event.kind, event)

    def _take_record(self, event: Read, origin: dict[str, Any], ordinal: int) -> None:
        identity = self._id(event.key, origin)
        if self.reader.keyed and event.key is not None:
            digest = record_digest(event.values)
            repeated = identity in self.seen
            if repeated and self.seen[identity] != digest:
                raise InputError(clash_message(self.reader.source, self.path, origin["offset"], event.key))
            self.seen[identity] = digest
            if repeated or identity in self.repeats:
                self.losses.append(Loss(ordinal, "dropped", identity, origin, "same record", None))
                self._count_of("refused", "same record", event)
                return
            self.keys.append((identity, digest))
        self.records += 1
        if event.part == 0:
            self.lengths[event.place] = self.lengths.get(event.place, 0) + event.length
        if event.replaced:
            self._count("replaced", "lone surrogates", event.replaced)
        self.ids.append(identity)
        self.origins.append(origin)
        self.ordinals.append(ordinal)
        self.values.append(event.values)
        self.size += sum(len(value) for value in event.values.values() if isinstance(value, (str, bytes)))

    def _id(self, key: bytes | None, origin: Mapping[str, Any]) -> bytes:
        place = (origin["uri"], origin["place"], origin["offset"], origin["part"])
        if key is None:
            prefix = self.prefixes.get(place[1])
            if prefix is None:
                prefix = self.prefixes[place[1]] = id_prefix(self.reader.source, *place[:2])
            return id_after(prefix, *place[2:])
        if self.reader.on_clash == "place":
            return document_id(self.reader.source, key, *place)
        return document_id(self.reader.source, key, origin["part"])

    def _count(self, group: str, name: str, amount: int) -> None:
        add(self.counts, (self.reader.source, group, name), amount)

    def _count_of(self, group: str, name: str, event: Read | Refused | Structural | Gap) -> None:
        add(self.counts, (self.reader.source, group, name, "count"), 1)
        if not isinstance(event, Read) or event.part == 0:
            add(self.counts, (self.reader.source, group, name, event.place), event.length)

    def close(self) -> Chunk:
        if self.records:
            add(self.counts, (self.reader.source, "records", "read", "count"), self.records)
        for place, length in self.lengths.items():
            add(self.counts, (self.reader.source, "records", "read", place), length)
        chunk = Chunk(
            build_rows(self.reader, self.ids, self.origins, self.values),
            np.array(self.ordinals, np.int64),
            self.losses,
            self.counts,
            self.keys,
        )
        self._start()
        return chunk

    def check_totals(self) -> None:
        if {place: total for place, total in self.sums.items() if total} != {p: t for p, t in self.totals.items() if t}:
            raise InputError(
                f"{self.path}: records and gaps add up to {self.sums}, the file has {self.totals}: the reader lost "
                "count. Please report this file"
            )


def record_digest(values: Mapping[str, Any]) -> bytes:
    """Return 16 bytes that name a record's values, for telling a record that comes twice from a clash of keys."""
    hasher = blake3()
    for name in sorted(values):
        value = values[name]
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
    stated = [reader.licence or value.get("licence") for value in values]
    basis = "user" if reader.licence else "source"
    given = {
        "id": pa.array(ids, ID),
        "origin": _origins(origins),
        "source": pa.repeat(pa.scalar(reader.source, pa.large_string()), len(ids)),
        "licence": pa.array([licence or UNKNOWN for licence in stated], pa.large_string()),
        "licence_basis": pa.array([basis if licence else UNKNOWN for licence in stated], pa.large_string()),
        "optout": pa.repeat(pa.scalar(NOT_CHECKED, OPTOUT), len(ids)),
    }
    schema = reader.schema()
    arrays = [
        given[item.name] if item.name in given else pa.array([value.get(item.name) for value in values], item.type)
        for item in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _origins(origins: list[dict[str, Any]]) -> pa.StructArray:
    fields = list(ORIGIN)
    columns = [pa.array([origin[field.name] for origin in origins], field.type) for field in fields]
    return pa.StructArray.from_arrays(columns, fields=fields)
