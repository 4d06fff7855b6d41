"""What tests of readers share: reading bytes as a format, and small archives."""

from __future__ import annotations

import gzip
import io
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

from curate.readers.events import End, Event, Gap, Read, Refused, Structural, totals
from curate.readers.forms import Form
from curate.readers.open import read_stream
from curate.readers.reader import Column, Reader, declared_columns

WARCS = Path(__file__).parents[2].parent / "shared" / "data" / "warc"
ROWS = ("jsonl", "csv", "tar")


def reader_of(
    kind: str, form: Form | None = None, columns: dict[str, str | Column] | None = None, **more: Any
) -> Reader:
    pairs = declared_columns(columns, "text") if kind in ROWS else ()
    return Reader(kind, Path("."), "*", "s", pairs, form=form, **more)


def read_as(kind: str, data: bytes, name: str = "a", form: Form | None = None, **more: Any) -> list[Event]:
    """Return the events of `data`, but for its ends; that they tile it is checked."""
    events = list(read_stream(reader_of(kind, form, **more), io.BytesIO(data), name))
    check_tiling(events)
    return [event for event in events if not isinstance(event, End)]


def check_tiling(events: list[Event]) -> None:
    sums = totals(events)
    assert all(total == end for total, end in sums.values()), sums
    for place in sums:
        counted = [e for e in events if not isinstance(e, End) and e.place == place and getattr(e, "part", 0) == 0]
        ranges = [(e.offset, e.length) for e in counted if not isinstance(e, End)]
        assert all(a[0] + a[1] <= b[0] for a, b in pairwise(ranges)), ranges


def values(events: list[Event], *names: str) -> list[Any]:
    found = [tuple(event.values.get(name) for name in names) for event in events if isinstance(event, Read)]
    return [each[0] for each in found] if len(names) == 1 else found


def lost(events: list[Event]) -> list[str]:
    return [str(event.reason) for event in events if isinstance(event, (Refused, Gap))]


def kinds(events: list[Event]) -> list[str]:
    return [event.kind for event in events if isinstance(event, Structural)]


def gzipped(content: bytes) -> bytes:
    """Compress without the clock: test names and inputs are the same in every process."""
    return gzip.compress(content, mtime=0)


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Return `data` with a few bytes flipped, cut out, put in or cut off."""
    found = bytearray(data)
    for _ in range(chance.randrange(1, 5)):
        at = chance.randrange(len(found) or 1)
        match chance.randrange(5):
            case 0 | 1 if found:
                found[at] ^= 1 << chance.randrange(8)
            case 2:
                del found[at : at + chance.randrange(700)]
            case 3:
                found[at:at] = chance.randbytes(chance.randrange(40))
            case _ if chance.random() < 0.3:
                del found[max(at, 1) :]
    return bytes(found)
