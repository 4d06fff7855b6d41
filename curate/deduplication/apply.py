"""What stays of a shard, and for each document that goes a survivor of this stage in the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curate.accounting import Step
from curate.deduplication.plan import VERDICTS, Plan, cursor_of, not_empty
from curate.documents import DocumentJob, ShardUnit
from curate.jobs import Item, Resources
from curate.regroup import Regrouped
from curate.stages import fit_to
from curate.store import Store
from transforms.exact import decimal_text
from transforms.outcome import Outcome, canonical_json, kept
from transforms.similarity import Measure

STEP: Final = "deduplicate"
MEASURES: Final[Mapping[Measure, str]] = {"jaccard": "Jaccard similarity", "containment": "containment"}


@dataclass(frozen=True, slots=True)
class ApplyJob:
    """Per input shard: its documents without those that go. Memory: 80 bytes per document that goes."""

    plan: Plan
    verdicts: Regrouped
    name: str
    forbids: frozenset[str]

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return self.plan.resources

    def run(self, item: Item) -> int:
        """Publish what stays of shard `item.unit`, and return how many documents it had."""
        measure: Measure = "jaccard" if self.plan.method is None else self.plan.method.measure
        listing = listed(self.plan, self.verdicts, item.unit)
        step = Step(STEP, DropListed(*listing, self._threshold(), measure, self.plan.schema))
        job = DocumentJob(self.store, self.name, None, (step,), self.plan.schema, self.forbids)
        return job.run(Item(item.key, item.label, ShardUnit(self.plan.shards[item.unit])))

    def _threshold(self) -> str:
        return "< 1" if self.plan.method is None else f"< {decimal_text(self.plan.method.ratio)}"


def listed(plan: Plan, verdicts: Regrouped, shard: int) -> tuple[npt.NDArray[np.bytes_], pa.Table]:
    """Return the ids of the documents of `shard` that go, sorted, and their rows of `VERDICTS`."""
    cursor = cursor_of(plan, verdicts, shard)
    ids, rows = [np.empty(0, "S16")], [pa.RecordBatch.from_pylist([], VERDICTS)]
    for batch, refs in plan.batches(shard, "id"):
        mine = cursor.below(int(refs[-1]) + 1)
        rows.append(mine)
        ids.append(_bytes(batch.column("id"))[mine.column("ref").to_numpy() - refs[0]])
    found, table = np.concatenate(ids), pa.Table.from_batches(rows).combine_chunks()
    order = np.argsort(found, kind="stable")
    return found[order], table.take(pa.array(order))


def _bytes(ids: pa.Array) -> npt.NDArray[np.bytes_]:
    data = np.frombuffer(ids.buffers()[1], "S16", len(ids), ids.offset * 16)
    return np.asarray(data)


@dataclass(frozen=True, slots=True)
class DropListed:
    """Drops the documents `ids`, to which `verdicts` say why, and empty texts; gives rows the columns of `schema`."""

    ids: npt.NDArray[np.bytes_]
    verdicts: pa.Table
    threshold: str
    measure: Measure
    schema: pa.Schema
    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of kept rows."""
        return self.schema

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Drop what is listed."""
        ids, stays = _bytes(batch.column("id")), not_empty(batch.column("text"))
        place = np.searchsorted(self.ids, ids)
        found = place < len(self.ids)
        found[found] = self.ids[place[found]] == ids[found]
        dropped = []
        names = batch.column("id").filter(pa.array(found | ~stays)).to_pylist()
        for name, row in zip(names, np.flatnonzero(found | ~stays).tolist(), strict=True):
            verdict = {"reason": "empty text"}
            if stays[row]:
                verdict = self._verdict(self.verdicts.slice(int(place[row]), 1).to_pylist()[0])
            dropped.append({"id": name, "transform": STEP, **verdict})
        return kept(fit_to(batch.filter(pa.array(stays & ~found)), self.schema), dropped=dropped)

    def _verdict(self, row: Mapping[str, Any]) -> dict[str, Any]:
        near = row["shared"] is not None
        further = {"equal_to": row["equal_to"].hex()} if row["equal_to"] is not None else {}
        further |= {"band": row["band"]} if near else {}
        return {
            "reason": "near duplicate" if near else "equal text",
            "measure": MEASURES[self.measure],
            "numerator": row["shared"] if near else 1,
            "denominator": row["whole"] if near else 1,
            "threshold": self.threshold if near else "< 1",
            "evidence": canonical_json({"survivor": row["survivor"].hex(), **further}),
        }
