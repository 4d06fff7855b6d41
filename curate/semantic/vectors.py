"""Vectors per shard, for the default embedder with the rarity of words over all documents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from curate.running.jobs import Item, Resources, Spooled, publish_files
from curate.semantic.plan import SAMPLED, Clustered, column_of
from curate.store import Store
from curate.writer import write_parquet
from transforms.duplicates import text_digests
from transforms.embedding import (
    BUCKETS,
    Embedder,
    HashedTfidf,
    Rarity,
    Vectors,
    directions,
    document_frequencies,
    rarity_of,
)

FREQUENCIES: Final = pa.schema([pa.field("documents", pa.int64(), nullable=False)])
RARITY: Final = pa.schema(
    [pa.field("weights", pa.large_binary(), nullable=False), pa.field("documents", pa.int64(), nullable=False)]
)


def counts_words(embedder: Embedder) -> bool:
    """Return whether `embedder` wants the rarity of words and has none."""
    return isinstance(embedder, HashedTfidf) and embedder.rarity is None


@dataclass(frozen=True, slots=True)
class FrequenciesJob:
    """Per shard, of references too: in how many documents each bucket of words is."""

    plan: Clustered
    name: str = "semantic: words"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.shards.store

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return self.plan.resources

    def run(self, item: Item) -> int:
        """Publish the counts of shard `item.unit`, and return how many documents it has."""
        counts, documents = np.zeros(BUCKETS, np.int64), 0
        for batch, _, _ in self.plan.shards.batches(item.unit):
            counts += document_frequencies(batch.column("text"))
            documents += batch.num_rows
        with self.store.spool() as path:
            written = write_parquet(path, [pa.record_batch([pa.array(counts)], schema=FREQUENCIES)], FREQUENCIES)
            told = {"semantic": {"documents": documents}}
            publish_files(self.store, item, self.name, {"frequencies.parquet": (path, written.rows)}, told)
        return documents


@dataclass(frozen=True, slots=True)
class RarityJob:
    """Once: how much each bucket of words weighs, of `documents` in all."""

    plan: Clustered
    documents: int
    name: str = "semantic: rarity of words"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.shards.store

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return self.plan.resources

    def run(self, item: Item) -> int:
        """Publish the weights, and return how many shards they are counted in."""
        counts = np.zeros(BUCKETS, np.int64)
        for unit in range(self.plan.shards.units):
            file = self.plan.file("words", unit, "frequencies.parquet")
            counts += pq.read_table(file, schema=FREQUENCIES).column("documents").to_numpy()
        found = rarity_of(counts, self.documents, lightest=1)
        row = pa.RecordBatch.from_pylist([{"weights": found.weights, "documents": self.documents}], RARITY)
        with self.store.spool() as path:
            written = write_parquet(path, [row], RARITY)
            publish_files(self.store, item, self.name, {"rarity.parquet": (path, written.rows)}, {})
        return self.plan.shards.units


@dataclass(frozen=True, slots=True)
class VectorsJob:
    """Per shard, of references too: the vectors of its documents, and those of a sample by the digest of the text."""

    plan: Clustered
    name: str = "semantic: vectors"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.shards.store

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return self.plan.resources

    def run(self, item: Item) -> int:
        """Publish the vectors of shard `item.unit`, and return how many documents it has."""
        plan, counts, sample = self.plan, {"rows": 0, "without_words": 0}, Sample(self.plan)
        with self.store.spool() as path, self.store.spool() as lowest:
            written = write_parquet(path, self._rows(item.unit, counts, sample), plan.vectors)
            sampled = write_parquet(lowest, [sample.rows()], plan.sample)
            files: dict[str, Spooled] = {
                "vectors.parquet": (path, written.rows),
                "sample.parquet": (lowest, sampled.rows),
            }
            publish_files(self.store, item, self.name, files, {"semantic": counts})
        return counts["rows"]

    def _rows(self, unit: int, counts: dict[str, int], sample: Sample) -> Iterator[pa.RecordBatch]:
        embedder = self._embedder()
        for batch, refs, orders in self.plan.shards.batches(unit):
            texts = batch.column("text")
            vectors = directions(embedder, texts)
            some = np.asarray(vectors.any(axis=1), np.bool_)
            counts["rows"] += len(some)
            counts["without_words"] += int((~some).sum())
            mine = pa.array(some)
            sample.add(text_digests(texts).filter(mine), vectors[some])
            columns = [pa.array(refs[some]), orders.filter(mine), column_of(vectors[some])]
            yield pa.RecordBatch.from_arrays(columns, schema=self.plan.vectors)

    def _embedder(self) -> Embedder:
        """Return the embedder, ready, with the rarity of words where it wants that.

        Raises:
            RuntimeError: it lacks something, as a model; the message has the remedy.
        """
        embedder: Any = self.plan.operation.embedder
        if counts_words(embedder):
            (row,) = pq.read_table(self.plan.file("rarity", 0, "rarity.parquet"), schema=RARITY).to_pylist()
            embedder = embedder.fitted(Rarity(row["weights"], row["documents"]))
        if (ready := getattr(embedder, "ready", None)) is not None:
            ready()
        found: Embedder = embedder
        return found


class Sample:
    """The vectors with the lowest text digests, each digest once: the same whatever the batches or shards."""

    def __init__(self, plan: Clustered) -> None:
        self._schema, self._most = plan.sample, SAMPLED * plan.clusters
        self._held = pa.table([[], []], schema=plan.sample)

    def add(self, digests: pa.Array, vectors: Vectors) -> None:
        """Take more rows into account."""
        self.add_table(pa.table([digests, column_of(vectors)], schema=self._schema))

    def add_table(self, rows: pa.Table) -> None:
        """Take more rows into account."""
        table = pa.concat_tables([self._held, rows]).combine_chunks()
        order = pc.sort_indices(table.column("digest"))
        table = table.take(order)
        digests = table.column("digest").combine_chunks()
        new = np.ones(len(table), np.bool_)
        new[1:] = pc.not_equal(digests[1:], digests[:-1]).to_numpy(zero_copy_only=False)
        self._held = table.filter(pa.array(new)).slice(0, self._most).combine_chunks()

    def rows(self) -> pa.RecordBatch:
        """Return the sample, by digest."""
        (batch,) = self._held.to_batches() or [pa.RecordBatch.from_pylist([], self._schema)]
        return batch
