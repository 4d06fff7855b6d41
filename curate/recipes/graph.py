"""What a recipe builds: a graph of datasets that are not there yet. Building it reads nothing.

A `Dataset` is an operation on other datasets. `curate.recipes.reading` makes one of files; its own methods chain
transforms to it and join or group it; `curate.recipes.duplicates`, `repeats` and `semantic` take out what repeats, and
`curate.recipes.evaluation` keeps test items and held-out texts apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as added_field
from fractions import Fraction

from curate.configuration import KEYED_IF_GIVEN, ConfigurationError
from curate.readers.reader import Reader
from curate.recipes.reference import Against, Reference
from transforms.embedding import Embedder
from transforms.minhash import MinHash
from transforms.outcome import Transform
from transforms.parts import RepeatedParts
from transforms.predicates import Predicate
from transforms.substrings import RepeatedSpans
from transforms.templates import TemplateRule
from transforms.urls import URLForm
from transforms.where import Where


@dataclass(frozen=True, slots=True)
class Read:
    """Reading the files of one source."""

    reader: Reader


@dataclass(frozen=True, slots=True)
class Apply:
    """A transform on each document of `input`."""

    input: Dataset
    transform: Transform


@dataclass(frozen=True, slots=True)
class Keep:
    """A cut: `input` is made real on disk here."""

    input: Dataset


@dataclass(frozen=True, slots=True)
class Deduplicate:
    """Exact and near duplicates of all `inputs` go; see `deduplicate`."""

    inputs: tuple[Dataset, ...]
    method: MinHash | None
    within: str | None
    prefer: tuple[str, ...]
    max_removed: tuple[tuple[str, str], ...]  # (source, largest share as a decimal)
    action: str = "drop"
    keep: int = 1
    count: str | None = None
    against: tuple[Reference, ...] = added_field(default=(), metadata=KEYED_IF_GIVEN)
    without_templates: TemplateRule | None = added_field(default=None, metadata=KEYED_IF_GIVEN)

    version = 2

    @property
    def promises(self) -> tuple[str, ...]:
        """What holds of the outcome, as it stands in the manifest."""
        if self.against:
            return tuple(promise.replace("this stage", "this stage or a reference") for promise in self._promises)
        return self._promises

    @property
    def _promises(self) -> tuple[str, ...]:
        if self.action == "tag":
            return ("each document tagged names one that is not, with equal text or similarity at the threshold",)
        found = ("each document dropped names a survivor of this stage with equal text or similarity at the threshold",)
        return found if self.keep > 1 else (*found, "no two survivors that were compared are similar")


@dataclass(frozen=True, slots=True)
class HoldOut:
    """One of two parts of a dataset, "train" or "valid"; see `hold_out`."""

    inputs: tuple[Dataset, ...]
    characters: int | None
    documents: int | None
    per: str | None
    method: MinHash | None
    part: str

    version = 1


@dataclass(frozen=True, slots=True)
class Join:
    """Columns of a second input beside the documents of the first; see `Dataset.join`."""

    inputs: tuple[Dataset, ...]  # documents, what is joined
    columns: tuple[tuple[str, str], ...]  # (our name, its name in the second input)

    version = 1


@dataclass(frozen=True, slots=True)
class Group:
    """One document of all that share a source and a value of the column `by`; see `Dataset.group`."""

    inputs: tuple[Dataset, ...]
    by: str
    order: tuple[str, ...]
    separator: str
    largest: int

    version = 1


@dataclass(frozen=True, slots=True)
class CutRepeats:
    """Lines, paragraphs or spans that `inputs` repeat are cut; see `curate.recipes.repeats`."""

    inputs: tuple[Dataset, ...]
    what: RepeatedParts | RepeatedSpans
    prefer: tuple[str, ...]
    against: Against
    max_removed: tuple[tuple[str, str], ...] = added_field(default=(), metadata=KEYED_IF_GIVEN)  # of characters

    version = 1


@dataclass(frozen=True, slots=True)
class DropEqual:
    """Documents equal in a column go: in the normal form of their URLs, or in their text where `form` is None."""

    inputs: tuple[Dataset, ...]
    column: str
    form: URLForm | None
    prefer: tuple[str, ...]
    against: Against
    max_removed: tuple[tuple[str, str], ...] = added_field(default=(), metadata=KEYED_IF_GIVEN)  # of documents

    version = 1


@dataclass(frozen=True, slots=True)
class DropAlike:
    """Documents go whose vector is as similar as `similarity` to that of one that stays; see `deduplicate_semantic`."""

    inputs: tuple[Dataset, ...]
    embedder: Embedder
    similarity: Fraction
    clusters: int | None
    cap: int
    prefer: tuple[str, ...]
    against: Against
    max_removed: tuple[tuple[str, str], ...]

    version = 1

    @property
    def promises(self) -> tuple[str, ...]:
        """What holds of the outcome, as it stands in the manifest."""
        where = "of this stage or a reference" if self.against else "of this stage"
        return (f"each document dropped names a survivor {where} with cosine similarity at the threshold",)


DatasetWide = Deduplicate | HoldOut | Join | Group | CutRepeats | DropEqual | DropAlike
"""Operations that look at all documents of their `inputs`, and make a dataset of them."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """Documents that a recipe describes. `name` names the stage that makes them real."""

    operation: Read | Apply | Keep | DatasetWide
    name: str

    def apply(self, *transforms: Transform, name: str | None = None) -> Dataset:
        """Return the dataset that `transforms` make of this one, one after the other.

        Raises:
            ConfigurationError: something given is not a transform.
        """
        dataset = self
        for transform in transforms:
            if not isinstance(transform, Transform):
                raise ConfigurationError(
                    f"{transform!r} is not a transform: it needs version, libraries, output_schema and apply "
                    "(see transforms/outcome.py). Did you mean an instance, as GopherQuality()?"
                )
            dataset = Dataset(Apply(dataset, transform), name or self._further_name())
        return dataset

    def where(self, predicate: Predicate, *, reason: str, name: str | None = None) -> Dataset:
        """Return the documents for which `predicate` holds, as `field("licence").isin(…)`; others go with `reason`."""
        return self.apply(Where(predicate, reason=reason), name=name)

    def keep(self, name: str | None = None) -> Dataset:
        """Return this dataset, made real on disk at this point whatever follows."""
        return Dataset(Keep(self), name or self.name)

    def join(self, other: Dataset, columns: Sequence[str] | Mapping[str, str], *, name: str | None = None) -> Dataset:
        """Return the documents of this dataset with `columns` of `other`, from the document that has the same `id`.

        For attributes that were computed elsewhere. Documents without a partner get nulls; how many these are, and how
        many documents of `other` have no partner, stands in the statistics (`joined`). Order and shards stay.

        Args:
            other: where the columns come from. Ids are made of source and key column (or place), so read it under the
                same source name, or derive it from the same documents.
            columns: names of columns of `other`; or our name → its name there.
            name: of the stage.

        Raises:
            ConfigurationError: no columns, or one twice. Columns that `other` lacks or this dataset has already are an
                error when the recipe is compiled, before any work.
        """
        pairs = tuple(columns.items() if isinstance(columns, Mapping) else zip(columns, columns, strict=True))
        ours = [column for column, _ in pairs]
        if not pairs or len(set(ours)) < len(ours):
            raise ConfigurationError(f"join(columns={list(ours)}): give the columns to take, each once")
        return Dataset(Join((self, other), pairs), name or f"join {self.name}")

    def group(
        self,
        by: str,
        order: str | Sequence[str] = (),
        *,
        separator: str = "\n",
        largest: int = 64 << 20,
        name: str | None = None,
    ) -> Dataset:
        """Return one document per source and value of the column `by`, as a repository of its files.

        The first document of a group gets the texts of all, joined with `separator`, and keeps its id and origin; the
        others are in the ledger as "merged", each with the id of that one. Other columns keep their value where all
        documents of a group agree, else they are null; several licences become an SPDX expression ("MIT AND ISC"), or
        "unknown" where one is; of opt-out signals the strictest holds. Documents without a value stay alone.

        Args:
            by: the column whose values name groups.
            order: of the documents of a group, by columns as in `deduplicate(prefer=…)`: "path", "-stars"; then by the
                digest of the text, then by id.
            separator: stands between two texts.
            largest: bytes of text after which a group goes on in another document.
            name: of the stage.

        Raises:
            ConfigurationError: `largest` is no positive number. A column that is not there is an error when the recipe
                is compiled, before any work.
        """
        if largest < 1:
            raise ConfigurationError(f"group(largest={largest}): give a positive number of bytes")
        columns = (order,) if isinstance(order, str) else tuple(order)
        return Dataset(Group((self,), by, columns, separator, largest), name or f"group by {by}")

    @property
    def inputs(self) -> tuple[Dataset, ...]:
        """The datasets that this one is made from."""
        if isinstance(self.operation, Read):
            return ()
        if isinstance(self.operation, DatasetWide):
            return self.operation.inputs
        return (self.operation.input,)

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the sources, in the order in which they were given."""
        if isinstance(self.operation, Read):
            return (self.operation.reader.source,)
        if isinstance(self.operation, Join):
            return self.operation.inputs[0].sources
        return tuple(dict.fromkeys(source for dataset in self.inputs for source in dataset.sources))

    def _further_name(self) -> str:
        return f"apply {' '.join(self.sources)}" if isinstance(self.operation, Read) else self.name
