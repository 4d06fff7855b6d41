"""Describing configuration: a frozen dataclass becomes the canonical JSON that its key digests.

A description holds the class name, its behaviour `version`, the exact versions of the libraries that it declares,
and its fields. A path stands for the content of its file: the key has the file's digest, never its name.
"""

from __future__ import annotations

import dataclasses
import enum
import sys
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any, Final

from curate.digests import digest_file
from transforms.canonical import canonical_json

KEYED_IF_GIVEN: Final = {"key": "if given"}
"""Metadata of a field that a later version added: at its default it is in no key, so that older keys stay."""


class ConfigurationError(ValueError):
    """A recipe that cannot be run as written."""


def describe(value: Any) -> Any:
    """Return `value` as canonical JSON values (no floats, no paths, no addresses in memory).

    Raises:
        ConfigurationError: a file is missing, or a value has no description that is the same on every machine.
    """
    if value is None or (isinstance(value, (bool, int, str)) and not isinstance(value, enum.Enum)):
        return value
    if isinstance(value, enum.Enum):
        return {"enum": f"{type(value).__name__}.{value.name}"}
    if isinstance(value, (float, Decimal)):
        return {"decimal": str(value)}
    if isinstance(value, Fraction):
        return {"ratio": f"{value.numerator}/{value.denominator}"}
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if isinstance(value, Path):
        return {"file": _file_digest(value)}
    if _is_arrow_type(value):
        from curate.content_digests import logical_type

        return {"type": logical_type(value)}
    if isinstance(value, (tuple, list)):
        return [describe(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return {"set": sorted((describe(item) for item in value), key=canonical_json)}
    if isinstance(value, Mapping):
        return {"map": _describe_mapping(value)}
    if hasattr(value, "description"):
        return value.description()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _describe_dataclass(value)
    raise ConfigurationError(
        f"{value!r} ({type(value).__name__}) cannot be part of a key: use numbers, strings, paths, tuples or frozen "
        "dataclasses; for a function give it a version, as KeepIf(function, version=1)"
    )


def _is_arrow_type(value: Any) -> bool:
    arrow = sys.modules.get("pyarrow")  # whoever has made such a value has imported it
    return arrow is not None and isinstance(value, arrow.DataType)


def _describe_mapping(value: Mapping[Any, Any]) -> dict[str, Any]:
    for name in value:
        if not isinstance(name, str):
            raise ConfigurationError(f"{name!r} cannot be part of a key as the key of a mapping: use strings there")
    return {name: describe(item) for name, item in value.items()}


def _describe_dataclass(value: Any) -> dict[str, Any]:
    described: dict[str, Any] = {"class": type(value).__name__}
    if isinstance(version := getattr(type(value), "version", None), int):  # of the class: a field may be called so too
        described["version"] = version
    if libraries := getattr(value, "libraries", ()):
        described["libraries"] = {library: installed_version(library) for library in libraries}
    fields = {
        field.name: describe(getattr(value, field.name))
        for field in dataclasses.fields(value)
        if _is_keyed(field, value)
    }
    return {**described, "fields": fields}


def _is_keyed(field: dataclasses.Field[Any], value: Any) -> bool:
    keyed = field.metadata.get("key", True)
    return getattr(value, field.name) != field.default if keyed == "if given" else bool(keyed)


def _file_digest(path: Path) -> str:
    try:
        return digest_file(path)
    except OSError as error:
        raise ConfigurationError(
            f"{path}: {error.strerror}; a transform names this file, and its key needs it"
        ) from error
