"""Descriptions of transforms as manifests hold them, turned into what a person would write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Behaviour:
    """A class with the version of its behaviour and the libraries that reach its output."""

    name: str
    version: str
    libraries: tuple[str, ...]


def written(value: Any) -> str:
    """Return a description (`curate.configuration.describe`) as code: GopherQuality(min_words=50)."""
    if isinstance(value, Mapping):
        if "class" in value:
            fields = value.get("fields", {})
            return f"{value['class']}({', '.join(f'{name}={written(item)}' for name, item in fields.items())})"
        if len(value) == 1:
            ((kind, inner),) = value.items()
            if kind in ("decimal", "ratio", "type"):
                return str(inner)
            if kind in ("file", "hex"):
                return f"{kind} {inner}"
            if kind == "set":
                return f"{{{', '.join(map(written, inner))}}}"
        return f"{{{', '.join(f'{name}: {written(item)}' for name, item in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(written, value))}]"
    return repr(value) if isinstance(value, str) else str(value)


def decimal_of(value: Any) -> str:
    """Return a described number (a decimal, a ratio, an integer, a text) as text that `Fraction` reads."""
    if isinstance(value, Mapping):
        return str(next(iter(value.values())))
    return str(value)


def behaviours(value: Any) -> Iterator[Behaviour]:
    """Yield every class that `value` describes, outer ones first."""
    if isinstance(value, Mapping):
        if "class" in value:
            libraries = tuple(f"{name} {version}" for name, version in sorted(value.get("libraries", {}).items()))
            yield Behaviour(str(value["class"]), str(value.get("version", "–")), libraries)
        for name in value:
            yield from behaviours(value[name])
    elif isinstance(value, list):
        for item in value:
            yield from behaviours(item)


def seeds(value: Any, name: str = "") -> Iterator[tuple[str, int]]:
    """Yield the class and value of every field "seed" that `value` describes."""
    if isinstance(value, Mapping):
        name = str(value.get("class", name))
        for field, inner in value.items():
            if field == "seed" and type(inner) is int:
                yield name, inner
            yield from seeds(inner, name)
    elif isinstance(value, list):
        for item in value:
            yield from seeds(item, name)
