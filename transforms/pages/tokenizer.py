"""One pass over a page's bytes: tags, comments, raw text, mathematics, what the head declares.

Tokens are those of WHATWG HTML 13.2.5. Text of skipped elements (script, select, svg, …) is left out; that of
`noscript` is read only where a page has little else. A piece of MathML, and TeX in a script of type math/tex, become a
mark; KaTeX's visible twin of its MathML is skipped. Invariants: the pass moves forward in each step; a search that
found nothing to the end of the page is not made again. Cost: linear in bytes, times the depth for end tags that close
nothing: .4 ms for a page of 170 kB, 50 MB of one attribute some 50 ms.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from transforms.pages import elements as el
from transforms.pages.attributes import is_named, read_attributes
from transforms.pages.characters import (
    BLANK,
    CLASSES,
    ELEMENTS,
    LETTER,
    OFFSET,
    PRIME,
    Bytes,
    as_bytes,
    contains,
    find,
    find_byte,
    is_equal,
    lower,
)
from transforms.pages.compiled import Bool, Int, entry, inner
from transforms.pages.head import note_link, note_meta, note_script, note_time, note_title
from transforms.pages.page import HTML_INSIDE, LANGUAGE, MATHML, SKIPPED_ELEMENT, TEX, TEX_DISPLAY, Page
from transforms.pages.text import add_break, add_math, add_text, flush
from transforms.pages.tree import (
    break_out,
    close_by_tag,
    close_in_skipped,
    close_to,
    imply_ends,
    pop,
    push,
    skip_element,
    top,
)

LESS_THAN: Final = np.int64(60)
DASH: Final = np.int64(45)
GREATER_THAN: Final = np.int64(62)

MOST_MATH: Final = 65_536
"""Bytes of a piece of mathematics; longer ones are skipped."""

_FLAGS: Final = el.FLAGS
_CDATA: Final = as_bytes("[cdata[")
_FOREIGN_OBJECT: Final = as_bytes("foreignobject")
_DESC: Final = as_bytes("desc")
_MATH: Final = as_bytes("math")
_TEX: Final = as_bytes("math/tex")
_DISPLAY: Final = as_bytes("mode=display")
_TWIN: Final = as_bytes("katex-html")
_LANG: Final = as_bytes("lang")
_CLASS: Final = as_bytes("class")
_TYPE: Final = as_bytes("type")


@inner
def _text_end(data: Bytes, at: Int) -> Int:
    """Return where the text at `at` ends: at a "<" that begins markup, or with the page."""
    at = find_byte(data, at, LESS_THAN)
    while at < data.size:
        if at + 1 < data.size:
            following = data[at + 1]
            if CLASSES[following] & LETTER or following == 33 or following == 63 or following == 47:
                return at
        at = find_byte(data, at + 1, LESS_THAN)
    return at


@inner
def _after_comment(data: Bytes, at: Int) -> Int:
    """Return the place after the comment whose content begins at `at`."""
    if at < data.size and data[at] == 62:
        return at + 1
    if at + 1 < data.size and data[at] == 45 and data[at + 1] == 62:
        return at + 2
    at = find_byte(data, at, DASH)
    while at + 2 < data.size:
        if data[at + 1] == 45:
            if data[at + 2] == 62:
                return at + 3
            if data[at + 2] == 33 and at + 3 < data.size and data[at + 3] == 62:
                return at + 4
        at = find_byte(data, at + 1, DASH)
    return data.size


@inner
def _after_declaration(page: Page, at: Int) -> Int:
    """Return the place after the comment, CDATA section or declaration at `at`, which begins with "<!"."""
    data = page.data
    if at + 3 < data.size and data[at + 2] == 45 and data[at + 3] == 45:
        return _after_comment(data, at + 4)
    if page.state[0].foreign > 0 and at + 9 <= data.size and is_equal(data, at + 2, at + 9, _CDATA):
        at += 9
        while at + 2 < data.size and not (data[at] == 93 and data[at + 1] == 93 and data[at + 2] == 62):
            at += 1
        return min(data.size, at + 3)
    return find_byte(data, at, GREATER_THAN) + 1


@inner
def _raw_end(data: Bytes, at: Int, start: Int, end: Int) -> Int:
    """Return where the end tag of the name data[start:end] begins, from `at` on, or the end of the page."""
    size = end - start
    at = find_byte(data, at, LESS_THAN)
    while at < data.size:
        if at + 2 + size <= data.size and data[at + 1] == 47:
            same = 0
            while same < size and data[at + 2 + same] | 32 == data[start + same] | 32:
                same += 1
            after = at + 2 + size
            if same == size and (after >= data.size or data[after] == 62 or data[after] == 47):
                return at
            if same == size and CLASSES[data[after]] & BLANK:
                return at
        at = find_byte(data, at + 1, LESS_THAN)
    return at


@inner
def _name(page: Page, at: Int) -> tuple[Int, Int]:
    """Return the code of the element name at `at`, and its end."""
    data, key = page.data, OFFSET
    while at < data.size and data[at] != 62 and data[at] != 47 and not CLASSES[data[at]] & BLANK:
        key = (key ^ np.uint64(lower(data[at]))) * PRIME
        at += 1
    tag = find(page.table, key, ELEMENTS)
    return el.IMG if tag == el.IMAGE else tag, at


@inner
def _start_body(page: Page) -> None:
    state = page.state[0]
    if not state.in_body:
        state.in_body = 1
        push(page, el.BODY, np.int64(0))


@inner
def _read_text(page: Page, at: Int) -> Int:
    """Add the text at `at`; return where it ends."""
    end = _text_end(page.data, at)
    state = page.state[0]
    if state.skipping > 0 or end == at:
        return end
    if not state.in_body:
        while at < end and CLASSES[page.data[at]] & BLANK:
            at += 1
        if at == end:
            return end
        _start_body(page)
    add_text(page, at, end)
    return end


@inner
def _ends_nothing(page: Page, tag: Int) -> Bool:
    if _FLAGS[tag] & el.VOID or tag == el.HTML or tag == el.BODY or tag == el.HEAD:
        return True
    return page.counts[tag] == 0 and not _FLAGS[tag] & el.HEADING


@inner
def _read_end_tag(page: Page, at: Int) -> Int:
    """Do what the end tag at `at` does; return the place after it."""
    data, state = page.data, page.state[0]
    if at + 2 >= data.size:
        return data.size
    if not CLASSES[data[at + 2]] & LETTER:
        return find_byte(data, at + 2, GREATER_THAN) + 1
    tag, end = _name(page, at + 2)
    at, _, _ = read_attributes(page, end)
    if tag == el.BR:
        if state.skipping == 0:
            _start_body(page)
            add_break(page)
    elif tag == el.P and state.skipping == 0 and page.counts[el.P] == 0:
        flush(page)
    elif _ends_nothing(page, tag):
        pass
    elif state.beyond > 0:
        state.beyond -= 1
    elif state.skipping == 0 or close_in_skipped(page, tag):
        close_by_tag(page, tag)
    return at


@inner
def _read_math(page: Page, at: Int, tag_end: Int) -> Int:
    """Make a mark of the math element that begins at `at`; return the place after it, or -1 where it is none."""
    state, data = page.state[0], page.data
    if state.math_lost:
        return -1
    end = _raw_end(data, tag_end, at + 1, at + 5)
    if end >= data.size:
        state.math_lost = 1
        return -1
    after = min(find_byte(data, end, GREATER_THAN) + 1, data.size)
    if after - at <= MOST_MATH:
        _start_body(page)
        add_math(page, MATHML, at, after)
    return after


@inner
def _read_raw(page: Page, tag: Int, name: Int, name_end: Int, at: Int, attributes: Int) -> Int:
    """Pass over the content of a raw element, which begins at `at`; what a script says of the page is noted."""
    state, data = page.state[0], page.data
    end = _raw_end(data, at, name, name_end)
    if tag == el.TITLE:
        if state.skipping == 0:
            note_title(page, at, end)
    elif tag == el.SCRIPT:
        for row in range(attributes):
            start, stop = page.attributes[row, 2], page.attributes[row, 3]
            if is_named(page, row, _TYPE) and contains(data, start, min(stop, start + 99), _TEX):
                display = contains(data, start, min(stop, start + 99), _DISPLAY)
                if state.skipping == 0 and end - at <= MOST_MATH:
                    _start_body(page)
                    add_math(page, TEX_DISPLAY if display else TEX, at, end)
        note_script(page, attributes, at, end)
    elif tag == el.XMP and state.skipping == 0 and state.in_body:
        push(page, el.PRE, attributes)
        add_text(page, at, end)
        if top(page) == el.PRE:
            pop(page)
    return end


@inner
def _starts_html_inside(page: Page, tag: Int, start: Int, end: Int) -> Bool:
    if tag == el.TITLE or is_equal(page.data, start, end, _DESC):
        return True
    return is_equal(page.data, start, end, _FOREIGN_OBJECT)


@inner
def _start_skipped(page: Page, tag: Int, closed: Bool) -> None:
    """Do what a start tag does inside a skipped element."""
    if page.counts[el.SELECT] > 0 and page.state[0].foreign == 0:
        if tag == el.SELECT or tag == el.INPUT or tag == el.KEYGEN or tag == el.BUTTON:
            row = page.state[0].depth - 1
            while row > 0 and page.stack[row, 1] != el.SELECT:
                row -= 1
            close_to(page, row)
        return
    if _FLAGS[tag] & el.VOID or (closed and (tag == el.SVG or tag == el.MATH)):
        return
    if tag != el.OPTION and tag != el.OPTGROUP and tag != el.P and tag != el.LI:
        skip_element(page, SKIPPED_ELEMENT, tag)


@inner
def _is_twin(page: Page, tag: Int, attributes: Int) -> Bool:
    """Return whether this is the visible twin of mathematics that was read."""
    if tag != el.SPAN or page.state[0].maths == 0:
        return False
    for row in range(attributes):
        start = page.attributes[row, 2]
        if is_named(page, row, _CLASS) and contains(page.data, start, min(page.attributes[row, 3], start + 99), _TWIN):
            return True
    return False


@inner
def _start_in_body(page: Page, tag: Int, attributes: Int, closed: Bool) -> None:
    """Do what a start tag does outside skipped elements, the head's own passed over before the body."""
    state, flags = page.state[0], _FLAGS[tag]
    if tag == el.BODY:
        if not state.in_body:
            state.in_body = 1
            push(page, el.BODY, attributes)
        return
    if tag == el.HEAD:
        return
    if (flags & el.SKIPPED and not (tag == el.NOSCRIPT and state.with_noscript)) or _is_twin(page, tag, attributes):
        if not flags & el.IN_HEAD:
            _start_body(page)
        if not flags & el.VOID and not (tag == el.SVG and closed):
            skip_element(page, SKIPPED_ELEMENT, tag)
        return
    if not state.in_body and flags & el.IN_HEAD:
        return
    _start_body(page)
    if tag == el.BR:
        add_break(page)
        return
    state.images += tag == el.IMG
    if tag == el.TIME:
        state.times += 1
        note_time(page, attributes)
    if imply_ends(page, tag):
        push(page, tag, attributes)


@inner
def _read_start_tag(page: Page, at: Int) -> Int:
    """Do what the start tag at `at` does; return the place after it, or after its content where that is raw."""
    state = page.state[0]
    name = at + 1
    tag, name_end = _name(page, name)
    after, attributes, closed = read_attributes(page, name_end)
    state.tags += 1
    flags = _FLAGS[tag]
    if state.foreign > 0:
        if flags & el.BREAKOUT:
            break_out(page)
        if state.foreign > 0:
            if flags & el.RAW and tag != el.IFRAME and tag != el.TITLE and not closed:
                return _raw_end(page.data, after, name, name_end)
            if not closed and not flags & el.VOID:
                inside = _starts_html_inside(page, tag, name, name_end)
                skip_element(page, HTML_INSIDE if inside else SKIPPED_ELEMENT, tag)
            return after
    if tag == el.HTML:
        for row in range(attributes):
            if is_named(page, row, _LANG) and page.facts[LANGUAGE, 1] == 0:
                page.facts[LANGUAGE, 0], page.facts[LANGUAGE, 1] = page.attributes[row, 2], page.attributes[row, 3]
    elif tag == el.META:
        note_meta(page, attributes)
    elif tag == el.LINK:
        note_link(page, attributes)
    elif flags & el.RAW:
        return _read_raw(page, tag, name, name_end, after, attributes)
    elif state.skipping > 0 and top(page) != el.HEAD:
        _start_skipped(page, tag, closed)
    elif tag == el.MATH and not closed:
        end = _read_math(page, at, after)
        if end >= 0:
            return end
        _start_in_body(page, tag, attributes, closed)
    else:
        _start_in_body(page, tag, attributes, closed)
    return after


@inner
def _read_markup(page: Page, at: Int) -> Int:
    following = page.data[at + 1]
    if following == 33:
        return _after_declaration(page, at)
    if following == 63:
        return find_byte(page.data, at, GREATER_THAN) + 1
    return _read_end_tag(page, at) if following == 47 else _read_start_tag(page, at)


@inner
def _pass(page: Page, with_noscript: Int) -> None:
    state = page.state
    state[0].is_open = state[0].spaced = state[0].breaks = state[0].in_word = state[0].end = state[0].indent = 0
    state[0].blocks = state[0].elements = state[0].hints = state[0].links = state[0].bold = state[0].pre = 0
    state[0].skipping = state[0].foreign = state[0].depth = state[0].beyond = state[0].words = state[0].images = 0
    state[0].articles = state[0].times = state[0].declared = state[0].in_body = state[0].overflow = 0
    state[0].marks = state[0].tags = state[0].maths = state[0].math_lost = 0
    state[0].element = state[0].block = -1
    state[0].with_noscript = with_noscript
    page.counts[:] = 0
    page.facts[:] = 0
    push(page, el.HTML, np.int64(0))
    at: Int = np.int64(0)
    while at < page.data.size:
        at = _read_text(page, at)
        if at < page.data.size:
            at = _read_markup(page, at)
    close_to(page, np.int64(0))
    flush(page)
    for number in range(state[0].elements):
        element = page.elements[number]
        element.first = min(element.first, state[0].blocks)
        element.last = min(max(element.last, element.first), state[0].blocks)


@inner
def _characters(page: Page) -> Int:
    found = 0
    for number in range(page.state[0].blocks):
        found += page.blocks[number].characters
    return found


@entry
def read_page(page: Page) -> None:
    """Fill the arrays of `page` from its bytes, which are valid UTF-8."""
    _pass(page, np.int64(0))
    if page.data.size > 3000 and _characters(page) < 500:
        _pass(page, np.int64(1))
