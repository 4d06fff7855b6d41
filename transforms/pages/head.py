"""What a page says of itself in its head and its scripts: noted as places, for `transforms.pages.metadata` to read."""

from __future__ import annotations

from typing import Final

import numpy as np

from transforms.pages.attributes import is_named
from transforms.pages.characters import Bytes, as_bytes, contains, is_equal
from transforms.pages.compiled import Bool, Int, inner
from transforms.pages.page import (
    ABOUT,
    AUTHOR,
    CANONICAL,
    DATE,
    JSON,
    OG_AUTHOR,
    OG_TITLE,
    OG_TYPE,
    OG_URL,
    PUBLISHED,
    TIME_FACT,
    TITLE_FACT,
    Page,
)

ARTICLE, PRODUCT, WEBSITE, OTHER, LD_ARTICLE, LD_PRODUCT, LD_QUESTIONS, LD_FORUM, LD_LIST = (
    1 << bit for bit in range(9)
)
"""Bits of `state.declared`: the first four by og:type, the others by JSON-LD."""
MOST_JSON: Final = 20_000
"""Bytes of a JSON-LD script that are looked at."""

_NAME: Final = as_bytes("name")
_PROPERTY: Final = as_bytes("property")
_CONTENT: Final = as_bytes("content")
_ITEMPROP: Final = as_bytes("itemprop")
_TYPE: Final = as_bytes("type")
_REL: Final = as_bytes("rel")
_HREF: Final = as_bytes("href")
_DATETIME: Final = as_bytes("datetime")
_CANONICAL: Final = as_bytes("canonical")
_LD: Final = as_bytes("ld+json")
_OG_TITLE: Final = as_bytes("og:title")
_OG_TYPE: Final = as_bytes("og:type")
_OG_URL: Final = as_bytes("og:url")
_AUTHOR: Final = as_bytes("author")
_OG_AUTHOR: Final = as_bytes("article:author")
_PUBLISHED: Final = as_bytes("article:published_time")
_DATE: Final = as_bytes("date")
_DATE_PUBLISHED: Final = as_bytes("datepublished")
_DC_DATE: Final = as_bytes("dc.date")
_DC_CREATOR: Final = as_bytes("dc.creator")
_ABOUT: Final = as_bytes("description")
_ARTICLE: Final = as_bytes("article")
_PRODUCT: Final = as_bytes("product")
_WEBSITE: Final = as_bytes("website")
_TYPES: Final = tuple(
    as_bytes(word)
    for word in ("article", "blogposting", "product", "faqpage", "discussionforumposting", "qapage", "itemlist")
)
_COLLECTION: Final = as_bytes("collectionpage")


@inner
def _note(page: Page, fact: Int, start: Int, end: Int) -> None:
    """Note the first place where the page says something that is not empty."""
    if page.facts[fact, 1] == 0 and end > start:
        page.facts[fact, 0], page.facts[fact, 1] = start, end


@inner
def note_title(page: Page, start: Int, end: Int) -> None:
    """Note the content of a title element."""
    _note(page, TITLE_FACT, start, end)


@inner
def note_time(page: Page, attributes: Int) -> None:
    """Note the machine-readable time of a time element."""
    for row in range(attributes):
        if is_named(page, row, _DATETIME):
            _note(page, TIME_FACT, page.attributes[row, 2], page.attributes[row, 3])


@inner
def _fact_of(data: Bytes, start: Int, end: Int) -> Int:
    """Return which fact the name of a meta element stands for, -1 for none."""
    if is_equal(data, start, end, _OG_TITLE):
        return OG_TITLE
    if is_equal(data, start, end, _OG_TYPE):
        return OG_TYPE
    if is_equal(data, start, end, _OG_URL):
        return OG_URL
    if is_equal(data, start, end, _AUTHOR) or is_equal(data, start, end, _DC_CREATOR):
        return AUTHOR
    if is_equal(data, start, end, _OG_AUTHOR):
        return OG_AUTHOR
    if is_equal(data, start, end, _PUBLISHED) or is_equal(data, start, end, _DATE_PUBLISHED):
        return PUBLISHED
    if is_equal(data, start, end, _DATE) or is_equal(data, start, end, _DC_DATE):
        return DATE
    return ABOUT if is_equal(data, start, end, _ABOUT) else np.int64(-1)


@inner
def note_meta(page: Page, attributes: Int) -> None:
    """Note what a meta element says."""
    fact: Int = np.int64(-1)
    content: Int = np.int64(-1)
    for row in range(attributes):
        if is_named(page, row, _CONTENT):
            content = row
        elif is_named(page, row, _NAME) or is_named(page, row, _PROPERTY) or is_named(page, row, _ITEMPROP):
            found = _fact_of(page.data, page.attributes[row, 2], page.attributes[row, 3])
            fact = found if found >= 0 else fact
    if fact < 0 or content < 0:
        return
    start, end = page.attributes[content, 2], page.attributes[content, 3]
    _note(page, fact, start, end)
    if fact == OG_TYPE and page.state[0].declared & 15 == 0:
        page.state[0].declared |= _og_type(page.data, start, min(end, start + 99))


@inner
def _og_type(data: Bytes, start: Int, end: Int) -> Int:
    if contains(data, start, end, _ARTICLE):
        return ARTICLE
    if contains(data, start, end, _PRODUCT):
        return PRODUCT
    return WEBSITE if contains(data, start, end, _WEBSITE) else OTHER


@inner
def note_link(page: Page, attributes: Int) -> None:
    """Note the canonical address."""
    relation: Int = np.int64(-1)
    address: Int = np.int64(-1)
    for row in range(attributes):
        if is_named(page, row, _REL):
            relation = row
        elif is_named(page, row, _HREF):
            address = row
    if relation < 0 or address < 0:
        return
    if is_equal(page.data, page.attributes[relation, 2], page.attributes[relation, 3], _CANONICAL):
        _note(page, CANONICAL, page.attributes[address, 2], page.attributes[address, 3])


@inner
def _ends_with(data: Bytes, start: Int, end: Int, word: Bytes) -> Bool:
    return end - word.size >= start and is_equal(data, end - word.size, end, word)


@inner
def _type_at(data: Bytes, start: Int, end: Int) -> Int:
    """Return what the type of schema.org declares that ends at `end`; NewsArticle is an article, too."""
    if _ends_with(data, start, end, _TYPES[0]) or _ends_with(data, start, end, _TYPES[1]):
        return np.int64(LD_ARTICLE)
    if _ends_with(data, start, end, _TYPES[2]):
        whole = end - 8 >= start and data[end - 8] == 34
        return np.int64(LD_PRODUCT if whole else 0)
    if _ends_with(data, start, end, _TYPES[3]):
        return np.int64(LD_QUESTIONS)
    if _ends_with(data, start, end, _TYPES[4]) or _ends_with(data, start, end, _TYPES[5]):
        return np.int64(LD_FORUM)
    if _ends_with(data, start, end, _TYPES[6]) or _ends_with(data, start, end, _COLLECTION):
        return np.int64(LD_LIST)
    return np.int64(0)


@inner
def _declared_in_json(data: Bytes, start: Int, end: Int) -> Int:
    """Return the types that are named in data[start:end], each at the quote after it."""
    found: Int = np.int64(0)
    for at in range(start + 1, end):
        if data[at] == 34:
            last = data[at - 1]
            if last == 101 or last == 103 or last == 116:  # the last letters of the types' names
                found |= _type_at(data, start, at)
    return found


@inner
def note_script(page: Page, attributes: Int, start: Int, end: Int) -> None:
    """Note what JSON-LD, the content of a script element at data[start:end], declares the page to be."""
    for row in range(attributes):
        first, last = page.attributes[row, 2], page.attributes[row, 3]
        if is_named(page, row, _TYPE) and contains(page.data, first, min(last, first + 99), _LD):
            _note(page, JSON, start, min(end, start + MOST_JSON))
            page.state[0].declared |= _declared_in_json(page.data, start, min(end, start + MOST_JSON))
            return
