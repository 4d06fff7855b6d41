"""A user's own functions as transforms: `KeepIf` decides about a row, `EditText` rewrites a text.

A function has no version of its own, so its behaviour is named by what the user states (`version=`) or else by a
digest of its source, of the values that it closes over, of constants and functions of its own module that it names,
and of what it declares as `uses`. Names imported from elsewhere are not followed: declare them, or state a version.
Invariants: the digest is made when the transform is made, and is the same on every machine and Python; a function that
raises makes `apply` raise, with the document's id in the error; the engine, which applies these transforms in a child
process, drops the document with that reason, and stops the run where too many raise. Cost: a Python call per row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyarrow as pa

from transforms.behaviour import behaviour, function_name
from transforms.outcome import Outcome, kept, require
from transforms.schema import set_columns


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
    name: str

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()
    isolated: ClassVar[bool] = True

    def __init__(
        self,
        function: Callable[[dict[str, Any]], bool],
        reason: str,
        version: int | str | None = None,
        uses: Sequence[object] = (),
        name: str = "KeepIf",
    ) -> None:
        """State what to keep.

        Args:
            function: row -> True to keep.
            reason: why rows for which it is false are dropped.
            version: names the function's behaviour in keys; raise it whenever the behaviour changes. None: a digest
                of the source takes its place.
            uses: further functions and values on which the behaviour depends, for the digest.
            name: what ledgers and pages call the transform.

        Raises:
            ValueError: there is no version, and the function has no digest.
        """
        object.__setattr__(self, "function", function)
        object.__setattr__(self, "reason", reason)
        object.__setattr__(self, "behaviour", behaviour(function, version, uses))
        object.__setattr__(self, "name", name)

    def description(self) -> dict[str, Any]:
        """Return what names the behaviour, as canonical JSON values."""
        fields = {"function": self.behaviour, "reason": self.reason}
        named = {} if self.name == "KeepIf" else {"name": self.name}
        return {"class": "KeepIf", "version": self.version, "fields": fields | named}

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
            {"id": batch.column("id")[row].as_py(), "transform": self.name, "reason": self.reason}
            for row, verdict in enumerate(verdicts)
            if not verdict
        ]
        return kept(batch.filter(pa.array(verdicts, pa.bool_())) if dropped else batch, dropped=dropped)

    def _verdict(self, row: dict[str, Any]) -> bool:
        verdict = call(self.function, row, row["id"])
        if not isinstance(verdict, bool):
            raise UserFunctionError(
                f"KeepIf({function_name(self.function)}): must return True or False, returned {verdict!r}"
            )
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
    name: str

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()
    isolated: ClassVar[bool] = True

    def __init__(
        self,
        function: Callable[[str], str],
        reason: str,
        version: int | str | None = None,
        uses: Sequence[object] = (),
        name: str = "EditText",
    ) -> None:
        """State how to rewrite texts; arguments and errors as for `KeepIf`."""
        object.__setattr__(self, "function", function)
        object.__setattr__(self, "reason", reason)
        object.__setattr__(self, "behaviour", behaviour(function, version, uses))
        object.__setattr__(self, "name", name)

    def description(self) -> dict[str, Any]:
        """Return what names the behaviour, as canonical JSON values."""
        fields = {"function": self.behaviour, "reason": self.reason}
        named = {} if self.name == "EditText" else {"name": self.name}
        return {"class": "EditText", "version": self.version, "fields": fields | named}

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
            {"id": identity, "transform": self.name, "reason": self.reason, "cut": cut, "inserted": inserted}
            for identity, old, new in zip(ids, before, after, strict=True)
            for cut, inserted in [changed(old, new)]
            if cut or inserted
        ]
        if not edits:
            return kept(batch)
        return kept(set_columns(batch, {batch.schema.field("text"): pa.array(after, pa.large_string())}), edits=edits)

    def _edited(self, text: str, identity: bytes) -> str:
        result = call(self.function, text, identity)
        if not isinstance(result, str):
            raise UserFunctionError(
                f"EditText({function_name(self.function)}): must return a string, returned {result!r}"
            )
        return valid_text(result)


def valid_text(text: str) -> str:
    """Return `text` with lone surrogates, which UTF-8 cannot hold, replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


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


def call(function: Callable[..., Any], argument: Any, identity: bytes) -> Any:
    """Return what `function` makes of `argument`, the row or text of document `identity`.

    Raises:
        UserFunctionError: it raised.
    """
    try:
        return function(argument)
    except Exception as error:
        raise UserFunctionError(f"{function_name(function)} raised for document {identity.hex()}: {error!r}") from error
