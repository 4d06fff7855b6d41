"""Models in a recipe: what a stage fits on datasets, and transforms that use it before it is there.

    topics = fit_topics(documents, k=40)
    documents.apply(AssignTopic(topics))

`fit_topics` and its like return a `FittedModel`. A transform takes it in the place of a path; the stage that applies
the transform then has the stage that fits as an input. Its key stands in the key of the transform, so what is fitted
anew is applied anew. Before a task runs, the model's file takes the place of the promise (`with_models`).
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from curate.committing.gathered import Receipts
from curate.datasets import Dataset as Finished
from curate.recipes.cells import TrainedTokenizer
from curate.recipes.graph import Dataset
from curate.running.jobs import RunsJobs
from curate.store import Store
from transforms.tokens import Tokenizer


@dataclass(frozen=True, slots=True)
class Fitting:
    """What a fit works on: finished datasets in the order of the recipe, the stage's name and key, and who runs jobs.

    Keys of tasks must be made of `key`, or of those of shards where a task's outcome depends on one shard alone.
    Texts of the sources in `forbids` may not be shown; `tokenizer` is there where one trained in the recipe is among
    the inputs.
    """

    name: str
    key: str
    datasets: tuple[Finished, ...]
    engine: RunsJobs
    forbids: frozenset[str] = frozenset()
    tokenizer: Tokenizer | None = None


@dataclass(frozen=True, slots=True)
class Fitted:
    """What a fit made: files by name, the card (canonical JSON, no floats), and the receipts of its tasks."""

    files: Mapping[str, bytes]
    card: Mapping[str, Any]
    inner: tuple[Receipts, ...] = ()


class Fit(Protocol):
    """How a model is fitted: a frozen dataclass whose fields are its whole configuration.

    It may have `warm()`, which calls the kernels that it uses once, on made-up texts; so may a transform that holds a
    model.
    """

    version: ClassVar[int]
    """Raised whenever the model for some input changes."""

    verb: ClassVar[str]
    """What it does, for plans and pages: "fit topics"."""

    file: ClassVar[str]
    """Name of the file that transforms are given."""

    def columns(self) -> Mapping[str, str]:
        """Return the columns that it reads beside `text`, and what they must hold: "strings" or "whole numbers"."""
        ...

    def fit(self, fitting: Fitting) -> Fitted:
        """Return the model, the same for any worker count and any cut of the datasets into shards."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class FittedModel:
    """A model that a stage fits on `inputs`; transforms take it in the place of a path."""

    inputs: tuple[Dataset | TrainedTokenizer, ...]
    fit: Fit
    name: str

    version = 1

    def description(self) -> dict[str, Any]:
        """Return what stands in the configuration of who uses it; keys have the key of the stage instead."""
        return {"model of": self.name}


@dataclass(frozen=True, slots=True)
class MadeBy:
    """What stands for a model in keys: the key of the stage that makes it."""

    key: str

    def description(self) -> dict[str, Any]:
        """Return the key."""
        return {"made by": self.key}


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A model that a stage made. As an `os.PathLike` it is the copy of its file on this node."""

    store: Store
    file: str
    digest: str
    key: str

    def __fspath__(self) -> str:
        return str(self.store.local(self.file, self.digest))

    def description(self) -> dict[str, Any]:
        """Return what `MadeBy` of the same key does."""
        return MadeBy(self.key).description()


def models_in(value: Any) -> Iterator[FittedModel]:
    """Yield the models that a transform, or a transform within it, waits for."""
    if isinstance(value, FittedModel):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from models_in(item)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from models_in(getattr(value, field.name))


def with_models(value: Any, there: Callable[[FittedModel], Any]) -> Any:
    """Return `value`, a transform, with what `there` gives in the place of each model that it waits for."""
    if isinstance(value, FittedModel):
        return there(value)
    if isinstance(value, tuple):
        return tuple(with_models(item, there) for item in value)
    if next(models_in(value), None) is None:
        return value
    changed = copy.copy(value)
    for field in dataclasses.fields(value):
        object.__setattr__(changed, field.name, with_models(getattr(value, field.name), there))
    return changed
