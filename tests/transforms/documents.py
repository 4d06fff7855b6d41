"""Rows for the tests of transforms."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from transforms.outcome import Outcome
from transforms.schema import NOT_CHECKED, documents


def batch_of(
    texts: Sequence[str], columns: Mapping[pa.Field[Any], Sequence[Any]] | None = None, schema: pa.Schema | None = None
) -> pa.RecordBatch:
    """Return documents with these texts, ids by place, and further columns."""
    further = {column.name: list(values) for column, values in (columns or {}).items()}
    wanted = schema or documents(*(columns or {}))
    rows = [
        {
            "id": hashlib.blake2b(str(row).encode(), digest_size=16).digest(),
            "text": text,
            "source": "test",
            "origin": {"uri": "a.jsonl", "place": "stored", "offset": row, "length": 1, "part": 0},
            "licence": "MIT",
            "licence_basis": "user",
            "crawled_at": datetime(2024, 1, 1 + row % 20, tzinfo=UTC),
            "optout": NOT_CHECKED,
            **{name: values[row] for name, values in further.items()},
        }
        for row, text in enumerate(texts)
    ]
    return pa.RecordBatch.from_arrays(
        [pa.array([row.get(field.name) for row in rows], field.type) for field in wanted], schema=wanted
    )


def kept_texts(outcome: Outcome) -> list[str]:
    return outcome.kept.column("text").to_pylist()


def reasons(outcome: Outcome) -> list[str]:
    return outcome.dropped.column("reason").to_pylist()
