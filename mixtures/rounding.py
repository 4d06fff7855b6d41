"""Rounding a table of shares to integers: rows (phases) add up exactly, columns (components) stay below their caps.

Each share is rounded down, then rows are filled by largest remainder (Hamilton's method): greater remainder first; of
equal remainders the earlier column, then the earlier row. Columns that are at their cap come before all others, as
their shares already add up to it. Where that alone cannot fill a row, sequences are moved along shortest alternating
paths (Ford and Fulkerson 1956): row → column at its cap → row that can draw another column instead. So a table is
found whenever one exists (integrality of flows), and without moves each count is its share rounded down or up.

Shares are integers in units of 2^-128 of a sequence: remainders that differ by less are equal. Cost: rows × columns ×
log for the rounding, about rows × columns for each move.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

UNIT: Final = 1 << 128
"""Units of a share in one sequence."""


@dataclass(slots=True)
class Table:
    """Counts by row and column while they are being found."""

    counts: list[list[int]]
    needs: list[int]
    """What each row still lacks."""
    room: list[int | None]
    """What each column can still give; None is without end."""
    open: list[list[bool]] = field(default_factory=list)
    """Where a row may draw a column at all."""


def round_table(
    shares: Sequence[Sequence[int]], totals: Sequence[int], caps: Sequence[int | None], full: Sequence[bool]
) -> Table:
    """Return integers near `shares`; `needs` of the result are positive where caps leave a row short.

    Args:
        shares: by row and column, in `UNIT`; 0 where the row must not draw the column.
        totals: what each row adds up to.
        caps: the most that each column adds up to, or None.
        full: columns whose shares add up to their cap.
    """
    counts = [[share // UNIT for share in row] for row in shares]
    needs = [total - sum(row) for total, row in zip(totals, counts, strict=True)]
    taken = [sum(column) for column in zip(*counts, strict=True)]
    room = [None if cap is None else cap - count for cap, count in zip(caps, taken, strict=True)]
    table = Table(counts, needs, room, [[share > 0 for share in row] for row in shares])
    _fill_by_remainder(table, shares, full)
    for row in range(len(needs)):
        while table.needs[row] > 0 and (path := _find_path(table, row)):
            _move_along(table, path)
    return table


def _fill_by_remainder(table: Table, shares: Sequence[Sequence[int]], full: Sequence[bool]) -> None:
    remainders = [
        (not full[column], -(share % UNIT), column, row)
        for row, shares_of_row in enumerate(shares)
        for column, share in enumerate(shares_of_row)
        if share % UNIT
    ]
    for _, _, column, row in sorted(remainders):
        room = table.room[column]
        if table.needs[row] > 0 and (room is None or room > 0):
            _give(table, row, column, 1)


def _give(table: Table, row: int, column: int, amount: int) -> None:
    table.counts[row][column] += amount
    table.needs[row] -= amount
    room = table.room[column]
    table.room[column] = None if room is None else room - amount


def _find_path(table: Table, start: int) -> list[tuple[int, int]] | None:
    """Return (row, column) steps from row `start` to a column with room, each row giving up the column before it."""
    before: dict[int, tuple[int, int]] = {}
    queue, seen = deque([start]), {start}
    columns: set[int] = set()
    while queue:
        row = queue.popleft()
        for column, allowed in enumerate(table.open[row]):
            if not allowed or column in columns:
                continue
            columns.add(column)
            if table.room[column] is None or table.room[column]:
                return [*_steps(before, row), (row, column)]
            for other in range(len(table.counts)):
                if other not in seen and table.counts[other][column] > 0:
                    seen.add(other)
                    before[other] = (row, column)
                    queue.append(other)
    return None


def _steps(before: dict[int, tuple[int, int]], row: int) -> list[tuple[int, int]]:
    steps: list[tuple[int, int]] = []
    while row in before:
        steps.append(before[row])
        row = before[row][0]
    return steps[::-1]


def _move_along(table: Table, path: list[tuple[int, int]]) -> None:
    """Let each row of `path` draw its column more often, and its successor that column less."""
    givers = [row for row, _ in path[1:]]
    amounts = [table.needs[path[0][0]]]
    amounts += [table.counts[giver][column] for giver, (_, column) in zip(givers, path, strict=False)]
    last = table.room[path[-1][1]]
    amount = min(amounts if last is None else [*amounts, last])
    for giver, (_, column) in zip(givers, path, strict=False):
        _give(table, giver, column, -amount)
    for row, column in path:
        _give(table, row, column, amount)
