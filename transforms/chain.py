"""Running several transforms as one: their names, and one outcome for a chain.

Invariants: a chain's outcome has every row that its transforms dropped, edited or nearly dropped, under names unique
in the chain; kept rows stay in input order; other rows are ordered by (input row, place in the chain), so the outcome
of a batch is the outcomes of its parts one after the other. Ids within a batch are unique (readers see to that).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transforms.outcome import DROPPED, EDITS, Outcome, Transform, name_of, nothing
from transforms.sharing import Sharing
from transforms.spread import Spread, added, renamed


def unique_names(transforms: Sequence[Transform]) -> list[str]:
    """Return the names of the transforms of a chain; the second of a name gets "#2" put behind it, and so on."""
    seen: dict[str, int] = {}
    names = []
    for name in map(name_of, transforms):
        seen[name] = seen.get(name, 0) + 1
        names.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return names


def run_chain(transforms: Sequence[Transform], batch: pa.RecordBatch) -> Outcome:
    """Return the outcome of `transforms`, one after the other, on `batch`.

    A document that one transform edits and a later one drops keeps its edits in `edits`; near misses of documents
    that a later transform drops are left out, for they are not kept.
    """
    ids = batch.column("id")
    dropped: list[pa.RecordBatch] = []
    edits: list[pa.RecordBatch] = []
    near: list[pa.RecordBatch] = []
    spreads: list[Spread] = []
    shared = Sharing()
    for name, transform in zip(unique_names(transforms), transforms, strict=True):
        outcome = shared.apply(transform, batch)
        batch = outcome.kept
        for parts, part in ((dropped, outcome.dropped), (edits, outcome.edits), (near, outcome.near)):
            parts.append(rename(part, name_of(transform), name))
        spreads += renamed(outcome.spreads, name_of(transform), name)
    missed = in_row_order(near, DROPPED, ids)
    return Outcome(
        batch,
        in_row_order(dropped, DROPPED, ids),
        in_row_order(edits, EDITS, ids),
        missed.filter(pc.is_in(missed.column("id"), value_set=batch.column("id"))),
        tuple(spreads),
    )


def run_chain_schema(transforms: Sequence[Transform], schema: pa.Schema) -> pa.Schema:
    """Return the schema of rows that `transforms` keep, for input rows of `schema`.

    Raises:
        SchemaError: a transform needs a column that is not there, or has another type.
    """
    for transform in transforms:
        schema = transform.output_schema(schema)
    return schema


def rename(rows: pa.RecordBatch, before: str, after: str) -> pa.RecordBatch:
    """Return `rows` with `before` at the start of the names in `transform` replaced by `after`."""
    if before == after or rows.num_rows == 0:
        return rows
    index = rows.schema.get_field_index("transform")
    names = [
        after + name[len(before) :] if name.startswith(before) else name
        for name in map(str, rows.column(index).to_pylist())
    ]
    return rows.set_column(index, rows.schema.field(index), pa.array(names, pa.large_string()))


def positions_of(ids: pa.Array[Any], rows: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """Return, for each of `rows`, where its id stands in `ids`.

    Raises:
        ValueError: an id is not among `ids`: a transform made a document up.
    """
    found = pc.index_in(rows.column("id"), value_set=ids)
    if found.null_count:
        raise ValueError("a transform returned a document that did not come in")
    return np.asarray(found.to_numpy(zero_copy_only=False), np.int64)


def in_row_order(parts: Sequence[pa.RecordBatch], schema: pa.Schema, ids: pa.Array[Any]) -> pa.RecordBatch:
    """Return the rows of `parts` as one batch of `schema`, by their place in `ids`; equal places stay as they stand."""
    filled = [part for part in parts if part.num_rows]
    if not filled:
        return nothing(schema)
    rows = concatenate(filled)
    return rows.take(pa.array(np.argsort(positions_of(ids, rows), kind="stable"), pa.int64()))


def together(batch: pa.RecordBatch, outcomes: Sequence[Outcome]) -> Outcome:
    """Return the outcomes of selections of the rows of `batch`, at least one, as that of all of them, in its order."""
    if len(outcomes) == 1:
        return outcomes[0]
    ids = batch.column("id")
    rows = concatenate([outcome.kept for outcome in outcomes])
    in_order = np.argsort(positions_of(ids, rows), kind="stable")
    return Outcome(
        rows.take(pa.array(in_order, pa.int64())),
        in_row_order([outcome.dropped for outcome in outcomes], DROPPED, ids),
        in_row_order([outcome.edits for outcome in outcomes], EDITS, ids),
        in_row_order([outcome.near for outcome in outcomes], DROPPED, ids),
        added(spread for outcome in outcomes for spread in outcome.spreads),
    )


def concatenate(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return `batches` (at least one, of equal schemas) as one."""
    joined = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return joined[0] if joined else batches[0]
