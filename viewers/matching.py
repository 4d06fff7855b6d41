"""Which rows of two tables with one caption belong together, and which of their cells differ.

A row is found again by its first cells: as many as it takes to tell all rows of both tables apart. Keys of stages are
left out of what is compared by name, for they change with everything before a stage. Cost: linear in the cells, times
the columns in the worst case.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from viewers.table_data import GROUP, Value

_STAGE_KEY: Final = re.compile(r" \([0-9a-f]{16}\)")


@dataclass(frozen=True, slots=True)
class Change:
    """A cell that differs: its row and column, and what either side has, None where it does not have the row."""

    row: str
    column: str
    here: Value | None
    there: Value | None


def anonymous(text: str) -> str:
    """Return `text` without the keys of stages in it."""
    return _STAGE_KEY.sub("", text)


def by_name(tables: Sequence[Mapping[str, Any]]) -> dict[tuple[str, int], Mapping[str, Any]]:
    """Return tables by caption without keys; those of one caption are numbered in their order."""
    seen: Counter[str] = Counter()
    found = {}
    for table in tables:
        caption = anonymous(table["caption"])
        found[caption, seen[caption]] = table
        seen[caption] += 1
    return found


def changes(here: Mapping[str, Any], there: Mapping[str, Any]) -> Iterator[Change]:
    """Yield what differs between two tables, in the order of `here`, then what only `there` has."""
    width = _width(here, there)
    left, right = _rows(here, width), _rows(there, width)
    columns = [name for name in here["columns"] if name in there["columns"]]
    for key in dict.fromkeys([*left, *right]):
        mine, other = left.get(key), right.get(key)
        name = " · ".join(part for part in key[0] if part)
        if mine is not None and other is not None:
            for column in columns:
                if anonymous(str(mine[column])) != anonymous(str(other[column])):
                    yield Change(name, column, mine[column], other[column])
        elif mine is not None:
            yield from (Change(name, column, mine[column], None) for column in here["columns"][width:])
        elif other is not None:
            yield from (Change(name, column, None, other[column]) for column in there["columns"][width:])


def _width(here: Mapping[str, Any], there: Mapping[str, Any]) -> int:
    """Return of how many first cells the name of a row is made."""
    least = 2 if GROUP in (here["columns"][:1] + there["columns"][:1]) else 1
    most = max(least, min(len(here["columns"]), len(there["columns"])))
    if here["columns"][:most] != there["columns"][:most]:
        return least
    for width in range(least, most):
        if all(len({_key(row, width) for row in table["rows"]}) == len(table["rows"]) for table in (here, there)):
            return width
    return least


def _key(row: Sequence[Value], width: int) -> tuple[str, ...]:
    return tuple(anonymous(str(cell)) for cell in row[:width])


def _rows(table: Mapping[str, Any], width: int) -> dict[tuple[tuple[str, ...], int], dict[str, Value]]:
    """Return rows by their name; those of one name are numbered in their order."""
    seen: Counter[tuple[str, ...]] = Counter()
    found = {}
    for row in table["rows"]:
        key = _key(row, width)
        found[key, seen[key]] = dict(zip(table["columns"], row, strict=True))
        seen[key] += 1
    return found
