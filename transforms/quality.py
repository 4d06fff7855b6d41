"""Scores of documents as columns, levels of scores, and filters by score.

`Quality(model)` scores each text with a trained classifier: the mean of its windows' log-odds, in thousandths, as the
column `quality_score`; `label` names another. With `levels` it writes `quality_level`, too. `Level` makes levels of any
column of scores, `ScoreAtLeast` keeps what reaches a score.

Invariants: a score depends on the text and the model alone; with a model in integers it is the same on any CPU. Without
a word a text has the score of the model's bias. Cost: that of the model on three windows of a text at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transforms.chain import together
from transforms.classifier_training import mean_scores
from transforms.embedding import Embedder
from transforms.exact_numbers import Number, exact
from transforms.filters import Filter, Measure, at_least
from transforms.fitted import FittedError, file_of
from transforms.learners import load_scorer
from transforms.logistic import score_of
from transforms.outcome import Outcome, SchemaError, kept, require
from transforms.schema import set_columns, with_columns
from transforms.score_levels import Levels, read_levels
from transforms.text_features import features_of
from transforms.text_windows import windows_of

Integers = npt.NDArray[np.int64]

SCORE_TYPE: Final = pa.int32()
LEVEL_TYPE: Final = pa.int32()


def score_field(label: str) -> pa.Field[Any]:
    """Return the column of scores of a label, in thousandths."""
    return pa.field(f"{label}_score", SCORE_TYPE)


def score_at(probability: Number | str) -> int:
    """Return the score in thousandths that belongs to a probability: 0 to .5, -3,993 to .018112 (DCLM-baseline's).

    Raises:
        ValueError: it does not lie between 0 and 1.
    """
    share = exact(probability)
    if not 0 < share < 1:
        raise ValueError(f"score_at({probability}): a probability lies between 0 and 1")
    return score_of(int(share * 1_000_000 + Fraction(1, 2)))


def level_field(column: str) -> pa.Field[Any]:
    """Return the column of levels that belongs to a column of scores: `quality_level` to `quality_score`."""
    return pa.field(f"{column.removesuffix('_score')}_level", LEVEL_TYPE)


@dataclass(frozen=True, slots=True)
class Quality:
    """Writes `<label>_score`, and with `levels` `<label>_level`, of a trained classifier.

    Args:
        model: what `train_classifier` gives in a recipe, or the file of a classifier (`LocalFile(path)`).
        levels: borders of levels: scores in thousandths, ascending, or what `fit_levels` gives, or its file. A score
            that reaches n of them is of level n.
        label: what the classifier tells, as "quality" or "toxicity": the beginning of the columns' names.
        embedder: of a classifier that was trained on vectors (`EmbeddedLinear`).

    Raises:
        ValueError: borders do not ascend.
    """

    model: Any
    levels: Any = None
    label: str = "quality"
    embedder: Embedder | None = None

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()  # learner and embedder declare theirs, and are in the key

    def __post_init__(self) -> None:
        if isinstance(self.levels, (list, tuple)):
            object.__setattr__(self, "levels", _ascending(self.levels))

    @property
    def isolated(self) -> bool:
        """Whether it is applied in a child process: where the embedder asks for that."""
        return bool(getattr(self.embedder, "isolated", False))

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return `schema` with the columns; `text` is needed, and what levels are per."""
        require(schema, "Quality", text=pa.large_string())
        score = score_field(self.label)
        require_fitted(schema, "Quality", self.levels, score.name)
        return with_columns(schema, score, *([level_field(score.name)] if self.levels is not None else []))

    def ready(self) -> None:
        """Load the model, so that a run fails before any work where it cannot be used."""
        load_scorer(file_of(self.model, "Quality"), self.embedder)

    def warm(self) -> None:
        """Compile the kernels of windows and features."""
        windows = windows_of(pa.array(["some text"], pa.large_string()), 100)
        features_of(windows.texts, np.zeros(0, np.uint64), 10)

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Score the texts of `batch`.

        Raises:
            FittedError: the model or the levels are not there, or others than was said.
        """
        self.output_schema(batch.schema)
        scorer, model = load_scorer(file_of(self.model, "Quality"), self.embedder)
        windows = windows_of(batch.column("text"), model.width)
        scores = mean_scores(scorer.odds(windows.texts), np.diff(windows.offsets))
        column = score_field(self.label)
        made = {column: pa.array(scores.astype(np.int32))}
        if self.levels is not None:
            made[level_field(column.name)] = levels_of(scores, self.levels, column.name, batch)
        return kept(set_columns(batch, made))


@dataclass(frozen=True, slots=True)
class Level:
    """Writes the level of a column of scores: `quality_level` of `quality_score`; null where there is no score.

    Args:
        levels: what `fit_levels` gives, its file, or borders in thousandths, ascending.
        column: the scores; the one that the levels were fitted on.
    """

    levels: Any
    column: str = "quality_score"

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if isinstance(self.levels, (list, tuple)):
            object.__setattr__(self, "levels", _ascending(self.levels))

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return `schema` with the column of levels."""
        require_scores(schema, "Level", self.column)
        require_fitted(schema, "Level", self.levels, self.column)
        return with_columns(schema, level_field(self.column))

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Write the levels of the rows of `batch`."""
        self.output_schema(batch.schema)
        scores, there = scores_of(batch, self.column)
        levels = levels_of(scores, self.levels, self.column, batch)
        found = np.asarray(levels.is_valid()) & there
        values = np.asarray(levels.fill_null(0).to_numpy(zero_copy_only=False))
        return kept(set_columns(batch, {level_field(self.column): pa.array(values, LEVEL_TYPE, mask=~found)}))


@dataclass(frozen=True, slots=True)
class ScoreAtLeast(Filter):
    """Keeps documents whose score reaches `least`; without a score nothing is known, and a document stays.

    Args:
        least: score in thousandths; or what `fit_threshold` gives in a recipe, or its file.
        column: the scores.
    """

    least: Any
    column: str = "quality_score"

    version: ClassVar[int] = 1

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return `schema`; it must have the column of scores."""
        require_scores(schema, "ScoreAtLeast", self.column)
        require_fitted(schema, "ScoreAtLeast", self.least, self.column)
        return schema

    def measures(self, batch: pa.RecordBatch) -> list[Measure]:
        """Return the measure: the score against the least one; where that is per column, the score above its own."""
        scores, there = scores_of(batch, self.column)
        if not batch.num_rows and not isinstance(self.least, int):
            return [self._measure(scores, there, 0)]  # the file may not be there yet
        borders, known = self._borders(batch)
        if len(distinct := set(borders[known].tolist())) <= 1:
            return [self._measure(scores, there & known, distinct.pop() if distinct else 0)]
        return [self._measure(scores - borders, there & known, 0)]

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Keep the rows whose score reaches the border of their group; the ledger has score and border."""
        scores, there = scores_of(batch, self.column)
        borders, known = self._borders(batch)
        outcomes = []
        for border in sorted(set(borders.tolist())):
            rows = np.flatnonzero(borders == border)
            measure = self._measure(scores[rows], (there & known)[rows], border)
            outcomes.append(self.decide(batch.take(pa.array(rows)), [measure]))
        return together(batch, outcomes) if outcomes else self.decide(batch, self.measures(batch))

    def _borders(self, batch: pa.RecordBatch) -> tuple[Integers, npt.NDArray[np.bool_]]:
        """Return the least score of each row, 0 in groups that have none, and which have one."""
        if isinstance(self.least, int):
            return np.full(batch.num_rows, self.least, np.int64), np.ones(batch.num_rows, np.bool_)
        levels = _levels(self.least, self.column)
        borders = {group: found[-1] for group, found in levels.borders.items() if found}
        names = _names(levels, batch)
        known = np.array([name in borders for name in names], np.bool_)
        return np.array([borders.get(name, 0) for name in names], np.int64), known

    def _measure(self, values: Integers, known: npt.NDArray[np.bool_], least: int) -> Measure:
        name = self.column.replace("_", " ")
        numerator = np.where(known, values, 0).astype(np.int64)
        return Measure(f"{name} too low", name, numerator, known.astype(np.int64), at_least(least))


def require_scores(schema: pa.Schema, transform: str, column: str) -> None:
    """Raise `SchemaError` unless `column` is one of whole numbers."""
    place = schema.get_field_index(column)
    if place < 0:
        raise SchemaError(f"{transform} needs the column {column!r} of scores; the rows have {', '.join(schema.names)}")
    if not pa.types.is_integer(schema.field(place).type):
        raise SchemaError(f"{transform} needs whole numbers in {column!r}, it is {schema.field(place).type}")


def require_fitted(schema: pa.Schema, transform: str, levels: Any, column: str) -> None:
    """Raise `SchemaError` unless `levels`, where a stage of the recipe fits them, suit the scores in `column`."""
    fit = getattr(levels, "fit", None)
    if (fitted := getattr(fit, "column", column)) != column:
        raise SchemaError(f"{transform} has levels of {fitted!r} for the scores {column!r}: fit them on that column")
    if per := getattr(fit, "per", None):
        require(schema, transform, **{per: pa.large_string()})


def scores_of(batch: pa.RecordBatch, column: str) -> tuple[Integers, npt.NDArray[np.bool_]]:
    """Return the scores of a column, 0 where there is none, and where there is one."""
    values = batch.column(column)
    there = np.asarray(values.is_valid())
    return np.asarray(values.fill_null(0).to_numpy(zero_copy_only=False), np.int64), there


def levels_of(scores: Integers, levels: Any, column: str, batch: pa.RecordBatch) -> pa.Array[Any]:
    """Return the level of each score; null in a group that the levels do not know."""
    made = _levels(levels, column)
    found = made.of(scores, _groups(made, batch))
    return pa.array(found.astype(np.int32), LEVEL_TYPE, mask=found < 0)


def _levels(levels: Any, column: str) -> Levels:
    if isinstance(levels, tuple):
        return Levels(column, None, {"": levels})
    file: Any = file_of(levels, "Level")
    made = _load_levels(file)
    if made.column != column:
        raise FittedError(f"{file} has levels of {made.column!r}, not of {column!r}: fit them on that column")
    return made


@lru_cache(maxsize=16)
def _load_levels(file: Any) -> Levels:
    return read_levels(file.read(), str(file))


def _groups(levels: Levels, batch: pa.RecordBatch) -> list[str | None] | None:
    if levels.per is None:
        return None
    require(batch.schema, "Level", **{levels.per: pa.large_string()})
    values: list[str | None] = batch.column(levels.per).to_pylist()
    return values


def _names(levels: Levels, batch: pa.RecordBatch) -> list[str]:
    groups = _groups(levels, batch)
    return [""] * batch.num_rows if groups is None else [group or "" for group in groups]


def _ascending(borders: Any) -> tuple[int, ...]:
    """Return borders as a tuple.

    Raises:
        ValueError: they are no whole numbers, or do not ascend.
    """
    made = tuple(borders)
    if not all(isinstance(border, int) and not isinstance(border, bool) for border in made) or list(made) != sorted(
        made
    ):
        raise ValueError(f"levels={made}: give scores in thousandths as whole numbers, ascending")
    return made
