"""Between the passes, per partition: its documents in order, and how many tokens they have.

With the lengths of all partitions, where each document begins is known before a token is written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curate.caches.plan import DOCUMENTS, Plan
from curate.regroup import Regrouped, memory_of
from curate.running.jobs import Item, Resources, publish_files
from curate.store import Store, json_line
from curate.writer import write_parquet

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LengthsJob:
    """Per partition: what is known about its documents, in order, and the sums."""

    plan: Plan
    regrouped: Regrouped
    name: str = "tokenize: lengths"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return memory_of(self.plan.limits)

    def run(self, item: Item) -> int:
        """Publish the documents of partition `item.unit` and return how many there are."""
        sums = {"documents": 0, "tokens": 0}
        with self.store.spool() as rows, self.store.spool() as lengths:
            write_parquet(rows, self._counted(item.unit, sums), DOCUMENTS)
            lengths.write_bytes(json_line(sums))
            files = {"documents.parquet": (rows, sums["documents"]), "lengths.json": (lengths, 1)}
            publish_files(self.store, item, self.name, files, {})
        return sums["documents"]

    def _counted(self, partition: int, sums: dict[str, int]) -> Iterator[pa.RecordBatch]:
        for batch in self.regrouped.batches(partition):
            sums["documents"] += batch.num_rows
            sums["tokens"] += pc.sum(batch.column("tokens")).as_py()
            yield batch


@dataclass(frozen=True, slots=True)
class Lengths:
    """Where partitions begin: `documents[p]` and `tokens[p]` are the sums of the cell's partitions before p."""

    documents: Counts
    tokens: Counts

    def overlapping(self, sums: Counts, start: int, stop: int) -> range:
        """Return the partitions that hold any of the rows `start` to `stop`, by these `sums`."""
        first = int(np.searchsorted(sums, start, side="right")) - 1
        return range(max(0, first), min(len(sums) - 1, int(np.searchsorted(sums, stop, side="left"))))


def read_lengths(plan: Plan) -> list[Lengths]:
    """Return the lengths of the partitions of each cell."""
    found = []
    for cell in plan.cells:
        counts = np.zeros((cell.partitions + 1, 2), np.int64)
        for number in range(cell.partitions):
            sums = json.loads(plan.lengths_file(cell.first + number, "lengths.json").read_bytes())
            counts[number + 1] = sums["documents"], sums["tokens"]
        found.append(Lengths(np.cumsum(counts[:, 0]), np.cumsum(counts[:, 1])))
    return found
