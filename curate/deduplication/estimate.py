"""What a deduplication will need of memory and disk, as far as numbers of rows and bytes tell before it starts.

Sizes of digests and bands follow from the rows. What candidates need depends on how many there are: it is given for
the case that every document is one, once. Nothing depends on these figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from curate import exchange
from curate.datasets import Dataset
from curate.deduplication.plan import BAND_BYTES, MAX_COMPONENT_EDGES, ROW_BYTES
from curate.exchange import Limits
from curate.parts import BATCH_BYTES
from curate.recipes.graph import Deduplicate
from curate.regroup import memory_of

EDGE_MEMORY: Final = 228
"""Bytes of memory that an edge takes where it is decided on, with the keep order of its documents."""

WORD_BYTES: Final = 6
"""Bytes of text per word, as in English."""

PAIRS_MEMORY: Final = 256 << 20
"""What a task that proposes pairs holds of them: of the largest buckets that are held whole."""

SHINGLES_MEMORY: Final = 512 << 20
"""What a task that compares pairs holds of shingle sets and edges. A text above 64 MiB takes ten times its bytes."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a deduplication of `rows` documents with `text` bytes will need.

    Attributes:
        rows: documents that come in.
        text: their logical bytes.
        memory: bytes of memory of the largest task but for deciding, which takes 228 an edge, up to `deciding`.
        deciding: most bytes of memory of a task that decides, if every pair of documents is an edge.
        disk: bytes of exchange files that are written in any case.
        candidates: further bytes if every document is a candidate once.
    """

    rows: int
    text: int
    memory: int
    deciding: int
    disk: int
    candidates: int

    def __str__(self) -> str:
        memory, deciding, disk, candidates = map(_size, (self.memory, self.deciding, self.disk, self.candidates))
        more = f", up to {candidates} more if every document is a candidate" if self.candidates else ""
        edges = f" ({EDGE_MEMORY} bytes an edge where it is decided, up to {deciding})" if self.deciding else ""
        return f"{self.rows:,} documents: memory per task ≈ {memory}{edges}; files between tasks ≈ {disk}{more}"


def estimate_of(operation: Deduplicate, inputs: Sequence[Dataset]) -> Estimate:
    """Return what `operation` on `inputs` will need."""
    sizes = [
        (shard["rows"], shard["logical"] or shard["bytes"])
        for dataset in (*inputs, *(each.dataset for each in operation.against))
        for shard in dataset.each_shard(["rows", "logical", "bytes", "content"])
        if shard["content"] is not None
    ]
    rows, text = (sum(size[i] for size in sizes) for i in (0, 1))
    return estimate(operation, rows, text, len(sizes), exchange.LIMITS)


def estimate(operation: Deduplicate, rows: int, text: int, shards: int, limits: Limits) -> Estimate:
    """Return what `operation` will need for so many rows and bytes of text in so many shards."""
    memory = memory_of(limits).memory + 8 * BATCH_BYTES
    digests = rows * ROW_BYTES
    disk = digests * passes(digests, shards, limits)
    if operation.method is None:
        return Estimate(rows, text, memory, 0, disk, 0)
    bands = rows * BAND_BYTES * operation.method.bands
    disk += bands * passes(bands, shards, limits)
    sets = text * 8 // (WORD_BYTES if operation.method.unit == "word" else 1)
    pairs = rows * 100  # a pair in three exchanges, its edge, keep order
    candidates = (sets + pairs) * passes(sets, shards, limits)
    edges = min(MAX_COMPONENT_EDGES, rows * (rows - 1) // 2)
    return Estimate(rows, text, memory + min(SHINGLES_MEMORY, sets + pairs), EDGE_MEMORY * edges, disk, candidates)


def _size(size: int) -> str:
    return f"{size / 1e9:,.2f} GB" if size >= 1e9 else f"{size / 1e6:,.1f} MB"


def passes(size: int, files: int, limits: Limits) -> int:
    """Return how often rows of an exchange of `size` bytes from `files` map tasks are written."""
    return 1 + bool(limits.groups(files)) + len(limits.radices(limits.partitions(size))) - 1
