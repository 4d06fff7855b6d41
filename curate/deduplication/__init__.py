"""Deduplication over shards: the choreography. The arithmetic is in `transforms.minhash` and `transforms.duplicates`.

    digests     per shard       text digest, keep order       → exchange by digest
    exact       per partition   of equal texts one stays      → exchange by shard
    bands       per shard       band keys of those that stay  → exchange by bucket
    candidates  per partition   pairs that share a bucket     → exchanges by pair, and by shard
    shingles    per shard       shingle sets of candidates
    verify      per partition   exact Jaccard of all pairs    → edges
    decide      once            the sequential rule in keep order over all edges
    apply       per shard       what stays, and the ledger

Memory: a shard or a partition per task; `decide` holds all edges (32 bytes each) and the keep order of their documents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

from curate.accounting import ConservationError
from curate.datasets import Dataset
from curate.deduplication.apply import ApplyJob
from curate.deduplication.exact import DigestsJob, ExactJob
from curate.deduplication.near import BandsJob, CandidatesJob, DecideJob, ShinglesJob, VerifyJob
from curate.deduplication.plan import Plan
from curate.gathered import Receipts
from curate.graph import Deduplicate
from curate.jobs import Item, Job, RunsJobs
from curate.stages import WideStage


class TooManyRemovedError(ConservationError):
    """A source lost a larger share of its documents than `max_removed` allows."""


@dataclass(frozen=True, slots=True)
class Deduplication:
    """One deduplication of `inputs` under the stage's `key`."""

    stage: WideStage
    operation: Deduplicate
    key: str
    inputs: tuple[Dataset, ...]
    engine: RunsJobs

    def run(self) -> tuple[Receipts, list[Receipts]]:
        """Return the receipts of the output's shards, and those of the tasks in between.

        Raises:
            TooManyRemovedError: a source loses more than `max_removed` allows.
        """
        plan = self._plan()
        inner: list[Receipts] = []
        shards, digests, buckets = range(len(plan.shards)), range(plan.digest_partitions), range(plan.bucket_partitions)
        steps: list[tuple[str, Callable[[Plan], Job], Iterable[int]]] = [
            ("digests", DigestsJob, shards),
            ("exact", ExactJob, digests),
        ]
        if plan.method is not None:
            steps += [
                ("bands", BandsJob, shards),
                ("candidates", CandidatesJob, buckets),
                ("shingles", ShinglesJob, shards),
                ("verify", VerifyJob, buckets),
                ("decide", DecideJob, (0,)),
            ]
        for task, job, units in steps:
            items = [Item(plan.task_key(task, unit), f"{task} {unit}", unit) for unit in units]
            inner.append(self.engine.receipts(job(plan), items))
        items = [Item(plan.task_key("apply", unit), f"apply {unit}", unit) for unit in shards]
        receipts = self.engine.receipts(ApplyJob(plan, self.stage.name, self.stage.forbids), items)
        self._check_removed(receipts)
        return receipts, inner

    def _plan(self) -> Plan:
        shards = [shard for dataset in self.inputs for shard in dataset.shards() if shard["content"] is not None]
        operation = self.operation
        return Plan(
            self.engine.store,
            self.key,
            tuple(shard["key"] for shard in shards),
            tuple(shard["rows"] for shard in shards),
            self.stage.sources,
            operation.prefer,
            operation.within,
            operation.method,
            self.stage.schema,
        )

    def _check_removed(self, receipts: Receipts) -> None:
        flows = receipts.statistics().get("steps", {}).get("00", {"sources": {}})["sources"]
        for source, share in self.operation.max_removed:
            flow = flows.get(source, {"documents_in": 0, "documents_out": 0})
            had, stays = flow["documents_in"], flow["documents_out"]
            if had and Fraction(had - stays, had) > Fraction(share):
                raise TooManyRemovedError(
                    f"{self.stage.name}: source {source!r} would lose {had - stays:,} of {had:,} documents, more than "
                    f"the share {share} of max_removed. Look at its ledger: templates and shared licence headers "
                    "glue unlike texts. Raise max_removed, or deduplicate this source apart"
                )
