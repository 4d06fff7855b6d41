"""Semantic deduplication over shards: the choreography. The arithmetic is in `transforms.semantic`.

    words     per shard       documents with each bucket of words: for the default embedder without a rarity of its own
    rarity    once            what each bucket weighs
    vectors   per shard       vectors, and those of a sample by text digest
    centres   once            k-means on the sample
    nearest   per shard       every vector to its nearest centre                 → by cluster
    compare   per partition   in keep order, what resembles one that stays goes  → by shard; who stays, by border
    borders   per partition   the same, of two clusters that are next to each other  → by shard
    apply     per shard       what stays, and the ledger

Documents of references come before all others, always stay, and never come out. Documents without words resemble
nothing. What a cluster compares is bounded: `cap` documents with all others, larger clusters are divided by k-means
again, and of one that is more than a task holds (`plan.HELD`) the rest is compared among itself.

Invariants: what stays depends on the texts, their keep order and the operation, not on shards or workers: integers
throughout with the default embedder; with one that computes floats as far as those are the same, once rounded.
Cost: embedding; then 1 byte per document and dimension on disk twice, and per document some thousand products of
vectors. Memory: `HELD` vectors, or a batch of texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from curate import exchange
from curate.accounting.accountant import Step
from curate.accounting.guard_rail import check_removed
from curate.committing.gathered import Receipts
from curate.datasets import Dataset
from curate.recipes.graph import DropAlike
from curate.recipes.reference import frozen_shards, references_of
from curate.recipes.stages import WideStage
from curate.regroup import Exchange, Regrouped, regroup
from curate.repeated.apply import ToldUnit
from curate.repeated.plan import Plan
from curate.running.documents import DocumentJob
from curate.running.jobs import Item, Job, RunsJobs
from curate.semantic.apply import STEP, DropAlikeOnes
from curate.semantic.clusters import AssignJob, BordersJob, CentresJob, UnlikeJob
from curate.semantic.plan import Clustered, clusters_for
from curate.semantic.vectors import FrequenciesJob, RarityJob, VectorsJob, counts_words


@dataclass(frozen=True, slots=True)
class SemanticDeduplication:
    """One semantic deduplication of `inputs` under the stage's `key`."""

    stage: WideStage
    operation: DropAlike
    key: str
    inputs: tuple[Dataset, ...]
    engine: RunsJobs

    def run(self) -> tuple[Receipts, list[Receipts]]:
        """Return the receipts of the output's shards, and those of the tasks in between.

        Raises:
            ConfigurationError: a reference is not what it was when the recipe was called.
            TooManyRemovedError: a source loses more than `max_removed` allows.
        """
        made = _Making(self._plan(), self.engine)
        told, plan = made.alike(), made.plan.shards
        step = Step(STEP, DropAlikeOnes(self.operation.similarity, plan.schema))
        job = DocumentJob(plan.store, self.stage.name, None, (step,), plan.schema, self.stage.forbids)
        units = range(len(plan.shards))
        items = [Item(plan.task_key(unit), f"apply {unit}", ToldUnit(plan, told, unit)) for unit in units]
        receipts = self.engine.receipts(job, items)
        check_removed(self.stage.name, receipts, self.operation.max_removed, "documents")
        return receipts, made.inner

    def _plan(self) -> Clustered:
        shards = [shard for dataset in self.inputs for shard in dataset.kept_shards()]
        frozen, sizes = frozen_shards(references_of(self.operation.against), "rows")
        rows = sum(shard["rows"] for shard in shards) + sum(sizes)
        plan = Plan(
            self.engine.store,
            self.key,
            tuple(shard["key"] for shard in shards),
            frozen,
            self.stage.sources,
            self.operation.prefer,
            self.stage.schema,
            rows * (self.operation.embedder.dimension + 64),
            exchange.LIMITS,
        )
        return Clustered(plan, self.operation, self.operation.clusters or clusters_for(rows))


@dataclass(slots=True)
class _Making:
    """Runs the tasks in between, one kind after the other, and keeps their receipts."""

    plan: Clustered
    engine: RunsJobs
    inner: list[Receipts] = field(default_factory=list)

    def alike(self) -> Regrouped:
        """Return which documents resemble one that stays."""
        plan, units = self.plan, self.plan.shards.units
        if counts_words(plan.operation.embedder):
            counted = self.tasks("words", FrequenciesJob(plan), units).statistics()
            self.tasks("rarity", RarityJob(plan, counted.get("semantic", {"documents": 0})["documents"]), 1)
        self.tasks("vectors", VectorsJob(plan), units)
        self.tasks("centres", CentresJob(plan), 1)
        self.tasks("nearest", AssignJob(plan), units)
        clustered = self.regroup("nearest", units, plan.clustered)
        self.tasks("compare", UnlikeJob(plan, clustered), plan.partitions)
        self.tasks("borders", BordersJob(plan, self.regroup("compare", plan.partitions, plan.borders)), plan.partitions)
        keys = [plan.shards.inner_key(task, unit) for task in ("compare", "borders") for unit in range(plan.partitions)]
        return self.regrouped(keys, plan.gone)

    def tasks(self, task: str, job: Job, units: int) -> Receipts:
        """Run the tasks of one kind."""
        items = [Item(self.plan.shards.inner_key(task, unit), f"{task} {unit}", unit) for unit in range(units)]
        receipts = self.engine.receipts(job, items)
        self.inner.append(receipts)
        return receipts

    def regroup(self, task: str, units: int, what: Exchange) -> Regrouped:
        """Regroup what the tasks of one kind published."""
        return self.regrouped([self.plan.shards.inner_key(task, unit) for unit in range(units)], what)

    def regrouped(self, keys: Sequence[str], what: Exchange) -> Regrouped:
        """Regroup what the tasks of these keys published."""
        regrouped, inner = regroup(self.engine, what, keys)
        self.inner += inner
        return regrouped
