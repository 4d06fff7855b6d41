"""What a classifier is worth: measures over documents with a score, each exact in integers.

Scores are integers (thousandths of log-odds). The area under the ROC curve is the share of pairs (positive, negative)
in which the positive one scores higher, ties a half, as a ratio of counts. *Within* a column only pairs that share its
value count: a classifier that only tells sources apart has about one half there. A predictor that knows the source
alone, or the length alone, shows how much of the pooled figure needs no reading.

The share of variance that a column explains is ε² (Kelley 1935, "An unbiased correlation ratio measure"), which
corrects η² for the number of groups: 1 - (mean square within groups) / (total mean square), over documents whose group
has two members at least, 0 where that is negative; in millionths.

Cost: sorting by score, per measure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transforms.logistic import probability

Integers = npt.NDArray[np.int64]
Ratio = list[int]

MILLION: Final = 1_000_000
BINS: Final = 10
"""Of the calibration: tenths of probability."""
POINTS: Final = 50
"""Of the precision-recall curve, at most."""


@dataclass(frozen=True, slots=True)
class Scored:
    """Documents with labels (0, 1; -1 where there is none) and scores, and their columns (codes; -1: no value)."""

    labels: Integers
    scores: Integers
    characters: Integers
    groups: dict[str, Integers]

    @classmethod
    def of(cls, table: pa.Table, scores: Integers, columns: Sequence[str]) -> Scored:
        """Return the candidates of `table` with `scores`."""
        labels = table.column("class").to_numpy().astype(np.int64)
        groups = {name: codes_of(table.column(name)) for name in columns}
        return cls(labels, scores, table.column("characters").to_numpy().astype(np.int64), groups)

    def joined(self, other: Scored) -> Scored:
        """Return both; the codes of groups must be of one table."""
        groups = {name: np.concatenate([codes, other.groups[name]]) for name, codes in self.groups.items()}
        labels, scores, characters = (
            np.concatenate([getattr(self, name), getattr(other, name)]) for name in ("labels", "scores", "characters")
        )
        return Scored(labels, scores, characters, groups)

    def take(self, rows: npt.NDArray[Any]) -> Scored:
        """Return these documents."""
        groups = {name: codes[rows] for name, codes in self.groups.items()}
        return Scored(self.labels[rows], self.scores[rows], self.characters[rows], groups)


def codes_of(column: Any) -> Integers:
    """Return a number for each value, by the order of values; -1 for nulls."""
    values = column.to_pylist()
    names = {value: place for place, value in enumerate(sorted({value for value in values if value is not None}))}
    return np.array([names.get(value, -1) for value in values], np.int64)


def auc(labels: Integers, scores: Integers, groups: Integers | None = None) -> Ratio | None:
    """Return [2 × pairs in the right order + ties, 2 × pairs], of pairs within `groups`; None where there is none."""
    codes = np.zeros(len(labels), np.int64) if groups is None else groups
    right = pairs = 0
    for code in np.unique(codes[codes >= 0]).tolist():
        mine = codes == code
        positive, negative = np.sort(scores[mine & (labels == 1)]), np.sort(scores[mine & (labels == 0)])
        below = np.searchsorted(negative, positive, "left").astype(np.int64)
        equal = np.searchsorted(negative, positive, "right").astype(np.int64)
        right += int(below.sum() + equal.sum())
        pairs += 2 * len(positive) * len(negative)
    return [right, pairs] if pairs else None


def shares_by_source(training: pa.Table, judged: pa.Table) -> Integers:
    """Return what a predictor says that knows of each document its source alone: the share of positives, millionths."""
    sources, labels = training.column("source").to_pylist(), training.column("class").to_pylist()
    counts: dict[str, list[int]] = {}
    for source, label in zip(sources, labels, strict=True):
        counts.setdefault(source, [0, 0])[label] += 1
    overall = MILLION * sum(labels) // max(1, len(labels))
    shares = {source: MILLION * both[1] // sum(both) for source, both in counts.items()}
    return np.array([shares.get(source, overall) for source in judged.column("source").to_pylist()], np.int64)


def scores_by_length(training: pa.Table, judged: Scored) -> Integers:
    """Return what a predictor says that knows the length alone: the sense, longer or shorter, is that of training."""
    lengths = training.column("characters").to_numpy().astype(np.int64)
    found = auc(training.column("class").to_numpy().astype(np.int64), lengths)
    return judged.characters if found is None or 2 * found[0] >= found[1] else -judged.characters


def precision_recall(labels: Integers, scores: Integers) -> list[dict[str, int]]:
    """Return points of the curve: from which score on, how many positives and negatives are kept; highest first.

    Precision is positives / (positives + negatives), recall is positives / all positives. At most `POINTS` of the
    distinct scores, evenly by documents, the lowest always among them.
    """
    order = np.argsort(-scores, kind="stable")
    ranked, hits = scores[order], np.cumsum(labels[order] == 1)
    ends = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True)) if len(ranked) else np.zeros(0, np.int64)
    wanted = np.searchsorted(ends, np.arange(1, POINTS + 1) * len(ranked) // POINTS - 1)
    chosen = np.unique(ends[np.minimum(wanted, len(ends) - 1)]) if len(ends) else ends
    return [
        {"score": int(ranked[at]), "positives": int(hits[at]), "negatives": int(at + 1 - hits[at])}
        for at in chosen.tolist()
    ]


def calibration(held_out: Scored, target: Scored | None) -> list[dict[str, int]]:
    """Return per tenth of probability: documents held out, positives among them, the sum of their probabilities in
    millionths, and documents of the target corpus (None where there is none).
    """
    chances = np.array([probability(int(score)) for score in held_out.scores], np.int64)
    bins = _bins(chances)
    aims = None if target is None else _bins(np.array([probability(int(s)) for s in target.scores], np.int64))
    return [
        {
            "from": number * MILLION // BINS,
            "held_out": int((bins == number).sum()),
            "positives": int(((bins == number) & (held_out.labels == 1)).sum()),
            "predicted": int(chances[bins == number].sum()),
            **({} if aims is None else {"target": int((aims == number).sum())}),
        }
        for number in range(BINS)
    ]


def _bins(millionths: Integers) -> Integers:
    return np.minimum(millionths * BINS // MILLION, BINS - 1)


def explained(scores: Integers, codes: Integers) -> dict[str, int] | None:
    """Return the share of the variance of `scores` that groups explain, in millionths, over how many of each.

    None where that says nothing: fewer than two groups of two documents, or all scores equal.
    """
    counts = np.bincount(codes[codes >= 0]) if (codes >= 0).any() else np.zeros(0, np.int64)
    mine = np.flatnonzero(codes >= 0)
    mine = mine[counts[codes[mine]] >= 2]
    values, groups = [int(score) for score in scores[mine]], codes[mine].tolist()
    sums: dict[int, list[int]] = {}
    for value, group in zip(values, groups, strict=True):
        entry = sums.setdefault(group, [0, 0])
        entry[0], entry[1] = entry[0] + value, entry[1] + 1
    n, k = len(values), len(sums)
    if k < 2:
        return None
    squares = Fraction(sum(value * value for value in values))
    total = squares - Fraction(sum(values) ** 2, n)
    within = squares - sum((Fraction(entry[0] ** 2, entry[1]) for entry in sums.values()), Fraction(0))
    if total == 0:
        return None
    share = 1 - within / (n - k) / (total / (n - 1))
    return {"share": max(0, int(share * MILLION)), "documents": n, "groups": k}
