"""Which items of benchmarks a step found, counted: documents by benchmark, verdict and source, documents by item.

It is read from the evidence of `Decontaminate` (`items`: benchmark → verdict → numbers), of what it dropped, edited and
left (`near`: what it tagged or masked, and quotations). Counts add; an item has one entry per verdict, so there are at
most so many as the benchmarks have items.

Cost: a search in the evidence; where items were found, reading it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from curate.accounting.measures import Integers
from curate.accounting.statistics import Statistics, add
from transforms.contamination import Decontaminate
from transforms.contamination_findings import VERDICTS, numbers_in


def count_items(step: Statistics, sources: pa.Array, rows: pa.RecordBatch, places: Integers) -> None:
    """Add to `found` of `step` what `rows` of an outcome tell; row r is about the document places[r] of `sources`."""
    for row, evidence in _evidence(rows):
        source = sources[int(places[row])].as_py()
        for benchmark, verdict, numbers in _items(evidence):
            add(step, ["found", benchmark, "documents", verdict, source], 1)
            for number in numbers:
                add(step, ["found", benchmark, "items", verdict, str(number)], 1)


def _evidence(rows: pa.RecordBatch) -> Iterator[tuple[int, str]]:
    """Yield (row, evidence) of those that name items."""
    names = pc.match_substring(rows.column("transform"), Decontaminate.__name__)
    told = pc.and_(names, pc.fill_null(pc.match_substring(rows.column("evidence"), '"items":{'), False))
    for row in pc.indices_nonzero(told).to_pylist():
        yield row, rows.column("evidence")[row].as_py()


def _items(evidence: str) -> list[tuple[str, str, list[int]]]:
    """Return (benchmark, verdict, numbers); nothing where a step of another's making writes something else there."""
    try:
        named = json.loads(evidence)["items"]
        return [
            (str(benchmark), verdict, numbers_in(verdicts[verdict]))
            for benchmark, verdicts in named.items()
            for verdict in VERDICTS
            if verdict in verdicts
        ]
    except (ValueError, KeyError, TypeError, AttributeError):
        return []
