"""From candidates to a classifier and its card: divided, trained, judged on what training never saw.

The card is the published description of a classifier: JSON of integers, made by the same task as the model. It says
what it learned from and what went, how it does on held-out sites and on the left-out source, pooled and within source,
topic and language, what a predictor does that knows source or length alone, how its probabilities fit, where the
documents of the target corpus lie, how much of its scores host, topic and language explain, and which features tell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transforms.classifier_card import (
    Scored,
    auc,
    calibration,
    explained,
    precision_recall,
    scores_by_length,
    shares_by_source,
)
from transforms.learners import HASHED, EmbeddedLinear, Examples, Learner, Scorer, examples_portions, scorer_of
from transforms.logistic import MILLI, UNIT, Integers, to_milli
from transforms.model_file import ModelFile
from transforms.pii import mask_excerpt
from transforms.text_features import KINDS, LINE, PAIR, WORD, Occurrences, features_of, occurrences_of
from transforms.training_set import NEGATIVE, POSITIVE, TARGET, Divided, Selection, divide, examples_of

COLUMNS: Final = ("source", "site", "topic", "language")
TELLING: Final = 25
"""Features of each sense on a card."""
SHOWN: Final = 60
"""Code points of an example of a feature."""

_BEFORE: Final = (0, 0, 1, 1, 2, 1, 2, 1)  # words before its last that a feature of each kind is about


class ClassifierError(ValueError):
    """There is nothing to learn from, or nothing to judge by."""


@dataclass(frozen=True, slots=True)
class Trained:
    """A model file and its card."""

    content: bytes
    card: dict[str, Any]


def train_and_judge(
    candidates: pa.Table,
    learner: Learner,
    width: int,
    selection: Selection,
    shows: Callable[[str], bool] = lambda source: True,
) -> Trained:
    """Return the classifier of `candidates` (rows of `CANDIDATES`) and its card.

    Args:
        candidates: documents of both classes and of the target corpus, in any order.
        learner: how it learns.
        width: code points of a window.
        selection: who trains and who judges.
        shows: whether text of a source may stand on the card.

    Raises:
        ClassifierError: a class has nothing to train on.
    """
    divided = divide(candidates, selection)
    _check(divided, selection)
    examples = examples_of(divided.training)
    model = learner.fit(examples, width)
    scorer = scorer_of(model, learner.embedder if isinstance(learner, EmbeddedLinear) else None)
    judge = _Judge(scorer, divided, candidates.filter(pc.equal(candidates.column("class"), TARGET)))
    card = {
        "kind": model.kind,
        "width": width,
        "documents": {name: _counts(part) for name, part in judge.parts.items()},
        "gone": divided.gone,
        "left_out": selection.leave_out,
        **judge.measures(),
        "features": _telling(model, divided.training, examples, shows) if model.kind == HASHED else None,
    }
    return Trained(model.to_bytes(), card)


def score_windows(scorer: Scorer, windows: Any) -> Integers:
    """Return the score of each document, in thousandths, from the list of its windows."""
    lists = windows.combine_chunks() if isinstance(windows, pa.ChunkedArray) else windows
    counts = np.asarray(lists.value_lengths().to_numpy(zero_copy_only=False), np.int64)
    return mean_scores(scorer.odds(cast(pa.LargeStringArray, lists.flatten())), counts)


def mean_scores(odds: Integers, counts: Integers) -> Integers:
    """Return scores, in thousandths, of documents that have `counts` consecutive windows each, one at least."""
    if not len(counts):
        return np.zeros(0, np.int64)
    return to_milli(np.add.reduceat(odds, np.cumsum(counts) - counts), counts)


def _check(divided: Divided, selection: Selection) -> None:
    for name, label in (("positive", POSITIVE), ("negative", NEGATIVE)):
        if not pc.any(pc.equal(divided.training.column("class"), label)).as_py():
            raise ClassifierError(
                f"train_classifier: no {name} document is left to train on; went: {divided.gone}; held out: "
                f"{divided.held_out.num_rows:,}, of the source {selection.leave_out!r}: {divided.left_out.num_rows:,}. "
                "Give more documents, of more than one site, or hold out less"
            )


def _counts(table: pa.Table) -> dict[str, int]:
    classes = table.column("class").to_numpy()
    sites = pc.count_distinct(table.column("site")).as_py()
    named = (("positive", POSITIVE), ("negative", NEGATIVE), ("unlabelled", TARGET))
    return {**{name: int((classes == label).sum()) for name, label in named}, "sites": sites}


class _Judge:
    """Scores all that training never saw."""

    def __init__(self, scorer: Scorer, divided: Divided, target: pa.Table) -> None:
        self.divided = divided
        self.parts = {
            "training": divided.training,
            "held-out sites": divided.held_out,
            "left-out source": divided.left_out,
            "target": target,
        }
        judged = pa.concat_tables([divided.held_out, divided.left_out, target])
        scored = Scored.of(judged, score_windows(scorer, judged.column("windows")), COLUMNS)
        ends = np.cumsum([0, divided.held_out.num_rows, divided.left_out.num_rows, target.num_rows])
        self.held_out, self.left_out, self.target = (
            scored.take(np.arange(first, last)) for first, last in pairwise(ends.tolist())
        )

    def measures(self) -> dict[str, Any]:
        """Return the part of the card that is measured."""
        held_out, target = self.held_out, self.target if len(self.target.labels) else None
        return {
            "auc": self._areas(),
            "precision_recall": precision_recall(held_out.labels, held_out.scores),
            "calibration": calibration(held_out, target),
            "explained": self._explained(held_out if target is None else target),
            "explained_on": "held-out sites" if target is None else "target",
        }

    def _areas(self) -> dict[str, Any]:
        held_out, left_out = self.held_out, self.left_out
        others = held_out.joined(left_out)
        names = ("source", "topic", "language")
        within = {f"within {name}": auc(held_out.labels, held_out.scores, held_out.groups[name]) for name in names}
        by_source = shares_by_source(self.divided.training, self.divided.held_out)
        return {
            "pooled": auc(held_out.labels, held_out.scores),
            **within,
            "left-out source": auc(others.labels, others.scores) if len(left_out.labels) else None,
            "source alone": auc(held_out.labels, by_source),
            "length alone": auc(held_out.labels, scores_by_length(self.divided.training, held_out)),
        }

    def _explained(self, scored: Scored) -> dict[str, Any]:
        return {name: explained(scored.scores, scored.groups[name]) for name in COLUMNS}


def _telling(
    model: ModelFile, training: pa.Table, examples: Examples, shows: Callable[[str], bool]
) -> dict[str, list[dict[str, Any]]]:
    """Return the features that set training's positives apart most, and its negatives.

    Ranked by weight × what a window of the one class has more of them than one of the other, on the average.
    """
    weights = model.arrays["weights"].astype(np.float64)
    common, bits = model.arrays["common"], int(model.header["bits"])
    sums = np.zeros((2, len(weights)))
    for texts, labels in examples_portions(examples):
        found = features_of(texts, common, bits)
        owner = np.repeat(labels, np.diff(found.offsets))
        for label in (NEGATIVE, POSITIVE):
            np.add.at(sums[label], found.buckets[owner == label], found.values[owner == label])
    windows = np.bincount(examples.labels, minlength=2)
    more = sums[POSITIVE] / windows[POSITIVE] - sums[NEGATIVE] / windows[NEGATIVE]
    told = {}
    for sense, label, sign in (("positive", POSITIVE, 1), ("negative", NEGATIVE, -1)):
        apart = np.where((weights * sign > 0) & (more * sign > 0), weights * more, 0.0)
        buckets = np.lexsort((np.arange(len(weights)), -apart))[:TELLING]
        mine = training.filter(pc.equal(training.column("class"), label))
        shown = _examples_of(buckets[apart[buckets] > 0], mine, common, bits, shows)
        chosen = [bucket for bucket in buckets.tolist() if bucket in shown]
        told[sense] = [{"weight": int(weights[b]) * MILLI // UNIT, **shown[b]} for b in chosen]
    return told


def _examples_of(
    wanted: npt.NDArray[Any], training: pa.Table, common: Any, bits: int, shows: Callable[[str], bool]
) -> dict[int, dict[str, str]]:
    """Return kind and text of the first feature of each of the `wanted` buckets, of sources that may be shown."""
    shown: dict[int, dict[str, str]] = {}
    may = np.array([shows(source) for source in training.column("source").to_pylist()], np.bool_)
    rows = training.filter(pa.array(may))
    for batch in rows.to_batches(max_chunksize=256):
        found = occurrences_of(cast(pa.LargeStringArray, batch.column("windows").flatten()), common, bits)
        places = np.flatnonzero(np.isin(found.buckets, wanted))
        for at in places[np.unique(found.buckets[places], return_index=True)[1]].tolist():
            bucket = int(found.buckets[at])
            if bucket not in shown:
                shown[bucket] = {"kind": KINDS[found.kinds[at]], "example": _text_of(found, at)}
        if len(shown) == len(wanted):
            break
    return shown


def _text_of(found: Occurrences, at: int) -> str:
    """Return the text that a feature is about: its words, and the gap before them for those of form."""
    kind, last, words = int(found.kinds[at]), int(found.last[at]), found.words
    document = int(np.searchsorted(words.documents, last, "right")) - 1
    first = max(int(words.documents[document]), last - _BEFORE[kind])
    start, end = int(words.starts[first]), int(words.ends[last])
    if kind not in (WORD, PAIR, LINE) and first > int(words.documents[document]):
        start = int(words.ends[first - 1])
    return mask_excerpt(words.data[start:end].tobytes().decode("utf-8", "replace"))[:SHOWN]
