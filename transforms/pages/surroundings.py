"""What stands around a page's blocks: ranges, groups alike, the list or table around, words shared with other blocks.

It is found once a page and read by `transforms.pages.context`, after the first stage has said what it thinks of each
block. Words are runs of letters of five bytes and more, `MOST_OF_BLOCK` of a block and `MOST_WORDS` of a page: more
would let a page with words that collide in the table cost quadratic time. Cost: linear in text and blocks.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from transforms.kernels import kernel
from transforms.pages import elements as el
from transforms.pages.characters import LETTER, slot, word_end
from transforms.pages.compiled import Int
from transforms.pages.features import RANGES
from transforms.pages.page import Page

MOST_OF_BLOCK: Final = 40
"""Words of a block that are compared with other blocks'."""
MOST_WORDS: Final = 20_000
"""Words of a page that are compared."""
LEAST_BYTES: Final = 5
"""Bytes of the shortest word that is compared: shorter ones are mostly those of every text."""

_LEVELS: Final = 24

Int32s = npt.NDArray[np.int32]


class Surroundings(NamedTuple):
    """What stands around each block.

    Attributes:
        sizes: words of each block.
        ranges: (blocks, RANGES, 3): first, last and element of the ranges around it.
        groups: (blocks, 3): numbers of the group of blocks of the same path and of the two nearest groups of sibling
            elements, -1 for none; the two kinds are numbered apart.
        containers: (blocks, 2): first and last block of the nearest list, table or pre with other blocks, itself else.
        words: numbers of the words of all blocks, one block's after the other's, each once a block.
        ends: where each block's words end.
    """

    sizes: Int32s
    ranges: Int32s
    groups: Int32s
    containers: Int32s
    words: Int32s
    ends: Int32s


@kernel
def _fill_words(page: Page, words: Int32s, ends: Int32s, table: npt.NDArray[np.uint64]) -> Int:
    """Set words and their ends; return the number of words set."""
    size, known = np.int64(0), np.int64(0)
    last = np.full(MOST_WORDS, -1, np.int32)
    for at in range(ends.size):
        block, first = page.blocks[at], size
        place: Int = np.int64(block.start)
        while place < block.end and size - first < MOST_OF_BLOCK and size < MOST_WORDS:
            start, place, key = word_end(page.text, place, np.int64(block.end), LETTER)
            if place - start < LEAST_BYTES:
                continue
            row = slot(table, max(key, np.uint64(1)))
            if table[row, 0] == 0:
                table[row, 0], table[row, 1] = max(key, np.uint64(1)), np.uint64(known)
                known += 1
            number = np.int64(table[row, 1])
            if last[number] != at:
                last[number] = at
                words[size] = number
                size += 1
        ends[at] = size
    return size


@kernel
def _fill_containers(page: Page, containers: Int32s) -> None:
    for at in range(containers.shape[0]):
        containers[at, 0], containers[at, 1] = at, at + 1
        number = np.int64(page.blocks[at].element)
        for _ in range(_LEVELS):
            if number < 0:
                break
            element = page.elements[number]
            tag = element.tag
            if (tag == el.TABLE or tag == el.UL or tag == el.OL or tag == el.DL) and element.last - element.first > 1:
                containers[at, 0], containers[at, 1] = element.first, element.last
                break
            number = np.int64(element.parent)


def surroundings_of(page: Page, ranges: Int32s, groups: Int32s) -> Surroundings:
    """Return what stands around the blocks of `page`; ranges and groups are those that the features found."""
    count = len(ranges)
    ends, containers = np.zeros(count, np.int32), np.zeros((count, 2), np.int32)
    words = np.empty(min(MOST_WORDS, count * MOST_OF_BLOCK) + 1, np.int32)
    table = np.zeros((1 << 16, 2), np.uint64)
    size = _fill_words(page, words, ends, table)
    _fill_containers(page, containers)
    sizes = np.maximum(page.blocks["words"][:count], 1).astype(np.int32)
    assert ranges.shape == (count, RANGES, 3)
    return Surroundings(sizes, ranges, groups, containers, words[:size], ends)
