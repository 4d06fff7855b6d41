"""Near duplicates, second half, by partition: pairs of documents of different shards are compared.

The sets that a partition of pairs needs come to it in the order of documents.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from curate.deduplication.compare import Comparison, pieces, publish_edges
from curate.deduplication.estimate import SHINGLES_MEMORY
from curate.deduplication.plan import Plan
from curate.regroup import Regrouped
from curate.running.jobs import Item, Resources
from curate.store import Store
from transforms.minhash import Sets


@dataclass(frozen=True, slots=True)
class VerifyJob:
    """Per partition of pairs: the exact similarity of each, and the edges at or above the threshold."""

    plan: Plan
    pairs: Regrouped
    sets: Regrouped
    name: str = "deduplicate: verify"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return Resources(memory=self.plan.resources.memory + SHINGLES_MEMORY)

    def run(self, item: Item) -> int:
        """Publish the edges of partition `item.unit`, and return how many pairs were compared."""
        return publish_edges(self.plan, item, self.name, self._comparisons(item.unit))

    def _comparisons(self, partition: int) -> Iterator[Comparison]:
        for a, b in pieces(self.pairs.batches(partition)):
            while len(a):
                comparison = Comparison(a, b, self.plan.minhash)
                for batch in self.sets.batches(partition):
                    comparison.meet(batch.column("ref").to_numpy(), _sets(batch.column("shingles")))
                yield comparison
                a, b = comparison.rest()


def _sets(lists: pa.LargeListArray) -> Sets:
    """Return shingle sets as they lie in a column of `SETS`."""
    return Sets(lists.offsets.to_numpy(), np.asarray(lists.values.to_numpy(), np.uint64))
