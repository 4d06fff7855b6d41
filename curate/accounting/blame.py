"""Which document a step raised on: a batch that failed is applied again, document by document.

Only after an error that ends the run, and only for a transform itself: the wrappers of `curate.isolation` name their
documents. What this finds becomes a note of the error, which runners put into their message.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from transforms.outcome import Transform


@contextmanager
def blaming(name: str, transform: Transform, batch: pa.RecordBatch) -> Iterator[None]:
    """Add to an error that is raised in this block which step it was, and which document."""
    try:
        yield
    except Exception as error:
        wrapped = hasattr(transform, "inner")
        error.add_note(f"in step {name!r}" if wrapped else f"in step {name!r}, {_culprit(transform, batch)}")
        raise


def _culprit(transform: Transform, batch: pa.RecordBatch) -> str:
    for row in range(batch.num_rows):
        one = batch.slice(row, 1)
        try:
            transform.apply(one)
        except Exception:  # the one that was asked about
            return f"document {_named(one)}"
    return f"a batch of {batch.num_rows} documents from {_named(batch)} on, though none of them alone"


def _named(rows: pa.RecordBatch) -> str:
    """Return the first document's id and place."""
    if not rows.num_rows or rows.schema.get_field_index("id") < 0:
        return "without an id"
    identity = str(rows.column("id")[0].as_py().hex())
    if rows.schema.get_field_index("origin") < 0:
        return identity
    origin: dict[str, Any] | None = rows.column("origin")[0].as_py()
    return identity if origin is None else f"{identity} ({origin['uri']}, {origin['place']} {origin['offset']})"
