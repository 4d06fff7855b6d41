"""How large, deep and wordy a page's markup is, found without building a tree.

Extractors take time that grows with elements times depth, and libxml2 silently loses the text below its 255th level.
So a page is measured before one is asked: one pass over its bytes with a stack of open elements, in the manner of an
HTML parser: comments, raw text (script, style …), void elements, end tags that close what is open inside them, and
start tags that end the previous item, row, cell or paragraph. The depth may differ by a little from that of any one
parser; the bounds leave room for that.

Cost: linear in bytes, times the depth bound for end tags that close nothing; about .2 ms for a page of 100 kB.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from transforms.kernels import kernel

_OTHER: Final = 0
_VOID: Final = 1
_RAW: Final = 2
_SCOPE: Final = 3
_TABLE: Final = 4
_PARAGRAPH: Final = 5
_ITEM: Final = 6
_TERM: Final = 7
_SECTION: Final = 8  # thead, tbody, tfoot
_ROW: Final = 9
_CELL: Final = 10
_OPTION: Final = 11
_FOREIGN: Final = 12  # svg and math, where "/>" closes

_KINDS: Final = {
    _VOID: "area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr",
    _RAW: "script style textarea title xmp iframe noembed noframes",
    _SCOPE: "div ul ol dl blockquote section article main aside nav form select body header footer figure fieldset "
    "details button object center caption template",
    _TABLE: "table",
    _PARAGRAPH: "p",
    _ITEM: "li",
    _TERM: "dt dd",
    _SECTION: "thead tbody tfoot",
    _ROW: "tr",
    _CELL: "td th",
    _OPTION: "option optgroup",
    _FOREIGN: "svg math",
}
_NAME: Final = 8  # bytes of a name that tell elements apart


def _code(name: str) -> int:
    return int.from_bytes(name.encode()[:_NAME].ljust(_NAME, b"\0"), "big")


_SORTED: Final = sorted((_code(name), kind) for kind, names in _KINDS.items() for name in names.split())
_CODES: Final = np.array([code for code, _ in _SORTED], np.uint64)
_CODE_KINDS: Final = np.array([kind for _, kind in _SORTED], np.int64)


@dataclass(frozen=True, slots=True)
class Markup:
    """Measures of a page: integers, for use as bounds.

    Attributes:
        elements: start tags.
        depth: greatest number of elements open at once; the bound plus one where that was exceeded.
        nesting: sum over all start tags of the elements open then: what tree walks from element to root cost.
        visible: characters other than blanks and controls outside tags, comments and raw text.
    """

    elements: int
    depth: int
    nesting: int
    visible: int


def measure_markup(page: bytes, max_depth: int) -> Markup:
    """Measure `page`, in an encoding that agrees with ASCII; counting ends where `max_depth` is exceeded."""
    counts = np.zeros(4, np.int64)
    _measure(np.frombuffer(page, np.uint8), max_depth, _CODES, _CODE_KINDS, counts)
    return Markup(*(int(count) for count in counts))


@kernel
def _is_letter(byte: int) -> bool:
    return 65 <= (byte & 0xDF) <= 90


@kernel
def _name_at(data: npt.NDArray[np.uint8], at: int) -> tuple[np.uint64, int]:
    """Return the code of the element name that begins at `at`, and where it ends."""
    code = np.uint64(0)
    end = at
    while end < data.size and not (data[end] <= 32 or data[end] == 47 or data[end] == 62):
        if end - at < 8:
            byte = data[end]
            byte = byte | 0x20 if 65 <= byte <= 90 else byte
            code = (code << np.uint64(8)) | np.uint64(byte)
        end += 1
    for _ in range(8 - min(end - at, 8)):
        code = code << np.uint64(8)
    return code, end


@kernel
def _tag_end(data: npt.NDArray[np.uint8], at: int) -> int:
    """Return the position after the ">" that ends a tag whose name ended at `at`; quoted values may hold one."""
    quote = 0
    value = False  # the last byte that is no blank was "="
    while at < data.size:
        byte = data[at]
        at += 1
        if quote:
            if byte == quote:
                quote = 0
        elif byte == 62:
            return at
        elif value and (byte == 34 or byte == 39):
            quote = byte
            value = False
        elif byte > 32:
            value = byte == 61
    return at


@kernel
def _skip_to(data: npt.NDArray[np.uint8], at: int, dashes: int) -> int:
    """Return the position after the next ">" that follows `dashes` hyphens."""
    seen = 0
    while at < data.size:
        byte = data[at]
        at += 1
        if byte == 62 and seen >= dashes:
            return at
        seen = seen + 1 if byte == 45 else 0
    return at


@kernel
def _raw_end(data: npt.NDArray[np.uint8], at: int, code: np.uint64) -> int:
    """Return where the end tag begins that closes the raw text at `at`, or the end of the page."""
    while at < data.size:
        if data[at] == 60 and at + 2 < data.size and data[at + 1] == 47 and _is_letter(data[at + 2]):
            name, _ = _name_at(data, at + 2)
            if name == code:
                return at
        at += 1
    return at


@kernel
def _kind(codes: npt.NDArray[np.uint64], kinds: npt.NDArray[np.int64], code: np.uint64) -> int:
    at = np.searchsorted(codes, code)
    return kinds[at] if at < codes.size and codes[at] == code else 0


@kernel
def _closes(new: int, old: int) -> bool:
    """Return whether a start tag of kind `new` ends an open element of kind `old`."""
    if new == 8:
        return 8 <= old <= 10
    if new == 9:
        return 9 <= old <= 10
    return new == old and 5 <= new <= 11


@kernel
def _depth_for(new: int, open_kinds: npt.NDArray[np.int64], depth: int) -> int:
    """Return the depth at which an element of kind `new` is put: what it ends is closed."""
    if new < 5 or new > 11:
        return depth
    put = depth
    for at in range(depth - 1, -1, -1):
        old = open_kinds[at]
        if _closes(new, old):
            put = at
        elif old == 4 or (old == 3 and not 8 <= new <= 10) or (old == 10 and not 8 <= new <= 10):
            break
    return put


@kernel
def _measure(
    data: npt.NDArray[np.uint8],
    max_depth: int,
    codes: npt.NDArray[np.uint64],
    kinds: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
) -> None:
    open_codes = np.zeros(max_depth + 1, np.uint64)
    open_kinds = np.zeros(max_depth + 1, np.int64)
    depth = 0
    at = 0
    while at < data.size:
        byte = data[at]
        follows = data[at + 1] if at + 1 < data.size else 0
        if byte != 60 or not (_is_letter(follows) or follows == 47 or follows == 33 or follows == 63):
            counts[3] += byte > 32 and (byte & 0xC0) != 0x80
            at += 1
        elif _is_letter(follows):
            code, end = _name_at(data, at + 1)
            at = _tag_end(data, end)
            kind = _kind(codes, kinds, code)
            depth = _depth_for(kind, open_kinds, depth)
            counts[0] += 1
            counts[2] += depth + 1
            counts[1] = max(counts[1], depth + 1)
            if depth + 1 > max_depth:
                return
            if kind == 2:
                at = _raw_end(data, at, code)
            closed = data[at - 2] == 47 and (open_kinds[:depth] == 12).any()
            if kind != 1 and kind != 2 and not closed:
                open_codes[depth] = code
                open_kinds[depth] = kind
                depth += 1
        elif follows == 47:
            letter = at + 2 < data.size and _is_letter(data[at + 2])
            code, end = _name_at(data, at + 2)
            at = _tag_end(data, end) if letter else _skip_to(data, at + 2, 0)
            for below in range(depth - 1, -1, -1):
                if letter and open_codes[below] == code:
                    depth = below
                    break
        elif follows == 33 and at + 3 < data.size and data[at + 2] == 45 and data[at + 3] == 45:
            at = _skip_to(data, at + 2, 2)
        else:
            at = _skip_to(data, at + 2, 0)
