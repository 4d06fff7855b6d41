"""The stack of open elements: what a tag opens and closes, as in HTML's tree construction, without a tree.

Followed of WHATWG HTML 13.2.6: implied ends of p, li, dd, dt, option, table parts, headings, nested a and button; the
scopes of end tags; formatting elements closed across others lose their effect (there is no reconstruction); end tags
without a match are passed over; below `MAX_DEPTH` nothing is opened. Not followed: foster parenting out of tables,
which moves text that no author placed.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from transforms.pages import elements as el
from transforms.pages.attributes import read_hints
from transforms.pages.compiled import Bool, Int, inner
from transforms.pages.page import (
    CODE_END,
    CODE_START,
    HTML_INSIDE,
    LINK_END,
    LINK_START,
    MAX_DEPTH,
    SKIPPED_ELEMENT,
    Page,
)
from transforms.pages.text import add_mark, flush

_ANY, _BUTTON, _LIST, _TABLE = (np.int64(scope) for scope in range(4))
_IN, _OUT, _NO = np.int64(1), np.int64(-1), np.int64(0)
FLAGS: Final = el.FLAGS


@inner
def top(page: Page) -> Int:
    """Return the tag of the innermost open element; the root is never closed before the end."""
    depth = page.state[0].depth
    return page.stack[depth - 1, 1] if depth > 0 else el.UNKNOWN


@inner
def put(page: Page, element: Int, tag: Int) -> Bool:
    """Put an element on the stack; False where it is full."""
    state = page.state[0]
    if state.depth >= MAX_DEPTH:
        return False
    page.stack[state.depth, 0] = element
    page.stack[state.depth, 1] = tag
    page.counts[tag] += 1
    state.depth += 1
    return True


@inner
def skip_element(page: Page, element: Int, tag: Int) -> None:
    """Open an element whose text is left out; `element` is SKIPPED_ELEMENT or HTML_INSIDE."""
    if put(page, element, tag):
        page.state[0].skipping += 1
        page.state[0].foreign += tag == el.SVG or tag == el.MATH


@inner
def _effect(page: Page, tag: Int, step: Int) -> None:
    """Count an element that changes the text inside it in (1) or out (-1)."""
    state = page.state[0]
    if tag == el.A:
        state.links += step
    elif tag == el.B or tag == el.STRONG:
        state.bold += step
    elif tag == el.PRE:
        state.pre += step
        state.indent = 0


@inner
def push(page: Page, tag: Int, attributes: Int) -> None:
    """Open an element with the attributes that were read."""
    state = page.state[0]
    if FLAGS[tag] & el.BLOCK:
        flush(page)
    if state.elements + 1 >= page.elements.size:
        state.overflow = 1
        return
    number = state.elements
    state.elements += 1
    element = page.elements[number]
    element.parent, element.tag, element.depth = state.element, tag, state.depth
    element.first = element.last = state.blocks
    element.children = element.number = 0
    read_hints(page, element, attributes)
    element.hints = state.hints | element.own
    element.block = number if FLAGS[tag] & el.BLOCK else state.block
    if state.element >= 0:
        parent = page.elements[state.element]
        parent.children += tag == el.LI or _is_cell(tag)
        element.number = parent.children
    if FLAGS[tag] & el.VOID:
        return
    if not put(page, number, tag):
        state.beyond += 1
        return
    state.element, state.block, state.hints = number, element.block, element.hints
    _effect(page, tag, _IN)
    _mark_start(page, tag, attributes)


@inner
def _mark_start(page: Page, tag: Int, attributes: Int) -> None:
    state = page.state[0]
    if tag == el.A:
        if state.is_open:
            page.blocks[state.blocks].links += 1
        for row in range(attributes):
            start = page.attributes[row, 0]
            if page.attributes[row, 1] - start == 4 and page.data[start] | 32 == 104:  # href
                add_mark(page, LINK_START, page.attributes[row, 2], page.attributes[row, 3])
                break
    elif _is_code(tag):
        add_mark(page, CODE_START, _NO, _NO)


@inner
def _is_code(tag: Int) -> Bool:
    return tag == el.CODE or tag == el.TT or tag == el.KBD or tag == el.SAMP


@inner
def pop(page: Page) -> None:
    """Close the innermost open element."""
    state = page.state[0]
    state.depth -= 1
    number, tag = page.stack[state.depth, 0], page.stack[state.depth, 1]
    page.counts[tag] -= 1
    if number < 0:
        state.skipping -= 1
        state.foreign -= tag == el.SVG or tag == el.MATH
        return
    if FLAGS[tag] & el.BLOCK:
        flush(page)
    page.elements[number].last = state.blocks + state.is_open
    if tag == el.A:
        add_mark(page, LINK_END, _NO, _NO)
    elif _is_code(tag):
        add_mark(page, CODE_END, _NO, _NO)
    _effect(page, tag, _OUT)
    if state.depth > 0 and page.stack[state.depth - 1, 0] >= 0:
        state.element = page.stack[state.depth - 1, 0]
        state.hints, state.block = page.elements[state.element].hints, page.elements[state.element].block
    elif state.depth == 0:
        state.element = state.block = -1
        state.hints = 0


@inner
def close_to(page: Page, depth: Int) -> None:
    """Close elements until `depth` are open."""
    while page.state[0].depth > depth:
        pop(page)


@inner
def _ends_scope(tag: Int, scope: Int) -> Bool:
    if scope == _TABLE:
        return tag == el.HTML or tag == el.TABLE or tag == el.TEMPLATE
    if FLAGS[tag] & el.SCOPE or (scope == _BUTTON and tag == el.BUTTON):
        return True
    return scope == _LIST and (tag == el.OL or tag == el.UL)


@inner
def _in_scope(page: Page, tag: Int, scope: Int) -> Int:
    """Return the stack's row of `tag` if it is open in `scope`, else -1."""
    for row in range(page.state[0].depth - 1, -1, -1):
        other = page.stack[row, 1]
        if other == tag:
            return row
        if _ends_scope(other, scope):
            return -1
    return -1


@inner
def _close_in_scope(page: Page, tag: Int, scope: Int) -> Bool:
    row = _in_scope(page, tag, scope) if page.counts[tag] > 0 else -1
    if row >= 0:
        close_to(page, row)
    return row >= 0


@inner
def _close_formatting(page: Page, tag: Int) -> None:
    """Close a formatting element; one that has blocks inside stays on the stack without effect."""
    crossed = False
    for row in range(page.state[0].depth - 1, -1, -1):
        other = page.stack[row, 1]
        if other == tag:
            if not crossed:
                close_to(page, row)
                return
            page.counts[tag] -= 1
            page.counts[el.UNKNOWN] += 1
            page.stack[row, 1] = el.UNKNOWN
            _effect(page, tag, _OUT)
            return
        if FLAGS[other] & el.SCOPE:
            return
        crossed |= (FLAGS[other] & el.SPECIAL) != 0


@inner
def _close_inline(page: Page, tag: Int) -> None:
    for row in range(page.state[0].depth - 1, -1, -1):
        other = page.stack[row, 1]
        if other == tag:
            close_to(page, row)
            return
        if FLAGS[other] & el.SPECIAL:
            return


@inner
def _close_heading(page: Page) -> None:
    for row in range(page.state[0].depth - 1, -1, -1):
        flags = FLAGS[page.stack[row, 1]]
        if flags & el.HEADING:
            close_to(page, row)
            return
        if flags & el.SCOPE:
            return


@inner
def _is_cell(tag: Int) -> Bool:
    return tag == el.TD or tag == el.TH


@inner
def _is_table_part(tag: Int) -> Bool:
    if tag == el.TABLE or tag == el.TR or tag == el.TD or tag == el.TH or tag == el.CAPTION:
        return True
    return tag == el.TBODY or tag == el.THEAD or tag == el.TFOOT


@inner
def close_by_tag(page: Page, tag: Int) -> None:
    """Do what an end tag does outside skipped elements."""
    if FLAGS[tag] & el.FORMATTING:
        _close_formatting(page, tag)
    elif tag == el.P:
        if not _close_in_scope(page, tag, _BUTTON):
            flush(page)
    elif tag == el.LI:
        _close_in_scope(page, tag, _LIST)
    elif FLAGS[tag] & el.HEADING:
        _close_heading(page)
    elif _is_table_part(tag):
        _close_in_scope(page, tag, _TABLE)
    elif FLAGS[tag] & el.BLOCK:
        _close_in_scope(page, tag, _ANY)
    else:
        _close_inline(page, tag)


@inner
def _close_item(page: Page, first: Int, second: Int) -> None:
    """End the open item of the same list: `first` or `second` with nothing special in between but div, p, address."""
    if page.counts[first] + page.counts[second] == 0:
        return
    for row in range(page.state[0].depth - 1, -1, -1):
        other = page.stack[row, 1]
        if other == first or other == second:  # noqa: SIM109
            close_to(page, row)
            return
        if FLAGS[other] & el.SPECIAL and other != el.ADDRESS and other != el.DIV and other != el.P:
            return


@inner
def _open_in_table(page: Page, tag: Int) -> Bool:
    """Do the implied ends of a table's part; False where there is no table for it."""
    table = _in_scope(page, el.TABLE, _TABLE) if page.counts[el.TABLE] > 0 else -1
    if table < 0:
        return False
    row = page.state[0].depth - 1
    if tag == el.TBODY or tag == el.THEAD or tag == el.TFOOT:
        close_to(page, table + 1)
    elif tag == el.TR:
        while row > table and page.stack[row, 1] != el.TR and page.stack[row, 1] != el.CAPTION:
            row -= 1
        if row > table:
            close_to(page, row)
    else:
        while (
            row > table and page.stack[row, 1] != el.TD and page.stack[row, 1] != el.TH and page.stack[row, 1] != el.TR
        ):
            row -= 1
        if row > table:
            close_to(page, row + 1 if page.stack[row, 1] == el.TR else row)
        if top(page) != el.TR:
            push(page, el.TR, _NO)
    return True


@inner
def imply_ends(page: Page, tag: Int) -> Bool:
    """Close what a start tag ends; False where the tag itself is passed over."""
    if FLAGS[tag] & el.ENDS_P and page.state[0].beyond == 0:
        _close_in_scope(page, el.P, _BUTTON)
    if tag == el.LI:
        _close_item(page, el.LI, el.LI)
    elif tag == el.DD or tag == el.DT:
        _close_item(page, el.DD, el.DT)
    elif FLAGS[tag] & el.HEADING:
        if FLAGS[top(page)] & el.HEADING:
            pop(page)
    elif tag == el.A:
        if page.counts[el.A] > 0:
            _close_formatting(page, el.A)
    elif tag == el.BUTTON:
        _close_in_scope(page, el.BUTTON, _ANY)
    elif tag == el.FORM:
        is_first: Bool = page.counts[el.FORM] == 0
        return is_first
    elif _is_table_part(tag) and tag != el.TABLE and tag != el.CAPTION:
        return _open_in_table(page, tag)
    return True


@inner
def close_in_skipped(page: Page, tag: Int) -> Bool:
    """Do what an end tag does inside a skipped element; True where it ends something outside, too."""
    state = page.state[0]
    row = state.depth - 1
    while row >= 0 and page.stack[row, 0] < 0 and page.stack[row, 1] != tag:
        row -= 1
    if row >= 0 and page.stack[row, 0] < 0:
        close_to(page, row)
        return False
    if state.foreign > 0 or not FLAGS[tag] & el.BLOCK or top(page) == el.SELECT:
        return False
    row = state.depth - 1
    while row >= 0 and page.stack[row, 0] < 0:
        if page.stack[row, 1] == el.OBJECT or page.stack[row, 1] == el.TEMPLATE:
            return False
        row -= 1
    close_to(page, row + 1)
    return True


@inner
def break_out(page: Page) -> None:
    """Close foreign content for a tag of HTML, but for HTML inside `foreignObject`, `desc` or `title`."""
    state = page.state[0]
    row = state.depth - 1
    while row >= 0 and page.stack[row, 1] != el.SVG and page.stack[row, 1] != el.MATH:
        if page.stack[row, 0] == HTML_INSIDE:
            return
        row -= 1
    if row < 0:
        return
    while row > 0 and page.stack[row - 1, 0] == SKIPPED_ELEMENT and state.foreign > 0:
        other = page.stack[row - 1, 1]
        if other != el.SVG and other != el.MATH:
            break
        row -= 1
    close_to(page, row)
