"""Where URLs point, in a form that entries of lists can be compared with: "host/path?query".

A place is the normal form of a URL (`transforms.urls`) without scheme, user, port and fragment: "www.example.org/a/b".
What a list may name of it are *spans* of the place: the host and each ending of it at a full stop, so that
"example.org" names "www.example.org" and never "notexample.org"; and the host with each beginning of the path at a
slash, so that "example.org/a" names "example.org/a/b" and never "example.org/ab". Paths are looked for under the host
with and without a leading "www.". An IP address has no endings.

Invariants: equal URLs (in normal form) have equal places; at most `MOST_PATHS` beginnings of a path and the last
`MOST_HOST` bytes of a host are looked at, whatever a URL holds. Cost: some .5 µs for a plain URL, 10 µs for one with
escapes, a query or capitals in its host.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transforms.kernels import kernel
from transforms.segmentation import Bytes, Int, Positions, text_buffers
from transforms.urls import URLForm

MOST_HOST: Final = 253
"""Longest name in the domain name system, in bytes (RFC 1035, section 2.3.4)."""

MOST_PATHS: Final = 32
"""Beginnings of a path that are looked at."""

LABEL: Final = r"[0-9_a-z-]+"
HOST: Final = rf"{LABEL}(?:\.{LABEL})*"
_SEGMENT: Final = r"/(?:[!$&()*+,0-:=@A-Z_a-z~-][!$&()*+,.0-:=@A-Z_a-z~-]*)?"
_PLAIN: Final = rf"^https?://{HOST}(?:{_SEGMENT})+$"
"""URLs whose place is what follows "://", by RE2: no port, escape, query, session or segment that begins with a dot."""

_FORM: Final = URLForm()
_SLASH: Final = np.uint8(ord("/"))
_QUESTION: Final = np.uint8(ord("?"))
_DOT: Final = np.uint8(ord("."))
_BRACKET: Final = np.uint8(ord("["))
_W: Final = np.uint8(ord("w"))
_ZERO: Final = np.uint8(ord("0"))
_NINE: Final = np.uint8(ord("9"))


def place_of(url: str) -> str:
    """Return the place of `url`, "" where it has no host. One without a scheme is taken for http."""
    form = _FORM.of(url if "://" in url else f"http://{url.lstrip('/')}")
    rest = form.partition("://")[2]
    authority, slash, path = rest.partition("/")
    host = authority.rpartition("@")[2]
    name, colon, port = host.rpartition(":")
    if colon and not set(port) - set("0123456789"):
        host = name
    return f"{host[-MOST_HOST:]}{slash}{path.partition('#')[0]}" if host and slash else ""


def places_of(urls: pa.LargeStringArray) -> pa.LargeStringArray:
    """Return the places of `urls`; "" where there is no URL or no host in it."""
    given = pc.fill_null(urls, "")
    places = pc.replace_substring_regex(given, r"^https?://", "")
    rows = pc.indices_nonzero(pc.invert(_is_plain(given, places))).to_numpy()
    if not len(rows):
        return places
    others = [place_of(url) if url else "" for url in given.take(pa.array(rows)).to_pylist()]
    mask = np.zeros(len(given), np.bool_)
    mask[rows] = True
    return pc.replace_with_mask(places, pa.array(mask), pa.array(others, pa.large_string()))


def _is_plain(urls: pa.LargeStringArray, places: pa.LargeStringArray) -> pa.BooleanArray:
    return pc.and_(pc.match_substring_regex(urls, _PLAIN), pc.less_equal(pc.find_substring(places, "/"), MOST_HOST))


def hosts_of(places: pa.LargeStringArray) -> pa.LargeStringArray:
    """Return the hosts of `places`."""
    return pc.replace_substring_regex(places, "[/?].*$", "")


def spans_of(places: pa.LargeStringArray) -> tuple[Bytes, Positions, Positions, Positions]:
    """Return the bytes of `places`, and row, start and end of each span that a list may name, broadest first.

    A place ends in "/" where its path is empty; hosts stand before paths.
    """
    data, bounds = text_buffers(places)
    counts = np.zeros(len(bounds) - 1, np.int64)
    empty = np.zeros(0, np.int64)
    _spans(data, bounds, counts, empty, empty, empty)
    total = int(counts.sum())
    rows, starts, ends = (np.empty(total, np.int64) for _ in range(3))
    _spans(data, bounds, counts, rows, starts, ends)
    return data, rows, starts, ends


@kernel
def _host_end(data: Bytes, start: Int, end: Int) -> Int:
    place = start
    while place < end and data[place] != _SLASH and data[place] != _QUESTION:
        place += 1
    return place


@kernel
def _is_address(data: Bytes, start: Int, end: Int) -> bool:
    if start < end and data[start] == _BRACKET:
        return True
    place = end
    while place > start and _ZERO <= data[place - 1] <= _NINE:
        place -= 1
    return bool(place < end and (place == start or data[place - 1] == _DOT))


@kernel
def _begins_with_www(data: Bytes, start: Int, end: Int) -> bool:
    if start + 4 >= end or data[start + 3] != _DOT:
        return False
    return bool(data[start] == _W and data[start + 1] == _W and data[start + 2] == _W)


@kernel
def _spans(
    data: Bytes, bounds: Positions, counts: Positions, rows: Positions, starts: Positions, ends: Positions
) -> None:
    """Count the spans of each place, or fill in rows, starts and ends where these have room."""
    done: Int = 0
    fills = len(rows) > 0
    for row in range(len(counts)):
        start, end = bounds[row], bounds[row + 1]
        host_end = _host_end(data, start, end)
        if host_end == start:
            counts[row] = 0
            continue
        first = done
        place = host_end - 1 if not _is_address(data, start, host_end) else start
        while place >= start:
            if place == start or data[place - 1] == _DOT:
                if fills:
                    rows[done], starts[done], ends[done] = row, place, host_end
                done += 1
            place -= 1
        done = _path_spans(data, row, start, host_end, end, rows, starts, ends, done)
        if _begins_with_www(data, start, host_end):
            done = _path_spans(data, row, start + 4, host_end, end, rows, starts, ends, done)
        counts[row] = done - first


@kernel
def _path_spans(
    data: Bytes,
    row: Int,
    start: Int,
    host_end: Int,
    end: Int,
    rows: Positions,
    starts: Positions,
    ends: Positions,
    done: Int,
) -> Int:
    """Add the spans from `start` to each slash of the path, to its end, and to the end of the query."""
    paths, last, fills = 0, host_end, len(rows) > 0
    for place in range(host_end + 1, end + 1):
        stops = place == end or data[place] == _SLASH or data[place] == _QUESTION
        if not stops:
            continue
        if place - 1 > last and paths < MOST_PATHS:
            if fills:
                rows[done], starts[done], ends[done] = row, start, place
            done, paths = done + 1, paths + 1
        last = place
        if place < end and data[place] == _QUESTION:
            if fills:
                rows[done], starts[done], ends[done] = row, start, end
            return done + 1
    return done


def span_text(data: npt.NDArray[Any], start: int, end: int) -> str:
    """Return one span as text."""
    return bytes(data[start:end]).decode("utf-8", "replace")
