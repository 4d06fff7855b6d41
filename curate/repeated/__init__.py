"""What a corpus repeats, over shards: lines, paragraphs, spans, URLs, and what a frozen reference has already.

    parts     per shard       digests of lines or paragraphs     → by digest
    repeated  per partition   all but the first; or the frequent → by shard
    or
    anchors   per shard       some hashes of word runs           → by hash
    shared    per partition   those in more than one place       → by shard
    windows   per shard       digests of the words around these  → by digest
    repeated  per partition   all but the first                  → by shard
    or
    keys      per shard       digests of URLs or texts           → by digest
    equal     per partition   all but the first, who stays       → by shard
    then
    apply     per shard       what stays, and the ledger

Documents of references come before all others, and nothing of them comes out. The first occurrence of anything is
never cut or dropped, so whatever goes is still there, in the outcome or in a reference. Memory: a batch with what is
found in it (of spans 100 bytes for each word that starts a window which may be elsewhere), and the buffers of exchange
files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from curate import exchange
from curate.accounting.accountant import Step
from curate.accounting.guard_rail import Unit, check_removed
from curate.committing.gathered import Receipts
from curate.datasets import Dataset
from curate.recipes.graph import CutRepeats, DropEqual
from curate.recipes.reference import frozen_shards, references_of
from curate.recipes.stages import WideStage
from curate.regroup import Exchange, Regrouped, regroup
from curate.repeated.apply import CutParts, CutSpans, DropEqualOnes, ToldUnit
from curate.repeated.equal import EqualJob, KeysJob, equal_exchange, keyed_exchange
from curate.repeated.parts import PartsJob, RepeatedPartsJob, parts_exchange, parts_gone_exchange
from curate.repeated.plan import Plan
from curate.repeated.spans import (
    AnchorsJob,
    RepeatedSpansJob,
    SharedJob,
    WindowsJob,
    anchors_exchange,
    shared_exchange,
    spans_gone_exchange,
    windows_exchange,
)
from curate.running.documents import DocumentJob
from curate.running.jobs import Item, Job, RunsJobs
from transforms.parts import RepeatedParts
from transforms.substrings import RepeatedSpans

DROPPING = "deduplicate"


@dataclass(frozen=True, slots=True)
class Repetition:
    """One operation on repeats in `inputs` under the stage's `key`."""

    stage: WideStage
    operation: CutRepeats | DropEqual
    key: str
    inputs: tuple[Dataset, ...]
    engine: RunsJobs

    def run(self) -> tuple[Receipts, list[Receipts]]:
        """Return the receipts of the output's shards, and those of the tasks in between.

        Raises:
            ConfigurationError: the reference is not what it was when the recipe was called.
            TooManyRemovedError: a source loses more than `max_removed` allows.
        """
        made = _Making(self._plan(), self.engine)
        told, step = self._made(made)
        plan = made.plan
        job = DocumentJob(plan.store, self.stage.name, None, (step,), plan.schema, self.stage.forbids)
        units = range(len(plan.shards))
        items = [Item(plan.task_key(unit), f"apply {unit}", ToldUnit(plan, told, unit)) for unit in units]
        receipts = self.engine.receipts(job, items)
        unit: Unit = "documents" if isinstance(self.operation, DropEqual) else "characters"
        check_removed(self.stage.name, receipts, self.operation.max_removed, unit)
        return receipts, made.inner

    def _made(self, made: _Making) -> tuple[Regrouped, Step]:
        """Return what is told of the documents, and the step that is told."""
        operation, schema = self.operation, made.plan.schema
        if isinstance(operation, DropEqual):
            reason = "equal text" if operation.form is None else "equal URL"
            return made.equal(operation), Step(DROPPING, DropEqualOnes(DROPPING, reason, schema))
        if isinstance(operation.what, RepeatedParts):
            return made.parts(operation.what), Step("RepeatedParts", CutParts(operation.what, schema))
        spans = operation.what
        return made.spans(spans), Step("RepeatedSpans", CutSpans(spans, schema))

    def _plan(self) -> Plan:
        shards = [shard for dataset in self.inputs for shard in dataset.kept_shards()]
        frozen, sizes = frozen_shards(references_of(self.operation.against))
        size = sum(shard["bytes"] for shard in shards) + sum(sizes)
        return Plan(
            self.engine.store,
            self.key,
            tuple(shard["key"] for shard in shards),
            frozen,
            self.stage.sources,
            self.operation.prefer,
            self.stage.schema,
            4 * size,  # stored files are compressed, and a row that is exchanged is as long as a line
            exchange.LIMITS,
        )


@dataclass(slots=True)
class _Making:
    """Runs the tasks in between, one kind after the other, and keeps their receipts."""

    plan: Plan
    engine: RunsJobs
    inner: list[Receipts] = field(default_factory=list)

    def equal(self, operation: DropEqual) -> Regrouped:
        """Return which documents equal one that stays."""
        self.tasks("keys", KeysJob(self.plan, operation), self.plan.units)
        found = self.regroup("keys", self.plan.units, keyed_exchange)
        self.tasks("equal", EqualJob(self.plan, found), self.plan.partitions)
        return self.regroup("equal", self.plan.partitions, equal_exchange)

    def parts(self, what: RepeatedParts) -> Regrouped:
        """Return which lines or paragraphs go."""
        self.tasks("parts", PartsJob(self.plan, what), self.plan.units)
        found = self.regroup("parts", self.plan.units, parts_exchange)
        self.tasks("repeated", RepeatedPartsJob(self.plan, what, found), self.plan.partitions)
        return self.regroup("repeated", self.plan.partitions, parts_gone_exchange)

    def spans(self, what: RepeatedSpans) -> Regrouped:
        """Return which windows go."""
        plan = self.plan
        self.tasks("anchors", AnchorsJob(plan, what), plan.units)
        self.tasks("shared", SharedJob(plan, self.regroup("anchors", plan.units, anchors_exchange)), plan.partitions)
        shared = self.regroup("shared", plan.partitions, shared_exchange)
        self.tasks("windows", WindowsJob(plan, what, shared), plan.units)
        windows = self.regroup("windows", plan.units, windows_exchange)
        self.tasks("repeated", RepeatedSpansJob(plan, windows), plan.partitions)
        return self.regroup("repeated", plan.partitions, spans_gone_exchange)

    def tasks(self, task: str, job: Job, units: int) -> None:
        """Run the tasks of one kind."""
        items = [Item(self.plan.inner_key(task, unit), f"{task} {unit}", unit) for unit in range(units)]
        self.inner.append(self.engine.receipts(job, items))

    def regroup(self, task: str, units: int, what: Callable[[Plan], Exchange]) -> Regrouped:
        """Regroup what the tasks of one kind published."""
        tasks = [self.plan.inner_key(task, unit) for unit in range(units)]
        regrouped, inner = regroup(self.engine, what(self.plan), tasks)
        self.inner += inner
        return regrouped
