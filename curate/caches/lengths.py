"""Between the passes, per partition: its documents in order, and how many tokens they have.

With the lengths of all partitions, where each document begins is known before a token is written.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curate.caches.plan import DOCUMENTS, Plan, sort_order
from curate.exchange import read_partition
from curate.jobs import Item, publish_files
from curate.store import Store, json_line
from curate.writer import write_parquet

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LengthsJob:
    """Per partition: what is known about its documents, in order, and the sums."""

    plan: Plan
    name: str = "tokenize: lengths"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    def run(self, item: Item) -> int:
        """Publish the documents of partition `item.unit` and return how many there are."""
        table = read_partition(self.plan.exchanges("documents.exchange"), item.unit, DOCUMENTS)
        table = table.take(pa.array(sort_order(table))).combine_chunks()
        sums = {"documents": table.num_rows, "tokens": int(pc.sum(table.column("tokens")).as_py() or 0)}
        with self.store.spool() as rows, self.store.spool() as lengths:
            write_parquet(rows, table.to_batches(), DOCUMENTS)
            lengths.write_bytes(json_line(sums))
            files = {"documents.parquet": (rows, table.num_rows), "lengths.json": (lengths, 1)}
            publish_files(self.store, item, self.name, files, {})
        return int(table.num_rows)


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
            sums = json.loads(plan.file("lengths", cell.first + number, "lengths.json").read_bytes())
            counts[number + 1] = sums["documents"], sums["tokens"]
        found.append(Lengths(np.cumsum(counts[:, 0]), np.cumsum(counts[:, 1])))
    return found
