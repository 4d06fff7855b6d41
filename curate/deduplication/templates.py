"""Templates of a source: which shingles are in more than a share of its documents, counted exactly over shards.

    frequent     per shard             counters that miss no template, per batch and source   → by shingle
    suspects     per partition         shingles whose counters sum up to enough, undercount included
    occurrences  per shard             in how many documents each suspect is, exactly         → together
    templates    once                  those that are in enough; the list that signatures and sets leave out

The arithmetic is in `transforms.templates`. What is counted are the texts that equal no other, of documents and of
references; so a page that was copied a thousand times is one document here. The list is `templates.parquet` of the last
task: which shingles, of which source, in how many documents; `curate templates` shows them as texts.

Invariants: the list depends on the texts, their sources and the rule alone, not on shards, batches or order.
Cost: two more passes over the texts. Memory: the shingles of `COUNTED_BYTES` of text; 16 bytes a suspect, of which a
source has 4/3 of mean shingles per document / share at most.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from blake3 import blake3

from curate.deduplication.plan import Plan, cursor_of, not_empty
from curate.exchange import partition_of
from curate.regroup import Exchange, Regrouped
from curate.running.jobs import Item, Resources, publish_files
from curate.store import Store
from curate.writer import cut_rows, write_parquet
from transforms.minhash import sets_of
from transforms.shingles import NOTHING
from transforms.templates import TemplateRule, capacity_for, frequent, occurrences
from transforms.word_hashes import Hashes

COUNTED_BYTES: Final = 8 << 20
"""Bytes of text whose shingles are counted at a time: a constant of the format, as counters depend on it."""

SAFETY: Final = 4
"""Times the counters that miss no template: then what a counter may lack is a quarter of what makes one at most."""

COUNTER_BYTES: Final = 24
COUNTERS_LEFT: Final = 64  # per document, about: what is in one document of a batch alone is lost


def _needed(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


COUNTERS: Final = pa.schema(
    [_needed("source", pa.uint64()), _needed("shingle", pa.uint64()), _needed("count", pa.int64())]
)
"""Documents with a shingle; the source is a hash of its name."""

SUSPECTS: Final = pa.schema([_needed("source", pa.uint64()), _needed("shingle", pa.uint64())])

TEMPLATES: Final = pa.schema(
    [
        _needed("source", pa.large_string()),
        _needed("documents", pa.int64()),  # of the source
        _needed("shingle", pa.uint64()),
        _needed("count", pa.int64()),  # of those that have it
    ]
)
"""Schema of `templates.parquet`: by source, most frequent first."""

FILE: Final = "templates.parquet"

Sums = Mapping[str, Mapping[str, int]]
"""Per source: `documents` that were counted, their `counters`, and the `undercount` that all of these may have."""


def counters_exchange(plan: Plan, what: str, partitions: int) -> Exchange:
    """Return the regrouping of counters by shingle."""
    return plan.exchange(what, COUNTERS, ("source", "shingle"), partitions)


def counter_partitions(plan: Plan) -> int:
    """Return how many partitions the counters have, `COUNTERS_LEFT` of which a document leaves."""
    return plan.limits.partitions(sum(plan.rows) * COUNTERS_LEFT * COUNTER_BYTES)


def sums_of(statistics: Mapping[str, Any]) -> Sums:
    """Return what the tasks that count have counted."""
    sums: Sums = statistics.get("templates", {})
    return sums


def left_out_of(plan: Plan) -> Hashes:
    """Return the shingles that do not count, sorted: none where nobody asked for it."""
    if plan.without_templates is None:
        return NOTHING
    found = pq.read_table(plan.file("templates", 0, FILE), columns=["shingle"]).column("shingle")
    return np.unique(np.asarray(found.to_numpy(), np.uint64))


def hash_of(source: str) -> int:
    """Return 64 bits that stand for a source."""
    return int.from_bytes(blake3(source.encode()).digest(8), "big")


def _batches(plan: Plan, gone: Regrouped, shard: int) -> Iterator[tuple[str, pa.Array]]:
    """Yield sources with texts of theirs: those of a shard that equal no other, cut where the texts alone say."""
    for batch in cut_rows(_staying(plan, gone, shard), COUNTED_BYTES):
        sources = batch.column("source")
        for source in sources.unique().to_pylist():
            yield source, batch.filter(pc.equal(sources, source)).column("text")


def _staying(plan: Plan, gone: Regrouped, shard: int) -> Iterator[pa.RecordBatch]:
    cursor = cursor_of(plan, gone, shard)
    for batch, refs in plan.batches(shard, "text", "source"):
        stays = not_empty(batch.column("text"))
        stays[cursor.below(int(refs[-1]) + 1).column("ref").to_numpy() - refs[0]] = False
        yield batch.filter(pa.array(stays))


@dataclass(frozen=True, slots=True)
class FrequentJob:
    """Per shard, of references too: counters of its shingles, by shingle."""

    plan: Plan
    rule: TemplateRule
    gone: Regrouped
    name: str = "deduplicate: frequent shingles"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs: with the shingles of a batch, and their counters."""
        return Resources(memory=self.plan.resources.memory + 64 * COUNTED_BYTES)

    def run(self, item: Item) -> int:
        """Publish the counters of shard `item.unit`, and return how many documents were counted."""
        plan, documents = self.plan, 0
        sums: dict[str, dict[str, int]] = {}
        partitions = counter_partitions(plan)
        exchange = counters_exchange(plan, "frequent", partitions)
        with exchange.collect() as found:
            for source, texts in _batches(plan, self.gone, item.unit):
                sets = sets_of(texts, plan.minhash)
                mean = -(-len(sets.values) // len(sets))
                summary = frequent(sets, SAFETY * capacity_for(self.rule.ratio, mean))
                told = {"documents": len(texts), "counters": len(summary.counts), "undercount": summary.undercount}
                mine = sums.setdefault(source, dict.fromkeys(told, 0))
                mine.update({name: mine[name] + count for name, count in told.items()})
                found.add(_rows(source, summary.shingles, summary.counts), partition_of(summary.shingles, partitions))
                documents += len(texts)
            publish_files(self.store, item, self.name, {exchange.file: found.finish()}, {"templates": sums})
        return documents


def _rows(source: str, shingles: Hashes, counts: npt.NDArray[np.int64]) -> pa.RecordBatch:
    named = np.full(len(shingles), hash_of(source), np.uint64)
    return pa.RecordBatch.from_arrays([pa.array(column) for column in (named, shingles, counts)], schema=COUNTERS)


def summed(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[Hashes, Hashes, npt.NDArray[np.int64]]]:
    """Yield sources, shingles and the sums of their counts of a stream that is ordered by source and shingle."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        rows = pa.concat_batches([*held, batch])
        source, shingle, count = (column.to_numpy() for column in rows.columns)
        new = (source[1:] != source[:-1]) | (shingle[1:] != shingle[:-1])
        starts = np.flatnonzero(np.concatenate([[True], new]))
        sums = np.add.reduceat(count, starts)
        yield source[starts[:-1]], shingle[starts[:-1]], sums[:-1]
        last = [pa.array(column[-1:]) for column in (source[starts], shingle[starts], sums)]
        held = [pa.RecordBatch.from_arrays(last, schema=COUNTERS)]
    for rows in held:
        source, shingle, count = (column.to_numpy() for column in rows.columns)
        yield source, shingle, count


def _enough(rule: TemplateRule, sums: Sums, sources: Hashes, known: str) -> npt.NDArray[np.int64]:
    """Return how large the count of each of `sources` is at the least, less what is `known` to be missing."""
    least = {hash_of(name): rule.enough(mine["documents"]) - mine.get(known, 0) for name, mine in sums.items()}
    names, place = np.unique(sources, return_inverse=True)
    return np.array([least[name] for name in names.tolist()], np.int64)[place.reshape(-1)]


@dataclass(frozen=True, slots=True)
class SuspectsJob:
    """Per partition of counters: the shingles that may be templates."""

    plan: Plan
    rule: TemplateRule
    counters: Regrouped
    sums: Sums
    name: str = "deduplicate: suspected templates"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return self.plan.resources

    def run(self, item: Item) -> int:
        """Publish the suspects of partition `item.unit`, and return how many shingles were looked at."""
        looked_at, found = 0, []
        for source, shingle, count in summed(self.counters.batches(item.unit)):
            looked_at += len(count)
            suspect = count >= _enough(self.rule, self.sums, source, "undercount")
            columns = [pa.array(source[suspect]), pa.array(shingle[suspect])]
            found.append(pa.RecordBatch.from_arrays(columns, schema=SUSPECTS))
        with self.store.spool() as path:
            written = write_parquet(path, found, SUSPECTS)
            publish_files(self.store, item, self.name, {"suspects.parquet": (path, written.rows)}, {})
        return looked_at


@dataclass(frozen=True, slots=True)
class OccurrencesJob:
    """Per shard, of references too: in how many of its documents each suspect of their source is."""

    plan: Plan
    gone: Regrouped
    partitions: int
    name: str = "deduplicate: count templates"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs: with the shingles of a batch."""
        return Resources(memory=self.plan.resources.memory + 32 * COUNTED_BYTES)

    def run(self, item: Item) -> int:
        """Publish the counts of shard `item.unit`, and return how many documents were counted."""
        plan, documents, suspects = self.plan, 0, self._suspects()
        counts: dict[str, npt.NDArray[np.int64]] = {}
        exchange = counters_exchange(plan, "occurrences", 1)
        with exchange.collect() as found:
            for source, texts in _batches(plan, self.gone, item.unit):
                mine = suspects.get(hash_of(source), NOTHING)
                added = occurrences(sets_of(texts, plan.minhash), mine)
                counts[source] = counts[source] + added if source in counts else added
                documents += len(texts)
            for source, counted in counts.items():
                shingles = suspects.get(hash_of(source), NOTHING)
                found.add(_rows(source, shingles, counted), np.zeros(len(shingles), np.int64))
            publish_files(self.store, item, self.name, {exchange.file: found.finish()}, {})
        return documents

    def _suspects(self) -> dict[int, Hashes]:
        """Return the suspects of each source, sorted."""
        files = (self.plan.file("suspects", unit, "suspects.parquet") for unit in range(self.partitions))
        rows = pa.concat_tables([pq.read_table(file, schema=SUSPECTS) for file in files])
        source, shingle = (rows.column(name).to_numpy() for name in SUSPECTS.names)
        return {name: np.sort(shingle[source == name]) for name in np.unique(source).tolist()}


@dataclass(frozen=True, slots=True)
class TemplatesJob:
    """Once: the templates of all sources, with their counts."""

    plan: Plan
    rule: TemplateRule
    counts: Regrouped
    sums: Sums
    name: str = "deduplicate: templates"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return self.plan.resources

    def run(self, item: Item) -> int:
        """Publish the list, and return how long it is."""
        names = {hash_of(name): name for name in self.sums}
        found = [TEMPLATES.empty_table()]
        for source, shingle, count in summed(self.counts.batches(0)):
            above = count >= _enough(self.rule, self.sums, source, "")
            mine = [names[value] for value in source[above].tolist()]
            documents = [self.sums[name]["documents"] for name in mine]
            columns = [pa.array(mine, pa.large_string()), documents, shingle[above], count[above]]
            found.append(pa.table(columns, schema=TEMPLATES))
        order = [("source", "ascending"), ("count", "descending"), ("shingle", "ascending")]
        table = pa.concat_tables(found).sort_by(order)
        listed = {name: {"shingles": 0} for name in self.sums}
        for entry in table.column("source").value_counts().to_pylist():
            listed[entry["values"]]["shingles"] = entry["counts"]
        with self.store.spool() as path:
            written = write_parquet(path, table.to_batches(), TEMPLATES)
            publish_files(self.store, item, self.name, {FILE: (path, written.rows)}, {"templates": listed})
        return written.rows
