"""What a result says about benchmarks in it: configurations from manifests, counts from statistics.

Counts are by verdict and source, and, from the third version of `Decontaminate` on, by benchmark and item: statistics
have what the evidence of each document names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from transforms.contamination import NEARLY
from transforms.contamination_findings import VERDICTS
from viewers.configured import configured
from viewers.flows import flow_of
from viewers.loading import Report, StageView
from viewers.rules import near_misses

TRANSFORM: Final = "Decontaminate"
PREFIX: Final = "contamination: "


WIDELY_USED = (
    "AIME", "ARC", "BBH", "BoolQ", "C-Eval", "DROP", "FLORES", "GPQA", "GSM8K", "HellaSwag", "HumanEval", "IFEval",
    "LAMBADA", "LiveCodeBench", "MATH", "MBPP", "MGSM", "MMLU", "MMLU-Pro", "MMMLU", "NaturalQuestions", "OpenBookQA",
    "PIQA", "SimpleQA", "SQuAD", "SWE-bench", "TriviaQA", "TruthfulQA", "WinoGrande", "XNLI",
)  # fmt: skip
"""Benchmarks that a reader may ask after: named where they are not checked."""


@dataclass(frozen=True, slots=True)
class Guard:
    """A `Decontaminate` in a stage, as its manifest describes it."""

    stage: StageView
    fields: Mapping[str, Any]
    is_whole: bool
    """Whether every document of the stage comes to it, not only those of a branch."""
    protection: Mapping[str, Mapping[str, int]]
    """Benchmark → how many items it has, and how many of them are too short or too plain; empty where not recorded."""
    counts_left: bool
    """Whether statistics have what it found and left: so from its second version on."""

    @property
    def benchmarks(self) -> tuple[Mapping[str, Any], ...]:
        """Fields of its benchmarks; the name is with the split, as evidence and protection have it."""
        given = [benchmark["fields"] for benchmark in self.fields["benchmarks"]]
        return tuple({**f, "name": f"{f['name']}/{f['split']}" if f.get("split") else f["name"]} for f in given)


@dataclass(frozen=True, slots=True)
class Hits:
    """Documents of one source in one stage that went, were cut or left for one verdict, or as a near miss."""

    stage: StageView
    source: str
    verdict: str
    dropped: int
    characters: int
    cut: int
    left: int


def guards_of(report: Report) -> list[Guard]:
    """Return every `Decontaminate` of `report`, also those within others, stages in order."""
    found = []
    for stage in report.stages:
        for step in stage.operation.get("steps", []):
            transform = step.get("transform")
            is_whole = isinstance(transform, Mapping) and transform.get("class") == TRANSFORM
            protection = step.get("card", {}).get("protection", {}) if is_whole else {}
            for node in configured(transform, TRANSFORM):
                counts_left = isinstance(version := node.get("version"), int) and version > 1
                found.append(Guard(stage, node["fields"], is_whole, protection, counts_left))
    return found


def is_guard(transform: str) -> bool:
    """Return whether a name in a ledger is that of a `Decontaminate`, in a branch or not, the first or a later one."""
    return transform.rpartition("/")[2].partition("#")[0] == TRANSFORM


def hits_of(stage: StageView) -> list[Hits]:
    """Return what `stage` dropped, cut and left that has benchmarks in it, by source and verdict, the gravest first."""
    found = []
    for source in stage.sources:
        flow, near = flow_of(stage, source), near_misses(stage, source)
        for verdict in (*VERDICTS, NEARLY):
            reason = PREFIX + verdict
            drops = [d for s in flow.steps for d in s.drops if is_guard(d.transform) and d.reason == reason]
            edits = [e for s in flow.steps for e in s.edits if e.reason == reason]
            left = sum(number for (transform, why), number in near.items() if is_guard(transform) and why == reason)
            if drops or edits or left:
                dropped, characters = sum(d.documents for d in drops), sum(d.characters for d in drops)
                found.append(Hits(stage, source, verdict, dropped, characters, sum(e.documents for e in edits), left))
    return found


@dataclass(frozen=True, slots=True)
class ItemsFound:
    """What a stage found of a benchmark: how many of its items and in how many documents, by verdict, and where."""

    benchmark: str
    items: Mapping[str, int]
    documents: Mapping[str, int]
    sources: Mapping[str, int]
    """Source → documents with an item of it; a document counts for each verdict."""


def items_found(stage: StageView) -> list[ItemsFound]:
    """Return what `stage` found of each benchmark, by name: dropped, cut, tagged, masked or left."""
    merged: dict[str, tuple[dict[str, set[str]], dict[str, int], dict[str, int]]] = {}
    for step in stage.statistics.get("steps", {}).values():
        for benchmark, found in step.get("found", {}).items():
            items, documents, sources = merged.setdefault(benchmark, ({}, {}, {}))
            for verdict, numbers in found.get("items", {}).items():
                items.setdefault(verdict, set()).update(numbers)
            for verdict, where in found.get("documents", {}).items():
                for source, count in where.items():
                    documents[verdict] = documents.get(verdict, 0) + count
                    sources[source] = sources.get(source, 0) + count
    return [
        ItemsFound(name, {verdict: len(numbers) for verdict, numbers in items.items()}, documents, sources)
        for name, (items, documents, sources) in sorted(merged.items())
    ]


def checked_documents(stage: StageView) -> dict[str, int]:
    """Return source → documents that came into `stage`."""
    return {source: flow_of(stage, source).documents_in for source in stage.sources}


def unchecked_sources(report: Report) -> list[str]:
    """Return the sources of which no document came to a stage that looks for benchmarks."""
    reached = {source for guard in guards_of(report) for source in guard.stage.sources}
    return [source for source in report.sources if source not in reached]


def not_looked_for(names: Sequence[str]) -> list[str]:
    """Return the widely used benchmarks that no name of `names` holds: what is left out is not said to be missing."""
    looked_for = ["".join(filter(str.isalnum, name.casefold())) for name in names]
    return [
        name for name in WIDELY_USED if not any("".join(filter(str.isalnum, name.casefold())) in n for n in looked_for)
    ]
