"""What the tasks of one deduplication share: how documents are referred to, the rows between tasks, partitions.

A document is referred to by its shard's ordinal and its row. Rows between tasks are regrouped by `curate.regroup`; the
schemas here say what they hold, and the key columns in what order a reduce task sees them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from curate.accounting.measured import MEASURES_FILE, StoredMeasures
from curate.accounting.measures import Measures, measure
from curate.digests import digest_json
from curate.exchange import FORMAT, Limits
from curate.parts import BATCH_BYTES, checked_file, file_columns
from curate.receipts import read_receipt
from curate.recipes.reference import Frozen
from curate.regroup import Cursor, Exchange, Regrouped, memory_of
from curate.running.jobs import Resources
from curate.store import Store
from transforms.minhash import MinHash
from transforms.order_key import encode_column, join_keys, order_keys
from transforms.schema import ID
from transforms.templates import TemplateRule

Refs = npt.NDArray[np.int64]


def _needed(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


_REF: Final = _needed("ref", pa.int64())

DIGESTS: Final = pa.schema(
    [_needed("digest", ID), _needed("group", pa.large_binary()), _needed("order", pa.large_binary()), _REF]
)
"""Per text: its digest, the value of `within=`, keep order."""

GONE: Final = pa.schema([_REF])
"""Texts that equal one that stays."""

KEEPERS: Final = pa.schema([_needed("keeper", pa.int64()), _REF, _needed("keeper_id", ID)])
"""Texts that equal one that stays, and that one."""

BANDS: Final = pa.schema([_needed(name, pa.uint64()) for name in ("bucket", "split", "order")] + [_REF])
PAIRS: Final = pa.schema([_needed(name, pa.int64()) for name in ("a", "b", "owner")])
"""Candidate pairs, a < b. Pairs of one cluster have mostly one owner, a document of it: they are verified together."""

INSIDE: Final = pa.schema([_needed(name, pa.int64()) for name in ("a", "b")])
"""Candidate pairs of documents of one shard."""

WANTED: Final = pa.schema([_REF, _needed("partition", pa.int64())])
"""Documents whose shingle sets a partition of pairs needs."""

SETS: Final = pa.schema([_REF, _needed("shingles", pa.large_list(pa.uint64()))])
CANDIDATES: Final = pa.schema([_REF, _needed("id", ID), _needed("order", pa.large_binary())])
SIMILARITY: Final = ("shared", "whole", "band")
"""Similarity as two integers, and the first band in which both documents agree."""

EDGES: Final = pa.schema([_needed(name, pa.int64()) for name in ("a", "b", *SIMILARITY)])
LINKS: Final = pa.schema([_needed(name, pa.int64()) for name in ("a", "b")])
"""Links with the components of edges."""

ROOTED_EDGES: Final = pa.schema([_needed("root", pa.int64()), *EDGES])
ROOTED_ORDERS: Final = pa.schema([_needed("root", pa.int64()), *CANDIDATES])
"""Edges and documents that have one, with the least document of their component."""

NEAR: Final = pa.schema(
    [_REF, _needed("keeper", pa.int64()), _needed("keeper_id", ID)] + [_needed(name, pa.int64()) for name in SIMILARITY]
)
"""Near duplicates that go, and the survivor."""

VERDICTS: Final = pa.schema(
    [
        _REF,
        _needed("because", pa.int64()),
        _needed("survivor", ID),
        pa.field("equal_to", ID),  # the near duplicate that goes too and has this text
        *(pa.field(name, pa.int64()) for name in SIMILARITY),  # null: the survivor has this text
    ]
)
"""Documents that go."""

BECAUSE: Final = pa.schema([_needed("because", pa.int64())])
"""Survivors, one row for each document that goes because of them."""

TEXTS: Final = pa.schema([_needed("digest", ID)])
"""The text digest of each row of a shard."""

SPAN: Final = pa.schema([_needed("lowest", pa.large_binary()), _needed("highest", pa.large_binary())])
"""The first and the last keep order of some documents."""

ROW_BYTES: Final = 128  # of a row of DIGESTS, for the number of partitions
BAND_BYTES: Final = 32
EDGE_BYTES: Final = 48
SHARD_BITS: Final = 32

MAX_COMPONENT_EDGES: Final = 50_000_000
"""Edges that one task decides on: 11 GB. More are grouped by component first."""

HELD_EDGES: Final = 1 << 23
"""Edges that a task which decides on components holds at a time; changes no output."""


def shards_of(refs: Refs) -> Refs:
    """Return the ordinals of the shards that `refs` lie in."""
    return refs >> SHARD_BITS


_EARLIER: Final = pa.scalar(b"\0", pa.large_binary())
_LATER: Final = pa.scalar(b"\1", pa.large_binary())


@dataclass(frozen=True, slots=True)
class Plan:
    """What every task of one deduplication knows: the shards in order, and the configuration.

    Shards of references (`frozen`) are numbered after those of documents; `rows` counts all. Their documents come first
    in keep order and no two of them are compared, so they always stay; they never come out.
    """

    store: Store
    key: str
    shards: tuple[str, ...]
    rows: tuple[int, ...]
    sources: tuple[str, ...]
    prefer: tuple[str, ...]
    within: str | None
    method: MinHash | None
    schema: pa.Schema  # of the output
    limits: Limits
    keep: int = 1
    action: str = "drop"
    count: str | None = None
    max_component_edges: int = MAX_COMPONENT_EDGES
    held_edges: int = HELD_EDGES
    frozen: tuple[Frozen, ...] = ()
    without_templates: TemplateRule | None = None
    places: tuple[str, ...] = ()
    """Of each shard of documents, then of references, the source, or what stands for several: see `shown.between`."""

    @property
    def units(self) -> int:
        """How many shards are read."""
        return len(self.shards) + len(self.frozen)

    def are_documents(self, refs: Refs) -> npt.NDArray[np.bool_]:
        """Return which of `refs` are no documents of a reference."""
        return np.asarray(shards_of(refs) < len(self.shards))

    def reference_of(self, ref: int) -> str | None:
        """Return what the reference is called that the document `ref` is in, None for one that is in none."""
        shard = ref >> SHARD_BITS
        return None if shard < len(self.shards) else self.frozen[shard - len(self.shards)].name

    @property
    def minhash(self) -> MinHash:
        """The method.

        Raises:
            TypeError: there is none.
        """
        if self.method is None:
            raise TypeError("near duplicates need a method")
        return self.method

    @property
    def resources(self) -> Resources:
        """What a task needs: buffers of exchange files, and texts with their shingles."""
        return Resources(memory=memory_of(self.limits).memory + 8 * BATCH_BYTES)

    @property
    def digest_partitions(self) -> int:
        """Partitions of the exchange by text digest."""
        return self.limits.partitions(sum(self.rows) * ROW_BYTES)

    @property
    def bucket_partitions(self) -> int:
        """Partitions of the exchanges by bucket, by pair and by owner."""
        return self.limits.partitions(sum(self.rows) * BAND_BYTES * (self.method.bands if self.method else 1))

    def root_partitions(self, edges: int) -> int:
        """Partitions of the exchanges by component of so many edges."""
        return self.limits.partitions(edges * EDGE_BYTES)

    @property
    def shard_partitions(self) -> int:
        """Partitions of the exchanges by shard: a task reads one and takes what is its own."""
        return max(1, min(self.units, self.limits.most_partitions))

    def by_shard(self, refs: Refs) -> Refs:
        """Return the partition of each of `refs` in the exchanges by shard."""
        return shards_of(refs) % self.shard_partitions

    def task_key(self, task: str, unit: object) -> str:
        """Return the key of an output shard."""
        return digest_json({"operation": f"deduplicate {task}", "stage": self.key, "unit": unit})

    def inner_key(self, task: str, unit: object) -> str:
        """Return the shard key of one task in between."""
        return digest_json({"operation": f"deduplicate {task}", "stage": self.key, "unit": unit, "exchange": FORMAT})

    def exchange(self, what: str, schema: pa.Schema, order: tuple[str, ...], partitions: int) -> Exchange:
        """Return the regrouping of the rows `what` of all tasks of one kind."""
        key, name = self.inner_key("exchange", what), f"deduplicate: {what}"
        return Exchange(self.store, key, name, f"{what}.exchange", schema, order, partitions, self.limits)

    def file(self, task: str, unit: object, name: str) -> Path:
        """Return the path of a file that a task in between published, checked.

        Raises:
            StoreError: it is missing or damaged.
        """
        return checked_file(self.store, self.inner_key(task, unit), name)

    def place(self, shard: int) -> tuple[Store, str]:
        """Return the store and the key of an input shard."""
        if shard < len(self.shards):
            return self.store, self.shards[shard]
        frozen = self.frozen[shard - len(self.shards)]
        return frozen.store, frozen.key

    def part(self, shard: int) -> Path:
        """Return where the rows of an input shard lie, checked.

        Raises:
            StoreError: they are missing or damaged.
        """
        return checked_file(*self.place(shard), "part.parquet")

    def batches(
        self, shard: int, *columns: str | None, part: Path | None = None
    ) -> Iterator[tuple[pa.RecordBatch, Refs]]:
        """Yield `columns` of an input shard (None is none) with the refs of the rows; `part` if that is known."""
        wanted = [str(name) for name in dict.fromkeys(columns) if name in self.schema.names]
        first = shard << SHARD_BITS
        for batch in file_columns(part or self.part(shard), wanted, self.schema):
            yield batch, np.arange(first, first + batch.num_rows, dtype=np.int64)
            first += batch.num_rows

    def ordered(self, shard: int) -> Iterator[tuple[pa.RecordBatch, Refs]]:
        """Yield what keep order and groups need of an input shard, with the refs of the rows."""
        return self.batches(shard, *self._ordering(shard))

    def _ordering(self, shard: int) -> list[str | None]:
        preferred = [name.removeprefix("-") for name in self.prefer] if shard < len(self.shards) else []
        return ["id", "text", "source", *preferred, self.within]

    def measured(self, shard: int) -> Iterator[tuple[pa.RecordBatch, Refs, Measures]]:
        """Yield what `ordered` does with the measures of the texts: without these where their measures are stored."""
        store, key = self.place(shard)
        receipt = read_receipt(store, key)
        if receipt is None or MEASURES_FILE not in receipt.files:
            yield from ((batch, refs, measure(batch)) for batch, refs in self.ordered(shard))
            return
        names = [name for name in self._ordering(shard) if name != "text"]
        with StoredMeasures(checked_file(store, key, MEASURES_FILE)) as stored:
            for batch, refs in self.batches(shard, *names):
                measures = stored.take(len(refs))
                if self.needs_length:
                    batch = batch.append_column("length", pa.array(measures.characters))
                yield batch, refs, measures

    @property
    def needs_length(self) -> bool:
        """Whether keep order counts the code points of texts."""
        return "length" in (name.removeprefix("-") for name in self.prefer) and "length" not in self.schema.names

    def orders(self, shard: int, batch: pa.RecordBatch, digests: pa.Array | None = None) -> pa.LargeBinaryArray:
        """Return the keep order of the documents of `shard` in `batch` among documents, or among frozen ones."""
        prefer = self.prefer if shard < len(self.shards) else ()
        return order_keys(batch, prefer, self.sources, digests)

    def digests(self, shard: int) -> pa.FixedSizeBinaryArray:
        """Return the text digest of each row of an input shard, as `exact.DigestsJob` found them."""
        table = pq.read_table(self.file("digests", shard, "texts.parquet"), schema=TEXTS)
        return table.column("digest").combine_chunks()

    def sided(self, shard: int, orders: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
        """Return keep orders among all: those of references come first."""
        if not self.frozen:
            return orders
        return join_keys([_LATER if shard < len(self.shards) else _EARLIER, orders])

    def groups(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the column of `within=`, encoded exactly; all alike when all documents are compared with all."""
        if self.within is None:
            return pa.array([b""] * batch.num_rows, pa.large_binary())
        return encode_column(batch.column(self.within), name=self.within)


def edges_files(plan: Plan) -> list[tuple[str, int]]:
    """Return the tasks, and units of them, that publish edges: of pairs within a shard, and of all others."""
    inside, across = range(plan.units), range(plan.bucket_partitions)
    return [("shingles", shard) for shard in inside] + [("verify", partition) for partition in across]


def of_shard(plan: Plan, regrouped: Regrouped, shard: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows about the documents of `shard`, in their order."""
    for batch in regrouped.batches(shard % plan.shard_partitions):
        mine = shards_of(batch.column(regrouped.exchange.order[0]).to_numpy()) == shard
        if mine.any():
            yield batch.filter(pa.array(mine))


def cursor_of(plan: Plan, regrouped: Regrouped, shard: int) -> Cursor:
    """Return a cursor over the rows about the documents of `shard`."""
    return Cursor(of_shard(plan, regrouped, shard), regrouped.exchange.order[0], regrouped.exchange.schema)


def not_empty(texts: pa.Array) -> npt.NDArray[np.bool_]:
    """Return which texts have any bytes."""
    return np.asarray(pc.greater(pc.binary_length(texts), 0).to_numpy(zero_copy_only=False), np.bool_)
