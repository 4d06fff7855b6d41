"""The two outputs: training without what is held out and what is too near to it, and validation."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from curate.holdout.plan import HELD
from curate.parts import checked_file
from curate.recipes.schemas import fit_to
from curate.store import Store
from transforms.canonical import canonical_json
from transforms.duplicates import text_digests
from transforms.exact_numbers import decimal_text
from transforms.hold_out import NONE, Nearness, index_sets, nearest
from transforms.minhash import MinHash, Sets, sets_of
from transforms.outcome import Outcome, kept

STEP: Final = "hold out"
HELD_OUT: Final = "held out"
EQUAL: Final = "equal to held-out text"
NEAR: Final = "near duplicate of held-out text"
MEASURE: Final = "Jaccard similarity"


@dataclass(frozen=True, slots=True)
class Held:
    """What is held out: ids by text digest (the first), all ids, and the index of shingle sets where there is one."""

    by_text: dict[bytes, bytes]
    ids: tuple[bytes, ...]
    every: frozenset[bytes]
    nearness: Nearness | None


@lru_cache(maxsize=2)
def load_held(store: Store, key: str, threshold: Fraction | None) -> Held:
    """Return what the index of the shard `key` holds, checked and made ready once per process.

    Raises:
        StoreError: the file is missing or damaged.
    """
    table = pq.read_table(checked_file(store, key, "index.parquet"), schema=HELD)
    ids = table.column("id").to_pylist()
    by_text: dict[bytes, bytes] = {}
    for digest, identity in zip(table.column("digest").to_pylist(), ids, strict=True):
        by_text.setdefault(digest, identity)
    nearness = None
    if threshold is not None:
        shingles = table.column("shingles").combine_chunks()
        shingles = pa.concat_arrays(shingles.chunks) if isinstance(shingles, pa.ChunkedArray) else shingles
        sizes = np.asarray(shingles.value_lengths().to_numpy(zero_copy_only=False), np.int64)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        nearness = index_sets(Sets(offsets, np.asarray(shingles.flatten(), np.uint64)), threshold)
    return Held(by_text, tuple(ids), frozenset(ids), nearness)


@dataclass(frozen=True, slots=True)
class LeavesTraining:
    """Drops what is held out, what is equal to it and what is nearer to it than `method` allows.

    The outcome for a document depends on it and on the index in the shard `key` alone.
    """

    store: Store
    key: str
    method: MinHash | None
    schema: pa.Schema
    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of kept rows."""
        return self.schema

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Drop what must not be trained on."""
        held = load_held(self.store, self.key, None if self.method is None else self.method.ratio)
        ids, digests = batch.column("id").to_pylist(), text_digests(batch.column("text")).to_pylist()
        verdicts: dict[int, dict[str, Any]] = {}
        for row, (identity, digest) in enumerate(zip(ids, digests, strict=True)):
            if identity in held.every:
                verdicts[row] = {"reason": HELD_OUT}
            elif digest in held.by_text:
                verdicts[row] = self._too_near(EQUAL, 1, 1, held.by_text[digest])
        if held.nearness is not None and self.method is not None:
            self._compare(batch, held, held.nearness, self.method, verdicts)
        stays = np.ones(len(batch), np.bool_)
        stays[list(verdicts)] = False
        dropped = [{"id": ids[row], "transform": STEP, **verdict} for row, verdict in sorted(verdicts.items())]
        return kept(fit_to(batch.filter(pa.array(stays)), self.schema), dropped=dropped)

    def _compare(
        self, batch: pa.RecordBatch, held: Held, nearness: Nearness, method: MinHash, verdicts: dict[int, Any]
    ) -> None:
        rows = np.setdiff1d(np.arange(len(batch)), list(verdicts))
        sets = sets_of(batch.column("text").take(pa.array(rows, pa.int64())), method)
        near, intersection, union = (values.tolist() for values in nearest(nearness, sets))
        for row, other, both, total in zip(rows.tolist(), near, intersection, union, strict=True):
            if other != NONE:
                verdicts[row] = self._too_near(NEAR, both, total, held.ids[other])

    def _too_near(self, reason: str, numerator: int, denominator: int, held_out: bytes) -> dict[str, Any]:
        threshold = "1" if self.method is None else decimal_text(self.method.ratio)
        return {
            "reason": reason,
            "measure": MEASURE,
            "numerator": numerator,
            "denominator": denominator,
            "threshold": f"< {threshold}",
            "evidence": canonical_json({"held_out": held_out.hex()}),
        }


@dataclass(frozen=True, slots=True)
class StaysOut:
    """Keeps everything: the documents of validation, counted like those of any stage."""

    schema: pa.Schema
    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of kept rows."""
        return self.schema

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Keep every row."""
        return kept(fit_to(batch, self.schema))
