"""Thresholds that fit a corpus: `fit_thresholds` counts a filter's measures per language and chooses the bounds.

Rules that were chosen for English drop most of a language that writes otherwise. Two ways of choosing, of those that
Penedo et al. 2025 compare ("FineWeb2", arXiv:2506.20920): bounds that a fixed share of the documents of each group
pass (`keep`), and bounds that the same share pass as pass the filter's own in a group for which they were chosen
(`like`).

Values are counted in classes of three significant digits, in millionths: so counts of shards add up, and the outcome
does not depend on how the corpus is cut. Cost: one pass of the filter over the texts; per shard, group and rule a few
hundred counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curate.configuration import ConfigurationError
from curate.digests import digest_json
from curate.parts import part_batches
from curate.recipes.graph import Dataset
from curate.recipes.models import Fitted, FittedModel, Fitting
from curate.running.jobs import Item, publish_files
from curate.store import Store, json_line
from transforms.exact_numbers import Number, decimal_text, exact
from transforms.filters import Filter, Measure

MILLION: Final = 1_000_000
DIGITS: Final = 1_000
"""Classes of values in a power of ten: three digits."""

Counts = dict[str, dict[str, dict[str, int]]]
"""Group → reason of a rule → class of its values, in millionths → documents."""


@dataclass(frozen=True, slots=True)
class FitThresholds:
    """How thresholds are fitted; see `fit_thresholds`."""

    filter: Filter
    per: str
    keep: Fraction | None
    like: str | None
    only: tuple[str, ...]
    least: int

    version: ClassVar[int] = 1
    verb: ClassVar[str] = "fit thresholds"
    file: ClassVar[str] = "thresholds.json"

    def columns(self) -> Mapping[str, str]:
        """Return the column that groups."""
        return {self.per: "strings"}

    def fit(self, fitting: Fitting) -> Fitted:
        """Count the measures of each shard, add up, and choose.

        Raises:
            ConfigurationError: the group to be like has too few documents.
        """
        shards = [shard for dataset in fitting.datasets for shard in dataset.kept_shards()]
        items = [
            Item(_task_key(fitting.key, shard["key"]), f"shard {index}", {"shard": shard["key"]}, shard["bytes"])
            for index, shard in enumerate(shards)
        ]
        job = CountMeasures(fitting.name, fitting.engine.store, self)
        receipts = fitting.engine.receipts(job, items)
        counted: Mapping[str, Any] = receipts.statistics().get("measures", {})
        bounds, documents = self.choose(counted.get("classes", {})), counted.get("documents", {})
        enough = {group: bounds[group] for group in sorted(bounds) if documents[group] >= self.least}
        if self.like is not None and self.like not in enough:
            raise ConfigurationError(
                f"{fitting.name}: like={self.like!r} needs at least {self.least:,} documents of that {self.per}, "
                f"there are {documents.get(self.like, 0):,}: give more, another group, or a lower least="
            )
        card = {"documents": dict(documents), "fitted": len(enough), "per": self.per, "bounds": enough}
        return Fitted({self.file: json_line({"bounds": enough, "per": self.per})}, card, (receipts,))

    def choose(self, classes: Mapping[str, Mapping[str, Mapping[str, int]]]) -> dict[str, dict[str, str]]:
        """Return the bounds of each group: reason → decimal."""
        senses = {m.reason: m for m in self._rules()}
        return {
            group: {
                reason: decimal_text(Fraction(chosen, MILLION))
                for reason, counts in reasons.items()
                if (chosen := self._bound(senses[reason], _ordered(counts), classes)) is not None
            }
            for group, reasons in classes.items()
        }

    def measures(self, batch: pa.RecordBatch) -> list[Measure]:
        """Return the measures of the rules that are fitted."""
        return [measure for measure in self.filter.measures(batch) if not self.only or measure.reason in self.only]

    def _rules(self) -> list[Measure]:
        empty = pa.RecordBatch.from_arrays([pa.array([], pa.large_string())], names=["text"])
        return self.measures(empty)

    def _bound(self, rule: Measure, counts: Sequence[tuple[int, int]], classes: Mapping[str, Any]) -> int | None:
        share = self.keep
        if self.like is not None:
            share = passing(rule, _ordered(classes.get(self.like, {}).get(rule.reason, {})))
        return None if share is None else bound_for(rule.bound.sense, counts, share)


def fit_thresholds(
    dataset: Dataset | Sequence[Dataset],
    filter: Filter,  # noqa: A002 - what it is
    *,
    per: str,
    keep: Number | str | None = None,
    like: str | None = None,
    only: Sequence[str] = (),
    least: int = 1000,
    name: str = "fit thresholds",
) -> FittedModel:
    """Return thresholds of `filter` that fit `dataset`; `FittedFilter(filter, them, per=…)` applies them.

    Args:
        dataset: documents that are like what is wanted, in every language (or other group).
        filter: a filter; which rules it has is taken from it, and its bounds for groups with too few documents.
        per: the column whose values are the groups, as "language".
        keep: share of documents, of each group, that shall pass each rule.
        like: in place of `keep`: the group for which the filter's own bounds were chosen. In each other group as many
            documents shall pass as pass there.
        only: reasons of the rules to fit ("too few stop words"); none: all. The others keep their bounds.
        least: documents that a group needs.
        name: of the stage.

    Raises:
        ConfigurationError: not one of `keep` and `like` is given, `keep` is no share, or a reason is unknown.
    """
    if (keep is None) == (like is None):
        raise ConfigurationError("fit_thresholds needs one of keep= (a share) and like= (a group)")
    share = None if keep is None else exact(keep)
    if share is not None and not 0 < share <= 1:
        raise ConfigurationError(f"fit_thresholds(keep={keep}): a share above 0, up to 1")
    fit = FitThresholds(filter, per, share, like, tuple(only), least)
    known = [measure.reason for measure in FitThresholds(filter, per, share, like, (), least)._rules()]
    if unknown := sorted(set(only) - set(known)):
        raise ConfigurationError(f"fit_thresholds(only={unknown}): the rules are {', '.join(known)}")
    return FittedModel((dataset,) if isinstance(dataset, Dataset) else tuple(dataset), fit, name)


@dataclass(frozen=True, slots=True)
class CountMeasures:
    """Counts, for each group of a shard, how many documents have which value of each measure."""

    name: str
    store: Store
    fit: FitThresholds

    def run(self, item: Item) -> None:
        """Publish the counts of one shard, in its receipt."""
        counts: dict[str, Any] = {"documents": {}, "classes": {}}
        types = pa.schema([pa.field(self.fit.per, pa.large_string())])
        for batch in part_batches(self.store, item.unit["shard"], ["text", self.fit.per], types):
            count_batch(self.fit.measures(batch), batch.column(self.fit.per), counts)
        publish_files(self.store, item, self.name, {}, {"measures": counts})


def count_batch(measures: Sequence[Measure], column: pa.Array[Any], counts: dict[str, Any]) -> None:
    """Add the values of `measures` to `counts`, by the groups in `column`; rows without a group are left out."""
    groups = np.array(column.to_pylist(), object)
    for group in sorted({group for group in groups if group is not None}):
        mine = groups == group
        counts["documents"][group] = counts["documents"].get(group, 0) + int(mine.sum())
        for measure in measures:
            some = mine & (measure.denominator > 0)
            classes, documents = np.unique(
                classes_of(measure.numerator[some], measure.denominator[some]), return_counts=True
            )
            into = counts["classes"].setdefault(group, {}).setdefault(measure.reason, {})
            for value, number in zip(classes.tolist(), documents.tolist(), strict=True):
                into[str(value)] = into.get(str(value), 0) + number


def classes_of(numerator: npt.NDArray[np.int64], denominator: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the class of each value: its millionths, of which three digits are kept (rounded down)."""
    whole, rest = np.divmod(numerator, denominator)
    value = whole * MILLION + rest * MILLION // denominator
    scale = np.ones_like(value)
    while (large := value // scale >= DIGITS).any():
        scale[large] *= 10
    return np.asarray(value // scale * scale, np.int64)


def bound_for(sense: str, counts: Sequence[tuple[int, int]], share: Fraction) -> int | None:
    """Return the strictest bound, in millionths, that at least `share` of the documents pass; None without documents.

    `counts` are classes in order with their documents.
    """
    total, passed = sum(number for _, number in counts), 0
    for value, number in reversed(counts) if sense == "≥" else counts:
        passed += number
        if passed >= share * total:
            return value if sense == "≥" else _end(value)
    return None


def passing(rule: Measure, counts: Sequence[tuple[int, int]]) -> Fraction | None:
    """Return the share of documents that pass the rule's own bound; of a class that it cuts none pass."""
    total = sum(number for _, number in counts)
    bound = rule.bound.value * MILLION
    passed = [
        number for value, number in counts if (value >= bound if rule.bound.sense == "≥" else _end(value) <= bound)
    ]
    return Fraction(sum(passed), total) if total and passed else None


def _end(value: int) -> int:
    """Return the end, in millionths, of the class that begins with `value`; no value of it lies there or above."""
    scale = 1
    while value // scale >= DIGITS:
        scale *= 10
    return value + scale


def _task_key(stage: str, shard: str) -> str:
    return digest_json({"operation": "count measures", "stage": stage, "shard": shard})


def _ordered(counts: Mapping[str, int]) -> list[tuple[int, int]]:
    return sorted((int(value), number) for value, number in counts.items())
