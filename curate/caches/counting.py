"""What is counted of a cache's tokens: which ids of the vocabulary stand in it, and its longest documents."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from curate.accounting.statistics import Statistics
from transforms.token_marks import mark_used

LONGEST: Final = 8
"""So many of the longest documents are named."""

_HIGH: Final = (1 << 64) - 1


def used_ids(tokens: npt.NDArray[Any]) -> Statistics:
    """Return the leaf of the ids in `tokens`: a set of numbers."""
    there = np.zeros(int(tokens.max()) + 1 if len(tokens) else 0, np.bool_)
    mark_used(tokens, there)
    return {"bits": f"{int.from_bytes(np.packbits(there, bitorder='little').tobytes(), 'little'):x}"}


def count_used(statistics: Statistics) -> int | None:
    """Return how many ids stand in the cache with these statistics, None where nobody counted."""
    leaf = statistics.get("used")
    return None if leaf is None else int(leaf["bits"], 16).bit_count()


def longest_documents(ids: npt.NDArray[np.uint8], lengths: npt.NDArray[np.int64]) -> Statistics:
    """Return the leaf of the longest documents: what sorts first is longest, then what has the lowest id."""
    order = np.argsort(-lengths, kind="stable")
    if len(order) > LONGEST:
        order = np.flatnonzero(lengths >= lengths[order[LONGEST - 1]])
    named = {f"{_HIGH - int(lengths[row]):016x}{ids[row].tobytes().hex()}": int(lengths[row]) for row in order.tolist()}
    return {"least": {name: {"tokens": named[name]} for name in sorted(named)[:LONGEST]}, "k": LONGEST}


def named_longest(statistics: Statistics) -> list[tuple[str, int]]:
    """Return id and tokens of the longest documents, the longest first; nothing where nobody counted."""
    entries = statistics.get("longest", {"least": {}})["least"]
    return [(name[16:], entries[name]["tokens"]) for name in sorted(entries)]
