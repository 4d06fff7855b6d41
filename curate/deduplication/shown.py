"""Which near duplicates are sampled with the text of their survivor, so that a report can show both.

The survivor stands in another shard than what goes for it, so both sides must know which pairs are meant: those of the
`MOST` survivors with the lowest ids. While verdicts are resolved these are counted (a leaf of statistics that merges:
`{"least": …}`); each shard then samples those of its documents that are one of them ("survivor"), or that go for one
("pair"). Which pairs depends on ids alone, whatever the cut. Survivors in references are none: they are not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from curate.accounting.samples import PER_REASON
from curate.accounting.statistics import Statistics, merge
from curate.deduplication.plan import Plan
from transforms.outcome import DROPPED, canonical_json, rows
from transforms.schema import ID

MOST: Final = PER_REASON
"""Survivors that are sampled."""

NEAR: Final = "near duplicate"
"""The reason under which both sides of a pair are sampled."""


def lowest_survivors(plan: Plan, verdicts: pa.RecordBatch) -> Statistics:
    """Return the leaf of the lowest survivors of near duplicates in rows of `VERDICTS`, with how many go for each."""
    frozen = ~plan.are_documents(verdicts.column("because").to_numpy())
    near = pc.and_(pc.is_valid(verdicts.column("shared")), pc.invert(pa.array(frozen)))
    counted = verdicts.column("survivor").filter(near).value_counts()
    ids, numbers = counted.field("values"), counted.field("counts")
    lowest = pc.array_sort_indices(ids.cast(pa.binary()))[:MOST]
    found = zip(ids.take(lowest).to_pylist(), numbers.take(lowest).to_pylist(), strict=True)
    return {"least": {identity.hex(): {"documents": number} for identity, number in found}, "k": MOST}


def with_survivors(leaf: Statistics, plan: Plan, verdicts: pa.RecordBatch) -> Statistics:
    """Return `leaf`, empty at first, with those of more `verdicts`."""
    more = lowest_survivors(plan, verdicts)
    return merge(leaf, more) if leaf else more


@dataclass(frozen=True, slots=True)
class Shown:
    """Survivors that are sampled (id → how many near duplicates go for it), and what of a shard goes for one."""

    survivors: Mapping[bytes, int]
    goes: pa.Array

    @classmethod
    def of(cls, survivors: Mapping[bytes, int], ids: pa.Array, verdicts: pa.Table) -> Shown:
        """Return what is shown of the documents `ids` that go, given their `verdicts`."""
        chosen = pa.array(sorted(survivors), ID)
        paired = pc.and_(pc.is_valid(verdicts.column("shared")), pc.is_in(verdicts.column("survivor"), chosen))
        return cls(survivors, ids.filter(paired.combine_chunks()))

    def sampled(self, batch: pa.RecordBatch, dropped: pa.RecordBatch, step: str) -> dict[str, pa.RecordBatch]:
        """Return rows of `DROPPED` to be sampled besides: kind → documents of `batch`, some of them `dropped`."""
        found = {"pair": dropped.filter(pc.is_in(dropped.column("id"), self.goes))}
        chosen = batch.column("id").filter(pc.is_in(batch.column("id"), pa.array(sorted(self.survivors), ID)))
        if len(chosen):
            found["survivor"] = rows(DROPPED, [self._survivor(identity, step) for identity in chosen.to_pylist()])
        return found

    def _survivor(self, identity: bytes, step: str) -> dict[str, Any]:
        evidence = canonical_json({"documents": self.survivors[identity]})
        return {"id": identity, "transform": step, "reason": NEAR, "evidence": evidence}


def survivors_of(statistics: Statistics) -> dict[bytes, int]:
    """Return the survivors that are sampled, from merged statistics; none where none was counted."""
    least: Mapping[str, Mapping[str, int]] = statistics.get("survivors", {}).get("least", {})
    return {bytes.fromhex(identity): counted["documents"] for identity, counted in least.items()}
