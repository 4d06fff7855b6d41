"""`curate plan`: what a run would do. It only reads: nothing is hashed, nothing is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from curate.datasets import has_dataset, open_dataset
from curate.digests import short
from curate.inputs import FileUnit, InputFile, StatIndex, list_files, units_of
from curate.keys import Keys, reading_name
from curate.receipts import finished
from curate.recipe import Outputs
from curate.run import parse_sample
from curate.running import shard_items
from curate.stages import (
    DocumentStage,
    Stage,
    WideStage,
    compile_stages,
    readers_of,
)
from curate.store import Store, open_store


@dataclass(frozen=True, slots=True)
class PlannedStage:
    """What a run would do for one stage.

    Attributes:
        name: of the stage.
        key: its key, or None while input files are not hashed.
        state: "reused", "to run", "to finish" or "unknown until hashed".
        done: shards that are there; `shards` of them are needed (None where that is known only later).
        files: input files to hash first, `bytes` in all.
        read: bytes of input that will be read.
    """

    name: str
    key: str | None
    state: str
    done: int = 0
    shards: int | None = None
    files: int = 0
    bytes: int = 0
    read: int = 0

    def __str__(self) -> str:
        parts = [f"{self.name:<28} {short(self.key) if self.key else '-' * 16}  {self.state}"]
        if self.files:
            parts.append(f"{self.files:,} files, {self.bytes:,} bytes")
        elif self.state != "reused" and self.shards is not None:
            parts.append(f"{self.done:,} of {self.shards:,} shards are there, {self.read:,} bytes to read")
        return ": ".join(parts)


def plan(outputs: Outputs, store: str | Path | Store, *, sample: str | None = None) -> list[PlannedStage]:
    """Return what `run` would do with the same arguments, stage by stage.

    Raises:
        ConfigurationError: the recipe cannot run as written.
    """
    place = open_store(store)
    stages = compile_stages(outputs.products, parse_sample(sample))
    index = StatIndex(place)
    units: dict[str, list[FileUnit]] = {}
    unhashed: dict[str, list[InputFile]] = {}
    for reader in readers_of(stages):
        known, unknown = units_of(reader, list_files(reader), index)
        units[reading_name(reader)], unhashed[reading_name(reader)] = known, unknown
    return [_planned(stage, place, units, unhashed) for stage in stages.ordered]


def _unhashed(stage: Stage, unhashed: Mapping[str, list[InputFile]]) -> list[InputFile]:
    if isinstance(stage, DocumentStage) and stage.reader is not None:
        return unhashed[reading_name(stage.reader)]
    return [file for parent in stage.inputs for file in _unhashed(parent, unhashed)]


def _planned(
    stage: Stage, store: Store, units: Mapping[str, list[FileUnit]], unhashed: Mapping[str, list[InputFile]]
) -> PlannedStage:
    files = list(dict.fromkeys(_unhashed(stage, unhashed)))
    if files:
        size = sum(file.size for file in files)
        return PlannedStage(stage.name, None, "unknown until hashed", files=len(files), bytes=size)
    keys = Keys(units)
    key = keys.stage(stage)
    if has_dataset(store, stage.name, key):
        return PlannedStage(stage.name, key, "reused")
    items = _items(stage, store, keys)
    if items is None:
        return PlannedStage(stage.name, key, "to run")
    there = finished(store, list(items))
    missing = [size for shard, size in items.items() if shard not in there]
    done = len(items) - len(missing)
    state = "to finish" if done else "to run"
    return PlannedStage(stage.name, key, state, done=done, shards=len(items), read=sum(missing))


def _items(stage: Stage, store: Store, keys: Keys) -> dict[str, int] | None:
    """Return shard key → bytes of input, or None while the input's shards are not known."""
    if isinstance(stage, WideStage):
        return None
    if stage.reader is not None:
        mine = keys.units[reading_name(stage.reader)]
        return dict(zip(keys.shards(stage, mine), (unit.size for unit in mine), strict=True))
    parent = stage.inputs[0]
    if not has_dataset(store, parent.name, keys.stage(parent)):
        return None
    return {
        item.key: item.bytes for item in shard_items(stage, keys, open_dataset(store, parent.name, keys.stage(parent)))
    }
