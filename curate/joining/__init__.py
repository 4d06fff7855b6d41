"""Joining two datasets by id, over shards: the choreography of `Dataset.join`.

    left    per shard       ids and places of the documents        → by id
    right   per shard       ids and wanted columns of the others   → by id
    match   per partition   what belongs to each document          → by shard of the documents
    join    per shard       the documents with their columns

Invariants: the shards, documents and texts of the left input stay, in order; each document gets the columns of the one
row on the right that has its id, or nulls. Two rows on the right with one id are an error that names both. Memory:
batches, and the buffers of exchange files.
"""

from __future__ import annotations

from dataclasses import dataclass

from curate import exchange
from curate.committing.gathered import Receipts
from curate.datasets import Dataset
from curate.joining.apply import JoinJob
from curate.joining.match import LeftJob, MatchJob, RightJob
from curate.joining.plan import LEFT_BYTES, Plan
from curate.recipes.graph import Join
from curate.recipes.stages import WideStage
from curate.regroup import Exchange, Regrouped, regroup
from curate.running.jobs import Item, Job, RunsJobs


@dataclass(frozen=True, slots=True)
class Joining:
    """One join of `inputs` (documents, what is joined) under the stage's `key`."""

    stage: WideStage
    operation: Join
    key: str
    inputs: tuple[Dataset, ...]
    engine: RunsJobs

    def run(self) -> tuple[Receipts, list[Receipts]]:
        """Return the receipts of the output's shards, and those of the tasks in between.

        Raises:
            TaskError: two rows on the right have one id.
        """
        plan = self._plan()
        inner: list[Receipts] = []

        def tasks(task: str, job: Job, units: int) -> list[str]:
            items = [Item(plan.inner_key(task, unit), f"{task} {unit}", unit) for unit in range(units)]
            inner.append(self.engine.receipts(job, items))
            return [item.key for item in items]

        def regrouped(what: Exchange, keys: list[str]) -> Regrouped:
            found, merges = regroup(self.engine, what, keys)
            inner.extend(merges)
            return found

        left = regrouped(plan.left_exchange, tasks("left", LeftJob(plan), len(plan.left)))
        right = regrouped(plan.right_exchange, tasks("right", RightJob(plan), len(plan.right)))
        matched = regrouped(plan.matched_exchange, tasks("match", MatchJob(plan, left, right), plan.partitions))
        items = [Item(plan.task_key(unit), f"join {unit}", unit) for unit in range(len(plan.left))]
        job = JoinJob(plan, matched, self.stage.name, self.stage.forbids)
        return self.engine.receipts(job, items), inner

    def _plan(self) -> Plan:
        left, right = (made.kept_shards() for made in self.inputs)
        documents, other = self.stage.inputs
        size = sum(s["rows"] for s in left) * LEFT_BYTES + sum(s["bytes"] for s in right)
        return Plan(
            self.engine.store,
            self.key,
            tuple(shard["key"] for shard in left),
            tuple(shard["key"] for shard in right),
            documents.schema,
            other.schema,
            self.stage.schema,
            self.operation.columns,
            self.inputs[1].name,
            exchange.LIMITS.partitions(size),
            exchange.LIMITS,
        )
