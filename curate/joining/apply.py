"""The documents with the columns that belong to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

import pyarrow as pa
import pyarrow.compute as pc

from curate.accounting.accountant import ConservationError, Step
from curate.joining.plan import ID_FIELD, PLACE, SHARD_BITS, Plan
from curate.recipes.schemas import fit_to
from curate.regroup import Regrouped
from curate.running.documents import DocumentJob, ShardUnit
from curate.running.jobs import Item, Resources
from curate.store import Store
from transforms.outcome import Outcome, kept
from transforms.schema import ID

STEP: Final = "join"


@dataclass(frozen=True, slots=True)
class JoinJob:
    """Per shard of the documents: the documents with their columns."""

    plan: Plan
    matched: Regrouped
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
        """Publish shard `item.unit`, and return how many documents it has."""
        beside = Beside(lambda: self._rows(item.unit), self.plan.matched_exchange.schema)
        step = Step(STEP, TakeColumns(beside, self.plan.schema))
        job = DocumentJob(self.store, self.name, None, (step,), self.plan.schema, self.forbids)
        return job.run(Item(item.key, item.label, ShardUnit(self.plan.left[item.unit])))

    def _rows(self, shard: int) -> Iterator[pa.RecordBatch]:
        for batch in self.matched.batches(shard % self.plan.shard_partitions):
            mine = batch.column(PLACE.name).to_numpy() >> SHARD_BITS == shard
            if mine.any():
                yield batch.filter(pa.array(mine))


class Beside:
    """A stream with a row for each document of a shard, in order, read beside the shard.

    `rows` begins it; it is begun again where the shard is (after documents were put into quarantine).
    """

    def __init__(self, rows: Callable[[], Iterator[pa.RecordBatch]], schema: pa.Schema) -> None:
        self._rows, self._schema = rows, schema
        self._stream: Iterator[pa.RecordBatch] = iter(())
        self._left: list[pa.RecordBatch] = []

    def of(self, ids: pa.Array) -> pa.RecordBatch:
        """Return the rows of these documents, in their order; the ids come in the order of the shard.

        Raises:
            ConservationError: there is no row for one of them.
        """
        found = self._window(ids)
        if found is None:
            self._stream, self._left = self._rows(), []
            found = self._window(ids)
        if found is None:
            raise ConservationError(
                f"document {ids[0].as_py().hex()} or one after it is not among those that were joined"
            )
        return found

    def _window(self, ids: pa.Array) -> pa.RecordBatch | None:
        """Return the rows of `ids`, or None when the stream ends before; what lies before them is forgotten."""
        window: list[pa.RecordBatch] = []
        for batch in self._batches():
            mine = pc.index_in(pa.array([ids[0].as_py(), ids[-1].as_py()], ID), batch.column(ID_FIELD.name)).to_pylist()
            if not window and mine[0] is None:
                continue
            window.append(batch)
            if mine[1] is not None:
                self._left = [batch.slice(mine[1] + 1)]
                rows = pa.concat_batches(window)
                place = pc.index_in(ids, rows.column(ID_FIELD.name))
                return None if place.null_count else rows.take(place)
        return None

    def _batches(self) -> Iterator[pa.RecordBatch]:
        """Yield what is left of the last batch, then the batches that follow."""
        left, self._left = self._left, []
        yield from left
        yield from self._stream


@dataclass(frozen=True, slots=True)
class TakeColumns:
    """Keeps every document and gives it its columns; a document without a partner gets nulls."""

    beside: Beside
    schema: pa.Schema
    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of kept rows."""
        return self.schema

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Keep every row."""
        if not batch.num_rows:
            return kept(fit_to(batch, self.schema))
        rows = self.beside.of(batch.column("id"))
        there = set(batch.schema.names)
        columns = [(batch if f.name in there else rows).column(f.name) for f in self.schema]
        return kept(pa.RecordBatch.from_arrays(columns, schema=self.schema))
