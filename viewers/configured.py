"""Transforms as a stage's manifest configures them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def configured(value: Any, name: str) -> Iterator[Mapping[str, Any]]:
    """Yield the configurations of transforms of the class `name` in a configuration, within branches too."""
    if isinstance(value, Mapping):
        if value.get("class") == name:
            yield value
            return
        for inner in value.values():
            yield from configured(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from configured(inner, name)
