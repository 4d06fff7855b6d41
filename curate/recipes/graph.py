"""What a recipe builds: a graph of datasets that are not there yet. Building it reads nothing.

A `Dataset` is an operation on other datasets. `read_*` make one, `apply`, `where` and `keep` chain transforms to it,
`deduplicate` joins several.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as added_field
from fractions import Fraction
from pathlib import Path
from typing import Any

from curate.configuration import KEYED_IF_GIVEN, ConfigurationError
from curate.readers.forms import PAGES, WarcForm
from curate.readers.reader import MAX_RECORD_BYTES, UNIT_BYTES, Column, Reader, declared_columns, source_root
from curate.recipes.reference import Against, Reference, references_of
from curate.store import Store
from transforms.benchmark_items import Benchmark
from transforms.contamination import Decontaminate
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


@dataclass(frozen=True, slots=True)
class Dataset:
    """Documents that a recipe describes. `name` names the stage that makes them real."""

    operation: Read | Apply | Keep | Deduplicate | HoldOut | Join | Group | CutRepeats | DropEqual | DropAlike
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
        if isinstance(self.operation, (Deduplicate, HoldOut, Join, Group, CutRepeats, DropEqual, DropAlike)):
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


def read_warc(
    root: str | Path | Store,
    pattern: str = "**/*.warc.gz",
    *,
    source: str,
    licence: str | None = None,
    excerpts: bool = True,
    on_clash: str = "error",
    max_record_bytes: int = MAX_RECORD_BYTES,
    max_damaged: float = 0.5,
    listing: str | Path | None = None,
    statuses: Sequence[int] | None = (200,),
    revisits: str = "count",
    unit_bytes: int = UNIT_BYTES,
) -> Dataset:
    """Read web archives (WARC, ARC; plain, .gz, .lz4, .zst): a record a response, not yet text (apply `ExtractText`).

    Ids come from WARC-Record-ID; of ARC, which has none, from the place. Damage, other record types and other statuses
    than 200 are recorded, none is silent.

    Args:
        root: folder of the source, a URL, or a `Store` with options; paths below it name its files.
        pattern: which files, as `pathlib.Path.glob` understands it.
        source: name of the source; part of every id.
        licence: SPDX id asserted for the whole source.
        excerpts: False forbids showing this source's texts in samples and pages.
        on_clash: "error", or "place" to tell apart different records that share a WARC-Record-ID.
        max_record_bytes: longer records, and payloads that decode to more, are dropped as "record too large".
        max_damaged: largest share of the source's bytes that may lie in gaps; more stops the run.
        listing: file that pins the files by size and checksum, as `curate list` writes it: nothing is hashed before the
            run, and a file that is not the listed one is an error.
        statuses: HTTP status codes that become records; None takes any. Others are dropped as "http status".
        revisits: "count" records that say that the same bytes came again, or "resolve" them: each becomes a record with
            the bytes of the one that it refers to, where that stands earlier in the same file, else it is dropped.
        unit_bytes: files larger than this are read in several units at once where that is possible: plain, and
            compressed record by record. How records are called does not depend on it.
    """
    form = WarcForm(None if statuses is None else tuple(statuses), revisits)
    reader = Reader(
        "warc",
        source_root(root),
        pattern,
        source,
        licence=licence,
        excerpts=excerpts,
        on_clash=on_clash,
        max_record_bytes=max_record_bytes,
        max_damaged=str(max_damaged),
        listing=_path(listing),
        form=None if form == PAGES else form,
        unit_bytes=unit_bytes,
    )
    return Dataset(Read(reader), f"read {source}")


def read_jsonl(
    root: str | Path | Store,
    pattern: str = "**/*.jsonl*",
    *,
    source: str,
    columns: Mapping[str, str | Column] | None = None,
    ignore: Sequence[str] = (),
    licence: str | None = None,
    excerpts: bool = True,
    on_clash: str = "error",
    max_record_bytes: int = MAX_RECORD_BYTES,
    max_damaged: float = 0.5,
    listing: str | Path | None = None,
    unit_bytes: int = UNIT_BYTES,
) -> Dataset:
    """Read JSON lines (plain, .gz, .zst, .bz2, .xz, .lz4) below `root`; further arguments as in `read_parquet`."""
    given = (tuple(ignore), licence, on_clash, excerpts, max_record_bytes)
    return _read_rows("jsonl", source_root(root), pattern, source, columns, given, max_damaged, listing, unit_bytes)


def read_parquet(
    root: str | Path | Store,
    pattern: str = "**/*.parquet",
    *,
    source: str,
    columns: Mapping[str, str | Column] | None = None,
    ignore: Sequence[str] = (),
    licence: str | None = None,
    excerpts: bool = True,
    on_clash: str = "error",
    max_record_bytes: int = MAX_RECORD_BYTES,
    max_damaged: float = 0.5,
    listing: str | Path | None = None,
    unit_bytes: int = UNIT_BYTES,
) -> Dataset:
    """Read Parquet files below `root`.

    Args:
        root: folder of the source, a URL, or a `Store` with options; paths below it name its files.
        pattern: which files, as `pathlib.Path.glob` understands it.
        source: name of the source; part of every id.
        columns: our name → input column, as {"text": "content", "key": "blob_id", "stars": Column("stars", "int64")}.
            "key" names each record (without it its place does); "licence" and "crawled_at" fill the rights columns.
        ignore: input columns to leave out; all others that are not declared survive as JSON in `extra`.
        licence: SPDX id asserted for the whole source.
        excerpts: False forbids showing this source's texts in samples and pages.
        on_clash: "error", or "place" to tell apart different records that share a key.
        max_record_bytes: longer lines, files, or rows by their strings and binary values, are dropped as "record too
            large". What a task needs of memory follows from it (`DocumentJob.resources`).
        max_damaged: largest share of the source's bytes or rows that may lie in gaps; more stops the run.
        listing: as in `read_warc`.
        unit_bytes: files larger than this are read in several units at once: Parquet by row groups, plain JSON lines by
            lines. How records are called does not depend on it.
    """
    given = (tuple(ignore), licence, on_clash, excerpts, max_record_bytes)
    return _read_rows("parquet", source_root(root), pattern, source, columns, given, max_damaged, listing, unit_bytes)


def _read_rows(
    kind: str,
    root: Path | Store,
    pattern: str,
    source: str,
    columns: Mapping[str, str | Column] | None,
    given: tuple[tuple[str, ...], str | None, str, bool, int],
    max_damaged: float,
    listing: str | Path | None,
    unit_bytes: int,
) -> Dataset:
    pairs = declared_columns(columns, "text")
    reader = Reader(
        kind,
        root,
        pattern,
        source,
        pairs,
        *given,
        max_damaged=str(max_damaged),
        listing=_path(listing),
        unit_bytes=unit_bytes,
    )
    return Dataset(Read(reader), f"read {source}")


def read_files(
    root: str | Path | Store,
    pattern: str = "**/*.txt",
    *,
    source: str,
    licence: str | None = None,
    excerpts: bool = True,
    max_record_bytes: int = MAX_RECORD_BYTES,
    max_damaged: float = 0.5,
    listing: str | Path | None = None,
) -> Dataset:
    """Read text and source files below `root`, each one document; arguments as in `read_parquet`.

    The columns `encoding` and `decode_confidence` say how bytes were read.
    """
    reader = Reader(
        "files",
        source_root(root),
        pattern,
        source,
        licence=licence,
        excerpts=excerpts,
        max_record_bytes=max_record_bytes,
        max_damaged=str(max_damaged),
        listing=_path(listing),
    )
    return Dataset(Read(reader), f"read {source}")


def _path(path: str | Path | None) -> Path | None:
    return None if path is None else Path(path)


def deduplicate(
    *datasets: Dataset,
    method: MinHash | None = None,
    within: str | None = None,
    prefer: Sequence[str] = ("source",),
    max_removed: Mapping[str, float] | None = None,
    action: str = "drop",
    keep: int = 1,
    count: str | None = None,
    against: Reference | Sequence[Reference] | None = None,
    without_templates: TemplateRule | float | str | None = None,
    name: str | None = None,
) -> Dataset:
    """Return the documents of all `datasets` without duplicates.

    Equal texts collapse first; then, with a `method`, a document goes if its verified similarity with one that stays
    reaches the threshold. Each document dropped names such a survivor in the ledger. No two documents that stay and
    were compared reach the threshold; that holds for `keep=1` and the action "drop" alone.

    Args:
        datasets: what is compared, all with all; their order is the order of sources.
        method: near duplicates too, as `MinHash(threshold=.8)`; None collapses equal texts only. With
            `MinHash(measure="containment")` the smaller set counts: a text goes for one that holds it, or that it
            holds. Candidates come by Jaccard similarity all the same, so such pairs are found surely only where the
            texts are of like size: at containment .8 with probability .84 of equal sizes, .05 where one is twice as
            large, by the default bands (`transforms.similarity.jaccard_of_containment`, `MinHash.recall`).
        within: compare only documents that agree in this column; null is a group of its own.
        prefer: who stays, by "source" (order given), "length" (code points) or a column, "-" for larger first; then
            the digest of the text, then the id.
        max_removed: source → largest share of its documents that may go; more stops the run.
        action: "drop"; or "tag": all documents stay, and the column `duplicate` has for those that "drop" would take
            the reason, the survivor, their similarity and more as canonical JSON, as the ledger's evidence.
        keep: a document goes if so many that stay reach the threshold with it. So each one that goes has that many
            survivors, of which the ledger names the most similar; but of `keep=2` or more, some that stay are similar
            to each other. Equal texts collapse to one whatever this is.
        count: name of a column to add, as "duplicates": for each survivor how many documents went, or would go,
            because of it, equal texts included.
        against: a finished dataset (`reference(…)`), or several, that come before all documents: what equals or
            resembles one of theirs goes, and nothing of them comes out or goes.
        without_templates: shingles in more than this share of a source's documents do not count, neither for candidates
            nor for similarity: licence headers, navigation. A `TemplateRule` says more; a number is its share. They are
            counted exactly before anything is compared, and recorded (`curate templates`).
        name: of the stage.

    Raises:
        ConfigurationError: no dataset, a source that comes in twice or is not there, a share outside 0 … 1, an action
            that is none, `keep` below 1 or without a method, templates without a method, or a reference that lacks the
            column of `within`. A column that is there already is an error when the recipe is compiled, before any work.
    """
    sources = sources_once("deduplicate", datasets)
    shares = shares_of(max_removed, sources)
    if action not in ("drop", "tag") or keep < 1 or (keep > 1 and method is None):
        raise ConfigurationError(
            f'deduplicate(action={action!r}, keep={keep}): the action is "drop" or "tag", keep a number from 1 on, and '
            "more than 1 only with a method, as equal texts collapse to one"
        )
    frozen, templates = references_of(against), _template_rule(without_templates, method)
    if lacking := [each.name for each in frozen if within is not None and within not in each.columns]:
        raise ConfigurationError(f"deduplicate(within={within!r}): the reference {lacking[0]!r} has no such column")
    told = (tuple(prefer), shares, action, keep, count, frozen, templates)
    return Dataset(Deduplicate(tuple(datasets), method, within, *told), name or "deduplicate")


def _template_rule(given: TemplateRule | float | str | None, method: MinHash | None) -> TemplateRule | None:
    if given is None:
        return None
    if method is None:
        raise ConfigurationError("deduplicate(without_templates=…) needs a method: equal texts are compared whole")
    try:
        return given if isinstance(given, TemplateRule) else TemplateRule(given)
    except ValueError as error:
        raise ConfigurationError(f"deduplicate(without_templates=…): {error}") from None


def shares_of(max_removed: Mapping[str, float] | None, sources: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Return what a recipe gave as `max_removed=`: pairs of a source and its largest share, as written.

    Raises:
        ConfigurationError: a source that is not among `sources`, or no share.
    """
    shares = tuple(sorted((source, str(share)) for source, share in (max_removed or {}).items()))
    for source, share in shares:
        if source not in sources or not 0 <= float(share) <= 1:
            raise ConfigurationError(
                f"max_removed={{{source!r}: {share}}}: give a share 0 … 1 of one of {sorted(sources)}"
            )
    return shares


def sources_once(what: str, datasets: Sequence[Dataset]) -> set[str]:
    """Return the names of the sources of `datasets`, which the operation `what` compares all with all.

    Raises:
        ConfigurationError: there is no dataset, something else is given, or a source comes in twice.
    """
    if not datasets:
        raise ConfigurationError(f"{what}() needs at least one dataset")
    if others := [each for each in datasets if not isinstance(each, Dataset)]:
        raise ConfigurationError(f"{what}() compares datasets, got {others[0]!r:.200}")
    named = [source for dataset in datasets for source in dataset.sources]
    if repeated := sorted({source for source in named if named.count(source) > 1}):
        raise ConfigurationError(
            f"{what}(): the source {repeated[0]!r} comes in twice, and its ids with it. Give each dataset once, "
            "or read the files under another source name"
        )
    return set(named)


def decontaminate(dataset: Dataset, *benchmarks: Benchmark, name: str = "decontaminate", **options: Any) -> Dataset:
    """Return `dataset` without documents that hold items of `benchmarks`; `options` are those of `Decontaminate`."""
    return dataset.apply(Decontaminate(benchmarks, **options), name=name)


def hold_out(
    dataset: Dataset,
    *,
    characters: int | None = None,
    documents: int | None = None,
    per: str | None = None,
    near_duplicates: float | MinHash | None = 0.8,
    names: tuple[str, str] = ("train", "valid"),
) -> tuple[Dataset, Dataset]:
    """Return the training part and the validation part of `dataset`.

    Held-out texts are chosen by a keyed digest of the text. Everything with a held-out text, or with a verified near
    duplicate of one, leaves training with that reason in the ledger.

    Args:
        dataset: what is split.
        characters: code points to hold out, of each stratum; or
        documents: documents to hold out, of each stratum.
        per: column whose values are the strata; None is one stratum.
        near_duplicates: Jaccard similarity from which on a training text is too near, or a `MinHash`; None looks at
            equal texts only.
        names: of the two datasets.

    Raises:
        ConfigurationError: not exactly one of `characters` and `documents`, none at all to hold out, or a method that
            measures something else than Jaccard similarity.
    """
    if (characters is None) == (documents is None) or (characters or documents or 0) < 1:
        raise ConfigurationError("hold_out() takes characters=… or documents=…, one of them, at least 1")
    method = near_duplicates
    if method is not None and not isinstance(method, MinHash):
        method = MinHash(threshold=method)
    if method is not None and method.measure != "jaccard":
        raise ConfigurationError(f"hold_out() compares by Jaccard similarity: leave measure={method.measure!r} out")
    train, valid = (
        Dataset(HoldOut((dataset,), characters, documents, per, method, part), name)
        for part, name in zip(("train", "valid"), names, strict=True)
    )
    return train, valid
