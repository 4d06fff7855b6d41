"""What came into each step for one source and where it went, from statistics; and the sums that must hold.

Cost: one small record per stage, source, step and reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from curate.holdout.apply import HELD_OUT
from viewers.loading import Report, StageView
from viewers.visible import shortened

PLACES: Final = {"stored": "bytes of files", "stream": "bytes of decompressed streams", "row": "rows of files"}
"""Units in which readers measure records (`transforms.schema.PLACES`), in words."""


def place_name(place: str) -> str:
    """Return in words what a reader counts in `place`: "bytes of files"."""
    return PLACES.get(place, shortened(place))


Terms = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Identity:
    """A sum that must hold: the terms on the left and those on the right, each with its name."""

    unit: str
    left: Terms
    right: Terms

    @property
    def holds(self) -> bool:
        """Whether both sides are equal."""
        return sum(number for _, number in self.left) == sum(number for _, number in self.right)


@dataclass(frozen=True, slots=True)
class Drop:
    """Documents that a transform dropped under one reason, and their code points."""

    transform: str
    reason: str
    documents: int
    characters: int


@dataclass(frozen=True, slots=True)
class Edit:
    """Documents that a step changed under one reason, with the code points cut and inserted."""

    reason: str
    documents: int
    cut: int
    inserted: int


@dataclass(frozen=True, slots=True)
class Lost:
    """Records, structural records, refusals or gaps of one kind: how many, and how much of the files per place."""

    kind: str
    reason: str
    count: int
    amounts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Reading:
    """What the files of a source were: every byte of them is in one of `parts`."""

    parts: tuple[Lost, ...]
    totals: Mapping[str, int]

    def count(self, kind: str) -> int:
        """Return how many parts of this kind ("records", "structural", "refused", "gaps") there are."""
        return sum(part.count for part in self.parts if part.kind == kind)

    def amount(self, kind: str, place: str) -> int:
        """Return how much of the files the parts of `kind` take."""
        return sum(part.amounts.get(place, 0) for part in self.parts if part.kind == kind)

    def identities(self) -> Iterator[Identity]:
        """Yield, per place, files = records + structural + refused + gaps."""
        for place in sorted(self.totals):
            right = tuple((kind, self.amount(kind, place)) for kind in KINDS)
            yield Identity("bytes" if place != "row" else "rows", ((place_name(place), self.totals[place]),), right)


KINDS: Final = ("records", "structural", "refused", "gaps")
"""What a stretch of a file can be."""


@dataclass(frozen=True, slots=True)
class Step:
    """One transform of a stage, for one source."""

    name: str
    documents_in: int
    documents_out: int
    characters_in: int
    characters_out: int
    payload_bytes: int
    drops: tuple[Drop, ...]
    edits: tuple[Edit, ...]

    @property
    def dropped(self) -> int:
        """Documents dropped."""
        return sum(drop.documents for drop in self.drops)

    @property
    def dropped_characters(self) -> int:
        """Code points of the documents dropped."""
        return sum(drop.characters for drop in self.drops)

    @property
    def cut(self) -> int:
        """Code points that edits removed."""
        return sum(edit.cut for edit in self.edits)

    @property
    def inserted(self) -> int:
        """Code points that edits added."""
        return sum(edit.inserted for edit in self.edits)

    def documents(self) -> Identity:
        """Return documents in = out + dropped."""
        return Identity(
            "documents", (("in", self.documents_in),), (("out", self.documents_out), ("dropped", self.dropped))
        )

    def characters(self) -> Identity | None:
        """Return code points in + inserted = out + dropped + cut; None where text begins with this step."""
        if self.payload_bytes:
            return None
        left = (("in", self.characters_in), ("inserted", self.inserted))
        right = (("out", self.characters_out), ("dropped", self.dropped_characters), ("cut", self.cut))
        return Identity("characters", left, right)


@dataclass(frozen=True, slots=True)
class Flow:
    """One source through one stage.

    `quarantined` documents were dropped before the first step: only in stores of the first format, later ones drop them
    at the step that could not be applied to them.
    """

    stage: StageView
    source: str
    reading: Reading | None
    quarantined: tuple[Drop, ...]
    steps: tuple[Step, ...]
    documents_out: int
    characters_out: int

    @property
    def taken_out(self) -> int:
        """Documents that the quarantine list of a store of the first format names."""
        return sum(drop.documents for drop in self.quarantined)

    @property
    def documents_in(self) -> int:
        """Documents that the stage took in: records read, or what came from upstream."""
        if self.reading is not None:
            return self.reading.count("records")
        first = self.steps[0].documents_in if self.steps else self.documents_out
        return first + self.taken_out

    def join(self) -> Identity | None:
        """Return records read = into the first step + quarantined; None for a stage that reads no files."""
        if self.reading is None:
            return None
        first = self.steps[0].documents_in if self.steps else self.documents_out
        right = (("into the first step", first), ("quarantined", self.taken_out))
        return Identity("documents", (("records read", self.reading.count("records")),), right)

    def identities(self) -> Iterator[tuple[str, Identity]]:
        """Yield the name of each step and the sums that must hold there."""
        for identity in () if self.reading is None else self.reading.identities():
            yield "reading", identity
        if (join := self.join()) is not None:
            yield "reading", join
        for step in self.steps:
            yield step.name, step.documents()
            if (characters := step.characters()) is not None:
                yield step.name, characters


def flow_of(stage: StageView, source: str) -> Flow:
    """Return the flow of `source` through `stage`."""
    statistics = stage.statistics
    steps = tuple(_steps(statistics, source))
    kept = statistics.get("groups", {}).get("source", {}).get(source)
    if kept is None and not stage.has_text:
        reading = _reading(statistics, source)
        documents = steps[-1].documents_out if steps else reading.count("records") if reading else 0
        kept = {"documents": documents, "characters": 0}
    kept = kept or {"documents": 0, "characters": 0}
    quarantined = statistics.get("quarantine", {}).get("sources", {}).get(source, {})
    return Flow(
        stage,
        source,
        _reading(statistics, source),
        tuple(_drops(quarantined)),
        steps,
        kept["documents"],
        kept["characters"],
    )


def held_out(flow: Flow) -> tuple[int, int]:
    """Return documents and code points of `flow` that a hold-out took out of training to validate on."""
    drops = [drop for step in flow.steps for drop in step.drops if drop.reason == HELD_OUT]
    return sum(drop.documents for drop in drops), sum(drop.characters for drop in drops)


def flows_of(report: Report, source: str) -> list[Flow]:
    """Return the flows of `source` through all stages that it came to, inputs first."""
    return [flow_of(stage, source) for stage in report.stages if source in stage.sources]


def all_flows(report: Report) -> Iterator[Flow]:
    """Yield all flows, stage by stage."""
    for stage in report.stages:
        for source in stage.sources:
            yield flow_of(stage, source)


def _steps(statistics: Mapping[str, Any], source: str) -> Iterator[Step]:
    steps = statistics.get("steps", {})
    for index in sorted(steps, key=int):
        node = steps[index]["sources"].get(source)
        if node is not None:
            yield Step(
                steps[index]["name"],
                node.get("documents_in", 0),
                node.get("documents_out", 0),
                node.get("characters_in", 0),
                node.get("characters_out", 0),
                node.get("payload_bytes_in", 0),
                tuple(_drops(node)),
                tuple(_edits(node)),
            )


def _drops(node: Mapping[str, Any]) -> Iterable[Drop]:
    found = [
        Drop(transform, reason, counts["documents"], counts["characters"])
        for transform, reasons in node.get("dropped", {}).items()
        for reason, counts in reasons.items()
    ]
    return sorted(found, key=lambda drop: (-drop.documents, drop.transform, drop.reason))


def _edits(node: Mapping[str, Any]) -> Iterable[Edit]:
    found = [
        Edit(reason, counts["documents"], counts["cut"], counts["inserted"])
        for reason, counts in node.get("edits", {}).items()
    ]
    return sorted(found, key=lambda edit: (-edit.documents, edit.reason))


def _reading(statistics: Mapping[str, Any], source: str) -> Reading | None:
    node = statistics.get("reading", {}).get(source)
    if node is None:
        return None
    parts = []
    for kind in KINDS:
        for reason, counts in sorted(node.get(kind, {}).items()):
            amounts = {place: amount for place, amount in counts.items() if place != "count"}
            parts.append(Lost(kind, reason, counts["count"], amounts))
    return Reading(tuple(parts), node.get("total", {}))
