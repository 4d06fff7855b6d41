"""The quarantine list: documents that took a worker down when tried alone, and what happened.

`<store>/quarantine/<shard key>.jsonl` holds one canonical JSON object a line, with id, reason, transform and evidence.
It is created once, read before the shard's task runs, and its digest stands in the receipt, because what it says is
part of the input: its documents are dropped with that reason before any transform sees them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from curate.digests import digest_bytes, short
from curate.store import Store, StoreError, json_line
from transforms.outcome import Outcome, kept

REASONS: Final = ("crashed", "hung", "out of memory")


@dataclass(frozen=True, slots=True)
class Verdict:
    """A document that must not reach `transform`, and why: one of `REASONS`."""

    id: bytes
    reason: str
    transform: str
    evidence: str | None = None


@dataclass(frozen=True, slots=True)
class Quarantine:
    """The verdicts on one shard, and the digest of the list (None when there is none)."""

    verdicts: Mapping[bytes, Verdict]
    digest: str | None

    def apply(self, batch: pa.RecordBatch) -> Outcome | None:
        """Return the outcome of dropping the quarantined documents of `batch`, or None when it holds none."""
        hits = [self.verdicts[identity] for identity in batch.column("id").to_pylist() if identity in self.verdicts]
        if not hits:
            return None
        listed = pa.array(list(self.verdicts), pa.binary(16))
        mask = pc.invert(pc.is_in(batch.column("id"), listed))
        dropped = [
            {"id": hit.id, "transform": hit.transform, "reason": f"quarantined: {hit.reason}", "evidence": hit.evidence}
            for hit in hits
        ]
        return kept(batch.filter(mask), dropped=dropped)


NO_QUARANTINE: Final = Quarantine({}, None)


def quarantine_name(key: str) -> str:
    """Return the name of the quarantine list of the shard `key` within the store."""
    return f"quarantine/{short(key)}.jsonl"


def write_quarantine(store: Store, key: str, verdicts: list[Verdict]) -> None:
    """Publish the quarantine list of the shard `key`.

    Raises:
        StoreError: another list is published already.
    """
    lines = [
        json_line({"id": v.id.hex(), "reason": v.reason, "transform": v.transform, "evidence": v.evidence})
        for v in sorted(verdicts, key=lambda verdict: verdict.id)
    ]
    store.publish_bytes(b"".join(lines), quarantine_name(key))


def read_quarantine(store: Store, key: str) -> Quarantine:
    """Return the quarantine list of the shard `key`, empty when there is none.

    Raises:
        StoreError: a line is not a verdict.
    """
    name = quarantine_name(key)
    if not store.exists(name):
        return NO_QUARANTINE
    path, content = store.url(name), store.read_bytes(name)
    verdicts = {}
    for number, line in enumerate(content.splitlines(), 1):
        try:
            value = json.loads(line)
            verdict = Verdict(bytes.fromhex(value["id"]), value["reason"], value["transform"], value["evidence"])
            if verdict.reason not in REASONS or len(verdict.id) != 16:
                raise ValueError(f"reason {verdict.reason!r}")
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(f"{path} line {number} is not a quarantine verdict: {error}") from error
        verdicts[verdict.id] = verdict
    return Quarantine(verdicts, digest_bytes(content))
