"""A sample of documents with their hosts: those of the lowest ids, so that hosts of many documents are among them.

Ids are digests, so the sample is as good as a drawn one, and the same for any cut into shards. A host that has one
document in a hundred is missing from it once in 170 times (0.99^512).

Invariants: what is kept of a union is among what is kept of its parts. Cost: a partial sort per batch.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from blake3 import blake3

from curate.accounting.measures import Coded
from curate.accounting.statistics import Statistics
from transforms.duplicates import leading_bits

DRAWN: Final = 512
"""Documents of the sample of a dataset."""

OF_CELL: Final = 4
"""Documents of the sample of a cell."""


class DrawnHosts:
    """The documents of a shard with the lowest ids, and their hosts; documents without a host are not looked at."""

    def __init__(self, most: int = DRAWN) -> None:
        self.most = most
        self.held: dict[str, Statistics] = {}

    def count(self, hosts: Coded, ids: pa.FixedSizeBinaryArray) -> None:
        """Offer the documents `ids` of these hosts."""
        named = np.array([bool(host) for host in hosts.values], np.bool_)
        there = np.flatnonzero(named[hosts.codes]) if len(hosts.values) else np.zeros(0, np.int64)
        bits = leading_bits(ids)[there]
        if len(bits) > self.most:
            there = there[bits <= np.partition(bits, self.most - 1)[self.most - 1]]
        highest = max(self.held) if len(self.held) == self.most else "g"
        for row in there.tolist():
            name = ids[row].as_py().hex()
            if name > highest:
                continue
            host = str(hosts.values[hosts.codes[row]])
            # two documents of one id may stand in one dataset: they are told apart by their hosts
            entry = self.held.setdefault(name + blake3(host.encode()).hexdigest(8), {"name": host, "documents": 0})
            entry["documents"] += 1
        self.held = {name: self.held[name] for name in sorted(self.held)[: self.most]}

    def statistics(self) -> Statistics:
        """Return the leaf of these documents."""
        return {"least": self.held, "k": self.most}
