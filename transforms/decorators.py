"""Decorators that make transforms of functions, under the functions' names:

    @keep_if("too few letters", version=1)
    def mostly_letters(row):
        return 2 * sum(map(str.isalpha, row["text"])) >= len(row["text"])

    @edit_text("footers cut", version=1)
    def without_footer(text):
        return text.removesuffix("All rights reserved.")

    @add_columns(version=1, words=pa.int64())
    def counted(row):
        return {"words": len(row["text"].split())}

    texts.apply(mostly_letters, without_footer, counted)

Each gives a transform (`KeepIf`, `EditText`, `AddColumns`) that ledgers and pages call by the function's name. Without
a version a digest of the source names the behaviour, see `transforms.behaviour`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from transforms.added_columns import AddColumns
from transforms.behaviour import function_name
from transforms.user_function import EditText, KeepIf


def keep_if(
    reason: str, *, version: int | str | None = None, uses: Sequence[object] = ()
) -> Callable[[Callable[[dict[str, Any]], bool]], KeepIf]:
    """Return a decorator: the function says of a row whether it is kept; others are dropped under `reason`."""
    return lambda function: KeepIf(function, reason, version, uses, function_name(function))


def edit_text(
    reason: str, *, version: int | str | None = None, uses: Sequence[object] = ()
) -> Callable[[Callable[[str], str]], EditText]:
    """Return a decorator: the function rewrites a text, an edit under `reason`."""
    return lambda function: EditText(function, reason, version, uses, function_name(function))


def add_columns(
    *, version: int | str | None = None, uses: Sequence[object] = (), **columns: pa.DataType
) -> Callable[[Callable[[dict[str, Any]], Mapping[str, Any]]], AddColumns]:
    """Return a decorator: the function gives the values of `columns`, name=type, for a row."""
    return lambda function: AddColumns(function, columns, version, uses, function_name(function))
