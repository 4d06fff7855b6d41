"""What a step's rules say beyond what they drop: near misses, rules that fail the same documents, and how far from
their thresholds documents are.

Both are counts by source, transform and reason, so they add. The overlap of rules is known where the evidence of what
is dropped has `fails`, the list of all reasons (`Filter.all_reasons()`); it is counted as pairs: a document that fails
A, B and C counts under A-A, A-B, A-C, B-B, B-C and C-C, the two names of a pair in alphabetical order; one that fails A
only counts as `alone` too: it is what A drops and no other rule of the filter would.

Cost: a search in the evidence of what is dropped; of `MOST` reasons at most, 2,080 additions a document.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import combinations_with_replacement
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curate.accounting.measures import Coded, Integers, coded, combined
from curate.accounting.statistics import Statistics, add
from transforms.spread import NO_EVIDENCE, Spread

NONE: Final = "none"
"""Stands for documents without evidence."""

MOST: Final = 64
"""Reasons of one document that are paired, the first in alphabetical order."""


def count_near(node: Statistics, source: Coded, near: pa.RecordBatch) -> None:
    """Add to `node`, by source, how many documents each rule nearly dropped; `source` is that of the rows of `near`."""
    if not near.num_rows:
        return
    groups = combined(source, coded(near.column("transform")), coded(near.column("reason")))
    for (name, transform, reason), documents in zip(groups.values, groups.counts(), strict=True):
        add(node[name], ["near", transform, reason, "documents"], documents)


def count_overlap(node: Statistics, source: Coded, dropped: pa.RecordBatch) -> None:
    """Add to `node`, by source, the pairs of rules that documents of `dropped` fail, and those that fail one only."""
    evidence = dropped.column("evidence")
    told = pc.fill_null(pc.match_substring(evidence, '"fails":['), False)
    if not pc.any(told).as_py():
        return
    rows: Integers = np.flatnonzero(told.to_numpy(zero_copy_only=False))
    mine = dropped.take(pa.array(rows))
    groups = combined(source.take(rows), coded(mine.column("transform")), coded(mine.column("evidence")))
    for (name, transform, known), documents in zip(groups.values, groups.counts(), strict=True):
        reasons = _fails(known)
        for one, other in combinations_with_replacement(reasons, 2):
            add(node[name], ["overlap", transform, "pairs", one, other, "documents"], documents)
        if len(reasons) == 1:
            add(node[name], ["overlap", transform, "alone", reasons[0], "documents"], documents)


def count_spreads(step: Statistics, spreads: Sequence[Spread]) -> None:
    """Add to the node of a step how many documents lie how far from the threshold of each rule."""
    for spread in spreads:
        for place, documents in enumerate(spread.counts):
            if documents:
                name = NONE if place == NO_EVIDENCE else str(place)
                add(step, ["spread", spread.transform, spread.reason, spread.measure, spread.bound, name], documents)


def _fails(evidence: str) -> list[str]:
    """Return the reasons that `evidence` lists; none where `fails` is no list of strings, as a user may write it."""
    try:
        value: Any = json.loads(evidence)
    except ValueError:
        return []
    fails = value.get("fails") if isinstance(value, dict) else None
    if not isinstance(fails, list) or not all(isinstance(reason, str) for reason in fails):
        return []
    return sorted(set(fails))[:MOST]
