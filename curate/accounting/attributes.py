"""What documents are, as columns say it: which columns are levels or scores, and what samples tell of a document."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from transforms.canonical import canonical_json

NAME_LENGTH: Final = 120
"""Code points of a value that are told: values that begin with the same ones are one."""

TOLD: Final = ("licence", "language", "topic")
"""Columns that samples have, too."""


def levels_in(schema: pa.Schema) -> list[str]:
    """Return the columns of levels: whole numbers under a name that ends in "_level"."""
    return [f.name for f in schema if f.name.endswith("_level") and pa.types.is_integer(f.type)]


def scores_in(schema: pa.Schema) -> list[str]:
    """Return the columns of scores: whole numbers under a name that ends in "_score"."""
    return [f.name for f in schema if f.name.endswith("_score") and pa.types.is_signed_integer(f.type)]


def attributes_of(batch: pa.RecordBatch, position: int) -> dict[str, str | None]:
    """Return the columns `TOLD` of a document and, as canonical JSON, its levels: None of what it has not."""
    found: dict[str, str | None] = {}
    for name in TOLD:
        value = batch.column(name)[position].as_py() if batch.schema.get_field_index(name) >= 0 else None
        found[name] = value[:NAME_LENGTH] if isinstance(value, str) else None
    levels = {name: batch.column(name)[position].as_py() for name in levels_in(batch.schema)}
    told = {name: value for name, value in levels.items() if value is not None}
    return {**found, "levels": canonical_json(told) if told else None}
