"""Holding documents out for validation, over shards: the choreography. The arithmetic is in `transforms.hold_out`.

    choices   per shard   what would be held out if the shard were all there is, and what decides; sizes of strata
    choose    once        what is held out of each stratum
    held      per shard   these documents, and their shingle sets
    index     once        what training is compared with
    valid     per shard   that has any: validation
    train     per shard   what is neither held out, nor equal or too near to what is; and the ledger

Both outputs are made of the same tasks, under one key. Guarantee: training and validation share no text and no pair at
or above the threshold; no pair is missed (see `transforms.hold_out`). Memory: a batch per task; `index` and all
that follow have what is held out, `choices` and `choose` the limit's documents of each stratum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from curate import exchange
from curate.accounting.accountant import Step
from curate.committing.gathered import Receipts
from curate.datasets import Dataset
from curate.holdout.apply import STEP, LeavesTraining, StaysOut
from curate.holdout.choose import ChoicesJob, ChooseJob
from curate.holdout.held import HeldJob, IndexJob, held_exchange
from curate.holdout.plan import Plan
from curate.recipes.graph import HoldOut
from curate.recipes.stages import WideStage
from curate.regroup import regroup
from curate.running.documents import DocumentJob, ShardUnit
from curate.running.jobs import Item, Job, RunsJobs
from transforms.hold_out import Limit
from transforms.outcome import Transform

TRAIN = "train"
VALID = "valid"


@dataclass(frozen=True, slots=True)
class HoldingOut:
    """One hold-out of `inputs`; `key` is that of both outputs, `operation.part` the one that `run` makes."""

    stage: WideStage
    operation: HoldOut
    key: str
    inputs: tuple[Dataset, ...]
    engine: RunsJobs

    def run(self) -> tuple[Receipts, list[Receipts]]:
        """Return the receipts of the shards of this part, and those of the tasks in between."""
        plan = self._plan()
        shards = range(len(plan.shards))
        choices = self._tasks(ChoicesJob(plan), "choices", [plan.task_key("choices", unit) for unit in shards])
        chosen = self._tasks(ChooseJob(plan), "choose", [plan.task_key("choose", 0)])
        keys = [plan.inner_key("held", unit) for unit in shards]
        held = self._tasks(HeldJob(plan), "held", keys)
        regrouped, merges = regroup(self.engine, held_exchange(plan), keys)
        index = self._tasks(IndexJob(plan, regrouped), "index", [plan.task_key("index", 0)])
        made = self._train(plan) if self.operation.part == TRAIN else self._valid(plan, held)
        return made, [choices, chosen, held, *merges, index]

    def _tasks(self, job: Job, task: str, keys: Sequence[str]) -> Receipts:
        items = [Item(key, f"{task} {unit}", unit) for unit, key in enumerate(keys)]
        return self.engine.receipts(job, items)

    def _plan(self) -> Plan:
        shards = [shard for dataset in self.inputs for shard in dataset.kept_shards()]
        operation = self.operation
        return Plan(
            self.engine.store,
            self.key,
            tuple(shard["key"] for shard in shards),
            Limit(operation.characters, operation.documents),
            operation.per,
            operation.method,
            self.stage.schema,
            exchange.LIMITS,
        )

    def _train(self, plan: Plan) -> Receipts:
        leaves = LeavesTraining(plan.store, plan.task_key("index", 0), plan.method, plan.schema)
        items = [
            Item(plan.task_key(TRAIN, unit), f"{TRAIN} {unit}", ShardUnit(shard))
            for unit, shard in enumerate(plan.shards)
        ]
        return self.engine.receipts(self._job(leaves), items)

    def _valid(self, plan: Plan, held: Receipts) -> Receipts:
        items = [
            Item(plan.task_key(VALID, unit), f"{VALID} {unit}", ShardUnit(receipt.key))
            for unit, receipt in enumerate(held)
            if "part.parquet" in receipt.files
        ]
        return self.engine.receipts(self._job(StaysOut(plan.schema)), items)

    def _job(self, transform: Transform) -> DocumentJob:
        step = Step(STEP, transform)
        return DocumentJob(self.engine.store, self.stage.name, None, (step,), self.stage.schema, self.stage.forbids)
