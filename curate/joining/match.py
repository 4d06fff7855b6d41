"""Documents and the rows that are joined, regrouped by id: which belongs to which."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curate.accounting.accountant import ConservationError
from curate.exchange import partition_of
from curate.joining.plan import ID_FIELD, LEFT, MATCHED, PLACE, SHARD_BITS, Plan
from curate.parts import part_batches
from curate.regroup import Cursor, Regrouped
from curate.running.jobs import Item, Resources, publish_files
from curate.store import Store
from transforms.duplicates import leading_bits

Integers = npt.NDArray[np.int64]


class TwoRowsError(ConservationError):
    """Two rows of the dataset that is joined have one id: which of them would a document get?"""


def _by_id(ids: pa.Array, partitions: int) -> Integers:
    return partition_of(leading_bits(ids), partitions)


def _places(shard: int, first: int, rows: int) -> pa.Array:
    start = (shard << SHARD_BITS) + first
    return pa.array(np.arange(start, start + rows, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class LeftJob:
    """Per shard of the documents: their ids, by id."""

    plan: Plan
    name: str = "join: documents"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return self.plan.resources

    def run(self, item: Item) -> int:
        """Publish the ids of shard `item.unit`, and return how many there are."""
        plan, rows = self.plan, 0
        with plan.left_exchange.collect() as found:
            for batch in part_batches(self.store, plan.left[item.unit], ["id"], plan.left_schema):
                columns = [batch.column("id"), _places(item.unit, rows, batch.num_rows)]
                found.add(pa.RecordBatch.from_arrays(columns, schema=LEFT), _by_id(columns[0], plan.partitions))
                rows += batch.num_rows
            publish_files(self.store, item, self.name, {"left.exchange": found.finish()}, {})
        return rows


@dataclass(frozen=True, slots=True)
class RightJob:
    """Per shard of what is joined: ids and wanted columns, by id."""

    plan: Plan
    name: str = "join: columns"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return self.plan.resources

    def run(self, item: Item) -> int:
        """Publish the rows of shard `item.unit`, and return how many there are."""
        plan, rows = self.plan, 0
        theirs = [name for _, name in plan.columns]
        wanted = list(dict.fromkeys(["id", *theirs]))
        with plan.right_exchange.collect() as found:
            for batch in part_batches(self.store, plan.right[item.unit], wanted, plan.right_schema):
                ids, places = batch.column("id"), _places(item.unit, rows, batch.num_rows)
                columns = [ids, places, *(batch.column(name) for name in theirs)]
                made = pa.RecordBatch.from_arrays(columns, schema=plan.right_exchange.schema)
                found.add(made, _by_id(ids, plan.partitions))
                rows += batch.num_rows
            publish_files(self.store, item, self.name, {"right.exchange": found.finish()}, {})
        return rows


@dataclass(frozen=True, slots=True)
class MatchJob:
    """Per partition of ids: what belongs to each document, by the document's shard."""

    plan: Plan
    left: Regrouped
    right: Regrouped
    name: str = "join: match"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs: buffers of two streams that are read, and of one that is written."""
        return Resources(memory=2 * self.plan.resources.memory)

    def run(self, item: Item) -> int:
        """Publish what belongs to the documents of partition `item.unit`, and return how many there are.

        Raises:
            TwoRowsError: two rows on the right have one id.
        """
        plan, rows = self.plan, 0
        counts = dict.fromkeys(("matched", "unmatched", "unused"), 0)
        right = _Right(Cursor(self.right.batches(item.unit), ID_FIELD.name, plan.right_exchange.schema), self._refuse)
        with plan.matched_exchange.collect() as found:
            for batch in self.left.batches(item.unit):
                matched = self._matched(batch, right.up_to(batch.column(ID_FIELD.name)[-1].as_py()))
                shards = matched.column(PLACE.name).to_numpy() >> SHARD_BITS
                found.add(matched, shards % plan.shard_partitions)
                count = matched.column(MATCHED.name).true_count
                counts["matched"] += count
                counts["unmatched"] += batch.num_rows - count
                rows += batch.num_rows
            right.up_to(b"\xff" * 16)
            counts["unused"] = right.rows - counts["matched"]
            publish_files(self.store, item, self.name, {"matched.exchange": found.finish()}, {"joined": counts})
        return rows

    def _matched(self, left: pa.RecordBatch, right: pa.RecordBatch) -> pa.RecordBatch:
        ids = left.column(ID_FIELD.name)
        place = pc.index_in(ids, right.column(ID_FIELD.name))
        taken = [right.column(field.name).take(place) for field in self.plan.taken]
        columns = [left.column(PLACE.name), ids, place.is_valid(), *taken]
        return pa.RecordBatch.from_arrays(columns, schema=self.plan.matched_exchange.schema)

    def _refuse(self, first: int, second: int, identity: bytes) -> None:
        rows = [f"row {place & ((1 << SHARD_BITS) - 1):,} of shard {place >> SHARD_BITS}" for place in (first, second)]
        raise TwoRowsError(
            f"{rows[0]} and {rows[1]} of {self.plan.other!r} both have the id {identity.hex()}: a document can get the "
            "columns of one only. Drop one of them before the join, as with deduplicate() or where()"
        )


@dataclass(slots=True)
class _Right:
    """The rows on the right, read alongside the documents; `refuse` is told of two with one id."""

    cursor: Cursor
    refuse: Callable[[int, int, bytes], None]
    rows: int = 0

    def up_to(self, identity: bytes) -> pa.RecordBatch:
        """Return the rows up to `identity` that were not returned before: all rows of one id come together."""
        rows = self.cursor.below(identity, up_to=True)
        self.rows += rows.num_rows
        ids = rows.column(ID_FIELD.name)
        twice = np.flatnonzero(pc.equal(ids[1:], ids[:-1]))
        if len(twice):
            first, second = rows.slice(int(twice[0]), 2).select([PLACE.name, ID_FIELD.name]).to_pylist()
            self.refuse(first[PLACE.name], second[PLACE.name], first[ID_FIELD.name])
        return rows
