"""Which documents topics are fitted to: those with the lowest keyed digests of their texts, each text once.

A task knows its shard only. As the number of all documents is known before, so is a bound below which nearly certainly
enough digests lie: a task passes on what lies below it, and of all these the lowest are taken. So the sample depends on
the texts and the seed alone, not on shards, and no task holds more than its share of it.
"""

from __future__ import annotations

from math import isqrt
from typing import Final

import numpy as np
import pyarrow as pa

from transforms.many_digests import short_digests
from transforms.schema import ID
from transforms.segmentation import text_buffers
from transforms.topics import beginnings
from transforms.word_hashes import FACTOR, Hashes

SAMPLE: Final = pa.schema(
    [
        pa.field("key", pa.uint64(), nullable=False),  # what is sorted by
        pa.field("digest", ID, nullable=False),  # of the text
        pa.field("id", ID, nullable=False),
        pa.field("text", pa.large_string(), nullable=False),  # its beginning
        pa.field("language", pa.large_string()),
    ]
)
"""Columns of documents in a sample."""

_SURE: Final = 6
"""Standard deviations: fewer than asked for lie below the bound in one sample of 10^9."""


def sampled(batch: pa.RecordBatch, below: int, characters: int, seed: int) -> pa.RecordBatch:
    """Return the documents of `batch` whose key lies below a bound, as rows of `SAMPLE`, unsorted.

    Args:
        batch: columns `id`, `text` and `language`.
        below: of `bound`.
        characters: code points of each text to keep.
        seed: another one gives another sample.
    """
    digests = short_digests(*text_buffers(batch.column("text")))
    keys = _keys(digests, seed)
    rows = pa.array(np.flatnonzero(keys <= np.uint64(below - 1)))
    text = beginnings(batch.column("text").take(rows), characters)
    columns = [pa.array(keys).take(rows), digests.take(rows), batch.column("id").take(rows), text]
    return pa.RecordBatch.from_arrays([*columns, batch.column("language").take(rows)], schema=SAMPLE)


def _keys(digests: pa.FixedSizeBinaryArray, seed: int) -> Hashes:
    data = np.frombuffer(digests.buffers()[1], "<u8", 2 * len(digests), 16 * digests.offset)[::2]
    return np.asarray((data.astype(np.uint64) ^ np.uint64(seed % (1 << 64))) * FACTOR, np.uint64)


def bound(wanted: int, documents: int) -> int:
    """Return a bound below which nearly certainly `wanted` of the keys of `documents` texts lie; at most 2^64."""
    enough = wanted + _SURE * (isqrt(wanted) + 1)
    return 1 << 64 if enough >= documents else (enough << 64) // documents


def lowest(rows: pa.Table, wanted: int) -> pa.Table:
    """Return the `wanted` rows of `SAMPLE` with the lowest keys in this order; of equal texts the lowest id."""
    ordered = rows.sort_by([("key", "ascending"), ("digest", "ascending"), ("id", "ascending")]).combine_chunks()
    digests = ordered.column("digest").to_pylist()
    first = [row for row, digest in enumerate(digests) if not row or digest != digests[row - 1]]
    return ordered.take(pa.array(first[:wanted], pa.int64()))
