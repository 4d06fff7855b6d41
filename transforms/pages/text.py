"""Blocks of text: characters go in with blanks folded and counted by kind, until a block element's tag ends the block.

Outside `pre`, runs of blanks are one space, as browsers show them; inside, blanks and line ends stay as they are.
"""

from __future__ import annotations

import numpy as np

from transforms.pages.characters import (
    BLANK,
    CLASSES,
    DIGIT,
    LETTER,
    UPPER,
    hash_bytes,
    point_at,
    reference_at,
    write_point,
)
from transforms.pages.compiled import Bool, Int, inner
from transforms.pages.page import MATH_BYTE, Page

SPACE_KIND, NOTHING_KIND, MARK_KIND, WORD_KIND, IDEOGRAPH_KIND = range(5)
_MAX_INDENT = 200


@inner
def flush(page: Page) -> None:
    """End the open block, if there is one; blanks at its end go, and a block of blanks with them."""
    state = page.state[0]
    if not state.is_open:
        return
    state.is_open = 0
    block = page.blocks[state.blocks]
    end = state.end
    while end > block.start and CLASSES[page.text[end - 1]] & BLANK:
        end -= 1
    if end == block.start or state.blocks + 2 >= page.blocks.size:
        state.overflow |= end > block.start
        state.end = block.start
        return
    block.end = end
    block.ends_sentence = _ends_sentence(page, block.start, end)
    block.hash = hash_bytes(page.text, block.start, end)
    page.text[end] = 10
    state.end = end + 1
    state.blocks += 1


@inner
def _ends_sentence(page: Page, start: Int, end: Int) -> Bool:
    last = page.text[end - 1]
    if last == 46 or last == 33 or last == 63 or last == 58 or last == 34 or last == 59:
        return True
    return end - start >= 3 and page.text[end - 3] == 0xE3 and page.text[end - 2] == 0x80 and last == 0x82  # 。


@inner
def open_block(page: Page, point: Int) -> None:
    """Begin a block whose first character is `point`."""
    state = page.state[0]
    block = page.blocks[state.blocks]
    block.element = state.block if state.block >= 0 else state.element
    block.inner = state.element
    block.start = state.end
    block.end = state.end
    block.hints = state.hints
    block.characters = block.words = block.linked = block.links = block.bold = block.marks = block.commas = 0
    block.stops = block.digits = block.capitals = block.pieces = block.ends_sentence = 0
    block.starts_upper = 65 <= point <= 90
    block.hash = 0
    state.is_open = 1
    state.spaced = state.breaks = state.in_word = 0
    if state.pre > 0:
        for _ in range(min(state.indent, _MAX_INDENT)):
            page.text[state.end] = 32
            state.end += 1
    state.indent = 0


@inner
def kind_of(point: Int) -> Int:
    """Return what a code point counts as, without Unicode's tables: blocks of punctuation, ideographs, else words."""
    if point < 0x80:
        bits = CLASSES[point]
        return SPACE_KIND if bits & BLANK else WORD_KIND if bits & (LETTER | DIGIT) else MARK_KIND
    if point == 0xA0 or point == 0x3000 or 0x2002 <= point <= 0x200A:
        return SPACE_KIND
    if point == 0x200B or point == 0xFEFF or point == 0xAD:
        return NOTHING_KIND
    if point < 0xC0 or 0x2000 <= point <= 0x27BF or 0x3000 <= point <= 0x303F:
        return MARK_KIND
    if 0xFF00 <= point <= 0xFF0F or 0xFF1A <= point <= 0xFF20:
        return MARK_KIND
    return IDEOGRAPH_KIND if 0x3040 <= point <= 0x9FFF else WORD_KIND


@inner
def _blank(page: Page, point: Int) -> None:
    state = page.state[0]
    state.in_word = 0
    if state.pre > 0:
        if point == 10:
            state.indent = 0
        elif point != 13 and not state.is_open:
            state.indent += 1
        if state.is_open and point != 13 and state.end + 8 < page.text.size:
            state.end = write_point(page.text, state.end, point if point == 9 or point == 10 else 32)
    elif state.is_open:
        state.spaced = 1


@inner
def _write_space(page: Page) -> None:
    """Write the blank that is due."""
    state = page.state[0]
    if state.spaced:
        last = page.text[state.end - 1]
        if state.end > page.blocks[state.blocks].start and last != 10 and last != 32:
            page.text[state.end] = 32
            state.end += 1
        state.spaced = 0


@inner
def _write(page: Page, point: Int) -> None:
    """Write a visible character, after the blank that is due."""
    _write_space(page)
    page.state[0].end = write_point(page.text, page.state[0].end, point)


@inner
def _count(page: Page, point: Int, kind: Int) -> None:
    """Count a character that was written: by kind, and where a word begins. Two ideographs are taken for a word."""
    state = page.state[0]
    block = page.blocks[state.blocks]
    block.characters += 1
    if kind == MARK_KIND:
        if point != 39 and point != 0x2019:  # apostrophes stand inside words
            state.in_word = 0
        block.marks += 1
        if point == 44 or point == 0xFF0C or point == 0x3001:
            block.commas += 1
        elif point == 46 or point == 33 or point == 63 or point == 0x3002 or point == 0xFF01 or point == 0xFF1F:
            block.stops += 1
        return
    if kind == IDEOGRAPH_KIND:
        block.words += block.characters & 1
        state.in_word = 0
        return
    block.words += 1 - state.in_word
    state.in_word = 1
    if point < 0x80:
        block.digits += (CLASSES[point] & DIGIT) != 0
        block.capitals += (CLASSES[point] & UPPER) != 0


@inner
def add_point(page: Page, point: Int) -> None:
    """Add a character to the open block, or open one for it."""
    state = page.state[0]
    kind = kind_of(point)
    if kind == SPACE_KIND:
        _blank(page, point)
        return
    if kind == NOTHING_KIND or point == 0:
        return
    if not state.is_open:
        open_block(page, point)
    _write(page, point)
    _count(page, point, kind)
    state.breaks = 0


@inner
def _add_run(page: Page, at: Int, end: Int) -> Int:
    """Add the ASCII letters and digits from `at` on to the open block at once; return where they end."""
    state = page.state[0]
    block = page.blocks[state.blocks]
    _write_space(page)
    start, place, digits, capitals = at, state.end, 0, 0
    while at < end and CLASSES[page.data[at]] & (LETTER | DIGIT):
        byte = page.data[at]
        page.text[place] = byte
        digits += (CLASSES[byte] & DIGIT) != 0
        capitals += (CLASSES[byte] & UPPER) != 0
        place += 1
        at += 1
    state.end = place
    state.breaks = 0
    block.characters += at - start
    block.digits += digits
    block.capitals += capitals
    block.words += 1 - state.in_word
    state.in_word = 1
    return at


@inner
def add_text(page: Page, start: Int, end: Int) -> None:
    """Add data[start:end], character references resolved."""
    state = page.state[0]
    before = page.blocks[state.blocks].characters if state.is_open else 0
    at = start
    while at < end:
        if state.is_open and CLASSES[page.data[at]] & (LETTER | DIGIT):
            at = _add_run(page, at, end)
            continue
        if page.data[at] == 38:
            point, second, length = reference_at(page.data, at, page.table)
            if 0 < length <= end - at:
                add_point(page, point)
                if second:
                    add_point(page, second)
                at += length
                continue
        point, length = point_at(page.data, at)
        add_point(page, point)
        at += length
    if state.is_open:
        block = page.blocks[state.blocks]
        added = block.characters - before
        block.pieces += 1
        block.linked += added if state.links > 0 else 0
        block.bold += added if state.bold > 0 else 0


@inner
def add_mark(page: Page, kind: Int, start: Int, end: Int) -> None:
    """Mark the place where the text ends now."""
    state = page.state[0]
    if state.marks < page.marks.size:
        mark = page.marks[state.marks]
        mark.kind, mark.place, mark.start, mark.end = kind, state.end, start, end
        state.marks += 1


@inner
def add_math(page: Page, kind: Int, start: Int, end: Int) -> None:
    """Add a piece of mathematics, source data[start:end], as one character and one word of the block."""
    state = page.state[0]
    if state.marks >= page.marks.size:
        return
    if not state.is_open:
        open_block(page, np.int64(0))
    _write(page, np.int64(MATH_BYTE))
    state.end -= 2  # the two bytes that U+00FF takes
    add_mark(page, kind, start, end)
    page.text[state.end] = MATH_BYTE
    state.end += 1
    state.in_word = 0
    state.maths += 1
    block = page.blocks[state.blocks]
    block.characters += 1
    block.words += 1


@inner
def add_break(page: Page) -> None:
    """Add a line break: two in a row end the block, but in `pre`."""
    state = page.state[0]
    state.in_word = 0
    if not state.is_open:
        return
    if state.pre > 0:
        page.text[state.end] = 10
        state.end += 1
        return
    state.breaks += 1
    state.spaced = 0
    if state.breaks >= 2:
        flush(page)
    elif page.text[state.end - 1] != 10:
        page.text[state.end] = 10
        state.end += 1
