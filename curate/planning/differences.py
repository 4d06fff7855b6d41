"""What differs between two descriptions of configuration, in words: the field, its old value and its new one.

Descriptions are those of `curate.configuration.describe`, as they stand in manifests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Final

from transforms.canonical import canonical_json

LONGEST: Final = 60
"""Code points of a value that are shown."""

NAMED: Final = 3
"""Files that are named; the others are counted."""

_MISSING: Final = object()


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return what differs between what two manifests say of an operation."""
    if old.get("operation") != new.get("operation"):
        return [f"operation {show(old.get('operation'))} → {show(new.get('operation'))}"]
    if new.get("operation") != "documents":
        return list(_changes("", old, new))
    found = list(_changes("reader", old.get("reader"), new.get("reader")))
    return found + list(_steps(old.get("steps", []), new.get("steps", [])))


def _steps(old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    before, after = ([str(step["name"]) for step in steps] for steps in (old, new))
    for what, first, last, start, stop in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if what == "equal":
            for was, now in zip(old[first:last], new[start:stop], strict=True):
                yield from _changes(was["name"], was["transform"], now["transform"])
            continue
        yield from (f"step {step['name']} removed" for step in old[first:last])
        yield from (f"step {step['name']} added" for step in new[start:stop])


def _changes(where: str, old: Any, new: Any) -> Iterator[str]:
    """Yield what differs between two described values; `where` names them."""
    if old == new:
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        if "class" in old and old.get("class") == new.get("class"):
            yield from _class_changes(str(old["class"]), old, new)
            return
        if old.keys() == new.keys() == {"map"}:
            for name in sorted({*old["map"], *new["map"]}):
                yield from _changes(
                    f"{where}[{name!r}]", old["map"].get(name, _MISSING), new["map"].get(name, _MISSING)
                )
            return
        if old.keys() == new.keys() == {"set"}:
            yield from _set_changes(where, old["set"], new["set"])
            return
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from _changes(f"{where}[{number}]", before, after)
        return
    yield f"{where} {show(old)} → {show(new)}"


def _class_changes(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    if old.get("version") != new.get("version"):
        yield f"{name}.version {show(old.get('version'))} → {show(new.get('version'))}"
    for library in sorted({*old.get("libraries", {}), *new.get("libraries", {})}):
        before, after = (side.get("libraries", {}).get(library) for side in (old, new))
        if before != after:
            yield f"library {library} {before} → {after}"
    for field in dict.fromkeys((*old.get("fields", {}), *new.get("fields", {}))):
        yield from _changes(
            f"{name}.{field}", old.get("fields", {}).get(field, _MISSING), new.get("fields", {}).get(field, _MISSING)
        )


def _set_changes(where: str, old: Sequence[Any], new: Sequence[Any]) -> Iterator[str]:
    gone = [show(value) for value in old if value not in new]
    come = [show(value) for value in new if value not in old]
    yield f"{where} " + ", ".join([*(f"without {value}" for value in gone), *(f"with {value}" for value in come)])


def show(value: Any) -> str:
    """Return a described value in words, shortened."""
    if value is _MISSING or value is None:
        return "not there" if value is _MISSING else "None"
    if isinstance(value, str):
        return _short(value if value and " " not in value else repr(value))
    if isinstance(value, Mapping):
        if len(value) == 1:
            ((kind, inner),) = value.items()
            if kind in ("decimal", "ratio", "enum", "type"):
                return _short(str(inner))
            if kind in ("file", "hex"):
                return f"{kind} {str(inner)[:12]}"
        if "class" in value:
            return str(value["class"])
    return _short(canonical_json(value))


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def input_changes(old: Mapping[str, str], new: Mapping[str, str | None]) -> list[str]:
    """Return what differs between the files of two inputs, path → fingerprint; None is a file that is not hashed."""
    added, removed = sorted(new.keys() - old.keys()), sorted(old.keys() - new.keys())
    changed = sorted(path for path in old.keys() & new.keys() if new[path] is not None and old[path] != new[path])
    gone = {old[path]: path for path in reversed(removed)}
    renamed = [(gone[print_], path) for path in added if (print_ := new[path]) is not None and print_ in gone]
    moved = {path for pair in renamed for path in pair}
    parts = [
        _files("added", [path for path in added if path not in moved]),
        _files("changed", changed),
        _files("removed", [path for path in removed if path not in moved]),
        _files("renamed", [f"{before} → {after}" for before, after in renamed]),
    ]
    said = [part for part in parts if part]
    return ["input: " + ", ".join(said)] if said else []


def _files(what: str, names: Sequence[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return f"{len(names):,} {'file' if len(names) == 1 else 'files'} {what} ({', '.join(names[:NAMED])}{more})"
