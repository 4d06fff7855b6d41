"""Stages: what is made real on disk, and in which order. `compiling` makes them, `curate.keys` names them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from curate.accounting.accountant import Step
from curate.configuration import describe
from curate.readers.reader import Reader
from curate.recipes.cells import Cells, TrainedTokenizer
from curate.recipes.graph import (
    CutRepeats,
    Dataset,
    DatasetWide,
    Deduplicate,
    DropAlike,
    DropEqual,
    Group,
    HoldOut,
    Join,
)
from curate.recipes.models import FittedModel, with_models
from curate.upkeep.compaction import Compact
from transforms.switch import Switch


@dataclass(frozen=True, slots=True, eq=False)
class DocumentStage:
    """Reading (or an upstream stage) and a chain of transforms, document by document."""

    name: str
    reader: Reader | None
    upstream: Stage | None
    steps: tuple[Step, ...]
    schema: pa.Schema
    sources: tuple[str, ...]
    forbids: frozenset[str]
    models: tuple[tuple[FittedModel, Stage], ...] = ()
    as_read: bool = False
    """Whether it gives texts as they were read: no step comes after what makes text."""

    @property
    def inputs(self) -> tuple[Stage, ...]:
        """The stage whose shards this one reads, if there is one, then those that fit its models."""
        upstream = () if self.upstream is None else (self.upstream,)
        return (*upstream, *dict.fromkeys(stage for _, stage in self.models))


@dataclass(frozen=True, slots=True, eq=False)
class WideStage:
    """A dataset-wide operation on all its inputs. What makes no dataset has no columns."""

    name: str
    operation: Wide
    inputs: tuple[Stage, ...]
    schema: pa.Schema
    sources: tuple[str, ...]
    forbids: frozenset[str]


Wide = DatasetWide | Compact | TrainedTokenizer | Cells | FittedModel
Product = Dataset | TrainedTokenizer | Cells | FittedModel
"""What a recipe asks for: a dataset, a tokenizer, cells of tokens, or a model."""

Stage = DocumentStage | WideStage

VERBS: Final[Mapping[type, str]] = {
    Deduplicate: "deduplicate",
    HoldOut: "hold out",
    Join: "join",
    Group: "group",
    CutRepeats: "cut repeats",
    DropEqual: "deduplicate by a column",
    DropAlike: "deduplicate semantically",
    Compact: "compact",
    TrainedTokenizer: "train tokenizer",
    Cells: "tokenize",
    FittedModel: "fit a model",
}
MAKES_DATASETS: Final = DatasetWide | Compact
"""Dataset-wide operations whose outcome is a dataset."""


@dataclass(frozen=True, slots=True)
class Stages:
    """Stages in an order in which they can run, and which of them an output is."""

    ordered: tuple[Stage, ...]
    outputs: Mapping[str, Stage]


def steps_with(steps: Sequence[Step], there: Callable[[FittedModel], object]) -> tuple[Step, ...]:
    """Return `steps` with what `there` gives in the place of each model that they wait for."""
    return tuple(Step(step.name, with_models(step.transform, there)) for step in steps)


def describe_stage(stage: Stage) -> dict[str, Any]:
    """Return the configuration of `stage` as it stands in its manifest."""
    if isinstance(stage, WideStage):
        described = {"operation": VERBS[type(stage.operation)], **without_inputs(stage.operation)}
        promises = stage.operation.promises if isinstance(stage.operation, (Deduplicate, DropAlike)) else ()
        return {**described, "promises": list(promises)} if promises else described
    reader = None if stage.reader is None else describe(stage.reader)
    return {"operation": "documents", "reader": reader, "steps": [_described_step(step) for step in stage.steps]}


def _described_step(step: Step) -> dict[str, Any]:
    """Return name and configuration of `step`, and its card where the transform has one: facts of what it was given."""
    described = {"name": step.name, "transform": describe(step.transform)}
    card = getattr(step.transform, "card", None)
    return described if card is None else {**described, "card": card()}


def without_inputs(operation: Wide) -> dict[str, Any]:
    """Return the configuration of `operation` without its inputs and without what is for people."""
    if isinstance(operation, FittedModel):
        return {"verb": operation.fit.verb, "fit": describe(operation.fit)}
    described: dict[str, Any] = describe(replace(operation, inputs=(), **_NAMELESS.get(type(operation), {})))
    return described


_NAMELESS: Final[Mapping[type, Mapping[str, Any]]] = {TrainedTokenizer: {"name": ""}, Cells: {"name": ""}}
"""Fields that are for people and stand in no key."""


def transforms_of(stages: Stages) -> Iterator[Any]:
    """Yield the transforms of all stages, those inside a `Switch` too."""
    pending = [step.transform for stage in stages.ordered if isinstance(stage, DocumentStage) for step in stage.steps]
    while pending:
        transform = pending.pop()
        yield transform
        if isinstance(transform, Switch):
            pending.extend([*transform.others, *(inner for _, chain in transform.chains for inner in chain)])


def readers_of(stages: Stages) -> Iterator[Reader]:
    """Yield the readers of all stages."""
    for stage in stages.ordered:
        if isinstance(stage, DocumentStage) and stage.reader is not None:
            yield stage.reader
