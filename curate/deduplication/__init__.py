"""Deduplication over shards: the choreography. The arithmetic is in `transforms.minhash` and `transforms.duplicates`.

    digests     per shard       text digest, keep order       → by digest; first and last keep order → together
    exact       per partition   of equal texts one stays      → what goes, by shard; and by the survivor's shard
    span        once            first and last keep order of all
    (templates  per shard       shingles that do not count, if a recipe says so: `curate.deduplication.templates`)
    bands       per shard       band keys of those that stay  → by bucket
    candidates  per partition   pairs that share a bucket     → by pair
    pairs       per partition   each pair once                → by shard, by owner where it has two; who is needed
    shingles    per shard       exact similarity within it    → edges; shingle sets for other pairs → by owner
    verify      per partition   exact similarity of others    → edges
    decide      once            the sequential rule in keep order over all edges  → by shard
                (above `MAX_COMPONENT_EDGES` per partition of components: `curate.deduplication.components`)
    resolve     per partition   equal texts of what goes      → by shard
    apply       per shard       what stays, and the ledger

Arrows are exchanges (`curate.regroup`). Memory: tasks stream, whatever the size of shards, partitions and buckets,
but for these: the edges in `decide` (228 bytes each), near duplicates of a partition
in `resolve`, what goes of a shard in `apply`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from curate import exchange
from curate.accounting.guard_rail import check_removed
from curate.committing.gathered import Receipts
from curate.datasets import Dataset
from curate.deduplication import plan as constants
from curate.deduplication.apply import ApplyJob
from curate.deduplication.components import (
    HALVES,
    LabelJob,
    LinksJob,
    StarJob,
    edges_exchange,
    links_exchange,
    rooted_edges_exchange,
    rooted_orders_exchange,
)
from curate.deduplication.decide import DecideComponentsJob, DecideJob, ResolveJob, near_exchange
from curate.deduplication.estimate import Estimate, estimate_of
from curate.deduplication.exact import (
    DigestsJob,
    ExactJob,
    SpanJob,
    because_exchange,
    digests_exchange,
    gone_exchange,
    keepers_exchange,
    span_exchange,
    verdicts_exchange,
)
from curate.deduplication.pairs import (
    BandsJob,
    CandidatesJob,
    PairsJob,
    bands_exchange,
    inside_exchange,
    owned_exchange,
    pairs_exchange,
    wanted_exchange,
)
from curate.deduplication.plan import Plan, edges_files
from curate.deduplication.shingles import ShinglesJob, candidates_exchange, sets_exchange
from curate.deduplication.shown import places_of, survivors_of
from curate.deduplication.templates import (
    FrequentJob,
    OccurrencesJob,
    SuspectsJob,
    TemplatesJob,
    counter_partitions,
    counters_exchange,
    sums_of,
)
from curate.deduplication.verify import VerifyJob
from curate.recipes.graph import Deduplicate
from curate.recipes.reference import frozen_shards
from curate.recipes.stages import WideStage
from curate.regroup import Exchange, Regrouped, regroup
from curate.running.jobs import Item, Job, RunsJobs
from transforms.templates import TemplateRule


@dataclass(frozen=True, slots=True)
class Deduplication:
    """One deduplication of `inputs` under the stage's `key`."""

    stage: WideStage
    operation: Deduplicate
    key: str
    inputs: tuple[Dataset, ...]
    engine: RunsJobs

    def estimate(self) -> Estimate:
        """Return what it will need of memory and disk, from the rows and bytes of its input."""
        return estimate_of(self.operation, self.inputs)

    def run(self) -> tuple[Receipts, list[Receipts]]:
        """Return the receipts of the output's shards, and those of the tasks in between.

        Raises:
            TooManyRemovedError: a source loses more than `max_removed` allows.
        """
        made, operation = _Making(self._plan(), self.engine), self.operation
        if made.plan.method is None:
            made.exact()
            verdicts = made.regroup("exact", made.plan.digest_partitions, verdicts_exchange)
        else:
            verdicts = made.near()
        because = made.because() if made.plan.count else None
        job = ApplyJob(made.plan, verdicts, because, made.survivors, self.stage.name, self.stage.forbids)
        units = range(len(made.plan.shards))
        items = [Item(made.plan.task_key("apply", unit), f"apply {unit}", unit) for unit in units]
        receipts = self.engine.receipts(job, items)
        check_removed(self.stage.name, receipts, operation.max_removed, "documents")
        return receipts, made.inner

    def _plan(self) -> Plan:
        shards = [shard for dataset in self.inputs for shard in dataset.kept_shards()]
        operation = self.operation
        frozen, frozen_rows = frozen_shards(operation.against, "rows")
        return Plan(
            self.engine.store,
            self.key,
            tuple(shard["key"] for shard in shards),
            (*(shard["rows"] for shard in shards), *frozen_rows),
            self.stage.sources,
            operation.prefer,
            operation.within,
            operation.method,
            self.stage.schema,
            exchange.LIMITS,
            operation.keep,
            operation.action,
            operation.count,
            max_component_edges=constants.MAX_COMPONENT_EDGES,
            held_edges=constants.HELD_EDGES,
            frozen=frozen,
            without_templates=operation.without_templates,
            places=tuple(places_of(self.inputs)) + tuple(f"reference {each.name}" for each in frozen),
        )


@dataclass(slots=True)
class _Making:
    """Runs the tasks in between, one kind after the other, and keeps their receipts, and survivors to be sampled."""

    plan: Plan
    engine: RunsJobs
    inner: list[Receipts] = field(default_factory=list)
    survivors: dict[bytes, int] = field(default_factory=dict)

    def exact(self) -> None:
        """Find equal texts."""
        plan = self.plan
        self.tasks("digests", DigestsJob(plan), plan.units)
        digests = self.regroup("digests", plan.units, digests_exchange)
        self.tasks("exact", ExactJob(plan, digests), plan.digest_partitions)

    def near(self) -> Regrouped:
        """Find near duplicates too, and return all verdicts."""
        plan, buckets, shards = self.plan, self.plan.bucket_partitions, self.plan.units
        self.exact()
        self.tasks("span", SpanJob(plan, self.regroup("digests", shards, span_exchange)), 1)
        gone = self.regroup("exact", plan.digest_partitions, gone_exchange)
        if plan.without_templates is not None:
            self.templates(plan.without_templates, gone)
        self.tasks("bands", BandsJob(plan, gone), shards)
        self.tasks("candidates", CandidatesJob(plan, self.regroup("bands", shards, bands_exchange)), buckets)
        self.tasks("pairs", PairsJob(plan, self.regroup("candidates", buckets, pairs_exchange)), buckets)
        wanted, inside = (self.regroup("pairs", buckets, what) for what in (wanted_exchange, inside_exchange))
        compared = [self.tasks("shingles", ShinglesJob(plan, wanted, inside), shards)]
        owned, sets = self.regroup("pairs", buckets, owned_exchange), self.regroup("shingles", shards, sets_exchange)
        compared.append(self.tasks("verify", VerifyJob(plan, owned, sets), buckets))
        edges = sum(receipts.statistics().get("duplicates", {"edges": 0})["edges"] for receipts in compared)
        near = self.decide(self.regroup("shingles", shards, candidates_exchange), edges)
        keepers = self.regroup("exact", plan.digest_partitions, keepers_exchange)
        resolved = self.tasks("resolve", ResolveJob(plan, keepers, near), plan.shard_partitions)
        self.survivors = survivors_of(resolved.statistics())
        return self.regroup("resolve", plan.shard_partitions, verdicts_exchange)

    def templates(self, rule: TemplateRule, gone: Regrouped) -> None:
        """Find the shingles that do not count; what comes after reads them by `left_out_of`."""
        plan, parts = self.plan, counter_partitions(self.plan)
        sums = sums_of(self.tasks("frequent", FrequentJob(plan, rule, gone), plan.units).statistics())
        found = self.regroup("frequent", plan.units, partial(counters_exchange, what="frequent", partitions=parts))
        self.tasks("suspects", SuspectsJob(plan, rule, found, sums), parts)
        self.tasks("occurrences", OccurrencesJob(plan, gone, parts), plan.units)
        exact = partial(counters_exchange, what="occurrences", partitions=1)
        self.tasks("templates", TemplatesJob(plan, rule, self.regroup("occurrences", plan.units, exact), sums), 1)

    def because(self) -> Regrouped:
        """Return the survivors of all verdicts."""
        if self.plan.method is None:
            return self.regroup("exact", self.plan.digest_partitions, because_exchange)
        return self.regroup("resolve", self.plan.shard_partitions, because_exchange)

    def decide(self, orders: Regrouped, edges: int) -> Regrouped:
        """Return the near duplicates that go: in one task, or by component where there are too many `edges`."""
        plan = self.plan
        if edges <= plan.max_component_edges:
            self.tasks("decide", DecideJob(plan, orders, edges), 1)
            return self.regroup("decide", 1, near_exchange)
        nodes, roots = plan.bucket_partitions, plan.root_partitions(edges)
        links = self.stars()
        label = LabelJob(plan, links, self.regroup("links", len(edges_files(plan)), edges_exchange), orders, edges)
        self.tasks("label", label, nodes)
        rooted = self.regroup("label", nodes, partial(rooted_edges_exchange, edges=edges))
        ranked = self.regroup("label", nodes, partial(rooted_orders_exchange, edges=edges))
        self.tasks("decide components", DecideComponentsJob(plan, rooted, ranked), roots)
        return self.regroup("decide components", roots, near_exchange)

    def stars(self) -> Regrouped:
        """Return final links: from each document with an edge to the least of its component, and back."""
        nodes, files, step, changed = self.plan.bucket_partitions, len(edges_files(self.plan)), 0, True
        self.tasks("links", LinksJob(self.plan), files)
        links = self.regroup("links", files, links_exchange)
        while changed:
            changed = False
            for half in HALVES:
                receipts = self.tasks(f"star {step}", StarJob(self.plan, links, half, step), nodes)
                changed |= receipts.statistics()["duplicates"]["relinked"] > 0
                links = self.regroup(f"star {step}", nodes, partial(links_exchange, step=step + 1))
                step += 1
        return links

    def tasks(self, task: str, job: Job, units: int) -> Receipts:
        """Run the tasks of one kind."""
        items = [Item(self.plan.inner_key(task, unit), f"{task} {unit}", unit) for unit in range(units)]
        receipts = self.engine.receipts(job, items)
        self.inner.append(receipts)
        return receipts

    def regroup(self, task: str, units: int, what: Callable[[Plan], Exchange]) -> Regrouped:
        """Regroup what the tasks of one kind published."""
        tasks = [self.plan.inner_key(task, unit) for unit in range(units)]
        regrouped, inner = regroup(self.engine, what(self.plan), tasks)
        self.inner += inner
        return regrouped
