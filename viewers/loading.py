"""What a report shows, read once from a committed result through curate's public readers.

Nothing here opens the documents or tokens themselves: manifests, statistics, samples, lists of shards, descriptions of
caches and the plan are enough; of caches the text digests are compared (`viewers.tokens`) and borders between documents
read (`viewers.reads`). Memory: the samples, one row a shard while it is counted, and 24 bytes per tokenized document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from curate.ablations import Ablation, read_ablation
from curate.datasets import Dataset
from curate.digests import short
from curate.products import Caches, ModelFiles, TokenizerFile, open_product
from curate.recall import Recall, read_recall
from curate.receipts import read_manifest
from curate.recipes.datasheet import Datasheet
from curate.run import Result, open_result
from curate.store import Store
from mixtures.packings import packings_in
from mixtures.plan import Plan
from viewers.provenance import ProvenanceView, load_provenance
from viewers.reads import Reads, reads_of
from viewers.runs import RunView, load_run
from viewers.tokens import TRAINING, CellView, Meeting, cells_of, meeting_of
from viewers.visible import shortened


@dataclass(frozen=True, slots=True)
class StageView:
    """A finished stage: its manifest, merged statistics, samples, and what its list of shards adds up to."""

    manifest: Mapping[str, Any]
    statistics: Mapping[str, Any]
    samples: tuple[Mapping[str, Any], ...]
    shards: int
    shard_rows: int

    @property
    def name(self) -> str:
        """Name of the stage."""
        return str(self.manifest["name"])

    @property
    def key(self) -> str:
        """Key of the stage, 64 hex digits."""
        return str(self.manifest["key"])

    @property
    def title(self) -> str:
        """Name and short key."""
        return f"{shortened(self.name)} ({short(self.key)})"

    @property
    def operation(self) -> Mapping[str, Any]:
        """Configuration of the stage, as its manifest has it."""
        operation: Mapping[str, Any] = self.manifest["operation"]
        return operation

    @property
    def is_deduplication(self) -> bool:
        """Whether documents go for others that stay: equal or near texts, equal URLs, what means the same."""
        return str(self.operation.get("operation", "")).startswith("deduplicate")

    @property
    def cuts_repeats(self) -> bool:
        """Whether lines, paragraphs or spans go that are elsewhere."""
        return bool(self.operation.get("operation") == "cut repeats")

    @property
    def holds_out(self) -> bool:
        """Whether the stage is one of the two parts of a hold-out."""
        return bool(self.operation.get("operation") == "hold out")

    @property
    def part(self) -> str:
        """The part that a hold-out's stage is: "train" or "valid"."""
        return str(self.operation.get("fields", {}).get("part", ""))

    @property
    def has_text(self) -> bool:
        """Whether its rows are documents: records of an archive have no text before extraction."""
        return any(name == "text" for name, _ in self.manifest["schema"])

    @property
    def sources(self) -> tuple[str, ...]:
        """Sources that its statistics name, in alphabetical order."""
        found = set(self.statistics.get("reading", {})) | set(self.statistics.get("groups", {}).get("source", {}))
        for step in self.statistics.get("steps", {}).values():
            found |= set(step["sources"])
        return tuple(sorted(found))


@dataclass(frozen=True, slots=True)
class ProductView:
    """A finished stage that makes no dataset: a trained tokenizer or token caches."""

    manifest: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Name of the stage."""
        return str(self.manifest["name"])

    @property
    def key(self) -> str:
        """Key of the stage, 64 hex digits."""
        return str(self.manifest["key"])

    @property
    def operation(self) -> Mapping[str, Any]:
        """Configuration of the stage, as its manifest has it."""
        operation: Mapping[str, Any] = self.manifest["operation"]
        return operation

    @property
    def kind(self) -> str:
        """What it is: "tokenizer", "model" or "caches"."""
        return str(self.manifest["kind"])


@dataclass(frozen=True, slots=True)
class Report:
    """A committed result of a recipe: its outputs by name, and all its stages, inputs first.

    `outputs` are the datasets that the recipe names, or, where it names none, those that its caches are made of.
    `products` are its tokenizers and caches, `cells` the caches of its outputs, `meeting` says whether these share
    texts; `plan` and `batches` (name → digest) are those of its mixture; `runs` are training runs given beside it;
    `compactions` counts the stages that only joined shards, which are left out of `stages`; `reads` are the documents
    that steps of the plan read; `datasheet` is what the recipe says that nobody can count; `provenance` what the run
    that made the result first told of itself, None where an earlier curate made it.
    """

    name: str
    key: str
    content: str
    digest: str
    outputs: Mapping[str, StageView]
    stages: tuple[StageView, ...]
    products: tuple[ProductView, ...] = ()
    cells: tuple[CellView, ...] = ()
    meeting: Meeting | None = None
    plan: Plan | None = None
    batches: Mapping[str, str] = field(default_factory=dict)
    runs: tuple[RunView, ...] = ()
    compactions: int = 0
    reads: Reads | None = None
    datasheet: Datasheet = field(default_factory=Datasheet)
    ablation: Ablation | None = None
    provenance: ProvenanceView | None = None
    recall: Recall | None = None

    @property
    def sources(self) -> tuple[str, ...]:
        """All sources, in the order in which stages read them."""
        return tuple(dict.fromkeys(source for stage in self.stages for source in stage.sources))

    def sibling(self, stage: StageView) -> StageView | None:
        """Return the other part of the hold-out that `stage` is a part of, None when this result does not have it."""
        for other in self.stages:
            if other.holds_out and other.part != stage.part and _hold_out(other) == _hold_out(stage):
                return other
        return None


def _hold_out(stage: StageView) -> tuple[Any, ...]:
    fields = {name: value for name, value in stage.operation.get("fields", {}).items() if name != "part"}
    return stage.manifest["inputs"], fields


def load_report(store: Store, folder: str, runs: Sequence[Path] = ()) -> Report:
    """Return what a report on the result in `folder` shows, with the training runs in the folders `runs`.

    Raises:
        StoreError: something is missing or damaged.
        CacheError: a token cache is damaged.
        PlanError: the plan is damaged or another.
        ConfigurationError: `folder` holds no recipe's result, or a folder of `runs` no run.
    """
    result = open_result(store, folder)
    manifest = read_manifest(store, folder)
    made_of = _before_compaction(result.stages)
    stages = {
        (dataset.name, dataset.key): _view(dataset, made_of)
        for dataset in result.stages
        if (dataset.name, dataset.key) not in made_of
    }
    named = manifest["plan"] or {"batches": {}}
    plan = None if result.plan is None else Plan.load(store.local(f"{folder}/plan.json"), result.plan)
    return Report(
        manifest["name"],
        manifest["key"],
        manifest["content"],
        manifest["digest"],
        _outputs(result, stages, made_of),
        tuple(stages.values()),
        tuple(ProductView(_past_compaction(product.manifest, made_of)) for product in _products(store, manifest)),
        tuple(
            replace(cell, dataset=_source_of(cell.dataset, made_of))
            for name, caches in result.caches.items()
            for cell in cells_of(name, caches)
        ),
        meeting_of(result.caches),
        plan,
        named["batches"],
        tuple(load_run(run) for run in runs),
        len(made_of),
        None if plan is None else _reads(store, folder, plan, result),
        Datasheet.from_json(manifest.get("datasheet", {})),
        read_ablation(store, manifest["key"]),
        load_provenance(store, folder, manifest),
        read_recall(store, manifest["key"]),
    )


def _reads(store: Store, folder: str, plan: Plan, result: Result) -> Reads:
    caches = result.caches[TRAINING].open()
    return reads_of(plan, caches, packings_in(store, folder, plan, caches))


def _before_compaction(stages: Sequence[Dataset]) -> dict[tuple[str, str], Mapping[str, str]]:
    """Return (name, key) of each compact stage → the input that it joined the shards of.

    Such a stage keeps every document as it is: the page leaves it out, and shows what follows as made of its input.
    """
    return {
        (dataset.name, dataset.key): dataset.manifest["inputs"][0]
        for dataset in stages
        if dataset.manifest["operation"]["operation"] == "compact"
    }


def _past_compaction(
    manifest: Mapping[str, Any], made_of: Mapping[tuple[str, str], Mapping[str, str]]
) -> dict[str, Any]:
    inputs = [made_of.get((entry["name"], entry["key"]), entry) for entry in manifest["inputs"]]
    return {**manifest, "inputs": inputs}


def _source_of(dataset: tuple[str, str], made_of: Mapping[tuple[str, str], Mapping[str, str]]) -> tuple[str, str]:
    return (made_of[dataset]["name"], made_of[dataset]["key"]) if dataset in made_of else dataset


def _outputs(
    result: Result,
    stages: Mapping[tuple[str, str], StageView],
    made_of: Mapping[tuple[str, str], Mapping[str, str]],
) -> dict[str, StageView]:
    named = {name: (dataset.name, dataset.key) for name, dataset in result.outputs.items()}
    if not named:
        read = {name: _past_compaction(caches.manifest, made_of)["inputs"][0] for name, caches in result.caches.items()}
        named = {name: (entry["name"], entry["key"]) for name, entry in read.items()}
    return {name: stages[key] for name, key in named.items()}


def _products(store: Store, manifest: Mapping[str, Any]) -> list[TokenizerFile | ModelFiles | Caches]:
    entries = [entry for entry in manifest["stages"] if entry["kind"] != "dataset"]
    return [open_product(store, entry["name"], entry["key"]) for entry in entries]


def _view(dataset: Dataset, made_of: Mapping[tuple[str, str], Mapping[str, str]]) -> StageView:
    shards = dataset.shards()
    return StageView(
        _past_compaction(dataset.manifest, made_of),
        dataset.statistics,
        tuple(dataset.samples()),
        len(shards),
        sum(shard["rows"] for shard in shards),
    )
