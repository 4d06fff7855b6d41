"""Making one document of many, as a repository of its files: the choreography of `Dataset.group`.

    regroup   per shard       documents by a digest of (source, value), ordered within  → by group
    group     per partition   the documents of each group become one

The first document of a group gets the texts of the others and keeps its id and origin; the others are dropped as
"merged", each naming it. So nothing comes from nowhere: texts are in the books as inserted and dropped. The outcome is
in the order of the digests of groups, so it does not depend on how the input was cut. Memory: the buffers of exchange
files and one group; a group that is too large goes on in a second document.
"""

from __future__ import annotations

from dataclasses import dataclass

from curate import exchange
from curate.accounting.accountant import Step
from curate.committing.gathered import Receipts
from curate.datasets import Dataset
from curate.grouping.merge import RUN, STEP, MergeRuns
from curate.grouping.regrouping import GroupUnit, Plan, RegroupJob
from curate.recipes.graph import Group
from curate.recipes.stages import WideStage
from curate.regroup import regroup
from curate.running.documents import DocumentJob
from curate.running.jobs import Item, RunsJobs


@dataclass(frozen=True, slots=True)
class Grouping:
    """One grouping of `inputs` under the stage's `key`."""

    stage: WideStage
    operation: Group
    key: str
    inputs: tuple[Dataset, ...]
    engine: RunsJobs

    def run(self) -> tuple[Receipts, list[Receipts]]:
        """Return the receipts of the output's shards, and those of the tasks in between."""
        plan = self._plan()
        keys = [plan.inner_key("regroup", unit) for unit in range(len(plan.shards))]
        items = [Item(key, f"regroup {unit}", unit) for unit, key in enumerate(keys)]
        mapped = self.engine.receipts(RegroupJob(plan), items)
        regrouped, merges = regroup(self.engine, plan.rows, keys)
        step = Step(STEP, MergeRuns(self.operation.separator, self.stage.schema))
        job = DocumentJob(plan.store, self.stage.name, None, (step,), self.stage.schema, self.stage.forbids)
        units = range(plan.rows.partitions)
        largest = self.operation.largest
        items = [Item(plan.task_key(unit), f"group {unit}", GroupUnit(regrouped, unit, largest, RUN)) for unit in units]
        return self.engine.receipts(job, items), [mapped, *merges]

    def _plan(self) -> Plan:
        shards = [s for s in self.inputs[0].each_shard(["key", "bytes", "logical", "content"]) if s["content"]]
        size = sum(shard["logical"] or shard["bytes"] for shard in shards)
        return Plan(
            self.engine.store,
            self.key,
            tuple(shard["key"] for shard in shards),
            self.stage.sources,
            self.operation.by,
            self.operation.order,
            self.stage.schema,
            exchange.LIMITS.partitions(size),
            exchange.LIMITS,
        )
