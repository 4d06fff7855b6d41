"""Dropping rows by their columns: `Where(field("licence").isin(PERMISSIVE), reason="licence")`.

Invariants: a row stays if and only if the predicate is true for it; a row that goes leaves the values of the columns
looked at in the ledger, as evidence. Cost: that of the predicate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa

from transforms.canonical import canonical_json
from transforms.outcome import Outcome, kept
from transforms.predicates import Predicate, field

__all__ = ["Where", "field"]

EVIDENCE_LENGTH: Final = 200
"""Code points of a column's value that evidence shows at most."""


@dataclass(frozen=True, slots=True)
class Where:
    """Keeps the rows for which `predicate` is true; the others are dropped under `reason`."""

    predicate: Predicate
    reason: str

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return `schema`.

        Raises:
            SchemaError: the predicate reads a column that is not there or cannot hold the value compared with it.
        """
        self.predicate.check(schema)
        return schema

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Keep the rows for which the predicate is true."""
        passes = self.predicate.evaluate(batch)
        looked_at = [(name, batch.column(name)) for name in self.predicate.columns()]
        dropped = [
            {
                "id": batch.column("id")[row].as_py(),
                "transform": "Where",
                "reason": self.reason,
                "evidence": canonical_json({name: _shown(column[row].as_py()) for name, column in looked_at}),
            }
            for row in np.flatnonzero(~passes).tolist()
        ]
        return kept(batch if passes.all() else batch.filter(pa.array(passes)), dropped=dropped)


def _shown(value: Any) -> Any:
    """Return `value` as canonical JSON can hold it."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, bytes):
        return value[:EVIDENCE_LENGTH].hex()
    return str(value)[:EVIDENCE_LENGTH]
