"""What the tasks of a semantic deduplication share: shards and keep order as `curate.repeated` has them, and the rows.

Embedder and clusters are those of the operation; `clusters_for` chooses how many where it does not say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from curate.parts import BATCH_BYTES, checked_file
from curate.recipes.graph import DropAlike
from curate.regroup import Exchange
from curate.repeated.plan import Plan
from curate.running.jobs import Resources
from transforms.embedding import Vectors
from transforms.schema import ID

ROWS_PER_CLUSTER: Final = 4096
MOST_CLUSTERS: Final = 256
"""Documents of a cluster, and most clusters, where the recipe leaves them to us: more are divided where they lie."""

SAMPLED: Final = 64
"""Documents per cluster that centres are fitted to."""

HELD: Final = 1 << 17
"""Documents of one cluster that a task holds: a constant of the format, as a larger cluster is cut there."""

GONE: Final = pa.schema(
    [
        pa.field("ref", pa.int64(), nullable=False),
        pa.field("survivor", ID, nullable=False),
        pa.field("reference", pa.large_string()),
        pa.field("cosine", pa.int64(), nullable=False),
        pa.field("cluster", pa.int64(), nullable=False),
    ]
)
"""Documents that go, who stays, of which reference that one is, their cosine in 1 / 10,000, and their cluster."""


def clusters_for(rows: int) -> int:
    """Return how many clusters so many documents have."""
    return max(1, min(MOST_CLUSTERS, -(-rows // ROWS_PER_CLUSTER)))


@dataclass(frozen=True, slots=True)
class Clustered:
    """The shards of a deduplication, its operation, and the number of its clusters."""

    shards: Plan
    operation: DropAlike
    clusters: int

    @property
    def dimension(self) -> int:
        """Numbers of a vector."""
        return int(self.operation.embedder.dimension)

    @property
    def vector(self) -> pa.DataType:
        """Type of a vector."""
        return pa.binary(self.dimension)

    @property
    def vectors(self) -> pa.Schema:
        """Rows of `vectors.parquet`: documents that are about something."""
        fields = [("ref", pa.int64()), ("order", pa.large_binary()), ("vector", self.vector)]
        return pa.schema([pa.field(name, kind, nullable=False) for name, kind in fields])

    @property
    def sample(self) -> pa.Schema:
        """Rows of `sample.parquet`: those with the lowest text digests."""
        return pa.schema([pa.field("digest", ID, nullable=False), pa.field("vector", self.vector, nullable=False)])

    @property
    def clustered(self) -> Exchange:
        """The regrouping of vectors by their cluster, within it by the second nearest one, then in keep order."""
        numbers = [pa.field(name, pa.int64(), nullable=False) for name in ("cluster", "next")]
        return self.shards.exchange(
            "clustered", pa.schema([*numbers, *self.vectors]), ("cluster", "next", "order"), self.partitions
        )

    @property
    def borders(self) -> Exchange:
        """The regrouping of vectors that stay in their cluster by the two nearest clusters, whichever is nearer."""
        kinds = [("cluster", pa.int64()), ("home", pa.int64()), ("named", pa.bool_())]
        schema = pa.schema([*(pa.field(name, kind, nullable=False) for name, kind in kinds), *self.vectors])
        return self.shards.exchange("borders", schema, ("cluster", "order"), self.partitions)

    @property
    def gone(self) -> Exchange:
        """The regrouping of documents that go, by shard."""
        return self.shards.exchange("alike", GONE, ("ref",), self.shards.shard_partitions)

    @property
    def partitions(self) -> int:
        """Partitions of the exchange by cluster."""
        return min(self.clusters, self.shards.partitions)

    @property
    def resources(self) -> Resources:
        """What a task needs that embeds texts."""
        return Resources(memory=self.shards.resources.memory + 16 * BATCH_BYTES)

    @property
    def deciding(self) -> Resources:
        """What a task needs that compares vectors."""
        held = HELD * (6 * self.dimension + 200) + 8 * self.operation.cap * self.dimension
        return Resources(memory=self.shards.resources.memory + held)

    def file(self, task: str, unit: int, name: str) -> str:
        """Return the path of a file that a task in between published, checked."""
        return str(checked_file(self.shards.store, self.shards.inner_key(task, unit), name))


def matrix(column: pa.Array | pa.ChunkedArray, dimension: int) -> Vectors:
    """Return a column of vectors as a matrix of int8."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not len(whole):
        return np.empty((0, dimension), np.int8)
    data = np.frombuffer(whole.buffers()[1], np.int8, len(whole) * dimension, whole.offset * dimension)
    return data.reshape(-1, dimension)


def column_of(vectors: Vectors) -> pa.Array:
    """Return a matrix of int8 as a column of vectors."""
    count, dimension = vectors.shape
    data = pa.py_buffer(np.ascontiguousarray(vectors).tobytes())
    return pa.Array.from_buffers(pa.binary(dimension), count, [None, data])
