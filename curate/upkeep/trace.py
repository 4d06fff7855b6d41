"""From a token of a cache back to the document, and to the raw record it was read from; and the way replayed.

Replaying reads the record again at its place, applies the transforms of the recipe again, and compares the digest of
the text that comes out with the one in the cache. Cost: one row group; replaying: the record's file up to its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from curate.caches.cache import TokenCache
from curate.caches.tokenization import stored_tokenizer
from curate.configuration import ConfigurationError
from curate.datasets import Dataset, open_dataset
from curate.digests import text_digest
from curate.inputs.files import FileUnit, place_of
from curate.products import Caches, ModelFiles, open_product
from curate.readers.chunks import build_rows
from curate.readers.events import Read
from curate.readers.open import read_records
from curate.readers.reader import Reader
from curate.receipts import shard_folder
from curate.recipes.cells import Cells
from curate.recipes.graph import CutRepeats, Group
from curate.recipes.schemas import fit_to
from curate.recipes.stages import DocumentStage, Stage, Stages, WideStage, steps_with
from curate.store import StoreError
from curate.upkeep.compaction import Compact
from transforms.tokens import Tokenizer

AROUND = 60
"""Code points shown before and after a token's characters."""


@dataclass(frozen=True, slots=True)
class TokenTrace:
    """Where a token comes from.

    Attributes:
        cell: name of the cache.
        token: place in the cache.
        document: number of its document in the cache, and `position` of the token in it.
        token_id: its id, None where it marks the end of a document.
        start, end: the code points of the text that it stands for.
        row: the document as it stands in the dataset.
        dataset: the dataset that was tokenized.
    """

    cell: str
    token: int
    document: int
    position: int
    token_id: int
    start: int
    end: int
    row: Mapping[str, Any]
    dataset: Dataset

    @property
    def characters(self) -> str:
        """The characters that the token stands for; empty for BOS and EOS."""
        return str(self.row["text"][self.start : self.end])

    @property
    def digest(self) -> str:
        """Digest of the document's text, as the cache has it."""
        return text_digest(self.row["text"]).hex()

    def context(self) -> str:
        """Return the characters between ⟦ and ⟧, with what stands around them."""
        text = self.row["text"]
        before, after = text[max(0, self.start - AROUND) : self.start], text[self.end : self.end + AROUND]
        return f"{before}⟦{self.characters}⟧{after}"


def trace_token(caches: Caches, cell: str, token: int) -> TokenTrace:
    """Return where the token at place `token` of the cache of `cell` comes from.

    Raises:
        StoreError: the document is not what the cache was made from.
        IndexError: the cache has no such token.
    """
    cache = TokenCache.open(caches.place(cell), digest=caches.manifest["cells"][cell]["content"])
    document = cache.document_at(token)
    described, shard, row = cache.lies_in(document)
    dataset = open_dataset(caches.store, described["name"], described["key"])
    found = read_row(dataset, shard, row)
    if found["id"] != bytes(cache.ids(document, document + 1)[0]):
        raise StoreError(f"row {row} of shard {shard} of {dataset.name} is not document {document} of cache {cell!r}")
    description = cache.description
    path = stored_tokenizer(caches.store, description.tokenizer)
    spans = (
        Tokenizer(path, bos=description.bos_text, eos=description.eos_text).encoder().encode_with_offsets(found["text"])
    )
    position = token - int(cache.starts[document])
    if not (spans.ids == cache[document]).all():
        raise StoreError(f"document {document} of the cache {cell!r} has other tokens when its text is encoded again")
    start, end = int(spans.starts[position]), int(spans.ends[position])
    return TokenTrace(cell, token, document, position, int(spans.ids[position]), start, end, found, dataset)


def read_row(dataset: Dataset, shard: int, row: int) -> dict[str, Any]:
    """Return one document of `dataset`, by the ordinal of its shard and its row."""
    key = dataset.shards()[shard]["key"]
    with pq.ParquetFile(dataset.store.local(f"{shard_folder(key)}/part.parquet")) as file:
        for group in range(file.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            if row < rows:
                values: dict[str, Any] = file.read_row_group(group).slice(row, 1).to_pylist()[0]
                return values
            row -= rows
    raise StoreError(f"shard {key} of {dataset.name} has no such row")


def replay(stages: Stages, trace: TokenTrace) -> str:
    """Read the raw record of `trace` again, apply the recipe's transforms again, and return the text that comes out.

    Raises:
        ConfigurationError: the recipe does not make this dataset from the document's source.
        StoreError: the record is no longer there, or a transform drops it now.
    """
    row, name = trace.row, trace.dataset.name
    target = _tokenized(stages, name)
    if target is None:
        raise ConfigurationError(f"the recipe has no stage {name!r}: give the recipe that made the store")
    path = next(_paths(target, row["source"]), None)
    if path is None or not isinstance(path[0], DocumentStage) or path[0].reader is None:
        raise ConfigurationError(f"the recipe reads nothing from the source {row['source']!r} into {name!r}")
    batch = _record(path[0].reader, row)
    models = _models_of(path, trace.dataset)
    for stage in path:
        batch = _through(stage, batch, row, models)
        if batch.num_rows != 1:
            raise StoreError(
                f"{stage.name} drops {row['id'].hex()} when it is replayed: its record or the recipe was changed since"
            )
    return str(batch.column("text")[0].as_py())


def _tokenized(stages: Stages, name: str) -> Stage | None:
    """Return the stage of this name that is tokenized, else the last one of this name: several may have it."""
    named = [stage for stage in stages.ordered if stage.name == name]
    read = [stage for user in stages.ordered if _is_tokenization(user) for stage in user.inputs]
    behind = [parent for stage in read if _is_compaction(stage) for parent in stage.inputs]
    return next(reversed([stage for stage in (*behind, *read) if stage.name == name] or named), None)


def _is_compaction(stage: Stage) -> bool:
    return isinstance(stage, WideStage) and isinstance(stage.operation, Compact)


def _is_tokenization(stage: Stage) -> bool:
    return isinstance(stage, WideStage) and isinstance(stage.operation, Cells)


def _paths(stage: Stage, source: str) -> Iterator[list[Stage]]:
    """Yield the stages from the reading of `source` to `stage`."""
    if isinstance(stage, DocumentStage) and stage.reader is not None:
        if stage.reader.source == source:
            yield [stage]
        return
    upstream = (stage.upstream,) if isinstance(stage, DocumentStage) else stage.inputs
    for parent in (parent for parent in upstream if parent is not None):
        for path in _paths(parent, source):
            yield [*path, stage]


def _record(reader: Reader, row: Mapping[str, Any]) -> pa.RecordBatch:
    origin = row["origin"]
    place = (origin["place"], origin["offset"], origin["part"])
    source = place_of(reader.root)
    path = source.url(origin["uri"])
    if not source.exists(origin["uri"]):
        raise StoreError(f"{path} is no longer there: give the root that it was read from")
    unit = FileUnit(reader.root, origin["uri"], source.size(origin["uri"]), "")
    with source.open(origin["uri"]) as file:
        for event in read_records(reader, file, unit):
            if isinstance(event, Read) and (event.place, event.offset, event.part) == place:
                return build_rows(reader, [row["id"]], [dict(origin)], [event.values])
    raise StoreError(f"{path} has no record at {origin['place']} {origin['offset']}: the file was changed")


Models = Mapping[int, ModelFiles]
"""Models in a store, by the identity of what stands for each in a recipe: several may have one name."""


def _models_of(path: Sequence[Stage], dataset: Dataset) -> Models:
    """Return the models that the stages of `path`, of which the last made `dataset`, were made with.

    Manifests are followed from input to input as stages are, to where the recipe is no longer that of the store.
    """
    found: dict[int, ModelFiles] = {}
    for stage, parent in pairwise([*path[::-1], None]):
        if isinstance(stage, DocumentStage):
            found |= _models_in(stage, dataset)
        inputs = dataset.manifest["inputs"]
        place = stage.inputs.index(parent) if stage and parent else len(inputs)
        if place >= len(inputs) or parent is None or inputs[place]["name"] != parent.name:
            break
        dataset = open_dataset(dataset.store, inputs[place]["name"], inputs[place]["key"])
    return found


def _models_in(stage: DocumentStage, dataset: Dataset) -> Models:
    """Return the models of `stage`, which made `dataset`; none where the dataset was made with others."""
    fits, entries = list(dict.fromkeys(fit for _, fit in stage.models)), dataset.manifest.get("models", [])
    if [fit.name for fit in fits] != [entry["name"] for entry in entries]:
        return {}
    opened = [open_product(dataset.store, entry["name"], entry["key"]) for entry in entries]
    made = dict(zip(fits, opened, strict=True))
    return {id(model): files for model, fit in stage.models if isinstance(files := made[fit], ModelFiles)}


def _through(stage: Stage, batch: pa.RecordBatch, row: Mapping[str, Any], models: Models) -> pa.RecordBatch:
    """Return what `stage` makes of `batch`, which has one document; `row` is what became of it."""
    if isinstance(stage, WideStage) and isinstance(stage.operation, Group):
        raise ConfigurationError(
            f"{stage.name} makes one document of several records: one alone cannot be replayed. Its ledger names them"
        )
    if isinstance(stage, WideStage) and isinstance(stage.operation, CutRepeats):
        raise ConfigurationError(
            f"{stage.name} cuts what other documents have, too: one record alone cannot be replayed through it. Its "
            "ledger says what was cut"
        )
    if not isinstance(stage, DocumentStage):
        fitting = fit_to(batch, stage.schema)  # it only chose among documents, or joined columns to them
        new = [name for name in fitting.schema.names if name not in batch.schema.names and name in row]
        for name in new:
            place, column = fitting.schema.get_field_index(name), fitting.schema.field(name)
            fitting = fitting.set_column(place, column, pa.array([row[name]], column.type))
        return fitting
    if lacking := [model.name for model, _ in stage.models if id(model) not in models]:
        raise ConfigurationError(
            f"{stage.name} was not made with a model {lacking[0]!r}: give the recipe that made the store"
        )
    for step in steps_with(stage.steps, lambda model: models[id(model)].file(model.fit.file)):
        batch = step.transform.apply(batch).kept
    return batch
