"""How chosen blocks stand to each other: in one row of a table, in one `pre`, or apart.

A block stands in a *row* when it is all that its cell holds and has one line: then a row of cells is a line of text.
Cells with more in them are layout, and their blocks stand apart. Cost: a walk to the cell or `pre` for each block.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from transforms.kernels import kernel
from transforms.pages import elements as el
from transforms.pages.compiled import Int
from transforms.pages.page import Page

_CELL_LEVELS: Final = 16

Int32s = npt.NDArray[np.int32]


@kernel
def _row_of(page: Page, at: Int) -> Int:
    """Return the element that is the row of a block alone in its cell, -1 for others."""
    number = np.int64(page.blocks[at].element)
    for _ in range(_CELL_LEVELS):
        if number < 0:
            break
        element = page.elements[number]
        if element.last - element.first != 1:
            return np.int64(-1)
        if element.tag == el.TD or element.tag == el.TH:
            for place in range(page.blocks[at].start, page.blocks[at].end):
                if page.text[place] == 10:
                    return np.int64(-1)
            return np.int64(element.parent)
        number = np.int64(element.parent)
    return np.int64(-1)


@kernel
def _pre_of(page: Page, at: Int) -> Int:
    """Return the `pre` that a block stands in, -1 where it does not."""
    if not page.blocks[at].hints & el.IS_PRE:
        return np.int64(-1)
    number = np.int64(page.blocks[at].element)
    while number >= 0 and page.elements[number].tag != el.PRE:
        number = np.int64(page.elements[number].parent)
    return number


@kernel
def fill_groups(page: Page, rows: Int32s, pres: Int32s) -> None:
    """Set for each block the elements of its row and of its `pre`, -1 where there is none."""
    for at in range(page.state[0].blocks):
        pres[at] = _pre_of(page, np.int64(at))
        rows[at] = np.int64(-1) if pres[at] >= 0 else _row_of(page, np.int64(at))


@kernel
def fill_items(page: Page, items: Int32s, depths: Int32s) -> None:
    """Set for each block the list item around it, -1 where there is none or a cell is nearer, and how deep it lies."""
    for at in range(items.size):
        number = np.int64(page.blocks[at].element)
        while number >= 0:
            tag = page.elements[number].tag
            if tag == el.LI or tag == el.TD or tag == el.TH:
                break
            number = np.int64(page.elements[number].parent)
        items[at], depths[at] = -1, 0
        if number >= 0 and page.elements[number].tag == el.LI:
            items[at] = number
            number = np.int64(page.elements[number].parent)
            while number >= 0:
                depths[at] += page.elements[number].tag == el.LI
                number = np.int64(page.elements[number].parent)


@kernel
def even_out(page: Page, found: Int32s, rows: Int32s, pres: Int32s) -> None:
    """Give the blocks of a row, and those of a `pre`, their mean probability by words: they are kept whole."""
    first = np.int64(0)
    while first < found.size:
        last = first + 1
        while last < found.size and (
            (rows[first] >= 0 and rows[last] == rows[first]) or (pres[first] >= 0 and pres[last] == pres[first])
        ):
            last += 1
        if last - first > 1:
            words, sums = np.int64(0), np.int64(0)
            for at in range(first, last):
                weight = max(np.int64(1), np.int64(page.blocks[at].words))
                words += weight
                sums += weight * found[at]
            found[first:last] = sums // words
        first = last


@kernel
def join(page: Page, chosen: npt.NDArray[np.bool_], rows: Int32s, text: npt.NDArray[np.uint8]) -> Int:
    """Write the chosen blocks, a line each, cells of a row behind tabs; return the number of bytes.

    `text` holds as much as all blocks; a byte of mathematics stays as it is.
    """
    size, before = np.int64(0), np.int64(-1)
    for at in range(chosen.size):
        if not chosen[at]:
            continue
        if size:
            same = before >= 0 and rows[at] == before
            text[size] = 9 if same else 10
            size += 1
        before = np.int64(rows[at])
        for place in range(page.blocks[at].start, page.blocks[at].end):
            text[size] = page.text[place]
            size += 1
    return size
