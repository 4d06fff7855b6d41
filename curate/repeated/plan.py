"""What the tasks of one operation on repeats share: shards of documents and of the reference, and rows between tasks.

A document is referred to by its shard's ordinal and its row; the shards of the reference follow those of the documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curate.digests import digest_json
from curate.exchange import FORMAT, Limits
from curate.parts import BATCH_BYTES, part_batches
from curate.recipes.reference import Frozen
from curate.regroup import Cursor, Exchange, Regrouped, memory_of
from curate.running.jobs import Resources
from curate.store import Store
from transforms.order_key import order_keys
from transforms.schema import ID

Refs = npt.NDArray[np.int64]


def _needed(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


_REF: Final = _needed("ref", pa.int64())
_PLACE: Final = _needed("place", pa.int64())
_DIGEST: Final = _needed("digest", ID)
_ORDER: Final = _needed("order", pa.large_binary())

PARTS: Final = pa.schema([_DIGEST, _ORDER, _PLACE, _REF])
"""Lines or paragraphs: digest, keep order of their document, number in it."""

PARTS_GONE: Final = pa.schema([_REF, _PLACE])

ANCHORS: Final = pa.schema([_needed("hash", pa.uint64()), _REF, _PLACE])
"""Anchors of spans: `place` is the number of their first word in the batch that the shard is read in."""

SHARED: Final = pa.schema([_REF, _PLACE])

WINDOWS: Final = pa.schema([_DIGEST, _ORDER, _PLACE, _needed("length", pa.int64()), _REF])
"""Windows of words: `place` and `length` in bytes of their text."""

SPANS_GONE: Final = pa.schema([_REF, _needed("start", pa.int64()), _needed("end", pa.int64())])

KEYED: Final = pa.schema([_DIGEST, _ORDER, _REF])
"""What documents are compared by."""

EQUAL: Final = pa.schema([_REF, _needed("survivor", ID), pa.field("reference", pa.large_string())])
"""Documents that go, who stays, and of which reference that one is, if of one."""

SHARD_BITS: Final = 32
ROWS_AT_ONCE: Final = 1 << 16
"""Rows that are handed to an exchange together."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What every task knows: the shards of documents, those of references after them, and the keep order.

    `size` is about how many bytes of text there are.
    """

    store: Store
    key: str
    shards: tuple[str, ...]
    frozen: tuple[Frozen, ...]
    sources: tuple[str, ...]
    prefer: tuple[str, ...]
    schema: pa.Schema
    size: int
    limits: Limits

    @property
    def units(self) -> int:
        """How many shards are read."""
        return len(self.shards) + len(self.frozen)

    @property
    def resources(self) -> Resources:
        """What a task needs: buffers of exchange files, and a batch of texts with what is found in it."""
        return Resources(memory=memory_of(self.limits).memory + 16 * BATCH_BYTES)

    @property
    def partitions(self) -> int:
        """Partitions of the exchanges by digest or hash."""
        return self.limits.partitions(self.size)

    @property
    def shard_partitions(self) -> int:
        """Partitions of the exchanges by shard: a task reads one and takes what is its own."""
        return max(1, min(self.units, self.limits.most_partitions))

    def by_shard(self, refs: Refs) -> Refs:
        """Return the partition of each of `refs` in the exchanges by shard."""
        return (refs >> SHARD_BITS) % self.shard_partitions

    def are_documents(self, refs: Refs) -> npt.NDArray[np.bool_]:
        """Return which of `refs` are no documents of a reference."""
        return np.asarray(refs >> SHARD_BITS < len(self.shards))

    def references_of(self, refs: Refs) -> pa.LargeStringArray:
        """Return what the references are called that `refs` are in, null for those that are in none."""
        names = pa.array([frozen.name for frozen in self.frozen], pa.large_string())
        place = (refs >> SHARD_BITS) - len(self.shards)
        return names.take(pa.array(place, mask=place < 0))

    def task_key(self, unit: int) -> str:
        """Return the key of an output shard."""
        return digest_json({"operation": "repeats apply", "stage": self.key, "unit": unit})

    def inner_key(self, task: str, unit: object) -> str:
        """Return the shard key of one task in between."""
        return digest_json({"operation": f"repeats {task}", "stage": self.key, "unit": unit, "exchange": FORMAT})

    def exchange(self, what: str, schema: pa.Schema, order: tuple[str, ...], partitions: int) -> Exchange:
        """Return the regrouping of the rows `what` of all tasks of one kind."""
        key, name = self.inner_key("exchange", what), f"repeats: {what}"
        return Exchange(self.store, key, name, f"{what}.exchange", schema, order, partitions, self.limits)

    def batches(self, shard: int, columns: Sequence[str] = ()) -> Iterator[tuple[pa.RecordBatch, Refs, pa.Array]]:
        """Yield ids, texts and `columns` of a shard, with refs and keep order: references come before all.

        The same batches each time, so numbers within a batch can be handed from task to task.
        """
        first = shard << SHARD_BITS
        place = self.frozen[shard - len(self.shards)] if shard >= len(self.shards) else None
        store, key = (self.store, self.shards[shard]) if place is None else (place.store, place.key)
        prefer = () if place is not None else self.prefer
        ordering = [name.removeprefix("-") for name in prefer]
        there = [name for name in ("source", *ordering) if name in self.schema.names]
        for batch in part_batches(store, key, list(dict.fromkeys(["id", "text", *there, *columns])), self.schema):
            refs = np.arange(first, first + batch.num_rows, dtype=np.int64)
            side = pa.scalar(b"\1" if place is None else b"\0", pa.large_binary())
            orders = order_keys(batch, prefer, self.sources)
            yield batch, refs, pc.binary_join_element_wise(side, orders, pa.scalar(b"", pa.large_binary()))
            first += batch.num_rows


def of_shard(plan: Plan, regrouped: Regrouped, shard: int) -> Cursor:
    """Return a cursor over the rows about the documents of `shard`, in their order."""
    return Cursor(_rows(plan, regrouped, shard), "ref", regrouped.exchange.schema)


def _rows(plan: Plan, regrouped: Regrouped, shard: int) -> Iterator[pa.RecordBatch]:
    for batch in regrouped.batches(shard % plan.shard_partitions):
        mine = batch.column("ref").to_numpy() >> SHARD_BITS == shard
        if mine.any():
            yield batch.filter(pa.array(mine))
