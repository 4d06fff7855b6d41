"""Levels and thresholds of scores in a recipe: by share of documents, characters or tokens, exact over all shards.

    histogram   per shard      documents and weight by group and score
    merge       per FAN_IN     histograms added up, in as many rounds as needed
    fit         once           borders, and what each level holds

Invariants: the outcome is that of one histogram of all documents, whatever the shards (`transforms.score_levels` has
the arithmetic). Memory: a batch, and the distinct scores of `FAN_IN` shards.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from curate.committing.gathered import Receipts
from curate.configuration import ConfigurationError
from curate.digests import digest_json
from curate.parts import checked_bytes, checked_file, part_batches
from curate.recipes.cells import TrainedTokenizer
from curate.recipes.graph import Dataset
from curate.recipes.models import Fitted, FittedModel, Fitting
from curate.running.jobs import Item, publish_files
from curate.store import Store, json_line
from curate.writer import write_parquet
from transforms.exact_numbers import Number, exact
from transforms.quality import Level, Quality, ScoreAtLeast
from transforms.score_levels import (
    ALL,
    HISTOGRAM,
    LevelError,
    Levels,
    borders_of,
    card_of,
    equal_shares,
    histogram,
    merged,
)
from transforms.tokens import Tokenizer

FAN_IN: Final = 64
"""Histograms that one task adds up; changes no outcome."""

DOCUMENTS: Final = "documents"
CHARACTERS: Final = "characters"
TOKENS: Final = "tokens"
TABLE: Final = "histogram.parquet"


@dataclass(frozen=True, slots=True)
class FitLevels:
    """How levels are fitted; see `fit_levels`. `of` is "tokens" where a tokenizer counts that the recipe trains."""

    keep: tuple[Fraction, ...]
    column: str
    of: str | Tokenizer
    per: str | None

    version: ClassVar[int] = 1
    verb: ClassVar[str] = "fit levels"
    file: ClassVar[str] = "levels.json"

    def columns(self) -> Mapping[str, str]:
        """Return the scores, what levels are per, and what documents weigh where that is a column."""
        weight = [self.of] if isinstance(self.of, str) and self.of not in (DOCUMENTS, CHARACTERS, TOKENS) else []
        return dict.fromkeys([self.column, *weight], "whole numbers") | ({self.per: "strings"} if self.per else {})

    def fit(self, fitting: Fitting) -> Fitted:
        """Count, add up, and choose the borders."""
        (dataset,), engine = fitting.datasets, fitting.engine
        tokenizer = self.of if isinstance(self.of, Tokenizer) else fitting.tokenizer
        job = HistogramJob(engine.store, self, tokenizer)
        items = [
            Item(_task_key(fitting.key, "histogram", shard["key"]), f"shard {n}", shard["key"], shard["bytes"])
            for n, shard in enumerate(dataset.kept_shards())
        ]
        inner: list[Receipts] = [engine.receipts(job, items)]
        keys = [item.key for item in items]
        while len(keys) > FAN_IN:
            parts = [tuple(keys[first : first + FAN_IN]) for first in range(0, len(keys), FAN_IN)]
            items = [Item(_task_key(fitting.key, "merge", part), f"merge {n}", part) for n, part in enumerate(parts)]
            inner.append(engine.receipts(MergeJob(engine.store), items))
            keys = [item.key for item in items]
        last = Item(_task_key(fitting.key, "fit", keys), "fit", tuple(keys))
        inner.append(engine.receipts(FitJob(engine.store, self), [last]))
        card: dict[str, Any] = json.loads(checked_bytes(engine.store, last.key, "card.json"))
        card["keep"] = [f"{share.numerator}/{share.denominator}" for share in self.keep]
        return Fitted({self.file: checked_bytes(engine.store, last.key, self.file)}, card, tuple(inner))


@dataclass(frozen=True, slots=True)
class HistogramJob:
    """Per shard: its histogram. Items' units are shard keys."""

    store: Store
    fit: FitLevels
    tokenizer: Tokenizer | None
    name: str = "levels: histogram"

    def run(self, item: Item) -> int:
        """Publish the histogram of shard `item.unit`, and return its documents."""
        fit, parts, rows = self.fit, [], 0
        text = ["text"] if fit.of == CHARACTERS or self.tokenizer is not None else []
        for batch in part_batches(self.store, item.unit, [*sorted(fit.columns()), *text], _types(fit)):
            known = batch.filter(pc.is_valid(batch.column(fit.column)))
            groups = known.column(fit.per).to_pylist() if fit.per else None
            scores = np.asarray(known.column(fit.column).to_numpy(zero_copy_only=False), np.int64)
            parts.append(histogram(groups, scores, self._weights(known)))
            rows += batch.num_rows
        _publish_table(self.store, item, self.name, merged(parts))
        return rows

    def _weights(self, rows: pa.RecordBatch) -> npt.NDArray[np.int64]:
        of = self.fit.of
        if self.tokenizer is not None:
            encoded = self.tokenizer.encoder().encode_batch(rows.column("text").to_pylist())
            return np.diff(encoded.offsets).astype(np.int64)
        if of == DOCUMENTS:
            return np.ones(rows.num_rows, np.int64)
        values = pc.utf8_length(rows.column("text")) if of == CHARACTERS else rows.column(str(of)).fill_null(0)
        weights = np.asarray(values.to_numpy(zero_copy_only=False), np.int64)
        if (weights < 0).any():
            raise LevelError(f"the column {of!r} has {int(weights.min())}: what documents weigh is not negative")
        return weights


@dataclass(frozen=True, slots=True)
class MergeJob:
    """Adds up histograms. Items' units are the shard keys of some."""

    store: Store
    name: str = "levels: merge"

    def run(self, item: Item) -> int:
        """Publish the sum, and return of how many."""
        _publish_table(self.store, item, self.name, _sum_of(self.store, item.unit))
        return len(item.unit)


@dataclass(frozen=True, slots=True)
class FitJob:
    """Once: the borders. The item's unit are the shard keys of the last histograms."""

    store: Store
    fit: FitLevels
    name: str = "levels: fit"

    def run(self, item: Item) -> int:
        """Publish borders and card, and return the number of groups."""
        rows, fit = _sum_of(self.store, item.unit), self.fit
        names = rows.column("group").to_pylist()
        groups = sorted(set(names)) if fit.per else [ALL]
        borders = {
            group: borders_of(rows.filter(pa.array([name == group for name in names], pa.bool_())), fit.keep)
            for group in groups
        }
        if not borders:
            raise LevelError(f"no document has a score in {fit.column!r}: there is nothing to make levels of")
        levels = Levels(fit.column, fit.per, borders)
        with self.store.spool() as first, self.store.spool() as second:
            first.write_bytes(levels.to_bytes())
            second.write_bytes(json_line(card_of(levels, rows)))
            publish_files(self.store, item, self.name, {fit.file: (first, 1), "card.json": (second, 1)}, {})
        return len(groups)


def _sum_of(store: Store, keys: Sequence[str]) -> pa.Table:
    return merged([pq.read_table(checked_file(store, key, TABLE), schema=HISTOGRAM) for key in keys])


def _publish_table(store: Store, item: Item, task: str, table: pa.Table) -> None:
    with store.spool() as path:
        write_parquet(path, table.to_batches(), HISTOGRAM)
        publish_files(store, item, task, {TABLE: (path, table.num_rows)}, {})


def _task_key(stage: str, task: str, unit: object) -> str:
    return digest_json({"operation": f"levels {task}", "stage": stage, "unit": unit})


def _types(fit: FitLevels) -> pa.Schema:
    """Return the types of columns that a shard may lack."""
    numbers = [pa.field(name, pa.int64()) for name in sorted(fit.columns()) if name != fit.per]
    return pa.schema([*numbers, *(pa.field(name, pa.large_string()) for name in ("text", fit.per) if name)])


def fit_levels(
    dataset: Dataset,
    levels: int | Sequence[Number] = 5,
    *,
    column: str = "quality_score",
    of: str | Tokenizer | TrainedTokenizer = DOCUMENTS,
    per: str | None = None,
    name: str = "fit levels",
) -> FittedModel:
    """Return the borders that divide the documents of `dataset` into levels by their scores, for `Level` or `Quality`.

    Shares are exact: over all shards, in integers. Of documents with equal scores all are in one level, the higher one
    where a border falls among them.

    Args:
        dataset: documents that have scores; those without one do not count.
        levels: how many, of equal weight; or what is at each border's level or above, as (0.5, 0.1): three levels, of
            which the best keeps a tenth, and the best two a half.
        column: the scores, whole numbers.
        of: what shares are of: "documents", "characters", a column of whole numbers, or tokens, counted with a
            `Tokenizer` or what `train_tokenizer` gives.
        per: column of strings: borders are fitted for each of its values; documents without a value are one group.
        name: of the stage.

    Raises:
        ConfigurationError: fewer than two levels, or shares that do not fall from 1 to 0.
    """
    try:
        keep = equal_shares(levels) if isinstance(levels, int) else tuple(exact(share) for share in levels)
    except (LevelError, ValueError) as error:
        raise ConfigurationError(f"fit_levels(): {error}") from None
    if not keep or sorted(set(keep), reverse=True) != list(keep) or not 0 < keep[-1] <= keep[0] <= 1:
        raise ConfigurationError(f"fit_levels(levels={levels}): give shares that fall, each above 0 and at most 1")
    if isinstance(of, TrainedTokenizer):
        return FittedModel((dataset, of), FitLevels(keep, column, TOKENS, per), name)
    if of == TOKENS:
        raise ConfigurationError('fit_levels(of="tokens"): give the tokenizer that counts them, as of=Tokenizer(path)')
    return FittedModel((dataset,), FitLevels(keep, column, of, per), name)


def fit_threshold(dataset: Dataset, keep: Number, *, name: str = "fit threshold", **options: Any) -> FittedModel:
    """Return the score that keeps the best `keep` (0.1: a tenth) of `dataset`; further arguments as `fit_levels`."""
    return fit_levels(dataset, (keep,), name=name, **options)


def grade(
    dataset: Dataset,
    model: Any,
    levels: int | Sequence[Number] = 5,
    *,
    label: str = "quality",
    of: str | Tokenizer | TrainedTokenizer = DOCUMENTS,
    per: str | None = None,
    embedder: Any = None,
    name: str = "grade",
) -> Dataset:
    """Return `dataset` with the scores of a classifier and their levels: `quality_score` and `quality_level`.

    Args:
        dataset: the documents.
        model: what `train_classifier` gives, or the file of a classifier.
        levels: as for `fit_levels`.
        label: beginning of the columns' names.
        of: as for `fit_levels`.
        per: as for `fit_levels`.
        embedder: as for `Quality`.
        name: of the stage.
    """
    scored = dataset.apply(Quality(model, label=label, embedder=embedder), name=f"{name}: scores").keep()
    column = f"{label}_score"
    borders = fit_levels(scored, levels, column=column, of=of, per=per, name=f"{name}: levels")
    return scored.apply(Level(borders, column), name=name)


def keep_best(
    dataset: Dataset,
    keep: Number,
    *,
    column: str = "quality_score",
    of: str | Tokenizer | TrainedTokenizer = DOCUMENTS,
    per: str | None = None,
    name: str = "keep best",
) -> Dataset:
    """Return the best `keep` of `dataset` by its scores; shares and further arguments as for `fit_levels`."""
    kept = dataset.keep()
    least = fit_threshold(kept, keep, column=column, of=of, per=per, name=f"{name}: threshold")
    return kept.apply(ScoreAtLeast(least, column), name=name)
