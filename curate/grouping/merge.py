"""Documents of one group become one: the first, with the texts of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa

from transforms.canonical import canonical_json
from transforms.outcome import Outcome, kept
from transforms.schema import UNKNOWN

STEP: Final = "group"
REASON: Final = "merged"
RUN: Final = "*run"
"""Column of numbers: documents that follow each other with one number become one."""

_STRICTEST: Final = ("yes", "not checked", "no")
_KEPT: Final = ("id", "origin", "source")


@dataclass(frozen=True, slots=True)
class MergeRuns:
    """Joins the texts of each run with `separator` and drops all but the first document; takes the column of runs away.

    All documents of a run are in one batch.
    """

    separator: str
    schema: pa.Schema
    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of kept rows."""
        return self.schema

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Merge the documents of each run into its first."""
        runs = batch.column(RUN).to_numpy()
        rows = batch.select(self.schema.names)
        starts = np.flatnonzero(np.concatenate([[True], runs[1:] != runs[:-1]])) if len(runs) else np.zeros(0, np.int64)
        sizes = np.diff(np.append(starts, len(runs)))
        several = np.flatnonzero(sizes > 1)
        merged, edits, dropped = [], [], []
        for first, size in zip(starts[several].tolist(), sizes[several].tolist(), strict=True):
            members = rows.slice(first, size).to_pylist()
            merged.append(self._merged(members))
            identity = members[0]["id"]
            inserted = len(merged[-1]["text"]) - len(members[0]["text"])
            evidence = canonical_json({"documents": size})
            edit = {"id": identity, "transform": STEP, "reason": REASON, "cut": 0, "inserted": inserted}
            edits.append({**edit, "evidence": evidence})
            into = canonical_json({"into": identity.hex()})
            dropped += [{"id": m["id"], "transform": STEP, "reason": REASON, "evidence": into} for m in members[1:]]
        alone = np.flatnonzero(sizes == 1)
        parts = [rows.take(pa.array(starts[alone])), pa.RecordBatch.from_pylist(merged, self.schema)]
        order = np.argsort(np.concatenate([alone, several]), kind="stable")
        return kept(pa.concat_batches(parts).take(pa.array(order)), dropped=dropped, edits=edits)

    def _merged(self, members: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the first document with the texts of all, and what they agree in."""
        first = members[0]
        row = {name: value if all(m[name] == value for m in members) else None for name, value in first.items()}
        answers = {signal: {member["optout"][signal] for member in members} for signal in first["optout"]}
        moments = [member["crawled_at"] for member in members if member["crawled_at"] is not None]
        return {
            **row,
            **{name: first[name] for name in _KEPT},
            "text": self.separator.join(member["text"] for member in members),
            "licence": _together(sorted({member["licence"] for member in members})),
            "licence_basis": row["licence_basis"] or UNKNOWN,
            "crawled_at": max(moments, default=None),
            "optout": {signal: min(given, key=_STRICTEST.index) for signal, given in answers.items()},
        }


def _together(licences: Sequence[str]) -> str:
    """Return the licence of a text that has parts under each of `licences`."""
    if UNKNOWN in licences:
        return UNKNOWN
    return licences[0] if len(licences) == 1 else " AND ".join(f"({x})" if " OR " in x else x for x in licences)
