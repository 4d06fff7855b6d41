"""What a report shows, read once from a committed result through curate's public readers.

Nothing here opens the documents or tokens themselves: manifests, statistics, samples, lists of shards, descriptions of
caches and the plan are enough; of caches the text digests are compared (`viewers.tokens`). Memory: the samples, one row
a shard while it is counted, and 16 bytes per tokenized document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from curate.datasets import Dataset
from curate.digests import short
from curate.products import Caches, TokenizerFile, open_product
from curate.receipts import read_manifest
from curate.run import Result, open_result
from curate.store import Store
from mixtures.plan import Plan
from viewers.runs import RunView, load_run
from viewers.tokens import CellView, Meeting, cells_of, meeting_of
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
        """Whether the stage removes duplicates."""
        return bool(self.operation.get("operation") == "deduplicate")

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
    def is_tokenizer(self) -> bool:
        """Whether it is a trained tokenizer."""
        return bool(self.manifest["kind"] == "tokenizer")


@dataclass(frozen=True, slots=True)
class Report:
    """A committed result of a recipe: its outputs by name, and all its stages, inputs first.

    `outputs` are the datasets that the recipe names, or, where it names none, those that its caches are made of.
    `products` are its tokenizers and caches, `cells` the caches of its outputs, `meeting` says whether these share
    texts; `plan` and `batches` (name → digest) are those of its mixture; `runs` are training runs given beside it.
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
    stages = {(dataset.name, dataset.key): _view(dataset) for dataset in result.stages}
    named = manifest["plan"] or {"batches": {}}
    return Report(
        manifest["name"],
        manifest["key"],
        manifest["content"],
        manifest["digest"],
        _outputs(result, stages),
        tuple(stages.values()),
        tuple(ProductView(product.manifest) for product in _products(store, manifest)),
        tuple(cell for name, caches in result.caches.items() for cell in cells_of(name, caches)),
        meeting_of(result.caches),
        None if result.plan is None else Plan.load(store.local(f"{folder}/plan.json"), result.plan),
        named["batches"],
        tuple(load_run(run) for run in runs),
    )


def _outputs(result: Result, stages: Mapping[tuple[str, str], StageView]) -> dict[str, StageView]:
    named = {name: (dataset.name, dataset.key) for name, dataset in result.outputs.items()}
    if not named:
        made_of = {name: caches.manifest["inputs"][0] for name, caches in result.caches.items()}
        named = {name: (entry["name"], entry["key"]) for name, entry in made_of.items()}
    return {name: stages[key] for name, key in named.items()}


def _products(store: Store, manifest: Mapping[str, Any]) -> list[TokenizerFile | Caches]:
    entries = [entry for entry in manifest["stages"] if entry["kind"] != "dataset"]
    return [open_product(store, entry["name"], entry["key"]) for entry in entries]


def _view(dataset: Dataset) -> StageView:
    shards = dataset.shards()
    return StageView(
        dataset.manifest,
        dataset.statistics,
        tuple(dataset.samples()),
        len(shards),
        sum(shard["rows"] for shard in shards),
    )
