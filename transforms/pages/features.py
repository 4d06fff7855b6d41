"""Numbers that tell a page's blocks apart, for the classifier: all integers, so that no machine rounds otherwise.

Ratios are in 1/1024, logarithms in 1/64 of log2(1 + x) (linear between powers of two). Groups of columns, by where they
begin: `OWN` the block's text, place and hints; `NEAR` distances to hinted ancestors; `LEVELS` the four smallest ranges
of blocks around it (size, links, long text, share, punctuation, candidate score); `SIBLINGS` elements of the same
parent, name and class; `PATH` blocks of the same element path; `CANDIDATE` its place relative to the element with the
best readability-like score; `TITLE` headings and words shared with the title; `NEIGHBOURS` three blocks on each side;
`PAGE` the whole page and what it declares to be; `REPEATS` text that came before.
Cost: linear in blocks and elements, some 40 ns a number.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from transforms.kernels import kernel
from transforms.pages import elements as el
from transforms.pages.characters import DIGIT, GOLDEN, LETTER, slot, word_end
from transforms.pages.compiled import Int
from transforms.pages.page import TITLE_FACT, Page

ONE: Final = 1024
"""A ratio of 1."""
OWN, NEAR, LEVELS, SIBLINGS, PATH, CANDIDATE, TITLE, NEIGHBOURS, WINDOW, PAGE = (
    0,
    45,
    50,
    86,
    94,
    99,
    104,
    109,
    133,
    136,
)
REPEATS: Final = 157
FEATURES: Final = 159
"""Columns of a block's row."""
RANGES: Final = 4
"""Ranges of blocks around a block: those of its ancestors, each larger than the one before."""

_MOST_WORDS: Final = 30
_TITLE_BYTES: Final = 1000
_TITLE_SLOTS: Final = 256

Ints = npt.NDArray[np.int64]


@kernel
def log(value: Int) -> Int:
    """Return 64 log2(1 + value), linear between powers of two; 0 for what is below 0."""
    value = np.int64(max(value, 0) + 1)
    bits = np.int64(0)
    while value >> (bits + 1):
        bits += 1
    return 64 * bits + (((value << 6) >> bits) & 63)


@kernel
def share(part: Int, whole: Int) -> Int:
    """Return part / whole in 1/1024."""
    return part * ONE // max(np.int64(1), np.int64(whole))


@kernel
def _sums(page: Page) -> Ints:
    """Return running sums over blocks: characters, linked ones, those of long text, punctuation of sentences."""
    blocks, count = page.blocks, page.state[0].blocks
    sums = np.zeros((count + 1, 4), np.int64)
    for at in range(count):
        block = blocks[at]
        is_long = block.words >= 12 and block.linked * 2 < block.characters
        sums[at + 1, 0] = sums[at, 0] + block.characters
        sums[at + 1, 1] = sums[at, 1] + block.linked
        sums[at + 1, 2] = sums[at, 2] + (block.characters if is_long else 0)
        sums[at + 1, 3] = sums[at, 3] + block.commas + block.stops
    return sums


@kernel
def _scores(page: Page, sums: Ints) -> Ints:
    """Return the readability-like score of elements: text and commas of the blocks in them, less where links are."""
    scores = np.zeros(page.state[0].elements, np.int64)
    for at in range(page.state[0].blocks):
        block = page.blocks[at]
        if block.words < 10 or block.characters < 25:
            continue
        score = (
            (ONE * (1 + block.commas) + min(3 * ONE, block.characters * ONE // 100))
            * (ONE - share(block.linked, block.characters))
            // ONE
        )
        parent = page.elements[block.element].parent
        weight = np.int64(ONE)
        for level in range(4):
            if parent < 0:
                break
            scores[parent] += score * weight // ONE
            weight = weight // 2 if level == 0 else weight * 6 // 10
            parent = page.elements[parent].parent
    for number in range(scores.size):
        if scores[number] > 0:
            element = page.elements[number]
            characters = sums[element.last, 0] - sums[element.first, 0]
            linked = sums[element.last, 1] - sums[element.first, 1]
            score = scores[number] * (ONE - share(linked, characters)) // ONE
            score = score * 115 // 100 if element.own & el.IS_WANTED else score
            scores[number] = score * 80 // 100 if element.own & el.IS_UNWANTED else score
    return scores


@kernel
def _best(scores: Ints) -> Int:
    best, found = np.int64(0), np.int64(-1)
    for number in range(scores.size):
        if scores[number] > best:
            best, found = scores[number], np.int64(number)
    return found


@kernel
def _size(count: Int) -> Int:
    size = np.int64(16)
    while size < count:
        size *= 2
    return size


@kernel
def _group(keys: npt.NDArray[np.uint64], characters: Ints, linked: Ints) -> tuple[Ints, Ints]:
    """Return for each key (0: none) the number of its group, -1 for none, and per group size, characters and links."""
    table = np.zeros((_size(2 * keys.size), 2), np.uint64)
    sums = np.zeros((keys.size + 1, 3), np.int64)
    numbers = np.full(keys.size, -1, np.int64)
    groups = np.int64(0)
    for at in range(keys.size):
        if keys[at] == 0:
            continue
        place = slot(table, keys[at])
        if table[place, 0] == 0:
            table[place, 0], table[place, 1] = keys[at], np.uint64(groups)
            groups += 1
        number = np.int64(table[place, 1])
        numbers[at] = number
        sums[number, 0] += 1
        sums[number, 1] += characters[at]
        sums[number, 2] += linked[at]
    return numbers, sums


@kernel
def _sibling_groups(page: Page, sums: Ints) -> tuple[Ints, Ints]:
    count = page.state[0].elements
    keys = np.zeros(count, np.uint64)
    characters, linked = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for number in range(count):
        element = page.elements[number]
        if element.last > element.first:
            key = element.signature * np.uint64(31) + np.uint64(element.parent + 1) * GOLDEN
            keys[number] = max(key, np.uint64(1))
            characters[number] = sums[element.last, 0] - sums[element.first, 0]
            linked[number] = sums[element.last, 1] - sums[element.first, 1]
    return _group(keys, characters, linked)


@kernel
def _block_groups(page: Page, by_path: Int) -> tuple[Ints, Ints]:
    """Group blocks by the names and classes of their element and its parent, or by their text."""
    count = page.state[0].blocks
    keys = np.zeros(count, np.uint64)
    characters, linked = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for at in range(count):
        block = page.blocks[at]
        key = block.hash
        if by_path:
            element = page.elements[block.element]
            key = element.signature
            if element.parent >= 0:
                key = key * np.uint64(31) + page.elements[element.parent].signature
        keys[at] = max(key, np.uint64(1))
        characters[at], linked[at] = block.characters, block.linked
    return _group(keys, characters, linked)


@kernel
def _title_words(page: Page) -> tuple[npt.NDArray[np.uint64], Int]:
    """Return a table of the words of the page's title, and their number."""
    table = np.zeros((_TITLE_SLOTS, 2), np.uint64)
    count: Int = np.int64(0)
    at: Int = page.facts[TITLE_FACT, 0]
    end = min(page.facts[TITLE_FACT, 1], at + _TITLE_BYTES)
    while at < end and count < _TITLE_SLOTS // 2:
        start, at, key = word_end(page.data, at, end, LETTER | DIGIT)
        if at > start:
            table[slot(table, key), 0] = key
            count += 1
    return table, count


@kernel
def _class_of(page: Page, number: Int) -> Int:
    kind: Int = el.CLASS[page.elements[number].tag]
    return kind


@kernel
def _fill_own(page: Page, at: Int, sums: Ints, repeats: Int, row: npt.NDArray[np.int32]) -> None:
    block, count = page.blocks[at], page.state[0].blocks
    characters = block.characters
    row[0], row[1], row[2] = log(characters), log(block.words), share(characters, block.words) // 16
    row[3], row[4], row[5] = (
        share(block.linked, characters),
        share(block.bold, characters),
        share(block.marks, characters),
    )
    row[6], row[7] = block.commas, block.stops
    row[8], row[9] = share(block.digits, characters), share(block.capitals, characters)
    row[10], row[11] = log(block.pieces), share(block.pieces, characters)
    row[12], row[13] = block.starts_upper, block.ends_sentence
    row[14], row[15] = _class_of(page, block.element), _class_of(page, block.inner)
    row[16], row[17], row[18] = page.elements[block.element].depth, share(at, count), share(sums[at, 0], sums[count, 0])
    row[19], row[20], row[21] = log(at), log(count - at), log(repeats - 1)
    for bit in range(el.HINTS):
        row[22 + bit] = (block.hints >> bit) & 1


@kernel
def _fill_near(page: Page, number: Int, row: npt.NDArray[np.int32]) -> None:
    """Set distances to the next wanted, unwanted and comments' ancestor, and how many there are."""
    row[0] = row[1] = row[2] = 30
    row[3] = row[4] = 0
    for distance in range(30):
        if number < 0:
            break
        own = page.elements[number].own
        if own & el.IS_WANTED:
            row[3] += 1
            row[0] = min(row[0], distance)
        if own & el.IS_UNWANTED:
            row[4] += 1
            row[1] = min(row[1], distance)
        if own & el.IS_COMMENTS:
            row[2] = min(row[2], distance)
        number = page.elements[number].parent


@kernel
def _find_ranges(page: Page, at: Int, ranges: npt.NDArray[np.int32]) -> None:
    """Set the ranges of blocks around block `at`: first, last and the element they are of, -1 for the page."""
    first, last, level = np.int64(at), np.int64(at + 1), 0
    number = page.blocks[at].element
    while number >= 0 and level < RANGES:
        element = page.elements[number]
        if element.first < first or element.last > last:
            first, last = min(np.int64(element.first), first), max(np.int64(element.last), last)
            ranges[level, 0], ranges[level, 1], ranges[level, 2] = first, last, number
            level += 1
        number = element.parent
    for rest in range(level, RANGES):
        ranges[rest, 0], ranges[rest, 1], ranges[rest, 2] = 0, page.state[0].blocks, -1


@kernel
def _fill_levels(
    page: Page, at: Int, sums: Ints, scores: Ints, best: Int, ranges: npt.NDArray[np.int32], row: npt.NDArray[np.int32]
) -> None:
    total = sums[page.state[0].blocks, 0]
    for level in range(RANGES):
        first, last, number = ranges[level, 0], ranges[level, 1], ranges[level, 2]
        characters = sums[last, 0] - sums[first, 0]
        place = 9 * level
        row[place], row[place + 1] = log(characters), share(sums[last, 1] - sums[first, 1], characters)
        row[place + 2], row[place + 3] = share(sums[last, 2] - sums[first, 2], characters), share(characters, total)
        row[place + 4], row[place + 5] = log(last - first), share(sums[last, 3] - sums[first, 3], characters)
        row[place + 6] = share(scores[number], scores[best]) if number >= 0 and best >= 0 else 0
        row[place + 7] = _class_of(page, number) if number >= 0 else 0
        row[place + 8] = share(at - first, last - first)


@kernel
def _fill_siblings(
    page: Page, number: Int, groups: Ints, sums: Ints, row: npt.NDArray[np.int32], found: npt.NDArray[np.int32]
) -> None:
    """Set, for the two nearest elements with siblings of their kind: distance, their number, mean size, links.

    `found` gets the numbers of the two groups, -1 for none.
    """
    found[0] = found[1] = -1
    for place in range(8):
        row[place] = 0
    row[0] = row[4] = -1
    for which in range(2):
        for distance in range(8):
            if number < 0:
                return
            group = groups[number]
            number = page.elements[number].parent
            if group >= 0 and sums[group, 0] >= 2:
                found[which] = group
                row[4 * which], row[4 * which + 1] = distance, log(sums[group, 0])
                row[4 * which + 2] = log(sums[group, 1] // sums[group, 0])
                row[4 * which + 3] = share(sums[group, 2], sums[group, 1])
                break


@kernel
def _fill_candidate(page: Page, at: Int, sums: Ints, best: Int, around: Int, row: npt.NDArray[np.int32]) -> None:
    if best < 0:
        row[0] = row[1] = row[2] = row[3] = row[4] = -2
        return
    first, last = page.elements[best].first, page.elements[best].last
    characters = sums[last, 0] - sums[first, 0]
    row[0] = -1 if at < first else 1 if at >= last else 0
    row[1] = first - at if at < first else at - last + 1 if at >= last else 0
    row[2] = share(characters, sums[page.state[0].blocks, 0])
    row[3] = share(sums[last, 1] - sums[first, 1], characters)
    row[4] = around < 0 or page.elements[around].first <= at < page.elements[around].last


@kernel
def _around(page: Page, best: Int) -> Int:
    """Return the nearest ancestor of the best candidate with more blocks than it has, within 20."""
    if best < 0:
        return np.int64(-1)
    first, last = page.elements[best].first, page.elements[best].last
    number = np.int64(page.elements[best].parent)
    for _ in range(20):
        if number < 0 or page.elements[number].first != first or page.elements[number].last != last:
            break
        number = np.int64(page.elements[number].parent)
    return number


@kernel
def _fill_title(
    page: Page, at: Int, words: npt.NDArray[np.uint64], count: Int, headings: Ints, row: npt.NDArray[np.int32]
) -> None:
    """Set distance to the first h1, class of and distance to the last heading, words shared with the title."""
    first_h1, last, last_class = headings
    row[0] = -1000 if first_h1 < 0 else max(-60, min(200, at - first_h1))
    row[1], row[2] = last_class, 99 if last < 0 else min(99, at - last)
    shared, total = np.int64(0), np.int64(0)
    block = page.blocks[at]
    place: Int = np.int64(block.start)
    while place < block.end and block.words <= _MOST_WORDS and count > 0:
        start, place, key = word_end(page.text, place, np.int64(block.end), LETTER | DIGIT)
        if place > start:
            total += 1
            shared += words[slot(words, key), 0] == key
    row[3], row[4] = share(shared, total), share(shared, count)


@kernel
def _fill_neighbours(page: Page, at: Int, sums: Ints, row: npt.NDArray[np.int32]) -> None:
    count = page.state[0].blocks
    place = 0
    for distance in (-1, -2, -3, 1, 2, 3):
        other = at + distance
        row[place] = row[place + 1] = row[place + 2] = -1
        row[place + 3] = 0
        if 0 <= other < count:
            block = page.blocks[other]
            row[place], row[place + 1] = log(block.words), share(block.linked, block.characters)
            row[place + 2], row[place + 3] = _class_of(page, block.element), block.ends_sentence
        place += 4
    first, last = max(0, at - 8), min(count, at + 9)
    characters = sums[last, 0] - sums[first, 0]
    row[place], row[place + 1] = log(characters), share(sums[last, 1] - sums[first, 1], characters)
    row[place + 2] = share(sums[last, 2] - sums[first, 2], characters)


@kernel
def _page_row(page: Page, sums: Ints) -> npt.NDArray[np.int32]:
    """Return what all blocks of the page share."""
    state = page.state[0]
    count = state.blocks
    row = np.zeros(21, np.int32)
    prose, in_items, headings, items, cells = np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for at in range(count):
        block = page.blocks[at]
        kind = _class_of(page, block.element)
        prose += block.words >= 20 and block.linked * 3 < block.characters
        in_items += block.characters if kind == el.ITEM_CLASS else 0
        items += kind == el.ITEM_CLASS
        headings += el.H1_CLASS <= kind <= el.LAST_HEADING_CLASS
        cells += kind == el.CELL_CLASS
    total = sums[count, 0]
    row[0], row[1], row[2], row[3] = log(count), log(total), share(sums[count, 1], total), log(prose)
    row[4], row[5], row[6] = share(in_items, total), share(headings, count), share(items, count)
    row[7], row[8], row[9] = share(cells, count), share(sums[count, 2], total), log(state.images)
    row[10], row[11] = log(state.articles), log(state.times)
    for bit in range(9):
        row[12 + bit] = (state.declared >> bit) & 1
    return row


@kernel
def _fill_repeats(page: Page, at: Int, texts: Ints, seen: Ints, row: npt.NDArray[np.int32]) -> None:
    """Set how often the block's text came before, and the words up to here that repeat a run of earlier blocks.

    `seen` holds per text how often it came, where it came last and the repeated words up to there.
    """
    number = texts[at]
    repeated, before = np.int64(0), np.int64(0)
    if seen[number, 0] > 0:
        repeated = page.blocks[at].words
        before = seen[number, 1] - 1
        if before >= 0 and at > 0 and texts[before] == texts[at - 1]:
            repeated += seen[texts[at - 1], 2]
    row[0], row[1] = log(seen[number, 0]), log(repeated)
    seen[number, 0] += 1
    seen[number, 1], seen[number, 2] = at, repeated


@kernel
def _first_h1(page: Page) -> Int:
    for at in range(page.state[0].blocks):
        if _class_of(page, page.blocks[at].element) == el.H1_CLASS:
            return np.int64(at)
    return np.int64(-1)


@kernel
def fill_features(
    page: Page, rows: npt.NDArray[np.int32], ranges: npt.NDArray[np.int32], alike: npt.NDArray[np.int32]
) -> None:
    """Set the features of each block: columns 0 to `FEATURES` of `rows`, and `ranges` (blocks, RANGES, 3).

    `alike` (blocks, 3) gets the numbers of the group of the same path and of the two nearest groups of siblings.
    """
    sums = _sums(page)
    scores = _scores(page, sums)
    best = _best(scores)
    around = _around(page, best)
    groups, group_sums = _sibling_groups(page, sums)
    texts, text_sums = _block_groups(page, np.int64(0))
    seen = np.zeros((texts.size + 1, 3), np.int64)
    paths, path_sums = _block_groups(page, np.int64(1))
    words, word_count = _title_words(page)
    whole = _page_row(page, sums)
    headings = np.array([_first_h1(page), -1, -1])
    total = sums[page.state[0].blocks, 0]
    for at in range(page.state[0].blocks):
        row, element = rows[at], page.blocks[at].element
        _fill_own(page, at, sums, text_sums[texts[at], 0], row[OWN:NEAR])
        _fill_near(page, element, row[NEAR:LEVELS])
        _find_ranges(page, at, ranges[at])
        _fill_levels(page, at, sums, scores, best, ranges[at], row[LEVELS:SIBLINGS])
        _fill_siblings(page, element, groups, group_sums, row[SIBLINGS:PATH], alike[at, 1:])
        alike[at, 0] = paths[at]
        path = path_sums[paths[at]]
        row[PATH], row[PATH + 1], row[PATH + 2] = log(path[0]), log(path[1]), share(path[1], total)
        row[PATH + 3], row[PATH + 4] = share(path[2], path[1]), log(path[1] // path[0])
        _fill_candidate(page, at, sums, best, around, row[CANDIDATE:TITLE])
        _fill_title(page, at, words, word_count, headings, row[TITLE:NEIGHBOURS])
        _fill_neighbours(page, at, sums, row[NEIGHBOURS:PAGE])
        row[PAGE : PAGE + 21] = whole
        _fill_repeats(page, np.int64(at), texts, seen, row[REPEATS:])
        if el.H1_CLASS <= row[14] <= el.LAST_HEADING_CLASS:
            headings[1], headings[2] = at, row[14]
