"""Holding documents out for validation, over shards: the choreography. The arithmetic is in `transforms.hold_out`.

    choices   per shard   what would be held out if the shard were all there is, and what decides; sizes of strata
    choose    once        what is held out of each stratum
    held      per shard   these documents, and their shingle sets
    index     once        what training is compared with
    valid     per shard   that has any: validation
    train     per shard   what is neither held out, nor equal or too near to what is; and the ledger

Both outputs are made of the same tasks, under one key. Guarantee: training and validation share no text and no pair at
or above the threshold; no pair is missed (see `transforms.hold_out`). Memory: a batch per task, and all that is held
out; `choose` has at most the limit's documents of each shard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from curate.accounting import Step
from curate.datasets import Dataset
from curate.documents import DocumentJob, ShardUnit
from curate.gathered import Receipts
from curate.graph import HoldOut
from curate.holdout.apply import STEP, LeavesTraining, StaysOut
from curate.holdout.choose import ChoicesJob, ChooseJob
from curate.holdout.held import HeldJob, IndexJob
from curate.holdout.plan import Plan
from curate.jobs import Item, Job, RunsJobs
from curate.stages import WideStage
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
        steps: list[tuple[str, Callable[[Plan], Job], Iterable[int]]] = [
            ("choices", ChoicesJob, shards),
            ("choose", ChooseJob, (0,)),
            ("held", HeldJob, shards),
            ("index", IndexJob, (0,)),
        ]
        inner: dict[str, Receipts] = {}
        for task, job, units in steps:
            items = [Item(plan.task_key(task, unit), f"{task} {unit}", unit) for unit in units]
            inner[task] = self.engine.receipts(job(plan), items)
        made = self._train(plan) if self.operation.part == TRAIN else self._valid(plan, inner["held"])
        return made, list(inner.values())

    def _plan(self) -> Plan:
        shards = [shard for dataset in self.inputs for shard in dataset.shards() if shard["content"] is not None]
        operation = self.operation
        return Plan(
            self.engine.store,
            self.key,
            tuple(shard["key"] for shard in shards),
            Limit(operation.characters, operation.documents),
            operation.per,
            operation.method,
            self.stage.schema,
        )

    def _train(self, plan: Plan) -> Receipts:
        leaves = LeavesTraining(plan.file("index", 0, "index.parquet"), plan.method, plan.schema)
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
