"""What a page says of itself: title, author, date, language, address, kind; nothing is guessed from its text.

Each is the first of several places in the page (Open Graph, meta elements, JSON-LD of schema.org, HTML). Values are
unescaped, blanks folded, cut to `MOST` characters; what is no date or no address is left out. A page can say anything:
none of it is checked.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import Final, TypeGuard

from transforms.pages import head, page
from transforms.pages.compiled import Int
from transforms.pages.page import Page

MOST: Final = 500
"""Most characters of a value."""

_BLANKS: Final = re.compile(r"[ \t\r\n\f\v\u00a0]+")
_DAY: Final = re.compile(r"^[ \t]{0,9}((?:19|20)[0-9]{2})-?(0[1-9]|1[0-2])-?(0[1-9]|[12][0-9]|3[01])(?![0-9])")
_LANGUAGE: Final = re.compile(r"^[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{1,8}){0,3}$")
_GAP: Final = r"[ \t\r\n]{0,20}"
_JSON_DATE: Final = re.compile(rf'"datePublished"{_GAP}:{_GAP}"([^"]{{8,40}})"')
_JSON_AUTHOR: Final = re.compile(
    rf'"author"{_GAP}:{_GAP}(?:"|\[?{_GAP}\{{{_GAP}(?:"@type"{_GAP}:{_GAP}"[A-Za-z]{{1,20}}"{_GAP},{_GAP})?'
    rf'"name"{_GAP}:{_GAP}")([^"\\]{{1,100}})"'
)
_KINDS: Final = (
    (head.LD_FORUM, "forum"),
    (head.LD_QUESTIONS, "questions"),
    (head.PRODUCT | head.LD_PRODUCT, "product"),
    (head.ARTICLE | head.LD_ARTICLE, "article"),
    (head.LD_LIST, "collection"),
    (head.WEBSITE, "website"),
)


@dataclass(frozen=True, slots=True)
class Facts:
    """What a page says of itself, None where it does not say.

    Attributes:
        title: of Open Graph, else the title element.
        author: of meta elements or JSON-LD; addresses of profiles are no names.
        date: day of publication, "2024-05-31".
        language: BCP 47 tag of the html element, as written.
        url: canonical address, absolute.
        kind: forum, questions, product, article, collection or website.
    """

    title: str | None
    author: str | None
    date: str | None
    language: str | None
    url: str | None
    kind: str | None


def facts_of(arrays: Page) -> Facts:
    """Return what the page says of itself."""

    def said(fact: Int) -> str | None:
        start, end = arrays.facts[fact].tolist()
        return None if end == 0 else _clean(arrays.data[start : min(end, start + 4 * MOST)].tobytes())

    start, end = arrays.facts[page.JSON].tolist()
    json = arrays.data[start:end].tobytes().decode("utf-8", "ignore")
    days = (said(page.PUBLISHED), _first(_JSON_DATE, json), said(page.DATE), said(page.TIME_FACT))
    language = said(page.LANGUAGE)
    declared = int(arrays.state[0]["declared"])
    return Facts(
        title=said(page.OG_TITLE) or said(page.TITLE_FACT),
        author=next(filter(_is_name, (said(page.AUTHOR), _first(_JSON_AUTHOR, json), said(page.OG_AUTHOR))), None),
        date=next(filter(None, map(_day, days)), None),
        language=language if language and _LANGUAGE.match(language) else None,
        url=next(filter(_is_address, (said(page.CANONICAL), said(page.OG_URL))), None),
        kind=next((kind for bits, kind in _KINDS if declared & bits), None),
    )


def _clean(source: bytes) -> str | None:
    text = _BLANKS.sub(" ", html.unescape(source.decode("utf-8", "ignore"))).strip(" ")[:MOST]
    return text or None


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text)
    return found[1] if found else None


def _day(text: str | None) -> str | None:
    found = _DAY.match(text or "")
    return "-".join(found.groups()) if found else None


def _is_name(text: str | None) -> TypeGuard[str]:
    return bool(text) and "//" not in (text or "")


def _is_address(text: str | None) -> TypeGuard[str]:
    return (text or "").startswith(("http://", "https://"))
