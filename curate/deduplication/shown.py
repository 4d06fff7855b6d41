"""Which near duplicates are sampled with the text of their survivor, so that a report can show both.

The survivor stands in another shard than what goes for it, so both sides must know which pairs are meant: those of the
`MOST` survivors with the lowest ids. While verdicts are resolved these are counted (a leaf of statistics that merges:
`{"least": …}`); each shard then samples those of its documents that are one of them ("survivor"), or that go for one
("pair"). Which pairs depends on ids alone, whatever the cut. Survivors in references are none: they are not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curate.accounting.samples import PER_REASON
from curate.accounting.statistics import Statistics, add, merge
from curate.datasets import Dataset
from curate.deduplication.plan import Plan, shards_of
from transforms.canonical import canonical_json
from transforms.outcome import DROPPED, rows
from transforms.schema import ID

MOST: Final = PER_REASON
"""Survivors that are sampled."""

CLUSTERS: Final = 256
"""Survivors of which the number of documents that go for them is kept."""

NEAR: Final = "near duplicate"
"""The reason under which both sides of a pair are sampled."""

EQUAL: Final = "equal text"
SEVERAL: Final = "several sources"
"""Where documents come from that are in a dataset of several sources."""


def lowest_survivors(plan: Plan, verdicts: pa.RecordBatch) -> Statistics:
    """Return the leaves of the lowest survivors in rows of `VERDICTS`.

    "survivors" are those of near duplicates, with how many go for each; "clusters" are more of them, with how many
    documents go for each, equal texts included.
    """
    ours = plan.are_documents(verdicts.column("because").to_numpy())
    near = pc.and_(pc.is_valid(verdicts.column("shared")), pa.array(ours))
    survivors = verdicts.column("survivor")
    return {
        "survivors": _lowest(survivors.filter(near), MOST),
        "clusters": _lowest(survivors.filter(pa.array(ours)), CLUSTERS),
    }


def _lowest(ids: pa.Array, most: int) -> Statistics:
    """Return the leaf of the `most` lowest of `ids`, with how often each stands there."""
    counted = ids.value_counts()
    names, numbers = counted.field("values"), counted.field("counts")
    lowest = pc.array_sort_indices(names.cast(pa.binary()))[:most]
    found = zip(names.take(lowest).to_pylist(), numbers.take(lowest).to_pylist(), strict=True)
    return {"least": {identity.hex(): {"documents": number} for identity, number in found}, "k": most}


def with_survivors(leaves: Statistics, plan: Plan, verdicts: pa.RecordBatch) -> Statistics:
    """Return `leaves`, none at first, with those of more `verdicts`."""
    more = lowest_survivors(plan, verdicts)
    return merge(leaves, more) if leaves else more


def count_between(pairs: Statistics, plan: Plan, verdicts: pa.RecordBatch) -> None:
    """Add to `pairs` (place of the survivor → place of what goes for it → reason → documents) what `verdicts` say."""
    places = plan.places or (SEVERAL,) * plan.units
    goes, stays = (shards_of(verdicts.column(name).to_numpy()) for name in ("ref", "because"))
    near = np.asarray(verdicts.column("shared").is_valid())
    size = len(places)
    codes, counts = np.unique((stays * size + goes) * 2 + near, return_counts=True)
    for code, documents in zip(codes.tolist(), counts.tolist(), strict=True):
        both, is_near = divmod(code, 2)
        stay, go = (places[place] for place in divmod(both, size))
        add(pairs, [stay, go, NEAR if is_near else EQUAL], documents)


def places_of(datasets: Sequence[Dataset]) -> Iterator[str]:
    """Yield for each shard of `datasets` the source of its documents: `SEVERAL` where its dataset has several."""
    for dataset in datasets:
        sources = list(dataset.statistics.get("groups", {}).get("source", {}))
        place = sources[0] if len(sources) == 1 else SEVERAL
        yield from (place for _ in dataset.kept_shards())


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
