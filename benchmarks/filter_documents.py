"""The documents that filters are measured on, in batches as a task of the engine sees them."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.minhash import CORPUS, synthetic
from transforms.outcome import Outcome, Transform

BATCH: Final = 1_024


def read_documents(count: int) -> pa.RecordBatch:
    """Return at most `count` documents: id, text, and what the corpus says of them (`stated`: language, or null)."""
    if CORPUS.exists():
        table = pq.read_table(CORPUS, columns=["text", "domain", "lang"])
        mixed = np.random.default_rng(0).permutation(len(table))[:count]
        table = table.take(pa.array(mixed)).combine_chunks()
        is_article = pc.equal(table.column("domain"), "wiki")
        stated = pc.if_else(is_article, table.column("lang"), pa.scalar(None, pa.string()))
        text, stated = table.column("text").cast(pa.large_string()), stated.cast(pa.large_string())
    else:
        text = synthetic(count * 2500).slice(0, count)
        stated = pa.nulls(len(text), pa.large_string())
    ids = pa.array([row.to_bytes(16, "big") for row in range(len(text))], pa.binary(16))
    joined = pa.table({"id": ids, "text": text, "stated": stated}).combine_chunks().to_batches()
    return joined[0]


def batches(documents: pa.RecordBatch) -> list[pa.RecordBatch]:
    """Return the documents in batches as a task of the engine sees them."""
    return [documents.slice(first, BATCH) for first in range(0, len(documents), BATCH)]


def size_of(documents: pa.RecordBatch) -> float:
    """Return the MB of text."""
    return float(pc.sum(pc.binary_length(documents.column("text"))).as_py()) / 1e6


def apply(transform: Transform, documents: pa.RecordBatch) -> list[Outcome]:
    """Return the outcomes of all batches."""
    return [transform.apply(batch) for batch in batches(documents)]
