"""What the engine knows of HTML's elements: how each is parsed, and what its name and its class words hint at.

Sources: the WHATWG HTML standard, sections 13.2.4-13.2.6 (void, formatting and special elements, scopes, implied ends,
raw text), simplified as `transforms.pages.tree` says; the hint words are those that readability-like extractors share.
Everything here is constant; arrays are small, so that kernels hold them as part of their code.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

UNKNOWN: Final = 0
"""Code of each element that is not listed: an inline element without rules."""

_NAMES: Final = (
    "? a abbr address applet area article aside audio b base basefont bgsound big blockquote body br button canvas "
    "caption center code col colgroup datalist dd details dialog dir div dl dt em embed fieldset figcaption figure "
    "font footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html i iframe image img input kbd keygen "
    "label legend li link listing main map marquee math menu meta nav nobr noembed noframes noscript object ol "
    "optgroup option p param plaintext pre rb rp rt rtc ruby s samp script search section select small source span "
    "strike strong style sub summary sup svg table tbody td template textarea tfoot th thead time title tr track tt u "
    "ul var video wbr xmp"
)
CODES: Final = {name: code for code, name in enumerate(_NAMES.split())}
"""Element name → its code."""

COUNT: Final = len(CODES)
"""Number of codes."""


def _codes(names: str) -> tuple[int, ...]:
    return tuple(CODES[name] for name in names.split())


A, ADDRESS, B, BODY, BR, BUTTON, CAPTION, CODE, DD, DIV = _codes("a address b body br button caption code dd div")
DL, DT, FORM, HEAD, HR, HTML, IFRAME, IMAGE, IMG, INPUT = _codes("dl dt form head hr html iframe image img input")
KBD, KEYGEN, LI, LINK, MATH, META, NOSCRIPT, OBJECT, OL = _codes("kbd keygen li link math meta noscript object ol")
OPTGROUP, OPTION, P, PRE, SAMP, SCRIPT, SELECT, SPAN = _codes("optgroup option p pre samp script select span")
STRONG, SVG, TABLE, TBODY, TD, TEMPLATE, TFOOT, TH = _codes("strong svg table tbody td template tfoot th")
THEAD, TIME, TITLE, TR, TT, UL, XMP = _codes("thead time title tr tt ul xmp")

SKIPPED: Final = 1
"""Elements whose text is none of the page's."""
BLOCK: Final = 2
"""Elements that begin and end a block of text."""
VOID: Final = 4
"""Elements without content."""
FORMATTING: Final = 8
"""Elements that an end tag closes across others (the standard's adoption agency, without its reconstruction)."""
SPECIAL: Final = 16
"""The standard's special elements: they stop the search for what an inline end tag closes."""
SCOPE: Final = 32
"""Elements that bound the scope of end tags."""
ENDS_P: Final = 64
"""Start tags that end an open paragraph."""
RAW: Final = 128
"""Elements whose content is text up to their own end tag; `title` and `textarea` too."""
BREAKOUT: Final = 256
"""Start tags that end foreign content (svg, math)."""
IN_HEAD: Final = 512
"""Elements that may stand before the body without starting it."""
HEADING: Final = 1024
"""h1 to h6."""

_FLAGS: Final = {
    SKIPPED: "script style noscript template svg iframe object select textarea canvas audio video embed head datalist "
    "math title",
    BLOCK: "p div li ul ol h1 h2 h3 h4 h5 h6 td th tr table tbody thead section article main aside nav header footer "
    "form figure figcaption pre blockquote dl dt dd address body html hr fieldset center details summary caption "
    "button hgroup menu dialog legend tfoot",
    VOID: "area base br col embed hr img input link meta param source track wbr keygen bgsound frame basefont image",
    FORMATTING: "a b big code em font i nobr s small strike strong tt u",
    SPECIAL: "address applet area article aside base basefont bgsound blockquote body br button caption center col "
    "colgroup dd details dir div dl dt embed fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 "
    "head header hgroup hr html iframe img input keygen li link listing main marquee menu meta nav noembed noframes "
    "noscript object ol p param plaintext pre script search section select source style summary table tbody td "
    "template textarea tfoot th thead title tr track ul wbr xmp",
    SCOPE: "applet caption html table td th marquee object template",
    ENDS_P: "address article aside blockquote center details dialog dir div dl fieldset figcaption figure footer "
    "header hgroup main menu nav ol p search section summary ul h1 h2 h3 h4 h5 h6 pre listing form li dd dt plaintext "
    "hr xmp table",
    RAW: "script style xmp iframe noembed noframes textarea title",
    BREAKOUT: "b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li menu meta "
    "nobr ol p pre ruby s small span strong strike table tt u ul",
    IN_HEAD: "title meta link script style base noscript template bgsound basefont noframes head",
    HEADING: "h1 h2 h3 h4 h5 h6",
}


def _by_element(values: dict[int, str]) -> npt.NDArray[np.int64]:
    found = np.zeros(COUNT, np.int64)
    for value, names in values.items():
        for name in names.split():
            found[CODES[name]] |= value
    return found


FLAGS: Final = _by_element(_FLAGS)
"""Per code the parsing rules that hold for the element."""

CLASS: Final = _by_element(
    {1: "p", 2: "li", 3: "h1", 4: "h2", 5: "h3", 6: "h4 h5 h6", 7: "td", 8: "th", 9: "div", 10: "section"}
    | {11: "article", 12: "pre", 13: "blockquote", 14: "figcaption figure", 15: "dt", 16: "dd", 17: "button"}
    | {18: "header footer", 19: "a", 20: "span", 21: "strong b em i", 22: "body"}
)
"""Per code the class of element that features speak of."""
PARAGRAPH_CLASS, ITEM_CLASS, H1_CLASS, LAST_HEADING_CLASS, CELL_CLASS = 1, 2, 3, 6, 7

(IS_ARTICLE, IS_MAIN, IS_NAV, IS_HEADER, IS_FOOTER, IS_ASIDE, IS_FORM, IS_TABLE, IS_LIST, IS_HIDDEN, IS_FIGURE) = (
    1 << bit for bit in range(11)
)
(IS_BUTTON, IS_LINK, IS_PRE, IS_QUOTE, IS_DETAILS, IS_WANTED, IS_UNWANTED, IS_COMMENTS, IS_BODY_PROPERTY) = (
    1 << bit for bit in range(11, 20)
)
IS_TERMS, IS_HEADING, IS_LABEL = (1 << bit for bit in range(20, 23))
HINTS: Final = 23
"""Number of hints, the bits of an element's and a block's `hints`."""

HINT: Final = _by_element(
    {IS_ARTICLE: "article", IS_MAIN: "main", IS_NAV: "nav", IS_HEADER: "header", IS_FOOTER: "footer"}
    | {IS_ASIDE: "aside", IS_FORM: "form", IS_TABLE: "table", IS_LIST: "ul ol", IS_FIGURE: "figure"}
    | {IS_BUTTON: "button", IS_LINK: "a", IS_PRE: "pre code", IS_QUOTE: "blockquote", IS_DETAILS: "details"}
    | {IS_TERMS: "dl", IS_LABEL: "label", IS_HEADING: "h1 h2 h3 h4 h5 h6"}
)
"""Per code what the element's name hints at."""

HINT_WORDS: Final = {
    IS_WANTED: "article content entry post story main body text blog detail details description desc prose markdown "
    "rte wysiwyg question answer thread message",
    IS_UNWANTED: "footer header nav menu sidebar widget related share social cookie banner promo ad ads advert sponsor "
    "newsletter subscribe breadcrumb breadcrumbs popup modal login signup search pagination pager tags recommend "
    "recommended recommendations popular trending toolbar copyright consent gdpr skip masthead byline meta author "
    "outbrain taboola rail crumb cart upsell overlay navbar topbar",
    IS_COMMENTS: "comment comments disqus respond reply replies commentlist discussion",
}
"""Hint → words of class and id attributes that give it."""
