"""What stays of a shard, and for each document that goes a survivor of this stage in the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curate.accounting import Step
from curate.deduplication.exact import exact_drops
from curate.deduplication.near import near_drops
from curate.deduplication.plan import SHARD_BITS, Plan, shards_of
from curate.documents import DocumentJob, ShardUnit
from curate.jobs import Item
from curate.stages import fit_to
from curate.store import Store
from transforms.exact import decimal_text
from transforms.outcome import Outcome, canonical_json, kept

STEP = "deduplicate"


@dataclass(frozen=True, slots=True)
class ApplyJob:
    """Per input shard: its documents without those that go."""

    plan: Plan
    name: str
    forbids: frozenset[str]

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    def run(self, item: Item) -> int:
        """Publish what stays of shard `item.unit`, and return how many documents it had."""
        step = Step(STEP, DropListed(drops(self.plan, item.unit), self.plan.schema))
        job = DocumentJob(self.store, self.name, None, (step,), self.plan.schema, self.forbids)
        return job.run(Item(item.key, item.label, ShardUnit(self.plan.shards[item.unit])))


@dataclass(frozen=True, slots=True)
class DropListed:
    """Drops the listed documents (id → columns of the ledger) and empty texts; gives rows the columns of `schema`."""

    listed: Mapping[bytes, Mapping[str, Any]]
    schema: pa.Schema
    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of kept rows."""
        return self.schema

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Drop what is listed."""
        empty = pc.equal(pc.binary_length(batch.column("text")), 0).to_pylist()
        dropped = []
        stays = []
        for identity, nothing in zip(batch.column("id").to_pylist(), empty, strict=True):
            verdict = self.listed.get(identity)
            if nothing:
                verdict = {"reason": "empty text"}
            stays.append(verdict is None)
            if verdict is not None:
                dropped.append({"id": identity, "transform": STEP, **verdict})
        return kept(fit_to(batch.filter(pa.array(stays, pa.bool_())), self.schema), dropped=dropped)


def drops(plan: Plan, shard: int) -> dict[bytes, dict[str, Any]]:
    """Return id → reason, measure and survivor of the documents of `shard` that go.

    A document whose equal text goes as a near duplicate goes for the same survivor: nothing names one that is gone.
    """
    ids = plan.table(shard, ["id"]).column("id").to_pylist()
    exact = exact_drops(plan, shard)
    result: dict[bytes, dict[str, Any]] = {}
    gone: dict[int, dict[str, Any]] = {}
    if plan.method is not None:
        shards = np.unique(np.append(shards_of(exact.column("keeper").to_numpy()), shard))
        gone = {row["ref"]: row for row in near_drops(plan, shards).to_pylist()}
    for ref, row in gone.items():
        if ref >> SHARD_BITS == shard:
            result[ids[ref & ((1 << SHARD_BITS) - 1)]] = _near(plan, row, {})
    for row in exact.to_pylist():
        identity = ids[row["ref"] & ((1 << SHARD_BITS) - 1)]
        later = gone.get(row["keeper"])
        if later is None:
            result[identity] = {
                "reason": "equal text",
                "measure": "Jaccard similarity",
                "numerator": 1,
                "denominator": 1,
                "threshold": "< 1",
                "evidence": canonical_json({"survivor": row["keeper_id"].hex()}),
            }
        else:
            result[identity] = _near(plan, later, {"equal_to": row["keeper_id"].hex()})
    return result


def _near(plan: Plan, row: Mapping[str, Any], further: Mapping[str, str]) -> dict[str, Any]:
    threshold = "1" if plan.method is None else decimal_text(plan.method.ratio)
    return {
        "reason": "near duplicate",
        "measure": "Jaccard similarity",
        "numerator": row["intersection"],
        "denominator": row["union"],
        "threshold": f"< {threshold}",
        "evidence": canonical_json({"survivor": row["keeper_id"].hex(), **further}),
    }
