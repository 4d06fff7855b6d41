"""What a report shows, read once from a committed result through curate's public readers.

Nothing here opens the documents themselves: manifests, statistics, samples and lists of shards are enough. Memory: the
samples, and one row a shard while it is counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from curate.datasets import Dataset
from curate.digests import short
from curate.receipts import read_manifest
from curate.run import open_result
from curate.store import Store
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
class Report:
    """A committed result of a recipe: its outputs by name, and all its stages, inputs first."""

    name: str
    key: str
    content: str
    digest: str
    outputs: Mapping[str, StageView]
    stages: tuple[StageView, ...]

    @property
    def sources(self) -> tuple[str, ...]:
        """All sources, in the order in which stages read them."""
        return tuple(dict.fromkeys(source for stage in self.stages for source in stage.sources))


def load_report(store: Store, folder: str) -> Report:
    """Return what a report on the result in `folder` shows.

    Raises:
        StoreError: something is missing or damaged.
        ConfigurationError: `folder` holds no recipe's result.
    """
    result = open_result(store, folder)
    manifest = read_manifest(store, folder)
    stages = {(dataset.name, dataset.key): _view(dataset) for dataset in result.stages}
    outputs = {name: stages[dataset.name, dataset.key] for name, dataset in result.outputs.items()}
    return Report(
        manifest["name"], manifest["key"], manifest["content"], manifest["digest"], outputs, tuple(stages.values())
    )


def _view(dataset: Dataset) -> StageView:
    shards = dataset.shards()
    return StageView(
        dataset.manifest,
        dataset.statistics,
        tuple(dataset.samples()),
        len(shards),
        sum(shard["rows"] for shard in shards),
    )
