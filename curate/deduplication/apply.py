"""What stays of a shard, and for each document that goes a survivor of this stage in the ledger."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curate.accounting.accountant import Step
from curate.deduplication.plan import VERDICTS, Plan, cursor_of, not_empty
from curate.deduplication.shown import Shown
from curate.recipes.schemas import DUPLICATE, fit_to
from curate.regroup import Regrouped
from curate.running.documents import DocumentJob, ShardUnit
from curate.running.jobs import Item, Resources
from curate.store import Store
from transforms.canonical import canonical_json
from transforms.exact_numbers import decimal_text
from transforms.outcome import DROPPED, Outcome, kept
from transforms.schema import ID
from transforms.similarity import Measure

STEP: Final = "deduplicate"
MEASURES: Final[Mapping[Measure, str]] = {"jaccard": "Jaccard similarity", "containment": "containment"}
EMPTY_TEXT: Final = "empty text"
WITHOUT_TEMPLATES: Final = " without templates"


@dataclass(frozen=True, slots=True)
class ApplyJob:
    """Per input shard: its documents without those that go. Memory: 80 bytes per document that goes."""

    plan: Plan
    verdicts: Regrouped
    because: Regrouped | None
    sampled: Mapping[bytes, int]
    name: str
    forbids: frozenset[str]

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return self.plan.resources

    def run(self, item: Item) -> int:
        """Publish what stays of shard `item.unit`, and return how many documents it had."""
        measure: Measure = "jaccard" if self.plan.method is None else self.plan.method.measure
        part = self.plan.part(item.unit)
        listing = listed(self.plan, self.verdicts, item.unit, part)
        named = MEASURES[measure] + ("" if self.plan.without_templates is None else WITHOUT_TEMPLATES)
        shown = Shown.of(self.sampled, _array(listing[0]), listing[1])
        reference_of = self.plan.reference_of if self.plan.frozen else None
        told = Told(listing, self._survivors(item.unit, part), self._threshold(), named, reference_of, shown)
        action = TagListed if self.plan.action == "tag" else DropListed
        step = Step(STEP, action(told, self.plan.count, self.plan.schema))
        job = DocumentJob(self.store, self.name, None, (step,), self.plan.schema, self.forbids)
        return job.run(Item(item.key, item.label, ShardUnit(self.plan.shards[item.unit], part)))

    def _survivors(self, shard: int, part: Path) -> Survivors:
        """Return the documents of `shard` because of which others go, and how many those are."""
        if self.because is None:
            return np.empty(0, "S16"), np.empty(0, np.int64)
        cursor, ids, counts = cursor_of(self.plan, self.because, shard), [np.empty(0, "S16")], [np.empty(0, np.int64)]
        for batch, refs in self.plan.batches(shard, "id", part=part):
            rows = cursor.below(int(refs[-1]) + 1).column("because").to_numpy() - refs[0]
            mine, found = np.unique(rows, return_counts=True)
            ids.append(_bytes(batch.column("id"))[mine])
            counts.append(found)
        names, sizes = np.concatenate(ids), np.concatenate(counts)
        order = np.argsort(names, kind="stable")
        return names[order], sizes[order]

    def _threshold(self) -> str:
        return "< 1" if self.plan.method is None else f"< {decimal_text(self.plan.method.ratio)}"


def listed(
    plan: Plan, verdicts: Regrouped, shard: int, part: Path | None = None
) -> tuple[npt.NDArray[np.bytes_], pa.Table]:
    """Return the ids of the documents of `shard` that go, sorted, and their rows of `VERDICTS`; `part` if known."""
    cursor = cursor_of(plan, verdicts, shard)
    ids, rows = [np.empty(0, "S16")], [pa.RecordBatch.from_pylist([], VERDICTS)]
    for batch, refs in plan.batches(shard, "id", part=part):
        mine = cursor.below(int(refs[-1]) + 1)
        rows.append(mine)
        ids.append(_bytes(batch.column("id"))[mine.column("ref").to_numpy() - refs[0]])
    found, table = np.concatenate(ids), pa.Table.from_batches(rows).combine_chunks()
    order = np.argsort(found, kind="stable")
    return found[order], table.take(pa.array(order))


def _array(ids: npt.NDArray[np.bytes_]) -> pa.Array:
    return pa.Array.from_buffers(ID, len(ids), [None, pa.py_buffer(np.ascontiguousarray(ids))])


def _bytes(ids: pa.Array) -> npt.NDArray[np.bytes_]:
    data = np.frombuffer(ids.buffers()[1], "S16", len(ids), ids.offset * 16)
    return np.asarray(data)


Survivors = tuple[npt.NDArray[np.bytes_], npt.NDArray[np.int64]]
"""Ids, sorted, and how many documents go because of each."""


@dataclass(frozen=True, slots=True)
class Told:
    """What is known of a shard: ids of the documents that go, sorted, with their verdicts; and survivors."""

    listing: tuple[npt.NDArray[np.bytes_], pa.Table]
    survivors: Survivors
    threshold: str
    measure: str
    reference_of: Callable[[int], str | None] | None  # none where there are no references
    shown: Shown

    def dropped(self, batch: pa.RecordBatch) -> tuple[npt.NDArray[np.bool_], pa.RecordBatch]:
        """Return which rows of `batch` go, and why, as rows of `DROPPED`."""
        place, found = _places(self.listing[0], batch)
        found &= (full := not_empty(batch.column("text")))
        goes = found | ~full
        verdicts = self.listing[1].take(pa.array(place[goes], mask=~found[goes])).combine_chunks()
        columns = {name: verdicts.column(name).combine_chunks() for name in VERDICTS.names}
        there, near = columns["because"].is_valid(), columns["shared"].is_valid()
        one = pc.if_else(there, pa.scalar(1, pa.int64()), None)
        reasons = pc.if_else(there, _either(near, "near duplicate", "equal text"), EMPTY_TEXT)
        given = {
            "id": batch.column("id").filter(pa.array(goes)),
            "transform": pa.repeat(pa.scalar(STEP, pa.large_string()), len(verdicts)),
            "reason": reasons,
            "measure": pc.if_else(there, pa.scalar(self.measure, pa.large_string()), None),
            "numerator": pc.coalesce(columns["shared"], one),
            "denominator": pc.coalesce(columns["whole"], one),
            "threshold": pc.if_else(there, _either(near, self.threshold, "< 1"), None),
            "evidence": pc.if_else(there, self._evidence(columns), None),
        }
        return goes, pa.RecordBatch.from_arrays([given[name] for name in DROPPED.names], schema=DROPPED)

    def counted(self, batch: pa.RecordBatch, column: str | None) -> pa.RecordBatch:
        """Return `batch` with the `column` that counts what goes because of each document."""
        if column is None:
            return batch
        place, found = _places(self.survivors[0], batch)
        counts = np.zeros(len(batch), np.int64)
        counts[found] = self.survivors[1][place[found]]
        return batch.append_column(pa.field(column, pa.int64()), pa.array(counts))

    def _evidence(self, columns: Mapping[str, pa.Array]) -> pa.LargeStringArray:
        """Return canonical JSON, put together by column: band, equal text, reference, survivor."""
        return _joined(
            "{",
            _or_nothing(_joined('"band":', columns["band"].cast(pa.large_string()), ",")),
            _or_nothing(_joined('"equal_to":"', _hex(columns["equal_to"]), '",')),
            _or_nothing(self._references(columns["because"])),
            _joined('"survivor":"', _hex(columns["survivor"]), '"}'),
        )

    def _references(self, because: pa.Array) -> pa.LargeStringArray:
        """Return what the evidence says of references, null where the survivor is in none."""
        if self.reference_of is None:
            return pa.nulls(len(because), pa.large_string())
        frozen = [None if ref is None else self.reference_of(ref) for ref in because.to_pylist()]
        return pa.array([None if f is None else f'"reference":{canonical_json(f)},' for f in frozen], pa.large_string())


def _either(choice: pa.BooleanArray, yes: str, no: str) -> pa.LargeStringArray:
    return pc.if_else(choice, pa.scalar(yes, pa.large_string()), pa.scalar(no, pa.large_string()))


def _joined(*pieces: str | pa.LargeStringArray) -> pa.LargeStringArray:
    given = [pa.scalar(piece, pa.large_string()) if isinstance(piece, str) else piece for piece in pieces]
    return pc.binary_join_element_wise(*given, pa.scalar("", pa.large_string()))


def _or_nothing(texts: pa.LargeStringArray) -> pa.LargeStringArray:
    return pc.fill_null(texts, "")


def _hex(ids: pa.FixedSizeBinaryArray) -> pa.LargeStringArray:
    """Return 16 bytes each as hex digits; nulls stay."""
    if not len(ids):
        return pa.array([], pa.large_string())
    digits = pa.py_buffer(_bytes(pc.fill_null(ids, bytes(16))).tobytes().hex().encode())
    bounds = pa.py_buffer(np.arange(0, 32 * len(ids) + 1, 32, dtype=np.int64))
    found = pa.LargeStringArray.from_buffers(len(ids), bounds, digits)
    return pc.if_else(ids.is_valid(), found, None)


def _places(ids: npt.NDArray[np.bytes_], batch: pa.RecordBatch) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return where the documents of `batch` stand in `ids`, which are sorted, and which are there."""
    mine = _bytes(batch.column("id"))
    place = np.searchsorted(ids, mine)
    found = place < len(ids)
    found[found] = ids[place[found]] == mine[found]
    return place, found


@dataclass(frozen=True, slots=True)
class TagListed:
    """Keeps all documents and says in the column `duplicate` why some would go."""

    told: Told
    count: str | None
    schema: pa.Schema
    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of kept rows."""
        return self.schema

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Tag what is listed."""
        tags: list[str | None] = [None] * len(batch)
        goes, why = self.told.dropped(batch)
        for row, verdict in zip(
            np.flatnonzero(goes).tolist(), why.drop_columns(["id", "transform"]).to_pylist(), strict=True
        ):
            evidence = json.loads(verdict.pop("evidence") or "{}")
            tags[row] = canonical_json({**{name: v for name, v in verdict.items() if v is not None}, **evidence})
        tagged = batch.append_column(DUPLICATE, pa.array(tags, DUPLICATE.type))
        return kept(fit_to(self.told.counted(tagged, self.count), self.schema))


@dataclass(frozen=True, slots=True)
class DropListed:
    """Drops the documents that are listed, and empty texts; gives rows the columns of `schema`."""

    told: Told
    count: str | None
    schema: pa.Schema
    name: ClassVar[str] = STEP
    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of kept rows."""
        return self.schema

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Drop what is listed."""
        goes, dropped = self.told.dropped(batch)
        stay = self.told.counted(batch.filter(pa.array(~goes)), self.count)
        return kept(fit_to(stay, self.schema), dropped=dropped)

    def sampled_besides(self, batch: pa.RecordBatch, outcome: Outcome) -> dict[str, pa.RecordBatch]:
        """Return what is sampled besides what is dropped: the two sides of near duplicates."""
        return self.told.shown.sampled(batch, outcome.dropped, STEP)
