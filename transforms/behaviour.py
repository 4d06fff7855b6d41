"""What names a user's function in keys: a version that they state, or a digest of its source.

The digest is of the source, of the values that the function closes over, of constants and functions of its own module
that it names, and of what it declares as `uses`. Names imported from elsewhere are not followed. Invariants: the same
on every machine and Python. Cost: parsing none; reading the source file once.
"""

from __future__ import annotations

import hashlib
import inspect
import re
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from transforms.canonical import canonical_json

LAMBDA: Final = re.compile(r"\blambda\b", re.ASCII)


def behaviour(function: Callable[..., Any], version: int | str | None, uses: Sequence[object]) -> str:
    """Return what names the behaviour of `function` in keys: its stated version or a digest of its source.

    Raises:
        ValueError: there is no version, and no digest either: the source is not at hand, holds several lambdas that
            it cannot tell apart, or the function closes over something that has no description.
    """
    if version is not None:
        return f"{function_name(function)} version {version}"
    parts: dict[str, Any] = {"function": _source(function), "uses": [describe_value(value, function) for value in uses]}
    parts["context"] = _context(function, {id(function)}, function)
    return f"{function_name(function)} {hashlib.blake2b(canonical_json(parts).encode(), digest_size=16).hexdigest()}"


def _context(function: Any, seen: set[int], root: Callable[..., Any]) -> dict[str, Any]:
    """Return what `function` closes over, and the constants and functions of its module that it names."""
    context: dict[str, Any] = {}
    code = getattr(function, "__code__", None)
    if code is None:
        return context
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        context[f"closure {name}"] = describe_value(cell.cell_contents, root)
    for name in sorted(set(_names(code))):
        value = function.__globals__.get(name)
        if _is_plain(value) and name in function.__globals__:
            context[f"global {name}"] = describe_value(value, root)
        elif (
            isinstance(value, types.FunctionType) and value.__module__ == function.__module__ and id(value) not in seen
        ):
            seen.add(id(value))
            context[f"global {name}"] = {"function": _source(value), "context": _context(value, seen, root)}
    return context


def _names(code: types.CodeType) -> Iterable[str]:
    """Yield the global names and attributes that `code` and functions inside it mention."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _source(function: Callable[..., Any]) -> str:
    try:
        source = inspect.cleandoc(inspect.getsource(function))
    except (OSError, TypeError) as error:
        raise ValueError(
            f"the source of {function_name(function)} is not at hand: state its version, as version=1"
        ) from error
    if function_name(function) == "<lambda>" and len(LAMBDA.findall(source)) > 1:
        raise ValueError(f"several lambdas stand together, so their source does not tell them apart; use def: {source}")
    return source


def _is_plain(value: object) -> bool:
    if isinstance(value, (tuple, list, set, frozenset)):
        return all(map(_is_plain, value))
    if isinstance(value, Mapping):
        return all(map(_is_plain, value.keys())) and all(map(_is_plain, value.values()))
    return value is None or isinstance(value, (bool, int, float, str, bytes, re.Pattern))


def describe_value(value: Any, root: Callable[..., Any]) -> Any:
    """Return `value`, on which the behaviour of `root` depends, as canonical JSON values, the same on every machine.

    Raises:
        ValueError: there are none for it.
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (float, bytes)):
        return {type(value).__name__: repr(value)}
    if isinstance(value, re.Pattern):
        return {"pattern": repr(value.pattern), "flags": int(value.flags)}
    if isinstance(value, (tuple, list)):
        return [describe_value(item, root) for item in value]
    if isinstance(value, (set, frozenset)):
        return {"set": sorted(canonical_json(describe_value(item, root)) for item in value)}
    if isinstance(value, Mapping):
        items = ((canonical_json(describe_value(key, root)), describe_value(item, root)) for key, item in value.items())
        return {"mapping": dict(sorted(items))}
    if isinstance(value, (types.FunctionType, type)):
        context = _context(value, {id(value)}, root)
        return {"source": _source(value), "context": context}
    if isinstance(value, types.ModuleType):
        return {"module": value.__name__}
    raise ValueError(
        f"{function_name(root)} depends on {value!r}, which has no description that is the same on every machine: "
        "state the function's version, as version=1"
    )


def function_name(function: Callable[..., Any]) -> str:
    """Return the name of a function, or of the class of what is called like one."""
    return str(getattr(function, "__name__", type(function).__name__))
