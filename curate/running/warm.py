"""Compiling kernels once per node, before workers start: cold workers would each compile the same code.

The kernels that stages use are called here on one made-up document; numba puts the compiled code into the node's cache
(see `transforms.kernels`), where workers find it. What a user's function does is never called.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa

from curate.accounting.accountant import Accountant, Step
from curate.accounting.kept import Kept
from curate.accounting.samples import Samples
from curate.content_digests import content_digest
from curate.judging import Judge
from curate.readers.chunks import build_rows
from curate.recipes.graph import CutRepeats, Deduplicate, DropAlike, HoldOut
from curate.recipes.models import FittedModel, models_in
from curate.recipes.stages import DocumentStage, Stages, Wide, WideStage
from transforms.added_columns import AddColumns
from transforms.components import components
from transforms.datatrove_steps import Datatrove
from transforms.duplicates import split_buckets, survivors, text_digests
from transforms.embedding import HashedTfidf, document_frequencies
from transforms.hash_order import FEW, stable_order
from transforms.hold_out import index_sets, nearest
from transforms.kernels import cache_folder
from transforms.minhash import MinHash, band_keys, first_bands, scoped_keys, sets_of, split_keys
from transforms.order_key import order_keys
from transforms.outcome import Outcome, Transform, kept
from transforms.parts import RepeatedParts, cut_parts, find_parts
from transforms.schema import documents
from transforms.similarity import edges
from transforms.substrings import RepeatedSpans, anchors, cut_spans, windows
from transforms.text_columns import first_difference
from transforms.user_function import EditText, KeepIf

TEXT = "The first of two lines that a kernel is compiled on.\nThe second line: 2 and more words of it, cafe\u0301.\n"
"""A decomposed letter: texts that are composed already need no kernel to compose them."""
PAGE = b"<html><body><article><p>" + TEXT.encode() + b"</p></article></body></html>"


FOREIGN: Final = (AddColumns, Datatrove, EditText, Judge, KeepIf)
"""Transforms that call what is not ours."""


def is_cold() -> bool:
    """Return whether this node has no compiled code of the kernels that every run uses: all take half a minute."""
    return next(cache_folder("transforms.segmentation").rglob("*.nbi"), None) is None


def warm(stages: Stages) -> None:
    """Call the kernels of all stages once in this process."""
    for stage in stages.ordered:
        if isinstance(stage, WideStage):
            _warm_wide(stage.operation)
        elif stage.reader is not None:
            _warm_chain(stage, build_rows(stage.reader, [bytes(16)], [_origin()], [_values()]))
        else:
            _warm_chain(stage, _made_up(stage.inputs[0].schema))


def _warm_chain(stage: DocumentStage, batch: pa.RecordBatch) -> None:
    for each in (batch, _made_up(stage.schema)):  # what goes in may have no text yet
        _warm_books(each)
    for step in stage.steps:
        transform: Transform = step.transform
        if next(models_in(transform), None) is not None:
            _warm_up(transform)
        elif not isinstance(transform, FOREIGN):
            transform.apply(batch)
        batch = _made_up(transform.output_schema(batch.schema))


def _warm_up(fits: object) -> None:
    """Have a fit, or a transform whose model is not there yet, call its kernels."""
    if (warm_up := getattr(fits, "warm", None)) is not None:
        warm_up()


def _warm_books(batch: pa.RecordBatch) -> None:
    """Do what the engine does with each batch: its books, and the digest of its content."""
    accountant = Accountant([Step("warm", _KeepAll())], Samples(), _shown)
    passed = accountant.run(batch, np.arange(batch.num_rows, dtype=np.int64))
    Kept().count(passed.rows, passed.measures, Samples(), _shown)
    if batch.schema.get_field_index("text") >= 0:
        text, rows = batch.column("text"), np.arange(batch.num_rows, dtype=np.int64)
        first_difference(text, rows, pa.array(text.to_pylist(), text.type), rows)  # as after a transform that copies
    content_digest([batch], batch.schema)


def _shown(source: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class _KeepAll:
    """A transform that changes nothing."""

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        return schema

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        return kept(batch)


def _origin() -> dict[str, Any]:
    return {"uri": "", "place": "stored", "offset": 0, "length": 0, "part": 0}


def _values() -> dict[str, Any]:
    return {"text": TEXT, "payload": PAGE, "content_type": "text/html", "url": "http://example.org/"}


def _made_up(schema: pa.Schema) -> pa.RecordBatch:
    """Return one row of `schema`: the text above, everything else empty."""
    return pa.RecordBatch.from_arrays([pa.array([_value(field)], field.type) for field in schema], schema=schema)


def _value(field: pa.Field) -> Any:
    if field.name in ("text", "payload"):
        return TEXT if field.name == "text" else PAGE
    if field.nullable:
        return None
    if pa.types.is_struct(field.type):
        return {child.name: _value(child) for child in field.type}
    if pa.types.is_fixed_size_binary(field.type):
        return bytes(field.type.byte_width)
    if pa.types.is_timestamp(field.type):
        return datetime(2000, 1, 1, tzinfo=UTC)
    return "" if pa.types.is_large_string(field.type) else 0


def _warm_wide(operation: Wide) -> None:
    stable_order(np.arange(FEW, dtype=np.uint64))  # exchanges of hashes
    if isinstance(operation, FittedModel):
        _warm_up(operation.fit)
    elif isinstance(operation, Deduplicate) and operation.method is not None:
        _warm_minhash(operation.method)
    elif isinstance(operation, CutRepeats):
        _warm_repeats(operation.what)
    elif isinstance(operation, DropAlike) and isinstance(operation.embedder, HashedTfidf):
        document_frequencies(pa.array([TEXT], pa.large_string()))
        operation.embedder.embed(pa.array([TEXT], pa.large_string()))
    elif isinstance(operation, HoldOut) and operation.method is not None:
        sets = sets_of(pa.array([TEXT], pa.large_string()), operation.method)
        nearest(index_sets(sets, operation.method.ratio), sets)


def _warm_repeats(what: RepeatedParts | RepeatedSpans) -> None:
    batch = _made_up(documents())
    text = batch.column("text")
    order_keys(batch, ("source",), ("",))
    if isinstance(what, RepeatedParts):
        parts = find_parts(text, what)
        parts.digests()
        cut_parts(batch, parts, np.zeros(len(parts.starts), np.bool_), what.reason)
        return
    found = windows(text, what, anchors(text, what).place)
    found.digests()
    cut_spans(batch, found, np.zeros(len(found.starts), np.bool_), what)


def _warm_minhash(method: MinHash) -> None:
    batch = pa.RecordBatch.from_pydict(
        {
            "id": pa.array([bytes(16), b"1" * 16], pa.binary(16)),
            "text": pa.array([TEXT, TEXT + "More."], pa.large_string()),
            "source": pa.array(["", ""], pa.large_string()),
        }
    )
    text = batch.column("text")
    order_keys(batch, ("source",), ("",), text_digests(text))
    keys = band_keys(text, method)
    scoped_keys(keys, np.zeros(2, np.uint64))
    rows, documents = np.zeros(2, np.uint64), np.arange(2, dtype=np.int64)
    split_buckets(rows, split_keys(keys)[:, 0], rows, documents, method.cap)
    a, b = documents[:1], documents[1:]
    sets = sets_of(text, method)
    found = edges(sets, a, b, Fraction(1, 100), method.measure)
    first_bands(sets, a, b, method)
    components(a, b)
    survivors(documents, a, b, found.shared, found.whole)
