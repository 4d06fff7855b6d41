"""Levels of scores: borders by score, or by the share of documents, characters or tokens that they keep, exactly.

A histogram says for each integer score how many documents have it and what they weigh; histograms add up, in any order,
so a quantile over any number of shards is that of the whole corpus and no estimate. The border that keeps a share is
the largest score at which documents with this score or a higher one weigh at least that share: never less is kept than
was asked for, and without the documents at the border it would be less.

Levels count from 0, the lowest: a document's level is the number of borders that its score reaches. Where many
documents share a score, borders can coincide and a level stays empty; what each level holds is recorded.

Cost: sorting; 24 bytes per distinct score and group.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transforms.canonical import canonical_json
from transforms.fitted import FittedError

Integers = npt.NDArray[np.int64]

FORMAT: Final = 1
ALL: Final = ""
"""The group of all documents where levels are not per column; of documents without a value where they are."""

HISTOGRAM: Final = pa.schema(
    [
        pa.field("group", pa.large_string(), nullable=False),
        pa.field("score", pa.int64(), nullable=False),
        pa.field("documents", pa.int64(), nullable=False),
        pa.field("weight", pa.int64(), nullable=False),
    ]
)


class LevelError(ValueError):
    """There is nothing to make levels of, or a share that is none."""


@dataclass(frozen=True, slots=True)
class Levels:
    """Borders of scores by group: a score that reaches `borders[i]` is of level i + 1 at least.

    `column` holds the scores, `per` the groups, None for one group of all.
    """

    column: str
    per: str | None
    borders: Mapping[str, tuple[int, ...]]

    def to_bytes(self) -> bytes:
        """Return the file: a line of canonical JSON."""
        value = {
            "format": FORMAT,
            "column": self.column,
            "per": self.per,
            "borders": {group: list(borders) for group, borders in self.borders.items()},
        }
        return canonical_json(value).encode() + b"\n"

    def of(self, scores: Integers, groups: Sequence[str | None] | None) -> Integers:
        """Return the level of each score; -1 in a group of which the file knows nothing."""
        if self.per is None or groups is None:
            return np.searchsorted(np.array(self.borders[ALL], np.int64), scores, "right").astype(np.int64)
        names = np.array([ALL if group is None else group for group in groups], object)
        levels = np.full(len(scores), -1, np.int64)
        for group in sorted(set(names.tolist())):
            if group in self.borders:
                mine = names == group
                levels[mine] = np.searchsorted(np.array(self.borders[group], np.int64), scores[mine], "right")
        return levels


def read_levels(content: bytes, where: str = "the file") -> Levels:
    """Return the levels of a file.

    Raises:
        FittedError: it holds none, or is of another format.
    """
    try:
        value = json.loads(content)
        if value["format"] != FORMAT:
            raise FittedError(f"{where} is of format {value['format']}, this curate reads {FORMAT}: fit it again")
        borders = {group: tuple(scores) for group, scores in value["borders"].items()}
        return Levels(value["column"], value["per"], borders)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise FittedError(f"{where} holds no levels: give the file that fit_levels made") from None


def histogram(groups: Sequence[str | None] | None, scores: Integers, weights: Integers) -> pa.Table:
    """Return the rows of `HISTOGRAM` of documents with these groups (None: all are of one), scores and weights."""
    names = [ALL] * len(scores) if groups is None else [ALL if group is None else group for group in groups]
    counts = pa.array(np.ones(len(scores), np.int64))
    columns = [pa.array(names, pa.large_string()), pa.array(scores), counts, pa.array(weights)]
    return merged([pa.Table.from_arrays(columns, schema=HISTOGRAM)])


def merged(histograms: Sequence[pa.Table]) -> pa.Table:
    """Return the histogram of all documents, ordered by group and score."""
    rows = pa.concat_tables([HISTOGRAM.empty_table(), *histograms])
    sums = rows.group_by(["group", "score"]).aggregate([("documents", "sum"), ("weight", "sum")])
    columns = [sums.column(name) for name in ("group", "score", "documents_sum", "weight_sum")]
    typed = [column.cast(field.type) for column, field in zip(columns, HISTOGRAM, strict=True)]
    table = pa.Table.from_arrays(typed, schema=HISTOGRAM)
    return table.sort_by([("group", "ascending"), ("score", "ascending")]).combine_chunks()


def equal_shares(levels: int) -> tuple[Fraction, ...]:
    """Return what the borders of so many levels of equal weight keep: (levels - 1) / levels, …, 1 / levels.

    Raises:
        LevelError: fewer than two levels.
    """
    if levels < 2:
        raise LevelError(f"levels={levels}: give two at least")
    return tuple(Fraction(levels - number, levels) for number in range(1, levels))


def borders_of(rows: pa.Table, keep: Sequence[Fraction]) -> tuple[int, ...]:
    """Return the scores that keep these shares of the weight of `rows`, the histogram of one group.

    Raises:
        LevelError: nothing weighs anything.
    """
    scores = rows.column("score").to_numpy()
    weights = rows.column("weight").to_numpy()
    above = np.cumsum(weights[::-1])[::-1]  # of this score and all higher ones
    total = int(above[0]) if len(above) else 0
    if total <= 0:
        raise LevelError("there are no documents with a score to make levels of")
    return tuple(int(scores[_place(above, share, total)]) for share in keep)


def _place(above: Integers, share: Fraction, total: int) -> int:
    """Return the last place from which on the weight is at least `share` of `total`."""
    least = -(-share.numerator * total // share.denominator)
    return max(0, int(np.searchsorted(-above, -least, "right")) - 1)


def contents_of(rows: pa.Table, borders: Sequence[int]) -> list[dict[str, int]]:
    """Return documents and weight of each level of one group."""
    level = np.searchsorted(np.array(borders, np.int64), rows.column("score").to_numpy(), "right")
    sums = [rows.column(name).to_numpy() for name in ("documents", "weight")]
    return [
        {"documents": int(sums[0][level == number].sum()), "weight": int(sums[1][level == number].sum())}
        for number in range(len(borders) + 1)
    ]


def card_of(levels: Levels, rows: pa.Table) -> dict[str, Any]:
    """Return what a manifest says of `levels`: borders and contents of each group."""
    names = rows.column("group").to_pylist()
    groups = {}
    for group, borders in levels.borders.items():
        mine = rows.filter(pa.array([name == group for name in names], pa.bool_()))
        groups[group] = {"borders": list(borders), "levels": contents_of(mine, borders)}
    return {"column": levels.column, "per": levels.per, "groups": groups}
