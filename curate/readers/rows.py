"""From a row given as a mapping to an event: declared columns by type, everything else into `extra`.

Nothing that a row holds raises: a value of another type than declared stays in `extra`, a row without text is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any, Final

from curate.readers.events import Event, Read, Refused
from curate.readers.reader import Reader
from transforms.canonical import canonical_json

REPLACEMENT: Final = "\ufffd"
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND: Final = timedelta(milliseconds=1)
EARLIEST: Final = (datetime(1, 1, 1, tzinfo=UTC) - EPOCH) // MILLISECOND
LATEST: Final = (datetime(9999, 12, 31, tzinfo=UTC) - EPOCH) // MILLISECOND

_TIME: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?(?:Z|([+-])([0-9]{2}):?([0-9]{2}))?)?"
)


_PLAIN: Final = {str, int, bool, type(None)}
_encode: Final = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode  # as canonical_json


class Number(str):
    """A fraction as its digits: it fits a declared "string", but is no text."""

    __slots__ = ()


def row_event(value: Mapping[str, Any], reader: Reader, place: str, offset: int, length: int) -> Event:
    """Return the event of one row."""
    rest = dict(value)
    for name in reader.ignore:
        rest.pop(name, None)
    given, values = rest.copy(), dict[str, Any]()
    key: bytes | None = None
    replaced = 0
    for ours, column in reader.columns:
        item = given.get(column.name)
        if item is None:
            rest.pop(column.name, None)
            continue
        found = _key(item) if ours == "key" else _fitting(item, column.type)
        if found is None or (ours == "text" and isinstance(item, Number)):
            continue  # it stays in rest, and so in extra
        rest.pop(column.name, None)
        if ours == "key":
            key = found
        elif isinstance(found, str):
            values[ours], count = mend(found)
            replaced += count
        else:
            values[ours] = found
    if values.get("text") is None:
        return Refused(place, offset, length, "no text", f"no string in {dict(reader.columns)['text'].name!r}", key)
    values["extra"] = None
    if rest:
        flat = _PLAIN.issuperset(map(type, rest.values()))
        values["extra"], count = mend(_encode(rest) if flat else canonical_json(canonical_value(rest)))
        replaced += count
    return Read(place, offset, length, 0, key, values, replaced)


def _key(item: Any) -> bytes | None:
    if isinstance(item, bool) or not isinstance(item, (str, int)):
        return None
    return str(item).encode("utf-8", "surrogatepass")


def _fitting(item: Any, kind: str) -> Any:
    """Return `item` as a value of the declared type, None when it is none."""
    if kind == "string" and isinstance(item, (str, float)):
        return str(item) if isinstance(item, str) else repr(item)
    if kind == "int64":
        fits = isinstance(item, int) and not isinstance(item, bool) and -(2**63) <= item < 2**63
        return item if fits else None
    if kind == "timestamp":
        return milliseconds(item)
    return item if kind == "bool" and isinstance(item, bool) else None


def milliseconds(item: Any) -> int | None:
    """Return milliseconds since 1970 of a number of them, a date, a time or an ISO 8601 string; UTC where none says."""
    if isinstance(item, bool):
        return None
    if isinstance(item, int):
        return item if EARLIEST <= item <= LATEST else None
    if isinstance(item, str):
        return _parsed(item)
    if isinstance(item, datetime):
        moment: datetime = item if item.tzinfo is not None else item.replace(tzinfo=UTC)
        return (moment - EPOCH) // MILLISECOND
    if isinstance(item, date):
        return (datetime(item.year, item.month, item.day, tzinfo=UTC) - EPOCH) // MILLISECOND
    return None


def _parsed(text: str) -> int | None:
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second, fraction, sign, hours, minutes = found.groups()
    try:
        zone = timezone(timedelta(hours=int(hours or 0), minutes=int(minutes or 0)) * (-1 if sign == "-" else 1))
        whole = datetime(
            int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), tzinfo=zone
        )
        return (whole - EPOCH) // MILLISECOND + int((fraction or "0").ljust(3, "0")[:3])
    except ValueError:  # no such day or time
        return None


def mend(text: str) -> tuple[str, int]:
    """Return `text` with lone surrogates, which no UTF-8 can hold, replaced by U+FFFD, and how many there were."""
    if text.isascii():
        return text, 0
    try:
        text.encode()
    except UnicodeEncodeError:
        lone = [character for character in text if "\ud800" <= character <= "\udfff"]
        return "".join(REPLACEMENT if "\ud800" <= character <= "\udfff" else character for character in text), len(lone)
    return text, 0


def canonical_value(value: Any) -> Any:
    """Return `value` as canonical JSON can hold it: fractions and what JSON has no form for as strings."""
    if isinstance(value, Mapping):
        return {str(name): canonical_value(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [canonical_value(item) for item in value]
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, bytes):
        return value.hex()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return str(value)
