"""From the graph of a recipe to stages: what is made real on disk, and in which order. `curate.keys` names them.

Document-wise transforms are fused into one pass. A chain is cut after reading + extraction, where text begins (the dear
part), and at `.keep()`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from curate.accounting.accountant import Step
from curate.configuration import ConfigurationError, describe
from curate.readers.reader import Reader
from curate.recipes.cells import Cells, TrainedTokenizer
from curate.recipes.graph import (
    Apply,
    CutRepeats,
    Dataset,
    Deduplicate,
    DropAlike,
    DropEqual,
    Group,
    HoldOut,
    Join,
    Keep,
    Read,
)
from curate.recipes.models import FittedModel, models_in, with_models
from curate.store import Store
from curate.upkeep.compaction import Compact
from transforms.chain import unique_names
from transforms.outcome import Transform
from transforms.sample import Sample
from transforms.schema import BASE, EXTRA
from transforms.switch import Switch
from transforms.withdraw import withholds


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


Repeats = CutRepeats | DropEqual | DropAlike
Wide = Deduplicate | HoldOut | Join | Group | Repeats | Compact | TrainedTokenizer | Cells | FittedModel
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
MAKES_DATASETS: Final = (Deduplicate, HoldOut, Join, Group, CutRepeats, DropEqual, DropAlike, Compact)
"""Dataset-wide operations whose outcome is a dataset."""

KINDS: Final[Mapping[str, Callable[[pa.DataType], bool]]] = {
    "strings": pa.types.is_large_string,
    "whole numbers": pa.types.is_integer,
}
"""What a fit can ask of a column."""

NO_COLUMNS: Final = pa.schema([])

DUPLICATE: Final = pa.field("duplicate", pa.large_string())
"""What `deduplicate(action="tag")` writes: the evidence as canonical JSON, null for what would stay."""


@dataclass(frozen=True, slots=True)
class Stages:
    """Stages in an order in which they can run, and which of them an output is."""

    ordered: tuple[Stage, ...]
    outputs: Mapping[str, Stage]


@dataclass(slots=True)
class _Compiler:
    sample: Sample | None
    ordered: list[Stage] = field(default_factory=list)
    made: dict[int, Stage] = field(default_factory=dict)
    compacted: dict[int, Stage] = field(default_factory=dict)

    def stage(self, product: Product) -> Stage:
        """Return the stage that makes `product` real."""
        if id(product) not in self.made:
            self.made[id(product)] = self._compile(product)
        return self.made[id(product)]

    def _add(self, stage: Stage) -> Stage:
        self.ordered.append(stage)
        return stage

    def _compile(self, dataset: Product) -> Stage:
        if not isinstance(dataset, Dataset):
            return self._wide(dataset.name, dataset)
        if isinstance(dataset.operation, Join):
            return self._join(dataset, dataset.operation)
        if isinstance(dataset.operation, (Deduplicate, HoldOut, Group, CutRepeats, DropEqual, DropAlike)):
            return self._wide(dataset.name, dataset.operation)
        chain, origin = _chain(dataset)
        if not chain and not isinstance(origin.operation, Read):
            return self.stage(origin)
        names = unique_names(_whole_chain(dataset))[-len(chain) :] if chain else []
        steps = [Step(name, transform) for name, transform in zip(names, chain, strict=True)]
        if isinstance(origin.operation, Read):
            return self._read(dataset, origin, origin.operation.reader, steps)
        upstream = self.stage(origin)
        return self._documents(dataset.name, None, upstream, steps, upstream.schema, dataset, upstream.forbids)

    def _read(self, dataset: Dataset, origin: Dataset, reader: Reader, steps: list[Step]) -> Stage:
        forbids = frozenset() if reader.excerpts else frozenset({reader.source})
        if self.sample is not None:
            lead = _withdrawing(steps)  # nothing of what they drop may be shown among what the sample left out
            steps = [*steps[:lead], Step("Sample", self.sample), *steps[lead:]]
        cut = _where_text_begins(reader.schema(), steps)
        if not 0 < cut < len(steps):
            return self._documents(dataset.name, reader, None, steps, reader.schema(), dataset, forbids)
        first = self._documents(origin.name, reader, None, steps[:cut], reader.schema(), dataset, forbids)
        return self._documents(dataset.name, None, first, steps[cut:], first.schema, dataset, forbids)

    def _documents(
        self,
        name: str,
        reader: Reader | None,
        upstream: Stage | None,
        steps: Sequence[Step],
        schema: pa.Schema,
        dataset: Dataset,
        forbids: frozenset[str],
    ) -> Stage:
        models = tuple((model, self.stage(model)) for step in steps for model in models_in(step.transform))
        for step in steps:
            schema = _output_schema(step, schema)
        return self._add(DocumentStage(name, reader, upstream, tuple(steps), schema, dataset.sources, forbids, models))

    def _wide(self, name: str, operation: Wide) -> Stage:
        inputs = tuple(self._compact(self.stage(parent), operation) for parent in operation.inputs)
        schema = union_schema([stage.schema for stage in inputs if stage.schema is not NO_COLUMNS])
        require_columns(name, operation, schema)
        sources = tuple(dict.fromkeys(source for stage in inputs for source in stage.sources))
        forbids = frozenset[str]().union(*(stage.forbids for stage in inputs))
        if isinstance(operation, Group):
            schema = merged_schema(schema)
        if isinstance(operation, Deduplicate):
            schema = told_schema(name, operation, schema)
        given = schema if isinstance(operation, MAKES_DATASETS) else NO_COLUMNS
        return self._add(WideStage(name, operation, inputs, given, sources, forbids))

    def _join(self, dataset: Dataset, operation: Join) -> Stage:
        left, other = (self._compact(self.stage(parent), operation) for parent in operation.inputs)
        schema = joined_schema(dataset.name, left.schema, other.schema, operation.columns)
        forbids = left.forbids | other.forbids
        return self._add(WideStage(dataset.name, operation, (left, other), schema, left.sources, forbids))

    def _compact(self, stage: Stage, operation: Wide) -> Stage:
        """Return the stage that joins the small shards of a document-wise `stage`; any other as it is.

        A fit looks at documents and passes none on: for it that would be work for nothing.
        """
        if not isinstance(stage, DocumentStage) or isinstance(operation, FittedModel):
            return stage
        if id(stage) not in self.compacted:
            given = (stage.schema, stage.sources, stage.forbids)
            self.compacted[id(stage)] = self._add(WideStage(f"compact {stage.name}", Compact(), (stage,), *given))
        return self.compacted[id(stage)]


def compile_stages(outputs: Mapping[str, Product], sample: Sample | None = None) -> Stages:
    """Return the stages that make `outputs` real; `sample` is applied to each source right after reading.

    Raises:
        ConfigurationError: a recipe that cannot run: no text where text is needed, schemas that do not fit, a transform
            that lacks a column, one source name for two roots.
    """
    compiler = _Compiler(sample)
    made = {name: compiler.stage(dataset) for name, dataset in outputs.items()}
    for name, stage in made.items():
        if stage.schema is not NO_COLUMNS and "text" not in stage.schema.names:
            raise ConfigurationError(
                f"output {name!r} has records, not documents: apply ExtractText() to what read_warc gives"
            )
    stages = Stages(tuple(compiler.ordered), made)
    _check_sources(stages)
    return stages


def _check_sources(stages: Stages) -> None:
    """Raise where one source name stands for two roots: ids are made of source and path below the root."""
    roots: dict[str, Path | Store] = {}
    for reader in _readers_of_documents(stages):
        if roots.setdefault(reader.source, reader.root) != reader.root:
            raise ConfigurationError(
                f"source {reader.source!r} is read from {roots[reader.source]} and from {reader.root}: records of both "
                "could have one id. Give each its own source name, or read both from the folder above"
            )


def _readers_of_documents(stages: Stages) -> Iterator[Reader]:
    """Yield the readers but those whose rows only join others: their ids are meant to be those of other files."""
    pending, seen = list(stages.outputs.values())[::-1], set[int]()
    while pending:
        stage = pending.pop()
        if id(stage) in seen:
            continue
        seen.add(id(stage))
        if isinstance(stage, DocumentStage) and stage.reader is not None:
            yield stage.reader
        joins = isinstance(stage, WideStage) and isinstance(stage.operation, Join)
        pending.extend(stage.inputs[:1] if joins else stage.inputs[::-1])


def _chain(dataset: Dataset) -> tuple[list[Transform], Dataset]:
    """Return the transforms that end in `dataset`, and the dataset that they start from (read, kept, or joined)."""
    transforms: list[Transform] = []
    while isinstance(dataset.operation, Apply):
        transforms.append(dataset.operation.transform)
        dataset = dataset.operation.input
    if isinstance(dataset.operation, Keep) and not transforms:
        kept, origin = _chain(dataset.operation.input)
        return kept, origin
    return transforms[::-1], dataset


def _whole_chain(dataset: Dataset) -> list[Transform]:
    """Return the transforms from the last reading or joining on, across cuts: names are unique within these."""
    transforms: list[Transform] = []
    while isinstance(dataset.operation, (Apply, Keep)):
        if isinstance(dataset.operation, Apply):
            transforms.append(dataset.operation.transform)
        dataset = dataset.operation.input
    return transforms[::-1]


def _where_text_begins(schema: pa.Schema, steps: Sequence[Step]) -> int:
    for index, step in enumerate(steps):
        before, schema = schema, _output_schema(step, schema)
        if "text" not in before.names and "text" in schema.names:
            return index + 1 + _withdrawing(steps[index + 1 :])
    return 0


def _withdrawing(steps: Sequence[Step]) -> int:
    """Return how many of the first `steps` withdraw documents: the shards of a cut hold nothing of these."""
    return next((index for index, step in enumerate(steps) if not withholds(step.transform)), len(steps))


def steps_with(steps: Sequence[Step], there: Callable[[FittedModel], object]) -> tuple[Step, ...]:
    """Return `steps` with what `there` gives in the place of each model that they wait for."""
    return tuple(Step(step.name, with_models(step.transform, there)) for step in steps)


def _output_schema(step: Step, schema: pa.Schema) -> pa.Schema:
    try:
        return step.transform.output_schema(schema)
    except ValueError as error:
        raise ConfigurationError(f"{step.name}: {error}") from error


def union_schema(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """Return the schema that holds the columns of all `schemas`: base columns, further ones in order, `extra` last.

    Raises:
        ConfigurationError: one column has two types.
    """
    fields: dict[str, pa.Field] = {}
    everywhere = set.intersection(*(set(schema.names) for schema in schemas))
    for item in (item for schema in schemas for item in schema):
        known = fields.setdefault(item.name, item if item.name in everywhere else item.with_nullable(True))
        if known.type != item.type:
            raise ConfigurationError(f"column {item.name!r} is {known.type} in one input and {item.type} in another")
    extra = fields.pop(EXTRA.name)
    return pa.schema([*fields.values(), extra])


def merged_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns of documents of which one was made of many: further ones are null where these differ."""
    return pa.schema([column if column.name in BASE.names else column.with_nullable(True) for column in schema])


def told_schema(name: str, operation: Deduplicate, schema: pa.Schema) -> pa.Schema:
    """Return `schema` with the columns that `operation` adds, before `extra`.

    Raises:
        ConfigurationError: there is a column of that name already.
    """
    added = [DUPLICATE] if operation.action == "tag" else []
    added += [pa.field(operation.count, pa.int64(), nullable=False)] if operation.count else []
    names = [*schema.names, *(column.name for column in added)]
    if clashing := sorted({name for name in names if names.count(name) > 1}):
        raise ConfigurationError(
            f"{name} is to add the column {clashing[0]!r}, which the documents have already: give another name, as "
            f'deduplicate(…, count="{clashing[0]}_2"), or tag once'
        )
    return pa.schema([*(f for f in schema if f.name != EXTRA.name), *added, schema.field(EXTRA.name)])


def joined_schema(name: str, schema: pa.Schema, other: pa.Schema, columns: Sequence[tuple[str, str]]) -> pa.Schema:
    """Return `schema` with `columns` (our name, its name in `other`), all nullable, before `extra`.

    Raises:
        ConfigurationError: `other` lacks one, or `schema` has one of that name already.
    """
    if missing := [theirs for _, theirs in columns if theirs not in other.names]:
        raise ConfigurationError(
            f"{name} is to take {', '.join(missing)}; the dataset that is joined has {', '.join(other.names)}"
        )
    if clashing := [ours for ours, _ in columns if ours in schema.names]:
        raise ConfigurationError(
            f"{name} is to take {', '.join(clashing)}, which the documents have already: give another name, as "
            f'columns={{"{clashing[0]}_joined": "{dict(columns)[clashing[0]]}"}}'
        )
    taken = [pa.field(ours, other.field(theirs).type) for ours, theirs in columns]
    fields = [field for field in schema if field.name != EXTRA.name]
    return pa.schema([*fields, *taken, *(field for field in schema if field.name == EXTRA.name)])


def require_columns(name: str, operation: Wide, schema: pa.Schema) -> None:
    """Raise unless documents of `schema` have what `operation` looks at.

    Raises:
        ConfigurationError: columns are missing; the message lists what is there.
    """
    if "text" not in schema.names:
        raise ConfigurationError(f"{name} needs texts: apply ExtractText() to what read_warc gives")
    wanted: set[str | None] = set()
    if isinstance(operation, Deduplicate):
        wanted = {operation.within, *(column.removeprefix("-") for column in operation.prefer)} - {"length", "source"}
    elif isinstance(operation, HoldOut):
        wanted = {operation.per}
    elif isinstance(operation, Group):
        wanted = {None, operation.by, *(column.removeprefix("-") for column in operation.order)} - {"length", "source"}
    elif isinstance(operation, (CutRepeats, DropEqual, DropAlike)):
        wanted = {None, *(column.removeprefix("-") for column in operation.prefer)} - {"length", "source"}
        wanted |= {operation.column} if isinstance(operation, DropEqual) else set()
    elif isinstance(operation, Cells):
        wanted = set(operation.by)
    elif isinstance(operation, FittedModel):
        wanted = {*operation.fit.columns()}
    if missing := sorted(column for column in wanted if column and column not in schema.names):
        raise ConfigurationError(
            f"{name} is told to use {', '.join(missing)}; the documents have {', '.join(schema.names)}"
        )
    for column, kind in operation.fit.columns().items() if isinstance(operation, FittedModel) else ():
        if not KINDS[kind](found := schema.field(column).type):
            raise ConfigurationError(f"{name} needs {kind} in {column!r}, it is {found}: name another column")
    if isinstance(operation, DropEqual) and not pa.types.is_large_string(schema.field(operation.column).type):
        kind = schema.field(operation.column).type
        raise ConfigurationError(f"{name} compares strings, and {operation.column!r} is {kind}: name another column")


def fit_to(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return `batch` with the columns of `schema`: those it lacks are null."""
    names = set(batch.schema.names)
    arrays = [batch.column(f.name) if f.name in names else pa.nulls(batch.num_rows, f.type) for f in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


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
