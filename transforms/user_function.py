"""A user's own functions as transforms: `KeepIf` decides about a row, `EditText` rewrites a text.

A function has no version of its own, so its behaviour is named by what the user states (`version=`) or else by a
digest of its source, of the values that it closes over, of constants and functions of its own module that it names,
and of what it declares as `uses`. Names imported from elsewhere are not followed: declare them, or state a version.
Invariants: the digest is made when the transform is made, and is the same on every machine and Python; a function that
raises makes `apply` raise, with the document's id in the error; the engine, which applies these transforms in a child
process, drops the document with that reason, and stops the run where too many raise. Cost: a Python call per row.
"""

from __future__ import annotations

import hashlib
import inspect
import re
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import pyarrow as pa

from transforms.outcome import Outcome, canonical_json, kept, require
from transforms.schema import set_columns

LAMBDA: Final = re.compile(r"\blambda\b", re.ASCII)


class UserFunctionError(RuntimeError):
    """A user's function raised, or returned something other than it must."""


@dataclass(frozen=True, slots=True, init=False)
class KeepIf:
    """Keeps the rows for which `function` is true; the others are dropped under `reason`.

    `function` gets the row as a dictionary of column names and Python values, and must depend on that alone.
    """

    function: Callable[[dict[str, Any]], bool] = field(compare=False)
    reason: str
    behaviour: str

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()
    isolated: ClassVar[bool] = True

    def __init__(
        self,
        function: Callable[[dict[str, Any]], bool],
        reason: str,
        version: int | str | None = None,
        uses: Sequence[object] = (),
    ) -> None:
        """State what to keep.

        Args:
            function: row -> True to keep.
            reason: why rows for which it is false are dropped.
            version: names the function's behaviour in keys; raise it whenever the behaviour changes. None: a digest
                of the source takes its place.
            uses: further functions and values on which the behaviour depends, for the digest.

        Raises:
            ValueError: there is no version, and the function has no digest.
        """
        object.__setattr__(self, "function", function)
        object.__setattr__(self, "reason", reason)
        object.__setattr__(self, "behaviour", behaviour(function, version, uses))

    def description(self) -> dict[str, Any]:
        """Return what names the behaviour, as canonical JSON values."""
        return {
            "class": "KeepIf",
            "version": self.version,
            "fields": {"function": self.behaviour, "reason": self.reason},
        }

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return `schema`."""
        return schema

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Keep the rows for which the function is true.

        Raises:
            UserFunctionError: the function raised, or returned something other than True or False.
        """
        verdicts = [self._verdict(row) for row in batch.to_pylist()]
        dropped = [
            {"id": batch.column("id")[row].as_py(), "transform": "KeepIf", "reason": self.reason}
            for row, verdict in enumerate(verdicts)
            if not verdict
        ]
        return kept(batch.filter(pa.array(verdicts, pa.bool_())) if dropped else batch, dropped=dropped)

    def _verdict(self, row: dict[str, Any]) -> bool:
        verdict = _call(self.function, row, row["id"])
        if not isinstance(verdict, bool):
            raise UserFunctionError(f"KeepIf({_name(self.function)}): must return True or False, returned {verdict!r}")
        return verdict


@dataclass(frozen=True, slots=True, init=False)
class EditText:
    """Replaces each text by what `function` makes of it, an edit under `reason`.

    Cut and inserted code points are exact: what lies between the common beginning and the common end of both texts.
    Lone surrogates in the result, which UTF-8 cannot hold, become U+FFFD.
    """

    function: Callable[[str], str] = field(compare=False)
    reason: str
    behaviour: str

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()
    isolated: ClassVar[bool] = True

    def __init__(
        self,
        function: Callable[[str], str],
        reason: str,
        version: int | str | None = None,
        uses: Sequence[object] = (),
    ) -> None:
        """State how to rewrite texts; arguments and errors as for `KeepIf`."""
        object.__setattr__(self, "function", function)
        object.__setattr__(self, "reason", reason)
        object.__setattr__(self, "behaviour", behaviour(function, version, uses))

    def description(self) -> dict[str, Any]:
        """Return what names the behaviour, as canonical JSON values."""
        return {
            "class": "EditText",
            "version": self.version,
            "fields": {"function": self.behaviour, "reason": self.reason},
        }

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return `schema`.

        Raises:
            SchemaError: there is no column `text`.
        """
        require(schema, "EditText", text=pa.large_string())
        return schema

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Replace each text.

        Raises:
            UserFunctionError: the function raised, or returned something other than a string.
        """
        before: list[Any] = batch.column("text").to_pylist()
        ids: list[Any] = batch.column("id").to_pylist()
        after = [self._edited(text, identity) for text, identity in zip(before, ids, strict=True)]
        edits = [
            {"id": identity, "transform": "EditText", "reason": self.reason, "cut": cut, "inserted": inserted}
            for identity, old, new in zip(ids, before, after, strict=True)
            for cut, inserted in [changed(old, new)]
            if cut or inserted
        ]
        if not edits:
            return kept(batch)
        return kept(set_columns(batch, {batch.schema.field("text"): pa.array(after, pa.large_string())}), edits=edits)

    def _edited(self, text: str, identity: bytes) -> str:
        result = _call(self.function, text, identity)
        if not isinstance(result, str):
            raise UserFunctionError(f"EditText({_name(self.function)}): must return a string, returned {result!r}")
        try:
            result.encode()
        except UnicodeEncodeError:
            return result.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return result


def changed(before: str, after: str) -> tuple[int, int]:
    """Return code points cut and inserted between the common beginning and the common end of two texts."""
    if before == after:
        return 0, 0
    shorter = min(len(before), len(after))
    beginning = _common(shorter, lambda length: before[:length] == after[:length])
    most = shorter - beginning
    end = _common(most, lambda length: before[len(before) - length :] == after[len(after) - length :])
    return len(before) - beginning - end, len(after) - beginning - end


def _common(longest: int, agree: Callable[[int], bool]) -> int:
    """Return the greatest length up to `longest` for which `agree` holds, given that it holds for all smaller ones."""
    low, high = 0, longest
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if agree(middle) else (low, middle - 1)
    return low


def behaviour(function: Callable[..., Any], version: int | str | None, uses: Sequence[object]) -> str:
    """Return what names the behaviour of `function` in keys: its stated version or a digest of its source.

    Raises:
        ValueError: there is no version, and no digest either: the source is not at hand, holds several lambdas that
            it cannot tell apart, or the function closes over something that has no description.
    """
    if version is not None:
        return f"{_name(function)} version {version}"
    parts: dict[str, Any] = {"function": _source(function), "uses": [_describe(value, function) for value in uses]}
    parts["context"] = _context(function, {id(function)}, function)
    return f"{_name(function)} {hashlib.blake2b(canonical_json(parts).encode(), digest_size=16).hexdigest()}"


def _context(function: Any, seen: set[int], root: Callable[..., Any]) -> dict[str, Any]:
    """Return what `function` closes over, and the constants and functions of its module that it names."""
    context: dict[str, Any] = {}
    code = getattr(function, "__code__", None)
    if code is None:
        return context
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        context[f"closure {name}"] = _describe(cell.cell_contents, root)
    for name in sorted(set(_names(code))):
        value = function.__globals__.get(name)
        if _is_plain(value) and name in function.__globals__:
            context[f"global {name}"] = _describe(value, root)
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
        raise ValueError(f"the source of {_name(function)} is not at hand: state its version, as version=1") from error
    if _name(function) == "<lambda>" and len(LAMBDA.findall(source)) > 1:
        raise ValueError(f"several lambdas stand together, so their source does not tell them apart; use def: {source}")
    return source


def _is_plain(value: object) -> bool:
    if isinstance(value, (tuple, list, set, frozenset)):
        return all(map(_is_plain, value))
    if isinstance(value, Mapping):
        return all(map(_is_plain, value.keys())) and all(map(_is_plain, value.values()))
    return value is None or isinstance(value, (bool, int, float, str, bytes, re.Pattern))


def _describe(value: Any, root: Callable[..., Any]) -> Any:
    """Return `value` as canonical JSON values that are the same on every machine."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (float, bytes)):
        return {type(value).__name__: repr(value)}
    if isinstance(value, re.Pattern):
        return {"pattern": repr(value.pattern), "flags": int(value.flags)}
    if isinstance(value, (tuple, list)):
        return [_describe(item, root) for item in value]
    if isinstance(value, (set, frozenset)):
        return {"set": sorted(canonical_json(_describe(item, root)) for item in value)}
    if isinstance(value, Mapping):
        items = ((canonical_json(_describe(key, root)), _describe(item, root)) for key, item in value.items())
        return {"mapping": dict(sorted(items))}
    if isinstance(value, (types.FunctionType, type)):
        context = _context(value, {id(value)}, root)
        return {"source": _source(value), "context": context}
    if isinstance(value, types.ModuleType):
        return {"module": value.__name__}
    raise ValueError(
        f"{_name(root)} depends on {value!r}, which has no description that is the same on every machine: "
        "state the function's version, as version=1"
    )


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _call(function: Callable[..., Any], argument: Any, identity: bytes) -> Any:
    try:
        return function(argument)
    except Exception as error:
        raise UserFunctionError(f"{_name(function)} raised for document {identity.hex()}: {error!r}") from error
