"""What the first stage found around a block, as numbers for the second: all integers.

Probabilities are in 1/65536, means of them by words, ratios in 1/1024, -1 where there is nothing to speak of. Groups of
columns: `NEAR` the block itself, three on each side, the ranges around it, windows, the page; `OUTSIDE` three blocks on
each side of each range; `RUN` its place to the page's main run, the blocks one after the other with the greatest sum of
words times probability above one half; `GROUPS` other blocks of the same path and the same siblings; `CONTAINER` the
list or table around it and what stands before and after; `WORDS` how likely the blocks are that share its words, the
rare ones apart: a teaser of another page's text shares few with the main text, whatever the language.
Cost: linear in blocks and words.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from transforms.kernels import kernel
from transforms.pages.compiled import Int
from transforms.pages.features import ONE, RANGES, log, share
from transforms.pages.forest import CERTAIN, Int32s
from transforms.pages.surroundings import Surroundings

NEAR, OUTSIDE, RUN, GROUPS, CONTAINER, WORDS, CONTEXT = 0, 17, 21, 27, 30, 34, 40
"""Columns; `CONTEXT` is their number."""

_WINDOWS: Final = (4, 12)
_BESIDE: Final = 3
_RARE: Final = 4

Ints = npt.NDArray[np.int64]


@kernel
def _mean(sums: Ints, first: Int, last: Int) -> Int:
    mean: Int = (sums[last, 0] - sums[first, 0]) // max(np.int64(1), sums[last, 1] - sums[first, 1])
    return mean


@kernel
def _beside(sums: Ints, first: Int, last: Int) -> Int:
    """Return the mean of the blocks just before `first` and from `last` on; -1 where there are none."""
    count = np.int64(sums.shape[0] - 1)
    start, end = max(np.int64(0), first - _BESIDE), min(count, last + _BESIDE)
    words = sums[first, 1] - sums[start, 1] + sums[end, 1] - sums[last, 1]
    total = sums[first, 0] - sums[start, 0] + sums[end, 0] - sums[last, 0]
    return total // words if words > 0 else np.int64(-1)


@kernel
def _fill_near(sums: Ints, found: Int32s, ranges: Int32s, at: Int, most: Int, row: Int32s) -> None:
    count, total = found.size, sums[found.size, 0]
    row[0] = found[at]
    for step in range(1, 4):
        row[2 * step - 1] = found[at - step] if at >= step else -1
        row[2 * step] = found[at + step] if at + step < count else -1
    for level in range(RANGES):
        first, last = np.int64(ranges[level, 0]), np.int64(ranges[level, 1])
        row[7 + level] = _mean(sums, first, last)
        row[OUTSIDE + level] = _beside(sums, first, last)
    row[11] = _mean(sums, max(0, at - _WINDOWS[0]), min(count, at + _WINDOWS[0] + 1))
    row[12] = _mean(sums, max(0, at - _WINDOWS[1]), min(count, at + _WINDOWS[1] + 1))
    row[13], row[14], row[15] = _mean(sums, 0, count), log(total // CERTAIN), most
    row[16] = sums[at + 1, 0] * ONE // max(np.int64(1), total)


@kernel
def _main_run(found: Int32s, sizes: Int32s) -> tuple[Int, Int]:
    """Return the blocks one after the other with the greatest sum of words times probability above one half."""
    best, best_first, best_last = np.int64(0), np.int64(0), np.int64(0)
    current, first = np.int64(0), np.int64(0)
    for at in range(found.size):
        if current <= 0:
            current, first = np.int64(0), np.int64(at)
        current += (np.int64(found[at]) - CERTAIN // 2) * sizes[at]
        if current > best:
            best, best_first, best_last = current, first, np.int64(at + 1)
    return best_first, best_last


@kernel
def _fill_run(sums: Ints, first: Int, last: Int, at: Int, row: Int32s) -> None:
    if first == last:
        row[:6] = -2
        return
    row[0] = -1 if at < first else 1 if at >= last else 0
    row[1] = first - at if at < first else at - last + 1 if at >= last else 0
    row[2] = log(sums[first, 1] - sums[at + 1, 1] if at < first else sums[at, 1] - sums[last, 1])
    row[3] = share(sums[last, 0] - sums[first, 0], sums[sums.shape[0] - 1, 0])
    row[4] = _mean(sums, first, last)
    row[5] = share(sums[at, 1] - sums[first, 1], sums[last, 1] - sums[first, 1]) if first <= at < last else -1


@kernel
def _group_sums(found: Int32s, around: Surroundings) -> tuple[Ints, Ints]:
    """Return sums of words times probability, and of words, of each group by path and by siblings."""
    paths = np.zeros((around.groups[:, 0].max() + 2, 2), np.int64)
    siblings = np.zeros((around.groups[:, 1:].max() + 2, 2), np.int64)
    for at in range(found.size):
        size = np.int64(around.sizes[at])
        for which in range(3):
            number = around.groups[at, which]
            if number >= 0:
                sums = paths if which == 0 else siblings
                sums[number, 0] += found[at] * size
                sums[number, 1] += size
    return paths, siblings


@kernel
def _others(sums: Ints, number: Int, value: Int, size: Int) -> Int:
    """Return the mean of a group without one of its blocks; -1 where no other is there."""
    if number < 0 or sums[number, 1] <= size:
        return np.int64(-1)
    mean: Int = (sums[number, 0] - value * size) // (sums[number, 1] - size)
    return mean


@kernel
def _fill_container(sums: Ints, first: Int, last: Int, row: Int32s) -> None:
    row[0] = row[1] = row[2] = -1
    row[3] = last - first
    if last - first < 2:
        return
    count = np.int64(sums.shape[0] - 1)
    row[0] = _mean(sums, first, last)
    row[1] = _mean(sums, max(np.int64(0), first - _BESIDE), first) if first > 0 else -1
    row[2] = _mean(sums, last, min(count, last + _BESIDE)) if last < count else -1


@kernel
def _word_sums(found: Int32s, around: Surroundings) -> Ints:
    """Return for each word the sum of the probabilities of blocks that have it, and their number."""
    sums = np.zeros((around.words.max() + 1 if around.words.size else 0, 2), np.int64)
    first = 0
    for at in range(found.size):
        for place in range(first, around.ends[at]):
            sums[around.words[place], 0] += found[at]
            sums[around.words[place], 1] += 1
        first = around.ends[at]
    return sums


@kernel
def _fill_words(words: Int32s, sums: Ints, value: Int, row: Int32s) -> None:
    """Set number of words; share that others have, and main text; means of others; the same of rare words."""
    shared, main, rare, total, of_rare = np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for word in words:
        others = sums[word, 1] - 1
        if others == 0:
            continue
        rest = sums[word, 0] - value
        shared += 1
        main += rest * 2 >= CERTAIN
        total += rest // others
        if others < _RARE:
            rare += 1
            of_rare += rest // others
    count = np.int64(words.size)
    row[0], row[1] = log(count), share(shared, count)
    row[2] = share(main, count) if count else -1
    row[3] = total // shared if shared else -1
    row[4] = share(rare, count)
    row[5] = of_rare // rare if rare else -1


@kernel
def fill_context(around: Surroundings, found: Int32s, rows: Int32s) -> None:
    """Set the columns of `rows`, (blocks, CONTEXT), from what the first stage found."""
    count = found.size
    if count == 0:
        return
    sums = np.zeros((count + 1, 2), np.int64)
    for at in range(count):
        sums[at + 1, 0] = sums[at, 0] + found[at] * np.int64(around.sizes[at])
        sums[at + 1, 1] = sums[at, 1] + around.sizes[at]
    run_first, run_last = _main_run(found, around.sizes)
    paths, siblings = _group_sums(found, around)
    of_words = _word_sums(found, around)
    most, start = np.int64(found.max()), np.int64(0)
    for at in range(count):
        row, value, size = rows[at], np.int64(found[at]), np.int64(around.sizes[at])
        _fill_near(sums, found, around.ranges[at], np.int64(at), most, row)
        _fill_run(sums, run_first, run_last, np.int64(at), row[RUN:GROUPS])
        row[GROUPS] = _others(paths, np.int64(around.groups[at, 0]), value, size)
        row[GROUPS + 1] = _others(siblings, np.int64(around.groups[at, 1]), value, size)
        row[GROUPS + 2] = _others(siblings, np.int64(around.groups[at, 2]), value, size)
        _fill_container(sums, np.int64(around.containers[at, 0]), np.int64(around.containers[at, 1]), row[CONTAINER:])
        end = np.int64(around.ends[at])
        _fill_words(around.words[start:end], of_words, value, row[WORDS:])
        start = end
