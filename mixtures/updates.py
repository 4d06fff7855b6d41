"""Batch sizes and lengths that change in the course of training: how a plan's steps are put together to updates.

A plan counts in steps of `batch` sequences of the longest length, whatever its phases ask for, so what a step reads,
and the unit of epochs (the chunk of the longest length), do not depend on a schedule. An update of the optimizer takes
as many steps as its phase's `batch` has; a phase of a shorter `length` reads each sequence as several of that length.

Invariants: the updates of a plan read its steps once, in order; no update mixes phases; rows of a shorter length equal
those that `Chunks(length)` would cut. Cost: one pass over the tokens of an update.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mixtures.rows import Cells, Mask

if TYPE_CHECKING:
    from mixtures.plan import Plan


class Update(NamedTuple):
    """What an update of the optimizer reads: steps `start` to `stop` - 1 of the plan, in rows of `length` tokens."""

    phase: str
    start: int
    stop: int
    length: int


def update_counts(plan: Plan) -> list[int]:
    """Return the number of updates of each segment. The last of a segment that was cut short may be smaller."""
    return [-(-segment.drawn_length // (segment.batch or plan.batch)) for segment in plan.segments]


def update_of(plan: Plan, number: int) -> Update:
    """Return what update `number` of `plan` reads.

    Raises:
        IndexError: the plan has no such update.
    """
    left = number
    for segment, count, start, stop in zip(
        plan.segments, update_counts(plan), plan.starts, plan.starts[1:], strict=False
    ):
        if 0 <= left < count:
            steps = (segment.batch or plan.batch) // plan.batch
            first = start + left * steps
            return Update(segment.phase, first, min(first + steps, stop), segment.length or plan.sequences.length)
        left -= count
    raise IndexError(f"update {number} is not in range({sum(update_counts(plan))})")


def cut_rows(
    tokens: Cells, segments: Cells, positions: Cells, mask: Mask, length: int
) -> tuple[Cells, Cells, Cells, Mask]:
    """Return the rows of a batch cut into rows of `length` tokens, each of which begins anew."""
    tokens, segments, positions = (cells.reshape(-1, length) for cells in (tokens, segments, positions))
    mask = mask.reshape(-1, length).copy()
    first, begun = segments[:, :1], positions[:, :1]
    positions = np.where(segments == first, positions - begun, positions) * (segments > 0)
    segments = np.where(segments > 0, segments - first + 1, 0)
    mask[:, 0] = False
    return tokens, segments.astype(np.int32), positions.astype(np.int32), mask
