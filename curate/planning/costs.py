"""What stages cost so far, from the journals of a store, and what a stage of the same kind would cost.

Only measured rates of the same kind of stage in the same store are used; where there are none, nothing is guessed.
Nothing depends on these figures. Cost: the journals are read once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from curate.recipes.stages import VERBS, Stage, WideStage
from curate.running.journal import events_of, runs_in
from curate.store import Store


def kind_of(stage: Stage) -> str:
    """Return what kind of work `stage` is: stages of one kind cost alike per byte."""
    if isinstance(stage, WideStage):
        method = getattr(stage.operation, "method", None)
        more = [getattr(stage.operation, "part", ""), "" if method is None else type(method).__name__]
        return " ".join([VERBS[type(stage.operation)], *filter(None, more)])
    read = [f"read {stage.reader.format}"] if stage.reader is not None else []
    return ", ".join([*read, *(type(step.transform).__name__ for step in stage.steps)])


@dataclass(slots=True)
class Figures:
    """What was measured of stages of one kind.

    Attributes:
        tasks: that were done, with their `seconds` of work and the `bytes` that they read, where they say so.
        input: bytes that finished stages read, `output` the bytes of the shards that they made, and `written` those of
            all their files.
    """

    tasks: int = 0
    seconds: float = 0.0
    bytes: int = 0
    input: int = 0
    output: int = 0
    written: int = 0

    def add(self, other: Figures) -> None:
        """Add figures of the same kind."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def seconds_for(self, size: int) -> float | None:
        """Return the seconds of work over `size` bytes of input; None when nothing is known."""
        read = self.bytes or self.input
        return self.seconds * size / read if read and self.tasks else None

    def written_for(self, size: int) -> int | None:
        """Return the bytes that a stage over `size` bytes of input writes; None when nothing is known."""
        return round(self.written * size / self.input) if self.input else None

    def output_for(self, size: int) -> int:
        """Return the bytes of the shards that are made of `size` bytes of input; as many when nothing is known."""
        return round(self.output * size / self.input) if self.input else size


@dataclass(slots=True)
class Costs:
    """Figures by kind of stage, of finished stages; and by the key of each stage how many of its tasks were done."""

    kinds: dict[str, Figures] = field(default_factory=dict)
    begun: dict[str, int] = field(default_factory=dict)


def costs_of(store: Store) -> Costs:
    """Return what the journals of `store` say."""
    stages: dict[str, tuple[str, Figures]] = {}
    done: set[str] = set()
    for run in runs_in(store):
        _read_run(events_of(store, run), stages, done)
    costs = Costs(begun={key: figures.tasks for key, (_, figures) in stages.items()})
    for key, (kind, figures) in stages.items():
        if key in done:
            costs.kinds.setdefault(kind, Figures()).add(figures)
    return costs


def _read_run(events: Iterable[Mapping[str, Any]], stages: dict[str, tuple[str, Figures]], done: set[str]) -> None:
    """Add the events of one run; tasks of a stage that several runs worked on add up."""
    current: Figures | None = None
    for event in events:
        what = event["event"]
        if what == "stage begun":
            _, current = stages.setdefault(event["key"], (event["kind"], Figures()))
            current.input, current.written = event["bytes"], 0
        elif what == "stage":
            if current is not None:
                done.add(event["key"])
                current.output = event.get("bytes", 0)
            current = None
        elif current is not None and what == "task":
            current.tasks += 1
            current.seconds += event["seconds"]
            current.bytes += event.get("bytes", 0)
        elif current is not None and what == "receipts":
            current.written += event["bytes"]
