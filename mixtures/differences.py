"""Where two JSON values differ, field by field. Lists of objects that have names are compared name by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that two values do not share; a side that lacks the field has None."""

    field: str
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        return f"{self.field}: {_show(self.ours)} ≠ {_show(self.theirs)}"


def differences(ours: Any, theirs: Any, field: str = "") -> Iterator[Difference]:
    """Yield what differs between `ours` and `theirs`, fields in alphabetical order, lists from the front."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in sorted({*ours, *theirs}):
            yield from differences(ours.get(name), theirs.get(name), f"{field}.{name}" if field else name)
    elif isinstance(ours, list) and isinstance(theirs, list):
        if _named(ours) and _named(theirs):
            left_by_name, right_by_name = ({item["name"]: item for item in items} for items in (ours, theirs))
            yield from differences(left_by_name, right_by_name, field)
        else:
            length = max(len(ours), len(theirs))
            for at, (left, right) in enumerate(zip(_padded(ours, length), _padded(theirs, length), strict=True)):
                yield from differences(left, right, f"{field}[{at}]")
    elif ours != theirs:
        yield Difference(field, ours, theirs)


def _named(items: list[Any]) -> bool:
    return all(isinstance(item, dict) and "name" in item for item in items)


def _padded(items: list[Any], length: int) -> list[Any]:
    return items + [None] * (length - len(items))


def _show(value: Any) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
