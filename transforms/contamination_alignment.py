"""How much of a benchmark's text stands in a stretch of a document: alignment of words that tolerates edits.

Runs of at least `RUN` equal words, in the same order on both sides, as many words as possible: LCSk++ (Pavetić,
Žužić, Šikić 2014, "LCSk++: Practical similarity metric for long strings"), so that "the", "of" and "a" scattered
over a page make nothing up. Between two runs, words that are equal written together ("16-3" and "163"), equal words at
either end, and words in equal places count as well; what differs is classed: a number for a number, a capitalised word
for a capitalised one, other words.

Invariants: pure functions of both sequences. Cost: |unit| × |stretch| steps of some ns and 8 bytes; both are bounded by
the caller.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from transforms.contamination_words import FIGURE, WORD, Flags, Hashes, Kinds
from transforms.kernels import kernel

Integers = npt.NDArray[np.int64]
Cells = npt.NDArray[np.int32]
Marks = npt.NDArray[np.uint8]
Side = tuple[Hashes, Hashes, Kinds, Flags]
"""Hashes, powers, kinds and capitals of the words of one side."""

RUN: Final = 3
WIDER: Final = 4
"""A gap of n words is compared with up to this many times n + 1 words of the document, or with as many characters in
at most this squared times n words: "1,2,3" is one word, and three without its punctuation."""
MISSING: Final = 0
"""Marks of a unit's words: not there …"""
SAME: Final = 1
"""… there …"""
NUMBER_CHANGED: Final = 2
"""… another number (or variable) in its place …"""
NAME_CHANGED: Final = 3
"""… another capitalised word in its place."""


@kernel
def align(unit: Side, stretch: Side) -> tuple[Integers, Marks]:
    """Return for each word of `unit` its place in `stretch`, or -1, and its mark."""
    place = _common_runs(unit[0], stretch[0])
    marks = np.zeros(len(place), np.uint8)
    for i in range(len(place)):
        marks[i] = SAME if place[i] >= 0 else MISSING
    _fill_gaps(unit, stretch, place, marks)
    return place, marks


@kernel
def _common_runs(unit: Hashes, stretch: Hashes) -> Integers:
    """Return the places of LCSk++: best[i, j] words of unit[:i] in stretch[:j], run[i, j] equal ones that end there."""
    rows, columns = len(unit), len(stretch)
    best, run = np.zeros((rows + 1, columns + 1), np.int32), np.zeros((rows + 1, columns + 1), np.int32)
    for i in range(1, rows + 1):
        for j in range(1, columns + 1):
            value = max(best[i - 1, j], best[i, j - 1])
            if unit[i - 1] == stretch[j - 1]:
                length = run[i - 1, j - 1] + 1
                run[i, j] = length
                for size in range(RUN, min(length, 2 * RUN - 1) + 1):  # longer runs are made of these
                    value = max(value, best[i - size, j - size] + size)
            best[i, j] = value
    return _walk_back(best, run)


@kernel
def _walk_back(best: Cells, run: Cells) -> Integers:
    place = np.full(best.shape[0] - 1, np.int64(-1), np.int64)
    i, j = best.shape[0] - 1, best.shape[1] - 1
    while i > 0 and j > 0:
        if best[i, j] == best[i, j - 1]:
            j -= 1
        elif best[i, j] == best[i - 1, j]:
            i -= 1
        else:
            size = RUN
            while best[i, j] != best[i - size, j - size] + size:
                size += 1
            for back in range(1, size + 1):
                place[i - back] = j - back
            i -= size
            j -= size
    return place


@kernel
def _fill_gaps(unit: Side, stretch: Side, place: Integers, marks: Marks) -> None:
    """Compare what stands between two runs, before the first and behind the last."""
    i, total, end = np.int64(0), np.int64(len(place)), np.int64(len(stretch[0]))
    while i < total:
        if place[i] >= 0:
            i += 1
            continue
        j = i
        while j < total and place[j] < 0:
            j += 1
        low = place[i - 1] + 1 if i > 0 else np.int64(0)
        high = place[j] if j < total else end
        if i > 0 or j < total:
            _fill_gap(unit, stretch, (i, j), (low, high), place, marks)
        i = j


@kernel
def _fill_gap(
    unit: Side,
    stretch: Side,
    gap: tuple[np.int64, np.int64],
    there: tuple[np.int64, np.int64],
    place: Integers,
    marks: Marks,
) -> None:
    """Fill unit words gap[0]:gap[1], for which stretch words there[0]:there[1] are left."""
    i, j = gap
    low, high = there
    if i == 0:
        low = max(low, _back_to(unit, stretch, i, j, high))
    elif j == len(place):
        high = min(high, _forth_to(unit, stretch, i, j, low))
    if low < high and _joined_equal(unit, stretch, i, j, low, high):
        for word in range(i, j):
            place[word], marks[word] = min(low + (word - i), high - 1), SAME
        return
    while i < j and low < high and unit[0][i] == stretch[0][low]:
        place[i], marks[i] = low, SAME
        i += 1
        low += 1
    while i < j and low < high and unit[0][j - 1] == stretch[0][high - 1]:
        j -= 1
        high -= 1
        place[j], marks[j] = high, SAME
    count, wide = j - i, (low, high)
    if gap[0] == 0:
        wide = (max(np.int64(0), high - WIDER * count - WIDER), high)
    elif gap[1] == len(place):
        wide = (low, min(np.int64(len(stretch[0])), low + WIDER * count + WIDER))
    is_open = gap[0] == 0 or gap[1] == len(place)
    if is_open and 2 * _count_in_order(unit[0], stretch[0], (i, j), wide) > count:
        _match_in_order(unit[0], stretch[0], (i, j), wide, place, marks)
    elif count == high - low:
        _compare_in_place(unit, stretch, i, j, low, place, marks)
    elif low < high and _all_figures(unit[2], i, j) and _all_figures(stretch[2], low, high):
        for word in range(i, j):
            marks[word] = NUMBER_CHANGED
    elif not is_open and count < high - low <= WIDER * count + WIDER:
        _match_in_order(unit[0], stretch[0], (i, j), wide, place, marks)


@kernel
def _next_in_order(unit: Hashes, stretch: Hashes, word: np.int64, low: np.int64, high: np.int64) -> np.int64:
    """Return where the unit's word stands next in stretch[low:high], or -1."""
    for other in range(low, high):
        if stretch[other] == unit[word]:
            return np.int64(other)
    return np.int64(-1)


@kernel
def _count_in_order(
    unit: Hashes, stretch: Hashes, gap: tuple[np.int64, np.int64], there: tuple[np.int64, np.int64]
) -> np.int64:
    """Return how many words `_match_in_order` would find."""
    low, count = there[0], np.int64(0)
    for word in range(gap[0], gap[1]):
        other = _next_in_order(unit, stretch, np.int64(word), low, there[1])
        if other >= 0:
            low = other + 1
            count += 1
    return count


@kernel
def _match_in_order(
    unit: Hashes,
    stretch: Hashes,
    gap: tuple[np.int64, np.int64],
    there: tuple[np.int64, np.int64],
    place: Integers,
    marks: Marks,
) -> None:
    """Match words of the gap one after the other, where others stand between them (markup, labels)."""
    low = there[0]
    for word in range(gap[0], gap[1]):
        other = _next_in_order(unit, stretch, np.int64(word), low, there[1])
        if other >= 0:
            place[word], marks[word], low = other, SAME, other + 1


@kernel
def _back_to(unit: Side, stretch: Side, first: np.int64, last: np.int64, high: np.int64) -> np.int64:
    """Return where in `stretch`, before `high`, what would be unit words first:last begins: by characters or words."""
    power = np.uint64(1)
    for word in range(first, last):
        power *= unit[1][word]
    found = np.uint64(1)
    for back in range(1, min(WIDER * WIDER * (last - first), high) + 1):
        found *= stretch[1][high - back]
        if found == power:
            return high - back
    return max(np.int64(0), high - (last - first))


@kernel
def _forth_to(unit: Side, stretch: Side, first: np.int64, last: np.int64, low: np.int64) -> np.int64:
    """Return where in `stretch`, from `low`, what would be unit words first:last ends: by characters or words."""
    power = np.uint64(1)
    for word in range(first, last):
        power *= unit[1][word]
    found, end = np.uint64(1), np.int64(len(stretch[0]))
    for forth in range(min(WIDER * WIDER * (last - first), end - low)):
        found *= stretch[1][low + forth]
        if found == power:
            return low + forth + 1
    return min(end, low + (last - first))


@kernel
def _joined_equal(unit: Side, stretch: Side, first: np.int64, last: np.int64, low: np.int64, high: np.int64) -> bool:
    """Return whether both are the same characters, wherever words begin."""
    mine, other = np.uint64(0), np.uint64(0)
    mine_power, other_power = np.uint64(1), np.uint64(1)
    for word in range(first, last):
        mine = mine * unit[1][word] + unit[0][word]
        mine_power *= unit[1][word]
    for word in range(low, high):
        other = other * stretch[1][word] + stretch[0][word]
        other_power *= stretch[1][word]
    return bool(mine == other and mine_power == other_power)


@kernel
def _all_figures(kinds: Kinds, first: np.int64, last: np.int64) -> bool:
    for word in range(first, last):
        if kinds[word] != FIGURE:
            return False
    return bool(first < last)


@kernel
def _compare_in_place(
    unit: Side, stretch: Side, first: np.int64, last: np.int64, low: np.int64, place: Integers, marks: Marks
) -> None:
    """Compare as many words on both sides one by one."""
    for word in range(first, last):
        other = low + word - first
        if unit[0][word] == stretch[0][other]:
            place[word], marks[word] = other, SAME
        elif unit[2][word] != WORD and stretch[2][other] != WORD:
            marks[word] = NUMBER_CHANGED
        elif unit[3][word] and stretch[3][other]:
            marks[word] = NAME_CHANGED
