"""`curate plan`: what a run would do, why, and what it would cost. It only reads: it neither hashes nor writes.

A plan is exact where it can be known before the run: which shards of document-wise stages are made, as long as the
shards before them are known. Of a shard that is still to be made it is not known whether it keeps anything: its
followers are planned, and left out by the run if it keeps nothing. Of dataset-wide operations it is known whether they
run. Cost: a look for each receipt (one listing on a remote store).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from curate.datasets import Dataset
from curate.deduplication.estimate import estimate_of
from curate.digests import short
from curate.inputs.files import FileUnit, InputFile, StatIndex, list_files, units_of
from curate.keys import Keys, reading_name
from curate.planning.costs import Costs, Figures, costs_of, kind_of
from curate.planning.staleness import reasons
from curate.receipts import finished, read_receipt
from curate.recipes.compiling import compile_stages
from curate.recipes.graph import Deduplicate
from curate.recipes.recipe import Outputs
from curate.recipes.stages import DocumentStage, Stage, Stages, WideStage, readers_of
from curate.run import parse_sample
from curate.running.engine import Made, datasets_of, find_made
from curate.running.progress import clock
from curate.store import Store, open_store

REUSED: Final = "reused"
TO_RUN: Final = "to run"
TO_FINISH: Final = "to finish"
UNKNOWN: Final = "unknown until hashed"


@dataclass(frozen=True, slots=True)
class Cost:
    """What a stage is estimated to take: CPU seconds, seconds, bytes written; None where no earlier figures tell."""

    cpu_seconds: float | None
    seconds: float | None
    written: int | None

    def __str__(self) -> str:
        if self.cpu_seconds is None or self.seconds is None:
            return "no earlier figures"
        written = "" if self.written is None else f", writes ≈ {self.written:,} bytes"
        return f"≈ {clock(self.seconds)}, {self.cpu_seconds / 3600:,.3f} CPU hours{written}"


@dataclass(frozen=True, slots=True)
class PlannedStage:
    """What a run would do for one stage.

    Attributes:
        name: of the stage.
        key: its key, or None while input files are not hashed.
        state: "reused", "to run", "to finish" (some of its work is there) or "unknown until hashed".
        why: what differs from the nearest earlier one; empty when it is reused.
        shards: how many it has, of which `done` are there; None where that is known only later.
        run: keys of the shards that are made, as far as they are known.
        files: input files to hash first, `bytes` in all.
        read: bytes of input that will be read: files, or shards of the stage before it (estimated while those are not
            there).
        cost: estimate, None where none was asked for or nothing is to do.
        needs: what a deduplication will need of memory and disk, in words; empty while its input is not there.
    """

    name: str
    key: str | None
    state: str
    why: tuple[str, ...] = ()
    done: int = 0
    shards: int | None = None
    run: tuple[str, ...] = ()
    files: int = 0
    bytes: int = 0
    read: int = 0
    cost: Cost | None = None
    needs: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return all of it."""
        cost = None if self.cost is None else {name: getattr(self.cost, name) for name in Cost.__slots__}
        values = {name: getattr(self, name) for name in self.__slots__}
        return {**values, "why": list(self.why), "run": list(self.run), "cost": cost}

    def lines(self) -> list[str]:
        """Return it in words."""
        parts = [f"{self.name:<28} {short(self.key) if self.key else '-' * 16}  {self.state}"]
        if self.files:
            parts.append(f"{self.files:,} file{'s' * (self.files != 1)}, {self.bytes:,} bytes")
        elif self.state != REUSED:
            shards = [] if self.shards is None else [f"{self.done:,} of {self.shards:,} shards are there"]
            parts.append(", ".join([*shards, f"{self.read:,} bytes to read"]))
        if self.cost is not None:
            parts.append(str(self.cost))
        return [": ".join(parts), *(f"    {line}" for line in (*self.why, self.needs) if line)]

    def __str__(self) -> str:
        return "\n".join(self.lines())


@dataclass(frozen=True, slots=True)
class Plan:
    """The stages of a recipe as a run would find them, in order.

    Attributes:
        stages: what is to be done for each.
        hashed: bytes of files that are hashed first.
        workers: what costs were estimated for, None for none.
    """

    stages: tuple[PlannedStage, ...]
    hashed: int = 0
    workers: int | None = None

    def __iter__(self) -> Iterator[PlannedStage]:
        return iter(self.stages)

    @property
    def cost(self) -> Cost:
        """What all stages take together; None where it is not known of each."""
        asked = [stage.cost for stage in self.stages if stage.cost is not None]
        asked += [Cost(None, None, None) for stage in self.stages if stage.state == UNKNOWN]
        sums = [_sum([getattr(cost, name) for cost in asked]) for name in Cost.__slots__]
        return Cost(sums[0], sums[1], None if sums[2] is None else round(sums[2]))

    def to_json(self) -> dict[str, Any]:
        """Return all of it."""
        cost = {name: getattr(self.cost, name) for name in Cost.__slots__} if self.workers is not None else None
        stages = [stage.to_json() for stage in self.stages]
        return {"stages": stages, "hashed": self.hashed, "workers": self.workers, "cost": cost}

    def __str__(self) -> str:
        lines = [line for stage in self.stages for line in stage.lines()]
        states = (REUSED, TO_RUN, TO_FINISH, UNKNOWN)
        counts = {state: sum(stage.state == state for stage in self.stages) for state in states}
        said = [f"{count} {state}" for state, count in counts.items() if count]
        parts = [", ".join(said), f"{sum(stage.read for stage in self.stages):,} bytes to read"]
        parts += [f"{self.hashed:,} bytes to hash first"] * (self.hashed > 0)
        if self.workers is not None and not self.hashed:
            parts.append(f"with {self.workers} workers {self.cost}")
        return "\n".join([*lines, "in all: " + "; ".join(parts)])


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def plan(outputs: Outputs, store: str | Path | Store, *, sample: str | None = None, workers: int | None = None) -> Plan:
    """Return what `run` would do with the same arguments, stage by stage.

    Args:
        outputs: what a recipe returned.
        store: path or URL of the store, or the store; it need not be there.
        sample: as for `run`.
        workers: estimate costs for so many; None estimates none.

    Raises:
        ConfigurationError: the recipe cannot run as written.
    """
    place = open_store(store)
    stages = compile_stages(outputs.products, parse_sample(sample))
    index = StatIndex(place)
    units: dict[str, list[FileUnit]] = {}
    unhashed: dict[str, list[InputFile]] = {}
    for name, reader in {reading_name(reader): reader for reader in readers_of(stages)}.items():
        units[name], unhashed[name] = units_of(reader, list_files(reader), index)
    planner = _Planner(place, stages, Keys(units), unhashed, costs_of(place), workers)
    return Plan(planner.plan(), sum(file.size for files in unhashed.values() for file in files), workers)


@dataclass(slots=True)
class _Planner:
    store: Store
    stages: Stages
    keys: Keys
    unhashed: Mapping[str, list[InputFile]]
    costs: Costs
    workers: int | None
    known: dict[Stage, str | None] = field(default_factory=dict)
    shards: dict[Stage, dict[str, int] | None] = field(default_factory=dict)  # what each stage will hold: key → bytes
    made: dict[Stage, Made] = field(default_factory=dict)  # what is there
    sizes: dict[Stage, int] = field(default_factory=dict)  # bytes of it in all, estimated where it is not there

    def plan(self) -> tuple[PlannedStage, ...]:
        return tuple(self._planned(stage) for stage in self.stages.ordered)

    def _planned(self, stage: Stage) -> PlannedStage:
        files = list(dict.fromkeys(self._unhashed(stage)))
        self.known[stage] = None if files else self.keys.stage(stage)
        if files:
            return self._unknown(stage, files)
        key = self.keys.stage(stage)
        made = find_made(self.store, stage, key)
        if made is None:
            return self._to_do(stage, key)
        self._take(stage, made)
        return PlannedStage(stage.name, key, REUSED)

    def _unhashed(self, stage: Stage) -> list[InputFile]:
        reader = stage.reader if isinstance(stage, DocumentStage) else None
        mine = [] if reader is None else self.unhashed[reading_name(reader)]
        return [*mine, *(file for parent in stage.inputs for file in self._unhashed(parent))]

    def _unknown(self, stage: Stage, files: Sequence[InputFile]) -> PlannedStage:
        self.shards[stage], self.sizes[stage] = None, 0
        reads = isinstance(stage, DocumentStage) and stage.reader is not None
        why = self._why(stage, [file.path for file in files] if reads else [])
        size = sum(file.size for file in files)
        return PlannedStage(stage.name, None, UNKNOWN, why, files=len(files), bytes=size)

    def _why(self, stage: Stage, unhashed: Sequence[str] = ()) -> tuple[str, ...]:
        return reasons(stage, self.store, self.keys, unhashed, self.known)

    def _take(self, stage: Stage, made: Made) -> None:
        """Take what `stage` made already."""
        self.made[stage] = made
        self.shards[stage], self.sizes[stage] = {}, 0
        for dataset in datasets_of([made]):
            shards = _kept(dataset)
            self.shards[stage], self.sizes[stage] = shards, sum(shards.values())

    def _to_do(self, stage: Stage, key: str) -> PlannedStage:
        items = self._items(stage)
        if items is None:
            read = sum(self.sizes[parent] for parent in stage.inputs)
            self.shards[stage], self.sizes[stage] = None, self._grown(stage, read)
            state = TO_FINISH if self.costs.begun.get(key) else TO_RUN
            cost, needs = self._cost(stage, read, read), self._needs(stage)
            return PlannedStage(stage.name, key, state, self._why(stage), read=read, cost=cost, needs=needs)
        there = finished(self.store, list(items))
        missing = {shard: size for shard, size in items.items() if shard not in there}
        self.shards[stage] = made = self._made(stage, items, there)
        self.sizes[stage] = sum(made.values())
        state = TO_FINISH if there or not items else TO_RUN
        read = sum(missing.values())
        cost = self._cost(stage, read, read, len(missing))
        return PlannedStage(
            stage.name, key, state, self._why(stage), len(there), len(items), tuple(missing), read=read, cost=cost
        )

    def _needs(self, stage: Stage) -> str:
        """Return what a deduplication will need, as far as its input is there."""
        if not isinstance(stage, WideStage) or not isinstance(stage.operation, Deduplicate):
            return ""
        inputs = datasets_of([self.made[parent] for parent in stage.inputs if parent in self.made])
        return str(estimate_of(stage.operation, inputs)) if len(inputs) == len(stage.inputs) else ""

    def _items(self, stage: Stage) -> dict[str, int] | None:
        """Return shard key → bytes of input, or None while the input's shards are not known."""
        if isinstance(stage, WideStage):
            return None
        if stage.reader is not None:
            mine = self.keys.units[reading_name(stage.reader)]
            return dict(zip(self.keys.shards(stage, mine), (unit.size for unit in mine), strict=True))
        before = self.shards[stage.inputs[0]]
        chain = self.keys.chain(stage)
        return None if before is None else {chain.key(shard): size for shard, size in before.items()}

    def _made(self, stage: Stage, items: Mapping[str, int], there: set[str]) -> dict[str, int]:
        """Return the shards that the stages after `stage` will find, with their bytes."""
        found: dict[str, int] = {}
        for shard, size in items.items():
            receipt = read_receipt(self.store, shard) if shard in there else None
            if receipt is None:
                found[shard] = self._grown(stage, size)
            elif "part.parquet" in receipt.files:
                found[shard] = sum(entry.bytes for entry in receipt.files.values())
        return found

    def _grown(self, stage: Stage, size: int) -> int:
        """Return the bytes that `size` bytes of input become; as many where no figures tell."""
        return self.costs.kinds.get(kind_of(stage), Figures()).output_for(size)

    def _cost(self, stage: Stage, read: int, size: int, tasks: int | None = None) -> Cost | None:
        if self.workers is None:
            return None
        figures = self.costs.kinds.get(kind_of(stage))
        seconds = None if figures is None else figures.seconds_for(read)
        if figures is None or seconds is None:
            return Cost(None, None, None)
        at_once = self.workers if tasks is None else max(1, min(self.workers, tasks))
        return Cost(seconds, seconds / at_once, figures.written_for(size))


def _kept(dataset: Dataset) -> dict[str, int]:
    """Return the shards of `dataset` that keep anything, with their bytes."""
    return {shard["key"]: shard["bytes"] for shard in dataset.kept_shards()}
