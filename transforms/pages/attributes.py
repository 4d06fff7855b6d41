"""Attributes of a tag: where names and values stand, and what class, id, role, itemprop and style hint at."""

from __future__ import annotations

from typing import Final

import numpy as np

from transforms.pages import elements as el
from transforms.pages.characters import (
    BLANK,
    CLASSES,
    GOLDEN,
    HINTS,
    LETTER,
    OFFSET,
    PRIME,
    UPPER,
    Bytes,
    as_bytes,
    contains,
    find,
    find_byte,
    hash_bytes,
    is_equal,
)
from transforms.pages.compiled import Bool, Int, inner
from transforms.pages.page import Page, Records

_CLASS: Final = as_bytes("class")
_ID: Final = as_bytes("id")
_ITEMPROP: Final = as_bytes("itemprop")
_ROLE: Final = as_bytes("role")
_HIDDEN: Final = as_bytes("hidden")
_ARIA_HIDDEN: Final = as_bytes("aria-hidden")
_STYLE: Final = as_bytes("style")
_ARTICLE_BODY: Final = as_bytes("articlebody")
_MAIN: Final = as_bytes("main")
_NAVIGATION: Final = as_bytes("navigation")
_CONTENT_INFO: Final = as_bytes("contentinfo")
_BANNER: Final = as_bytes("banner")
_TRUE: Final = as_bytes("true")
_NO_DISPLAY: Final = as_bytes("display:none")
_NO_DISPLAY_SPACED: Final = as_bytes("display: none")
_INVISIBLE: Final = as_bytes("visibility:hidden")
_LONGEST_WORD: Final = 39
_CLASS_OR_ID, _PROPERTY, _ROLE_WORD = (np.int64(seed) for seed in (1, 3, 4))


@inner
def _blank(page: Page, at: Int) -> Int:
    while at < page.data.size and CLASSES[page.data[at]] & BLANK:
        at += 1
    return at


@inner
def _value(page: Page, at: Int) -> tuple[Int, Int, Int]:
    """Return start and end of the value after the "=" before `at`, and where to read on."""
    data = page.data
    at = _blank(page, at)
    if at >= data.size or data[at] == 62:
        return at, at, at
    start = at
    if data[at] == 34 or data[at] == 39:
        at = find_byte(data, at + 1, np.int64(data[at]))
        return start + 1, at, at + 1
    while at < data.size and data[at] != 62 and not CLASSES[data[at]] & BLANK:
        at += 1
    return start, at, at


@inner
def read_attributes(page: Page, at: Int) -> tuple[Int, Int, Bool]:
    """Read the attributes from `at` on; return the place after the tag's ">", their number, whether "/>" closes it.

    The first 64 are kept, as rows of name start, name end, value start, value end.
    """
    data, kept = page.data, 0
    closed: Bool = False
    while at < data.size:
        byte = data[at]
        if byte == 62:
            return at + 1, kept, closed
        if CLASSES[byte] & BLANK or byte == 47:
            closed = byte == 47 and at + 1 < data.size and data[at + 1] == 62
            at += 1
            continue
        start = at
        at += 1
        while at < data.size and data[at] != 61 and data[at] != 62 and data[at] != 47 and not CLASSES[data[at]] & BLANK:
            at += 1
        end = at
        at = _blank(page, at)
        value_start, value_end = at, at
        if at < data.size and data[at] == 61:
            value_start, value_end, at = _value(page, at + 1)
        if kept < page.attributes.shape[0]:
            row = page.attributes[kept]
            row[0], row[1], row[2], row[3] = start, end, value_start, min(value_end, data.size)
            kept += 1
    return data.size, kept, closed


@inner
def is_named(page: Page, row: Int, name: Bytes) -> Bool:
    """Return whether attribute `row` has this name."""
    return is_equal(page.data, page.attributes[row, 0], page.attributes[row, 1], name)


@inner
def _add_words(page: Page, start: Int, end: Int, seed: Int) -> Int:
    """Keep the hashes of the value's words (runs of letters; a capital begins one); return what they hint at."""
    state, data = page.state[0], page.data
    hints, at = np.int64(0), start
    while at < end:
        while at < end and not CLASSES[data[at]] & LETTER:
            at += 1
        key, size, was_lower = OFFSET, 0, False
        while at < end and CLASSES[data[at]] & LETTER:
            is_upper = (CLASSES[data[at]] & UPPER) != 0
            if is_upper and was_lower:
                break
            was_lower = not is_upper
            if size < _LONGEST_WORD:
                key = (key ^ np.uint64(data[at] | 32)) * PRIME
                size += 1
            at += 1
        if size >= 2:
            hints |= find(page.table, key, HINTS)
            if state.words < page.words.size:
                page.words[state.words] = ((key ^ np.uint64(seed)) * GOLDEN) >> np.uint64(32)
                state.words += 1
    return hints


@inner
def _role(page: Page, start: Int, end: Int) -> Int:
    if is_equal(page.data, start, end, _MAIN):
        return el.IS_MAIN
    if is_equal(page.data, start, end, _NAVIGATION):
        return el.IS_NAV
    if is_equal(page.data, start, end, _CONTENT_INFO):
        return el.IS_FOOTER
    return el.IS_HEADER if is_equal(page.data, start, end, _BANNER) else 0


@inner
def _is_invisible(page: Page, start: Int, end: Int) -> Bool:
    data = page.data
    if contains(data, start, end, _NO_DISPLAY) or contains(data, start, end, _NO_DISPLAY_SPACED):
        return True
    return contains(data, start, end, _INVISIBLE)


@inner
def _hints_of(page: Page, row: Int) -> Int:
    """Return what one attribute hints at, its words kept."""
    start, end = page.attributes[row, 2], page.attributes[row, 3]
    size = page.attributes[row, 1] - page.attributes[row, 0]
    if size == 5:
        if is_named(page, row, _CLASS):
            return _add_words(page, start, min(end, start + 300), _CLASS_OR_ID)
        if is_named(page, row, _STYLE):
            return el.IS_HIDDEN if _is_invisible(page, start, min(end, start + 1000)) else 0
    elif size == 2:
        if is_named(page, row, _ID):
            return _add_words(page, start, min(end, start + 100), _CLASS_OR_ID)
    elif size == 8:
        if is_named(page, row, _ITEMPROP):
            _add_words(page, start, min(end, start + 60), _PROPERTY)
            return el.IS_BODY_PROPERTY if contains(page.data, start, min(end, start + 60), _ARTICLE_BODY) else 0
    elif size == 4:
        if is_named(page, row, _ROLE):
            _add_words(page, start, min(end, start + 60), _ROLE_WORD)
            return _role(page, start, end)
    elif size == 6:
        return el.IS_HIDDEN if is_named(page, row, _HIDDEN) else 0
    elif size == 11:
        hidden = is_named(page, row, _ARIA_HIDDEN) and is_equal(page.data, start, end, _TRUE)
        return el.IS_HIDDEN if hidden else 0
    return 0


_OF_PAGES: Final = ~(el.IS_WANTED | el.IS_UNWANTED | el.IS_COMMENTS | el.IS_HIDDEN)


@inner
def read_hints(page: Page, element: Records, attributes: Int) -> None:
    """Set the element's hints, words and signature from its name and attributes."""
    state = page.state[0]
    own = np.int64(el.HINT[element.tag])
    element.first_word = state.words
    signature = np.uint64(element.tag) * GOLDEN
    for row in range(attributes):
        own |= _hints_of(page, row)
        if is_named(page, row, _CLASS):
            start = page.attributes[row, 2]
            signature ^= hash_bytes(page.data, start, min(page.attributes[row, 3], start + 1000))
    if element.tag == el.BODY or element.tag == el.HTML:
        own &= _OF_PAGES
    state.articles += (own & el.IS_ARTICLE) != 0
    element.own, element.last_word, element.signature = own, state.words, signature
