"""The arrays that one pass over a page fills: its text, blocks, elements, marks and facts; their sizes and bounds.

Invariants: every array is bounded by the page's bytes and by `MAX_…`, whatever the page says; what goes beyond them is
left out and `state.overflow` tells so. Memory: about 9 bytes a byte of the page and 48 an element, at most some 150 MB.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from transforms.pages.characters import WORDS, Bytes, Table
from transforms.pages.compiled import entry
from transforms.pages.elements import COUNT

MAX_DEPTH: Final = 512
"""Elements open at once; those deeper are read as part of the last one. Browsers stop at this depth too."""
MAX_BLOCKS: Final = 60_000
"""Blocks of a page: text after them is left out."""
MAX_ELEMENTS: Final = 1_000_000
"""Elements of a page: those after them are not opened, their text belongs to the last one."""
MAX_WORDS: Final = 4_000_000
"""Words of class, id, role and itemprop attributes of a page."""

Records = Any
"""An array of records, whose fields mypy does not know."""

BLOCK: Final = np.dtype(
    [
        ("element", "i4"),  # nearest element that is a block
        ("inner", "i4"),  # element that holds its first character
        ("start", "i4"),  # its text is text[start:end]
        ("end", "i4"),
        ("characters", "i4"),  # but blanks
        ("words", "i4"),
        ("linked", "i4"),  # characters inside links
        ("links", "i4"),
        ("bold", "i4"),  # characters inside b and strong
        ("marks", "i4"),  # punctuation
        ("commas", "i4"),
        ("stops", "i4"),  # . ! ? and their kind
        ("digits", "i4"),
        ("capitals", "i4"),
        ("pieces", "i4"),  # runs of text between tags
        ("hints", "i4"),  # of all elements around it
        ("starts_upper", "i4"),
        ("ends_sentence", "i4"),
        ("hash", "u8"),
    ]
)
"""A block of text: what stands between two tags of block elements."""

ELEMENT: Final = np.dtype(
    [
        ("parent", "i4"),
        ("tag", "i4"),
        ("depth", "i4"),
        ("own", "i4"),  # hints of its name and attributes
        ("hints", "i4"),  # the same with those of all elements around it
        ("block", "i4"),  # nearest element that is a block, itself among them
        ("first", "i4"),  # its blocks are blocks[first:last]
        ("last", "i4"),
        ("first_word", "i4"),  # its attributes' words are words[first_word:last_word]
        ("last_word", "i4"),
        ("children", "i4"),  # list items and cells so far: a list's next number
        ("number", "i4"),  # which child of its list it is, from 1
        ("signature", "u8"),  # hash of name and class attribute
    ]
)
"""An element that was opened outside skipped ones."""

MARK: Final = np.dtype([("kind", "i4"), ("place", "i4"), ("start", "i4"), ("end", "i4")])
"""Something at text[place]: mathematics, a link or inline code, with data[start:end] as its source or address."""
MATHML, TEX, TEX_DISPLAY, LINK_START, LINK_END, CODE_START, CODE_END = (np.int64(kind) for kind in range(7))
SKIPPED_ELEMENT, HTML_INSIDE = np.int64(-1), np.int64(-2)
"""Numbers on the stack for elements that are skipped: -2 where HTML may stand inside foreign content."""
MATH_BYTE: Final = 0xFF
"""Stands in the text for a piece of mathematics; no UTF-8 has this byte."""

_FIELDS: Final = (
    "is_open spaced breaks in_word end indent blocks elements element block hints links bold pre skipping foreign "
    "depth beyond words images articles times declared in_body with_noscript overflow marks tags maths math_lost"
)
STATE: Final = np.dtype([(name, "i8") for name in _FIELDS.split()])
"""Where a pass stands. is_open: block `blocks` is being written; beyond: elements open below the greatest depth."""

FACTS: Final = 13
"""Number of things that a page says of itself: data[facts[k, 0]:facts[k, 1]] is the first place where it says k."""
TITLE_FACT, OG_TITLE, AUTHOR, OG_AUTHOR, PUBLISHED, DATE, TIME_FACT = (np.int64(fact) for fact in range(7))
LANGUAGE, CANONICAL, OG_URL, JSON, OG_TYPE, ABOUT = (np.int64(fact) for fact in range(7, FACTS))


class Page(NamedTuple):
    """The arrays of a pass, and the table that it looks words up in. The stack's rows are number and tag of an
    element; attributes' rows begin and end of name and value.
    """

    data: Bytes
    text: Bytes
    blocks: Records
    elements: Records
    words: npt.NDArray[np.uint32]
    marks: Records
    stack: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    attributes: npt.NDArray[np.int64]
    facts: npt.NDArray[np.int64]
    state: Records
    table: Table


@entry
def _count(data: Bytes, byte: int) -> int:
    found = 0
    for at in range(data.size):
        found += data[at] == byte
    return found


def empty_page(html: bytes) -> Page:
    """Return arrays for a pass over `html`, large enough for whatever it holds.

    A reference of n bytes becomes at most 1.2 n bytes of text, each tag and each block at most one more.
    """
    data = np.frombuffer(html, np.uint8)
    tags = int(_count(data, 60))
    return Page(
        data,
        np.empty(data.size + data.size // 2 + 4096, np.uint8),
        np.empty(min(tags, MAX_BLOCKS) + 64, BLOCK),
        np.empty(min(tags * 2, MAX_ELEMENTS) + 64, ELEMENT),
        np.empty(min(data.size // 2, MAX_WORDS) + 64, np.uint32),
        np.empty(min(tags, MAX_ELEMENTS) + 64, MARK),
        np.zeros((MAX_DEPTH + 8, 2), np.int64),
        np.zeros(COUNT, np.int64),
        np.zeros((64, 4), np.int64),
        np.zeros((FACTS, 2), np.int64),
        np.zeros(1, STATE),
        WORDS,
    )
