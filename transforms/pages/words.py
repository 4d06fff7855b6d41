"""A score of a block's words: those of class, id and role attributes around it and, of short blocks, its own.

Each word is hashed with how far away its element is (0, 1 or 2, farther) into `BUCKETS` weights, each element's name
likewise; the score is the sum of weights over the block's 12 nearest elements, in 1/1024, and goes to the trees as one
more feature. Sums are of integers. Cost: linear in blocks times 12, each element's words added up once.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from transforms.kernels import kernel
from transforms.pages.characters import LETTER, word_end
from transforms.pages.compiled import Int
from transforms.pages.page import Page

BUCKETS: Final = 1 << 17
"""Number of weights."""
LIMIT: Final = 15 * 1024
"""Scores are cut to ± this."""

_MASK: Final = np.uint64(BUCKETS - 1)
_LEVELS: Final = 12
_WORDS_OF_ELEMENT: Final = 12
_SHORT: Final = 10
_FIRST: Final = 6
_LAST: Final = 6
_LAST_BYTES: Final = 40
_MOST_OF_BLOCK: Final = 2 * _SHORT
_MOST: Final = _LEVELS * (_WORDS_OF_ELEMENT + 1) + _MOST_OF_BLOCK
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)

Weights = npt.NDArray[np.int16]


@kernel
def _bucket(value: np.uint64, salt: Int) -> Int:
    mixed = (value + np.uint64(salt) * np.uint64(0xD1B54A32D192ED03)) * _MIX
    return np.int64((mixed >> np.uint64(40)) & _MASK)


@kernel
def _ring(level: Int) -> Int:
    return np.int64(0) if level == 0 else np.int64(1) if level < 3 else np.int64(2)


@kernel
def _last_buckets(page: Page, at: Int, found: npt.NDArray[np.int32], size: Int) -> Int:
    """Add the buckets of the words that begin in a block's last bytes: a caption's source stands there."""
    block, count = page.blocks[at], 0
    end = np.int64(block.end)
    place: Int = max(np.int64(block.start), end - _LAST_BYTES)
    _, place, _ = word_end(page.text, place, end, LETTER)
    while place < end and count < _LAST:
        start, place, key = word_end(page.text, place, end, LETTER)
        if place > start:
            found[size] = _bucket(key, np.int64(15))
            size += 1
            count += 1
    return size


@kernel
def _own_buckets(page: Page, at: Int, found: npt.NDArray[np.int32], size: Int) -> Int:
    """Add the buckets of a block's first words and pairs of them; those of short blocks are apart."""
    block = page.blocks[at]
    salt, most = np.int64(11), _SHORT
    if block.words > _SHORT:
        salt, most = np.int64(13), _FIRST
    place: Int = np.int64(block.start)
    before, count = np.uint64(77), 0
    while place < block.end and count < most:
        start, place, key = word_end(page.text, place, np.int64(block.end), LETTER)
        if place > start:
            found[size], found[size + 1] = (
                _bucket(key, salt),
                _bucket(key * np.uint64(31) + before, salt + 1),
            )
            size += 2
            before = key
            count += 1
    return _last_buckets(page, at, found, size) if block.words > _SHORT else size


@kernel
def block_buckets(page: Page, at: Int, found: npt.NDArray[np.int32]) -> Int:
    """Set the buckets of a block in `found`, `MOST_BUCKETS` long; return their number."""
    size: Int = np.int64(0)
    number = np.int64(page.blocks[at].element)
    for level in range(_LEVELS):
        if number < 0:
            break
        element = page.elements[number]
        for word in range(element.first_word, min(element.last_word, element.first_word + _WORDS_OF_ELEMENT)):
            found[size] = _bucket(np.uint64(page.words[word]), _ring(level))
            size += 1
        found[size] = _bucket(np.uint64(element.tag), np.int64(4) + min(np.int64(level), np.int64(4)))
        size += 1
        number = np.int64(element.parent)
    return _own_buckets(page, at, found, size)


MOST_BUCKETS: Final = _MOST
"""Most buckets of a block."""


@kernel
def _element_sums(page: Page, weights: Weights) -> npt.NDArray[np.int32]:
    """Return per element the sums of its words' weights in the three rings."""
    sums = np.zeros((page.state[0].elements, 3), np.int32)
    for number in range(page.state[0].elements):
        element = page.elements[number]
        for word in range(element.first_word, min(element.last_word, element.first_word + _WORDS_OF_ELEMENT)):
            for ring in range(3):
                sums[number, ring] += weights[_bucket(np.uint64(page.words[word]), ring)]
    return sums


@kernel
def fill_scores(page: Page, weights: Weights, bias: Int, scores: npt.NDArray[np.int32]) -> None:
    """Set the score of each block."""
    sums = _element_sums(page, weights)
    own = np.zeros(_MOST_OF_BLOCK, np.int32)
    for at in range(page.state[0].blocks):
        score: Int = np.int64(bias)
        number = np.int64(page.blocks[at].element)
        for level in range(_LEVELS):
            if number < 0:
                break
            tag = np.uint64(page.elements[number].tag)
            score += sums[number, _ring(level)]
            score += weights[_bucket(tag, np.int64(4) + min(np.int64(level), np.int64(4)))]
            number = np.int64(page.elements[number].parent)
        for place in range(_own_buckets(page, at, own, np.int64(0))):
            score += weights[own[place]]
        scores[at] = max(np.int64(-LIMIT), min(np.int64(LIMIT), np.int64(score)))
