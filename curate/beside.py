"""Files that stand in a store beside `report.json`, each about the result that it names, hashed by itself alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from curate.formats import Format
from curate.store import Store, StoreError, check_self_digest, json_line, self_digested

Value = TypeVar("Value")


def write_beside(store: Store, file: str, form: Format, kind: str, value: Mapping[str, Any]) -> None:
    """Put `value` into `store` as `file`, in place of what is there, with its format, kind and digest."""
    store.put(file, json_line(self_digested({"format": form.stamp, "kind": kind, **value})))


def read_beside(
    store: Store, file: str, form: Format, key: str, parsed: Callable[[Mapping[str, Any]], Value]
) -> Value | None:
    """Return what `file` says of the result with this key, as `parsed` makes it; None where it says nothing.

    Raises:
        StoreError: the file is damaged.
        FormatError: it has a version that is not read.
    """
    if not store.exists(file):
        return None
    path = store.url(file)
    value = form.lift(check_self_digest(store.read_json(file), path), path)
    try:
        return parsed(value) if value["key"] == key else None
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{path} is not what it should be: {error}; {form.remedy}") from error
