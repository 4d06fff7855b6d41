"""Transforms that follow each other share what they find in the texts.

A chain of five filters would look for words and lines five times. `Sharing` applies the transforms of a chain to a
batch, one after the other, and gives all that judge by `Findings` the same ones, until a transform changes texts. Rows
dropped between them are judged along with the others (and their measures ignored) as long as at least half of the
bytes stay; then findings start anew, so no work is more than doubled.

Invariants: the outcome of each transform is that of its `apply`. Cost: the texts that came in stay in memory until the
last transform that shares them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.exact_numbers import Integers
from transforms.filters import AllReasons, Filter, Measure, Tag
from transforms.findings import Findings
from transforms.outcome import Outcome, Transform
from transforms.text_columns import ordered_places


@runtime_checkable
class JudgesTexts(Protocol):
    """A filter whose measures come from words and lines alone."""

    def judge(self, found: Findings) -> list[Measure]:
        """Return the measures of each text; which there are depends on the fields only."""
        ...


@runtime_checkable
class EditsTexts(Protocol):
    """A transform that edits or drops by words and lines alone."""

    def edit(self, found: Findings, rows: Integers | None, batch: pa.RecordBatch) -> Outcome:
        """Return the outcome for `batch`, whose texts are those in `rows` of the findings (None: all of them)."""
        ...


@dataclass(frozen=True, slots=True)
class _View:
    """Findings, and which of their texts are those of `batch`, in order (None: all of them)."""

    found: Findings
    rows: Integers | None
    batch: pa.RecordBatch


class Sharing:
    """Applies the transforms of a chain to one batch, in their order."""

    def __init__(self) -> None:
        """Nothing is found yet."""
        self._view: _View | None = None

    def apply(self, transform: Transform, batch: pa.RecordBatch) -> Outcome:
        """Return `transform.apply(batch)`; `batch` is best what the last transform kept."""
        judge = transform.filter if isinstance(transform, (AllReasons, Tag)) else transform
        if not isinstance(judge, (JudgesTexts, EditsTexts)) or batch.schema.get_field_index("text") < 0:
            self._view = None
            return transform.apply(batch)
        view = self._view
        if view is None or view.batch is not batch:
            view = _View(Findings(batch.column("text")), None, batch)
        outcome = _outcome(transform, judge, view)
        self._view = _narrowed(view, outcome)
        return outcome


def _outcome(transform: Transform, judge: object, view: _View) -> Outcome:
    if isinstance(transform, (AllReasons, Filter, Tag)) and isinstance(judge, JudgesTexts):
        measures = judge.judge(view.found)
        rows = view.rows
        return transform.decide(view.batch, measures if rows is None else [measure.of(rows) for measure in measures])
    if isinstance(transform, EditsTexts):
        return transform.edit(view.found, view.rows, view.batch)
    return transform.apply(view.batch)


def _narrowed(view: _View, outcome: Outcome) -> _View | None:
    """Return the view of the rows kept; None if texts were edited, or too few are left."""
    if outcome.edits.num_rows:
        return None
    kept = outcome.kept
    places = ordered_places(view.batch.column("id"), kept.column("id"))
    if places is None:
        return None
    rows = places if view.rows is None else view.rows[places]
    sizes = np.asarray(pc.fill_null(pc.binary_length(view.found.text), 0), np.int64)
    if 2 * sizes[rows].sum() < sizes.sum():
        return None
    return _View(view.found, None if len(rows) == len(sizes) else rows, kept)
