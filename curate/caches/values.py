"""Tokens of caches by what their documents are: by source, language, topic, licence and columns of levels.

A plan draws sequences of whole caches; with these counts a report says what is read of each language without a second
pass over texts. Of each cache and column the `MOST` values with the lowest digest of their name are counted, each
exactly and whatever the cut into shards and batches; `all` has what all documents have together.

Cost: a dictionary encoding per column and `ROWS` documents; memory: eight times `MOST` entries per cache and column.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curate.accounting.attributes import NAME_LENGTH
from curate.accounting.measures import Coded, coded, combined
from curate.accounting.statistics import Statistics, least, lowest

COLUMNS: Final = ("source", "language", "topic", "licence")
LEVEL: Final = "_level"
LEVELS: Final = 4
"""Columns of levels that are counted, the first in the order of their names."""

MOST: Final = 256
ROWS: Final = 1 << 14
"""Documents counted at a time; changes no count."""

INTEGERS: Final = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")

Integers = npt.NDArray[np.int64]


def columns_in(schema: Sequence[Sequence[Any]]) -> tuple[str, ...]:
    """Return the columns by whose values tokens are counted; `schema` is that of a manifest."""
    types = {str(column[0]): str(column[1]) for column in schema}
    levels = sorted(name for name, kind in types.items() if name.endswith(LEVEL) and kind in INTEGERS)
    return (*(name for name in COLUMNS if types.get(name) == "string"), *levels[:LEVELS])


class Values:
    """Documents and tokens of one shard by cell, column and value."""

    def __init__(self, columns: Sequence[str]) -> None:
        self.columns = columns
        self.waiting: list[tuple[pa.RecordBatch, Integers, Integers]] = []
        self.rows = 0
        self.found: dict[tuple[int, str], _Column] = {}

    def add(self, batch: pa.RecordBatch, cells: Integers, lengths: Integers) -> None:
        """Count the documents of `batch`, of which these are the numbers of the cells and the tokens."""
        self.waiting.append((batch.select(list(self.columns)), cells, lengths))
        self.rows += batch.num_rows
        if self.rows >= ROWS:
            self._count()

    def _count(self) -> None:
        if not self.waiting:
            return
        batches, cells, lengths = zip(*self.waiting, strict=True)
        table, tokens = pa.Table.from_batches(batches), np.concatenate(lengths)
        places, codes = np.unique(np.concatenate(cells), return_inverse=True)
        for name in self.columns:
            values = coded(pa.concat_arrays(table.column(name).chunks))
            pairs = combined(Coded(places.tolist(), codes), values)
            amounts = zip(pairs.values, pairs.counts(), pairs.counts(tokens), strict=True)
            for (cell, value), *counts in amounts:
                self.found.setdefault((cell, name), _Column()).add(value, counts)
        for column in self.found.values():
            column.forget()
        self.waiting, self.rows = [], 0

    def statistics(self) -> dict[int, Statistics]:
        """Return cell → column → what is counted."""
        self._count()
        told: dict[int, Statistics] = {}
        for (cell, name), column in self.found.items():
            told.setdefault(cell, {})[name] = column.statistics()
        return told


class _Column:
    """Documents and tokens of one cell by the values of one column, of all, and of those that have none."""

    def __init__(self) -> None:
        self.values: dict[str, list[int]] = {}
        self.all, self.without = [0, 0], [0, 0]

    def add(self, value: object, counts: Sequence[int]) -> None:
        name = None if value is None else str(value)[:NAME_LENGTH]
        for sums in (self.all, self.without if name is None else self.values.setdefault(name, [0, 0])):
            sums[0], sums[1] = sums[0] + counts[0], sums[1] + counts[1]

    def forget(self) -> None:
        if len(self.values) > 8 * MOST:  # one that is not among the lowest now never will be
            self.values = {name: self.values[name] for name in lowest(self.values, MOST)}

    def statistics(self) -> Statistics:
        told = {"all": _told(self.all), "values": least({n: _told(c) for n, c in self.values.items()}, MOST)}
        return {**told, **({"without": _told(self.without)} if self.without[0] else {})}


def _told(counts: Sequence[int]) -> Statistics:
    return {"documents": counts[0], "tokens": counts[1]}
