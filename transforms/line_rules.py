"""Rules on lines: which lines of a text go, and why; what is left is the text.

A line that a rule flags goes with the line break behind it; all other characters stay as they are, so a text of which
no line is flagged is untouched. Pieces within lines that stay (a citation, a "Read more...") can go, too.

Invariants: code points add up, per text and reason; a line has one reason, that of the first rule it fails. A text of
which no line is left is dropped. Cost: one copy of the texts where anything is cut.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transforms.cutting import Pieces, cut_pieces
from transforms.exact_numbers import Integers, Number
from transforms.filters import Filter, Measure, Tag, at_least, at_most, decide, snake_case
from transforms.findings import Findings
from transforms.outcome import EDITS, Outcome, kept, name_of, require
from transforms.schema import set_columns
from transforms.segmentation import Bytes, Positions, count_characters, text_buffers

KEEP: Final = 255
"""The reason of lines that stay."""

BLANK: Final = "blank lines"
"""The reason under which lines go that are blank, which no share is stated of."""


@dataclass(frozen=True, slots=True)
class Flagged:
    """The lines and pieces of texts that go.

    `lines`: per line the number of its reason, or `KEEP`. Piece p, data[starts[p]:ends[p]], lies in the line
    piece_lines[p] and goes for reasons[p], if its line stays.
    """

    lines: Bytes
    starts: Positions
    ends: Positions
    piece_lines: Positions
    reasons: Bytes


class LineRules(ABC):
    """Base of transforms that cut lines: a concrete one is a frozen dataclass that says which."""

    __slots__ = ()

    version: ClassVar[int]
    libraries: ClassVar[tuple[str, ...]] = ()
    reasons: ClassVar[tuple[str, ...]]
    """Why lines or pieces go, as in the ledger; the first `line_reasons` of them are reasons of lines."""
    line_reasons: ClassVar[int]

    @abstractmethod
    def flag(self, found: Findings) -> Flagged:
        """Return which lines and pieces of the texts go."""

    def limits(self, found: Findings, flagged: Flagged) -> list[Measure]:
        """Return measures of how much goes, by which whole texts are dropped; as a rule there are none."""
        return []

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return `schema`.

        Raises:
            SchemaError: there is no column `text`.
        """
        require(schema, name_of(self), text=pa.large_string())
        return schema

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Return the rows without the lines that a rule flags."""
        return self.edit(Findings(batch.column("text")), None, batch)

    def edit(self, found: Findings, rows: Integers | None, batch: pa.RecordBatch) -> Outcome:
        """Return `batch`, whose texts are those in `rows` of the findings (None: all), without flagged lines."""
        flagged = self.flag(found)
        places = np.arange(batch.num_rows) if rows is None else rows
        cut = _cut(found, flagged, len(self.reasons))
        left = Measure("no line left", "lines left", cut.left, np.ones(len(cut.left), np.int64), at_least(1))
        measures = [measure.of(places) for measure in (*self.limits(found, flagged), left)]
        decided = decide(name_of(self), batch, measures, measures[:-1])
        stays = np.logical_and.reduce([measure.passes() for measure in measures])
        counts, inserted = cut.cut[places[stays]], cut.inserted[places[stays]]
        if not counts.any():
            return decided
        text = cut.text if rows is None and stays.all() else cut.text.take(pa.array(places[stays]))
        kept_rows = set_columns(decided.kept, {batch.schema.field("text"): text})
        edits = _edits(name_of(self), self.reasons, kept_rows, counts, inserted)
        return kept(kept_rows, dropped=decided.dropped, edits=edits, near=decided.near, spreads=decided.spreads)

    def tag(self, prefix: str = "") -> Tag:
        """Return the transform that cuts and drops nothing and writes, per reason, how many lines would go.

        The columns are `<prefix>_<reason>`: lines flagged, lines that are not blank.
        """
        return Tag(FlaggedLines(self), prefix or snake_case(name_of(self)))


@dataclass(frozen=True, slots=True)
class FlaggedLines(Filter):
    """Drops texts of which too many lines would go: more than `most` of those that are not blank, for one reason.

    With the default nothing is dropped: it is what a tag of the rules measures.
    """

    rules: LineRules
    most: Number = 1

    version: ClassVar[int] = 1

    @property
    def name(self) -> str:
        """The name in ledgers and pages: that of the rules, "C4Lines"."""
        return name_of(self.rules)

    def measures(self, batch: pa.RecordBatch) -> list[Measure]:
        """Return, per reason, the lines that would go among those that are not blank."""
        return self.judge(Findings(batch.column("text")))

    def judge(self, found: Findings) -> list[Measure]:
        """Return the same of texts of which words and lines are shared."""
        flagged, lines = self.rules.flag(found), found.lines
        filled = _count_lines(lines.documents, ~lines.blank)
        return [
            Measure(
                f"too many lines: {reason}",
                reason,
                _count_lines(lines.documents, (flagged.lines == number) & ~lines.blank),
                filled,
                at_most(self.most),
            )
            for number, reason in enumerate(self.rules.reasons[: self.rules.line_reasons])
            if reason != BLANK
        ]


@dataclass(frozen=True, slots=True)
class _Cut:
    """Texts without what is flagged; code points cut per text and reason, and inserted; lines left, per text."""

    text: pa.LargeStringArray
    cut: Positions
    inserted: Positions
    left: Positions


def _cut(found: Findings, flagged: Flagged, reasons: int) -> _Cut:
    lines, (data, bounds) = found.lines, text_buffers(found.text)
    stays = flagged.lines == KEEP
    left = _count_lines(lines.documents, stays & ~lines.blank)
    ends = np.concatenate([lines.starts[1:], bounds[-1:]]) if len(lines.starts) else lines.starts
    last = lines.documents[1:][np.diff(lines.documents) > 0] - 1  # the last line of a text ends with it
    ends[last] = bounds[1:][np.diff(lines.documents) > 0]
    gone, inner = np.flatnonzero(~stays), np.flatnonzero(stays[flagged.piece_lines])
    starts = np.concatenate([lines.starts[gone], flagged.starts[inner]])
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], np.concatenate([ends[gone], flagged.ends[inner]])[order]
    of_text = np.searchsorted(lines.documents, np.concatenate([gone, flagged.piece_lines[inner]]), "right")[order] - 1
    why = np.concatenate([flagged.lines[gone], flagged.reasons[inner]])[order]
    offsets = np.searchsorted(of_text, np.arange(len(bounds)))
    result = cut_pieces(found.text, Pieces(offsets, starts, ends))
    counts = np.zeros((len(bounds) - 1, reasons), np.int64)
    np.add.at(counts, (of_text, why), count_characters(data, starts, ends))
    return _Cut(result.text, counts, result.inserted, left)


def _count_lines(documents: Positions, flags: npt.NDArray[np.bool_]) -> Positions:
    before = np.concatenate([[0], np.cumsum(flags)])
    return np.asarray(before[documents[1:]] - before[documents[:-1]], np.int64)


def _edits(
    name: str, reasons: Sequence[str], batch: pa.RecordBatch, cut: Positions, inserted: Positions
) -> pa.RecordBatch:
    """Return rows of `EDITS`; spaces inserted belong to the last reason, that of pieces within lines."""
    places, why = np.nonzero(cut)
    added = np.where(why == cut.shape[1] - 1, inserted[places], 0)
    columns: list[pa.Array[Any]] = [
        batch.column("id").take(pa.array(places, pa.int64())),
        pa.array([name] * len(places), pa.large_string()),
        pa.array([reasons[number] for number in why.tolist()], pa.large_string()),
        pa.array(cut[places, why], pa.int64()),
        pa.array(added, pa.int64()),
        pa.nulls(len(places), pa.large_string()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=EDITS)
