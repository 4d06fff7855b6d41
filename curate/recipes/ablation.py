"""A recipe without one of its parts: what `curate ablate` builds beside the whole.

Parts are the steps between reading and the cells of the mixture: each transform that is applied, and each operation
that takes duplicates or repeats away. A part is left out of the way to the cells alone; tokenizer, fitted models and
held-out text stay those of the whole recipe, or else losses would not mean the same. Invariant: what does not lie
behind the part keeps its key, so the engine makes nothing twice.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from curate.configuration import ConfigurationError
from curate.recipes.cells import Cells
from curate.recipes.graph import Apply, CutRepeats, Dataset, Deduplicate, DropAlike, DropEqual, Keep
from curate.recipes.recipe import Outputs
from transforms.contamination import Decontaminate
from transforms.outcome import name_of
from transforms.pii import MaskPII
from transforms.withdraw import withholds

_REPEATS = (Deduplicate, CutRepeats, DropEqual, DropAlike)


@dataclass(frozen=True, slots=True)
class Part:
    """A step that can be left out: the dataset that it makes, and what it is called ("GopherQuality of web")."""

    name: str
    made: Dataset
    protects: str | None
    """What it is for where loss is no measure of it: "rights", "personal data", "benchmarks"."""


def parts_of(outputs: Outputs) -> list[Part]:
    """Return the parts of a recipe's way to the cells of its mixture, inputs first; equal names are numbered.

    Raises:
        ConfigurationError: the recipe has no mixture.
    """
    found: list[tuple[str, Dataset]] = []
    for dataset in _upstream(training_cells(outputs).inputs[0], set()):
        operation = dataset.operation
        sources = dataset.sources
        of = f" of {', '.join(sources)}" if len(sources) <= 3 else ""
        if isinstance(operation, Apply):
            found.append((f"{name_of(operation.transform)}{of}", dataset))
        elif isinstance(operation, Deduplicate) and (operation.method is not None or len(operation.inputs) == 1):
            found.append((f"deduplicate{of}", dataset))
        elif isinstance(operation, _REPEATS[1:]) and len(operation.inputs) == 1:
            named = all(source in dataset.name.split() for source in sources)
            found.append((dataset.name if named else f"{dataset.name}{of}", dataset))
    names = [name for name, _ in found]
    unique = [
        name if names.count(name) == 1 else f"{name} {names[:at].count(name) + 1}" for at, name in enumerate(names)
    ]
    return [Part(name, made, _protects(made)) for name, (_, made) in zip(unique, found, strict=True)]


def cells_without(outputs: Outputs, part: Part) -> Cells:
    """Return the cells of the recipe's mixture without `part`, the tokenizer as it was.

    Of a deduplication of several datasets equal texts still go: only near duplicates stay.
    """
    cells = training_cells(outputs)
    first, *others = cells.inputs
    if not isinstance(first, Dataset):
        raise TypeError(f"cells are made of a dataset, not of {first!r}")
    return dataclasses.replace(cells, inputs=(_without(first, part.made, {}), *others))


def training_cells(outputs: Outputs) -> Cells:
    """Return the cells of the recipe's mixture.

    Raises:
        ConfigurationError: it has none.
    """
    if outputs.mixture is None or not isinstance(cells := outputs.products["training"], Cells):
        raise ConfigurationError("the recipe gives no mixture to Outputs(…): there is nothing to train on")
    return cells


def _upstream(dataset: Any, seen: set[int]) -> Iterator[Dataset]:
    if id(dataset) in seen:
        return
    seen.add(id(dataset))
    for parent in dataset.inputs:
        yield from _upstream(parent, seen)
    yield dataset


def _without(dataset: Dataset, left_out: Dataset, made: dict[int, Dataset]) -> Dataset:
    if id(dataset) in made:
        return made[id(dataset)]
    operation = dataset.operation
    inputs = tuple(_without(parent, left_out, made) for parent in dataset.inputs)
    if dataset is left_out and len(inputs) == 1:
        changed = inputs[0]
    elif dataset is left_out and isinstance(operation, Deduplicate):
        changed = Dataset(dataclasses.replace(operation, inputs=inputs, method=None), dataset.name)
    elif all(new is old for new, old in zip(inputs, dataset.inputs, strict=True)):
        changed = dataset
    elif isinstance(operation, (Apply, Keep)):
        changed = Dataset(dataclasses.replace(operation, input=inputs[0]), dataset.name)
    else:
        changed = Dataset(dataclasses.replace(operation, inputs=inputs), dataset.name)  # type: ignore[arg-type]
    made[id(dataset)] = changed
    return changed


def _protects(dataset: Dataset) -> str | None:
    if not isinstance(dataset.operation, Apply):
        return None
    transform = dataset.operation.transform
    if withholds(transform):
        return "rights"
    if isinstance(transform, MaskPII):
        return "personal data"
    return "benchmarks" if isinstance(transform, Decontaminate) else None
