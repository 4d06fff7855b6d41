"""What stays of a shard: documents without those that mean the same as one that stays, and the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final

import numpy as np
import pyarrow as pa

from curate.repeated.apply import told_lists
from curate.semantic.plan import GONE
from transforms.canonical import canonical_json
from transforms.exact_numbers import decimal_text
from transforms.outcome import Outcome, kept
from transforms.semantic import SCALE

STEP: Final = "deduplicate"
REASON: Final = "semantic duplicate"
MEASURE: Final = "cosine similarity"


@dataclass(frozen=True, slots=True)
class DropAlikeOnes:
    """Drops the documents of which a survivor is told; their cosine is at least `threshold`."""

    threshold: Fraction
    schema: pa.Schema
    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of kept rows."""
        return self.schema

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Drop what is told."""
        columns = {name: told_lists(batch, name) for name in GONE.names[1:]}
        documents = columns["survivor"][1]
        told = pa.table([values for values, _ in columns.values()], names=list(columns)).to_pylist()
        stays = np.ones(batch.num_rows, np.bool_)
        stays[documents.to_numpy()] = False
        ids, dropped = batch.column("id").take(documents).to_pylist(), []
        for identity, row in zip(ids, told, strict=True):
            evidence = {"cluster": row["cluster"], "survivor": row["survivor"].hex()}
            if row["reference"] is not None:
                evidence["reference"] = row["reference"]
            measured = {"measure": MEASURE, "numerator": row["cosine"], "denominator": SCALE}
            measured["threshold"] = f"< {decimal_text(self.threshold)}"
            why = {"transform": STEP, "reason": REASON, **measured, "evidence": canonical_json(evidence)}
            dropped.append({"id": identity, **why})
        return kept(batch.select(self.schema.names).filter(pa.array(stays)), dropped=dropped)
