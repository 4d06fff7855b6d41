"""What a shard keeps in numbers: by source, language, licence, topic, rights, length, host, and its texts as a set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from curate.accounting.accountant import sample_row
from curate.accounting.attributes import levels_in, scores_in
from curate.accounting.drawn_hosts import OF_CELL, DrawnHosts
from curate.accounting.hosts import host_of
from curate.accounting.measures import Coded, Integers, Measures, bytes_of, coded, combined
from curate.accounting.months import months_in
from curate.accounting.samples import CELL, Samples, lowest_cells
from curate.accounting.statistics import (
    HLL_BITS,
    LEAST,
    LENGTH_BINS,
    LENGTH_EDGES,
    Statistics,
    add,
    least,
    lowest,
    observe,
)
from curate.content_digests import sum_digest_rows
from curate.digests import MODULUS

MOST_HOSTS: Final = 8 * LEAST
SCORES: Final = 1 << 31
"""Scores that have more than 32 bits are no scores that anything here gives: they are not counted."""


class Kept:
    """Statistics of the documents that a shard keeps."""

    def __init__(self) -> None:
        self.counts: Statistics = {}
        self.hosts: dict[str, Statistics] = {}
        self.distinct_hosts = bytearray(1 << HLL_BITS)
        self.drawn = DrawnHosts()
        self.cells: dict[tuple[str, str, str], DrawnHosts] = {}
        self.documents = self.sum = 0

    def count(self, batch: pa.RecordBatch, measures: Measures, samples: Samples, shows: Callable[[str], bool]) -> None:
        """Add the documents of `batch`, and offer them as samples of what is kept."""
        if batch.schema.get_field_index("text") < 0 or not batch.num_rows:
            return
        sizes = measures.characters
        self.documents += batch.num_rows
        self.sum = (self.sum + sum_digest_rows(bytes_of(measures.digests))) % MODULUS
        source, licence = coded(batch.column("source")), coded(batch.column("licence"))
        self._count_groups(batch, source, licence, sizes)
        self._count_rights(batch, source, licence, sizes)
        self._count_dates(batch, source)
        self._count_hosts(batch, sizes)
        self._count_cells(batch, sizes)
        self._sample_cells(batch, measures, samples, shows)
        for row in samples.candidates(("kept", "", ""), measures.digests):
            digest = measures.digests[row].as_py()
            if samples.wants(("kept", "", ""), digest, batch.column("id")[row].as_py()):
                samples.offer(sample_row("kept", {}, batch, row, measures, shows))

    def _count_groups(self, batch: pa.RecordBatch, source: Coded, licence: Coded, sizes: Integers) -> None:
        given = {"source": source, "licence": licence}
        for name in ("source", "language", "licence", "topic"):
            if batch.schema.get_field_index(name) >= 0:
                for value, counted in totals(given.get(name) or coded(batch.column(name)), sizes):
                    self._add(["nulls", name] if value is None else ["groups", name, str(value)], counted)
        bins = Coded(list(LENGTH_BINS), np.searchsorted(LENGTH_EDGES, sizes, side="right"))
        for (name, edge), (documents, _) in totals(combined(source, bins), sizes):
            add(self.counts, ["lengths", name, edge], documents)

    def _count_rights(self, batch: pa.RecordBatch, source: Coded, licence: Coded, sizes: Integers) -> None:
        for path, counted in totals(combined(source, licence, coded(batch.column("licence_basis"))), sizes):
            self._add(["rights", *path], counted)
        optout = batch.column("optout")
        for item, values in zip(optout.type, optout.flatten(), strict=True):
            for (name, value), (documents, _) in totals(combined(source, coded(values)), sizes):
                add(self.counts, ["optout", name, item.name, value], documents)

    def _count_dates(self, batch: pa.RecordBatch, source: Coded) -> None:
        """Count the months in which documents were crawled, as far as they are known."""
        months = months_in(batch)
        if months is None:
            return
        pairs = combined(source, months)
        for (name, month), documents in zip(pairs.values, pairs.counts(), strict=True):
            if documents and month is not None:
                add(self.counts, ["crawled", name, month], documents)

    def _count_hosts(self, batch: pa.RecordBatch, sizes: Integers) -> None:
        if batch.schema.get_field_index("url") < 0:
            return
        urls = batch.column("url").to_pylist()
        hosts = coded(pa.array([None if url is None else host_of(url) for url in urls], pa.large_string()))
        self._draw_in_cells(batch, hosts)
        self.drawn.count(hosts, batch.column("id"))
        self._count_scores(batch, hosts)
        for host, (documents, characters) in totals(hosts, sizes):
            if host is not None:
                observe(self.distinct_hosts, [host.encode()])
                add(self.hosts, [host, "documents"], documents)
                add(self.hosts, [host, "characters"], characters)
        if len(self.hosts) > MOST_HOSTS:  # one that is not among the lowest now never will be
            self.hosts = {host: self.hosts[host] for host in lowest(self.hosts)}

    def _count_cells(self, batch: pa.RecordBatch, sizes: Integers) -> None:
        if batch.schema.get_field_index("topic") < 0:
            return
        topic = coded(batch.column("topic"))
        for name in levels_in(batch.schema):
            for pair, counted in totals(combined(topic, coded(batch.column(name))), sizes):
                if None not in pair:
                    self._add(["cells", name, *map(str, pair)], counted)

    def _sample_cells(
        self, batch: pa.RecordBatch, measures: Measures, samples: Samples, shows: Callable[[str], bool]
    ) -> None:
        """Offer documents of each cell as its samples."""
        if batch.schema.get_field_index("topic") < 0:
            return
        topics = coded(batch.column("topic"))
        for name in levels_in(batch.schema):
            cells = combined(topics, coded(batch.column(name)))
            there = {place: pair for place, pair in enumerate(cells.values) if None not in pair}
            keys = {(CELL, name, cell_name(topic, level, name)): place for place, (topic, level) in there.items()}
            for key in lowest_cells(list(keys)):
                rows = np.flatnonzero(cells.codes == keys[key])
                for at in rows[samples.candidates(key, measures.digests.take(pa.array(rows)))].tolist():
                    if samples.wants(key, measures.digests[at].as_py(), batch.column("id")[at].as_py()):
                        named = {"transform": key[1], "reason": key[2]}
                        samples.offer(sample_row(CELL, named, batch, at, measures, shows))

    def _draw_in_cells(self, batch: pa.RecordBatch, hosts: Coded) -> None:
        """Offer the hosts of each cell."""
        if batch.schema.get_field_index("topic") < 0:
            return
        topic = coded(batch.column("topic"))
        for name in levels_in(batch.schema):
            cells = combined(topic, coded(batch.column(name)))
            for place, pair in enumerate(cells.values):
                if None not in pair:
                    rows = np.flatnonzero(cells.codes == place)
                    drawn = self.cells.setdefault((name, str(pair[0]), str(pair[1])), DrawnHosts(OF_CELL))
                    drawn.count(hosts.take(rows), batch.column("id").take(pa.array(rows)))

    def _count_scores(self, batch: pa.RecordBatch, hosts: Coded) -> None:
        """Add number, sum and sum of squares of each column of scores, over all hosts and by host."""
        for name in scores_in(batch.schema):
            column = batch.column(name)
            there = np.flatnonzero(np.asarray(column.is_valid()))
            scores = np.asarray(column.take(pa.array(there)), np.int64)
            small = (scores >= -SCORES) & (scores < SCORES)
            there, scores = there[small], scores[small]
            mine = hosts.take(there)
            sums = (mine.counts(), mine.counts(scores), sums_of_squares(mine, scores))
            for host, *found in zip(mine.values, *sums, strict=True):
                if host is not None and found[0]:
                    for what, amount in zip(("count", "sum_of_scores", "sum_of_squares"), found, strict=True):
                        add(self.hosts, [host, "scores", name, what], amount)

    def _add(self, path: Sequence[str], counted: tuple[int, int]) -> None:
        add(self.counts, [*path, "documents"], counted[0])
        add(self.counts, [*path, "characters"], counted[1])

    def statistics(self) -> Statistics:
        """Return the counters, the hosts (exact for the lowest digests, and how many there are), and the texts."""
        for (name, topic, level), drawn in self.cells.items():
            if drawn.held:
                self.counts["cells"][name][topic][level]["drawn"] = drawn.statistics()
        distinct = {"hll": self.distinct_hosts.hex()}
        hosts = {"most": least(self.hosts), "drawn": self.drawn.statistics(), "distinct": distinct}
        return {
            **self.counts,
            **({"hosts": hosts} if self.hosts else {}),  # 8 kB of registers in each receipt
            "texts": {"count": self.documents, "multiset": {"sum": f"{self.sum:064x}"}},
        }


def cell_name(topic: object, level: object, column: str) -> str:
    """Return the name of a cell: what its samples have as reason."""
    return f"topic={topic}/{column}={level}"


def sums_of_squares(column: Coded, scores: Integers) -> list[int]:
    """Return for each value of `column` the sum of the squares of its scores, which have 32 bits, exactly."""
    high, low = np.divmod(scores * scores, 1 << 32)
    return [(h << 32) + m for h, m in zip(column.counts(high), column.counts(low), strict=True)]


def totals(column: Coded, sizes: Integers) -> Iterator[tuple[Any, tuple[int, int]]]:
    """Yield each value of `column` that there is, with how often it stands and the sum of its sizes."""
    for value, documents, size in zip(column.values, column.counts(), column.counts(sizes), strict=True):
        if documents:
            yield value, (documents, size)
