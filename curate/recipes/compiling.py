"""From the graph of a recipe to its stages.

Document-wise transforms are fused into one pass. A chain is cut after reading + extraction, where text begins (the dear
part), and at `.keep()`. What dataset-wide operations read is compacted before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from curate.accounting.accountant import Step
from curate.configuration import ConfigurationError
from curate.readers.reader import Reader
from curate.recipes.graph import (
    Apply,
    Dataset,
    DatasetWide,
    Deduplicate,
    Group,
    Join,
    Keep,
    Read,
)
from curate.recipes.models import FittedModel, models_in
from curate.recipes.schemas import NO_COLUMNS, joined_schema, merged_schema, require_columns, told_schema, union_schema
from curate.recipes.stages import MAKES_DATASETS, DocumentStage, Product, Stage, Stages, Wide, WideStage
from curate.store import Store
from curate.upkeep.compaction import Compact
from transforms.chain import unique_names
from transforms.outcome import Transform
from transforms.sample import Sample
from transforms.withdraw import withholds


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
        if isinstance(dataset.operation, DatasetWide):
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
        as_read = reader is not None and _is_as_read(reader, steps, schema)
        given = (schema, dataset.sources, forbids, models, as_read)
        return self._add(DocumentStage(name, reader, upstream, tuple(steps), *given))

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


def _is_as_read(reader: Reader, steps: Sequence[Step], schema: pa.Schema) -> bool:
    """Return whether `steps`, which give rows of `schema`, end where text begins."""
    return "text" in schema.names and _where_text_begins(reader.schema(), steps) == len(steps)


def _withdrawing(steps: Sequence[Step]) -> int:
    """Return how many of the first `steps` withdraw documents: the shards of a cut hold nothing of these."""
    return next((index for index, step in enumerate(steps) if not withholds(step.transform)), len(steps))


def _output_schema(step: Step, schema: pa.Schema) -> pa.Schema:
    try:
        return step.transform.output_schema(schema)
    except ValueError as error:
        said = str(error)
        raise ConfigurationError(said if said.startswith(step.name) else f"{step.name}: {said}") from error
