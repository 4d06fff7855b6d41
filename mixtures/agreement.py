"""Up to which step two plans give the same batches, by the plans alone."""

from __future__ import annotations

from typing import Final

import numpy as np

from mixtures.plan import Plan

BLOCK: Final = 1 << 16
"""Sequences that are looked up at a time."""


def steps_in_common(plan: Plan, other: Plan) -> int:
    """Return how many steps from the first on read the same in both plans. Cost: .4 µs a sequence of the steps."""
    whole = ("batch", "sequences", "tokenizer", "padding", "vocabulary")
    if any(getattr(plan, name) != getattr(other, name) for name in whole):
        return 0
    first, second = _numbers(plan, other)
    length = min(plan.steps, other.steps) * plan.batch
    for start in range(0, length, BLOCK):
        sequences = np.arange(start, min(start + BLOCK, length), dtype=np.int64)
        ours, theirs = plan.draw(sequences), other.draw(sequences)
        differ = first[ours.components] != second[theirs.components]
        differ |= (ours.epochs != theirs.epochs) | (ours.chunks != theirs.chunks)
        if differ.any():
            return int(sequences[differ.argmax()]) // plan.batch
    return length // plan.batch


def _numbers(plan: Plan, other: Plan) -> tuple[np.ndarray, np.ndarray]:
    """Return per component of each plan a number: equal for the same tokens, cut, packed and shown the same way."""
    seen: dict[tuple[object, ...], int] = {}
    found = []
    for each in (plan, other):
        keys = [
            (part.name, part.cache, part.tokens, part.packing, str(each.views.get(part.name)))
            for part in each.components
        ]
        found.append(np.array([seen.setdefault(key, len(seen)) for key in keys], np.int64))
    return found[0], found[1]
