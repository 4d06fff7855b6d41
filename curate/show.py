"""Showing configuration to people: transforms with the fields that are not at their default, graphs as trees."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from curate.graph import Apply, Dataset, Deduplicate, Keep, Read
from transforms.exact import decimal_text
from transforms.predicates import Both, Comparison, Either, IsIn, IsNull, Not, Predicate


def show(value: Any) -> str:
    """Return `value` as one would write it in a recipe, without what is at its default."""
    if isinstance(value, Fraction):
        return decimal_text(value)
    if isinstance(value, Predicate):
        return show_predicate(value)
    if isinstance(value, Path):
        return value.name
    if isinstance(value, (tuple, list)):
        inner = ", ".join(map(show, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = ", ".join(f"{field.name}={show(getattr(value, field.name))}" for field in _told(value))
        return f"{type(value).__name__}({fields})"
    if isinstance(value, Callable):  # type: ignore[arg-type]
        return str(getattr(value, "__name__", type(value).__name__))
    return repr(value)


def show_predicate(predicate: Predicate) -> str:
    """Return a condition as it is written in a recipe."""
    if isinstance(predicate, Comparison):
        return f"field({predicate.column!r}) {predicate.operator} {predicate.value!r}"
    if isinstance(predicate, IsIn):
        return f"field({predicate.column!r}).isin({predicate.values!r})"
    if isinstance(predicate, IsNull):
        return f"field({predicate.column!r}).is_null()"
    if isinstance(predicate, Not):
        return f"~({show_predicate(predicate.operand)})"
    if isinstance(predicate, (Both, Either)):
        sign = "&" if isinstance(predicate, Both) else "|"
        return f"({show_predicate(predicate.left)}) {sign} ({show_predicate(predicate.right)})"
    return repr(predicate)


def _told(value: Any) -> Iterator[dataclasses.Field[Any]]:
    for field in dataclasses.fields(value):
        default = field.default
        if default is dataclasses.MISSING and field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        derived = field.name == "behaviour" or not field.init
        if not derived and getattr(value, field.name) != default:
            yield field


def show_outputs(outputs: dict[str, Dataset]) -> str:
    """Return the trees of named datasets: what each is made from, in the order in which it happens."""
    return "\n".join(line for name, dataset in outputs.items() for line in [f"{name}:", *_lines(dataset, "  ")])


def _lines(dataset: Dataset, indent: str) -> Iterator[str]:
    operation = dataset.operation
    if isinstance(operation, Read):
        yield f"{indent}{operation.reader}"
    elif isinstance(operation, Apply):
        yield from _lines(operation.input, indent)
        yield f"{indent}→ {show(operation.transform)}"
    elif isinstance(operation, Keep):
        yield from _lines(operation.input, indent)
        yield f"{indent}→ keep {dataset.name!r}"
    else:
        yield f"{indent}{_deduplicate(operation)}"
        for parent in operation.inputs:
            yield f"{indent}  {parent.name}:"
            yield from _lines(parent, indent + "    ")


def _deduplicate(operation: Deduplicate) -> str:
    method = "equal texts" if operation.method is None else show(operation.method)
    within = f" within {operation.within}" if operation.within else ""
    limits = "".join(f", at most {share} of {source}" for source, share in operation.max_removed)
    return f"deduplicate {method}{within}, preferring {', '.join(operation.prefer)}{limits}"
