"""What stays of a shard: texts without what goes of them, or documents without those that go.

What is known of each document comes beside it as a list; so the steps are functions of a batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curate.readers.chunks import Chunk
from curate.regroup import Regrouped
from curate.repeated.plan import SHARD_BITS, Plan, of_shard
from curate.running.documents import read_shard
from transforms.canonical import canonical_json
from transforms.outcome import Outcome, kept
from transforms.parts import RepeatedParts, cut_parts, find_parts
from transforms.segmentation import text_buffers
from transforms.substrings import RepeatedSpans, Windows, cut_spans

BESIDE: Final = "*"
"""Begins the names of columns that steps are told in; they take them away."""


@dataclass(frozen=True, slots=True)
class ToldUnit:
    """A shard as the input of a task, with what `told` says of each document as columns of lists."""

    plan: Plan
    told: Regrouped
    shard: int

    def described(self) -> dict[str, str]:
        """Return the unit as it stands in a receipt."""
        return {"shard": self.plan.shards[self.shard]}

    def chunks(self) -> Iterator[Chunk]:
        """Yield the documents with what is known of them."""
        cursor, first = of_shard(self.plan, self.told, self.shard), self.shard << SHARD_BITS
        for chunk in read_shard(self.plan.store, self.plan.shards[self.shard]):
            last = first + chunk.rows.num_rows
            mine = cursor.below(last)
            offsets = np.searchsorted(mine.column("ref").to_numpy(), np.arange(first, last + 1)).astype(np.int64)
            rows = _fit(chunk.rows, self.plan.schema)
            for name in mine.schema.names[1:]:
                rows = rows.append_column(
                    BESIDE + name, pa.LargeListArray.from_arrays(pa.array(offsets), mine.column(name))
                )
            yield Chunk(rows, chunk.ordinals, chunk.losses, chunk.counts, measures=chunk.measures)
            first = last


def _fit(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    there = set(batch.schema.names)
    arrays = [batch.column(f.name) if f.name in there else pa.nulls(batch.num_rows, f.type) for f in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def told_lists(batch: pa.RecordBatch, name: str) -> tuple[pa.Array, pa.Array]:
    """Return what is told as `name`, of all documents, and which of them each value is about."""
    column = batch.column(BESIDE + name)
    return column.flatten(), pc.list_parent_indices(column)


@dataclass(frozen=True, slots=True)
class CutParts:
    """Cuts the lines or paragraphs whose numbers are told."""

    parts: RepeatedParts
    schema: pa.Schema
    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of kept rows."""
        return self.schema

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Cut what is told."""
        found = find_parts(batch.column("text"), self.parts)
        places, documents = told_lists(batch, "place")
        goes = np.zeros(len(found.starts), np.bool_)
        goes[found.offsets[documents.to_numpy()] + places.to_numpy()] = True
        return cut_parts(batch.select(self.schema.names), found, goes, self.parts.reason)


@dataclass(frozen=True, slots=True)
class CutSpans:
    """Cuts what the windows cover that are told."""

    spans: RepeatedSpans
    schema: pa.Schema
    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of kept rows."""
        return self.schema

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Cut what is told."""
        data, bounds = text_buffers(batch.column("text"))
        starts, documents = told_lists(batch, "start")
        owners = documents.to_numpy().astype(np.int64)
        ends = told_lists(batch, "end")[0].to_numpy()
        found = Windows(data, owners, bounds[owners] + starts.to_numpy(), bounds[owners] + ends)
        everything = np.ones(len(owners), np.bool_)
        return cut_spans(batch.select(self.schema.names), found, everything, self.spans)


@dataclass(frozen=True, slots=True)
class DropEqualOnes:
    """Drops the documents of which a survivor is told, as `reason`."""

    step: str
    reason: str
    schema: pa.Schema
    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of kept rows."""
        return self.schema

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Drop what is told."""
        survivors, documents = told_lists(batch, "survivor")
        references = told_lists(batch, "reference")[0].to_pylist()
        stays = np.ones(batch.num_rows, np.bool_)
        stays[documents.to_numpy()] = False
        ids = batch.column("id").take(documents).to_pylist()
        dropped = []
        for identity, survivor, reference in zip(ids, survivors.to_pylist(), references, strict=True):
            evidence = {"survivor": survivor.hex(), **({} if reference is None else {"reference": reference})}
            row = {"id": identity, "transform": self.step, "reason": self.reason, "evidence": canonical_json(evidence)}
            dropped.append(row)
        return kept(batch.select(self.schema.names).filter(pa.array(stays)), dropped=dropped)
