"""Canonical JSON: one text for one value, the same on every machine, for keys, digests and evidence."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final

_PLAIN: Final = frozenset({str, int, bool, type(None)})


def canonical_json(value: object) -> str:
    """Return canonical JSON: sorted keys, no spaces, no floats.

    Raises:
        TypeError: `value` holds a float (write decimals as strings) or something JSON has no form for.
    """
    _refuse_floats(value)
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _refuse_floats(value: object) -> None:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, (list, tuple)):
            inner: Iterable[object] = item
        elif isinstance(item, Mapping):
            for key in item:
                if not isinstance(key, str):
                    raise TypeError(f"canonical JSON has string keys only, got {key!r}")
            inner = item.values()
        elif isinstance(item, float):
            raise TypeError(f"canonical JSON holds no floats, got {item!r}: pass the decimal as a string")
        else:
            continue
        pending += [one for one in inner if type(one) not in _PLAIN]
