"""Documents regrouped so that those of one group follow each other in their order, and read in whole groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from blake3 import blake3

from curate.digests import digest_json
from curate.exchange import FORMAT, Limits, partition_of
from curate.parts import BATCH_BYTES
from curate.readers.chunks import Chunk
from curate.recipes.schemas import fit_to
from curate.regroup import Exchange, Regrouped, memory_of
from curate.running.documents import read_shard
from curate.running.jobs import Item, Resources, publish_files
from curate.store import Store
from transforms.duplicates import leading_bits
from transforms.order_key import encode_column, order_keys
from transforms.schema import ID

GROUP = pa.field("*group", ID, nullable=False)
ORDER = pa.field("*order", pa.large_binary(), nullable=False)

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Plan:
    """What every task of one grouping knows: the shards in order, and the configuration."""

    store: Store
    key: str
    shards: tuple[str, ...]
    sources: tuple[str, ...]
    by: str
    order: tuple[str, ...]
    schema: pa.Schema
    partitions: int
    limits: Limits

    @property
    def rows(self) -> Exchange:
        """The documents by group."""
        schema = pa.schema([GROUP, ORDER, *self.schema])
        key, order = self.inner_key("exchange", "rows"), (GROUP.name, ORDER.name)
        return Exchange(self.store, key, "group", "rows.exchange", schema, order, self.partitions, self.limits)

    def task_key(self, unit: int) -> str:
        """Return the key of an output shard."""
        return digest_json({"operation": "group apply", "stage": self.key, "unit": unit})

    def inner_key(self, task: str, unit: object) -> str:
        """Return the shard key of one task in between."""
        return digest_json({"operation": f"group {task}", "stage": self.key, "unit": unit, "exchange": FORMAT})

    def groups(self, batch: pa.RecordBatch) -> pa.Array:
        """Return 16 bytes that name the group of each document: its source and value; without a value, its id."""
        values = batch.column(self.by)
        named = encode_column(values, name=self.by).to_pylist()
        alone = [b"\0" + identity for identity in batch.column("id").to_pylist()]
        there = values.is_valid().to_pylist()
        sources = batch.column("source").to_pylist()
        digests = [
            blake3(source.encode() + b"\0" + (b"\1" + name if valid else one)).digest(16)
            for source, name, one, valid in zip(sources, named, alone, there, strict=True)
        ]
        return pa.array(digests, ID)


@dataclass(frozen=True, slots=True)
class RegroupJob:
    """Per shard: its documents, by group."""

    plan: Plan
    name: str = "group: regroup"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return Resources(memory=memory_of(self.plan.limits).memory + 4 * BATCH_BYTES)

    def run(self, item: Item) -> int:
        """Publish the documents of shard `item.unit`, and return how many there are."""
        plan, count, exchange = self.plan, 0, self.plan.rows
        with exchange.collect() as rows:
            for chunk in read_shard(self.store, plan.shards[item.unit]):
                batch = fit_to(chunk.rows, plan.schema)
                groups, orders = plan.groups(batch), order_keys(batch, plan.order, plan.sources)
                made = pa.RecordBatch.from_arrays([groups, orders, *batch.columns], schema=exchange.schema)
                rows.add(made, partition_of(leading_bits(groups), plan.partitions))
                count += batch.num_rows
            publish_files(self.store, item, self.name, {exchange.file: rows.finish()}, {})
        return count


@dataclass(frozen=True, slots=True)
class GroupUnit:
    """A partition of regrouped documents as the input of a task, in batches of whole groups.

    A column `run` tells the documents apart that become one: those of a group whose earlier texts have less than
    `largest` bytes, then those below twice as many, and so on.
    """

    regrouped: Regrouped
    partition: int
    largest: int
    run: str

    def described(self) -> dict[str, int]:
        """Return the unit as it stands in a receipt."""
        return {"partition": self.partition}

    def chunks(self) -> Iterator[Chunk]:
        """Yield the documents, all of one run in one chunk."""
        first = 0
        for rows in self._whole_runs():
            ordinals = np.arange(first, first + rows.num_rows, dtype=np.int64)
            yield Chunk(rows, ordinals, [], {})
            first += rows.num_rows

    def _whole_runs(self) -> Iterator[pa.RecordBatch]:
        held: list[pa.RecordBatch] = []
        size = 0
        for rows in self._with_runs():
            runs = rows.column(self.run).to_numpy()
            if held and size >= BATCH_BYTES:
                last = held[-1].column(self.run)[-1].as_py()
                stop = int(np.searchsorted(runs, last, side="right"))
                held.append(rows.slice(0, stop))
                if stop < rows.num_rows:
                    yield pa.concat_batches(held)
                    held, size = [rows.slice(stop)], rows.slice(stop).nbytes
                continue
            held.append(rows)
            size += rows.nbytes
        if held:
            yield pa.concat_batches(held)

    def _with_runs(self) -> Iterator[pa.RecordBatch]:
        """Yield the documents with the number of their run in place of what ordered them."""
        group, held, part, run = b"", 0, 0, -1  # of the last document: its group, bytes of that so far, part, run
        for rows in self.regrouped.batches(self.partition):
            groups, sizes = rows.column(GROUP.name), pc.binary_length(rows.column("text")).to_numpy().astype(np.int64)
            new = np.ones(rows.num_rows, np.bool_)
            new[1:] = pc.not_equal(groups[1:], groups[:-1]).to_numpy(zero_copy_only=False)
            new[0] = groups[0].as_py() != group
            before = _before(sizes, new, held)
            parts = before // self.largest
            runs = run + np.cumsum(new | (parts != np.concatenate([[part], parts[:-1]])))
            group, held = groups[-1].as_py(), int(before[-1] + sizes[-1])
            part, run = int(parts[-1]), int(runs[-1])
            fields = [pa.field(self.run, pa.int64(), nullable=False), *list(rows.schema)[2:]]
            yield pa.RecordBatch.from_arrays([pa.array(runs), *rows.columns[2:]], schema=pa.schema(fields))


def _before(sizes: Integers, new: npt.NDArray[np.bool_], carried: int) -> Integers:
    """Return the bytes of the texts of the same group before each one; the group of the first had `carried`."""
    total = np.cumsum(sizes) - sizes
    starts = np.maximum.accumulate(np.where(new, total, 0))
    return np.asarray(total - starts + np.where(np.maximum.accumulate(new), 0, carried), np.int64)
