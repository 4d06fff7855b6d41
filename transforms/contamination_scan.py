"""Finding units of an index in documents: seeds, stretches that show enough of them, alignment.

Invariants: what is found in a document depends on the document and the index alone. Cost: 3 to 10 ns per word where
nothing is found, beside finding and hashing the words; an alignment of |unit| × (|unit| + 2 · `SLACK` + …) steps per
stretch that shows enough seeds of a unit. A word begins at most `POSTINGS` seeds, and stretches of a unit do not begin
within each other, so the time for a hostile text is linear in its length.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transforms.contamination_alignment import MISSING, NAME_CHANGED, NUMBER_CHANGED, SAME, Side, align
from transforms.contamination_index import Index
from transforms.contamination_units import SEED, seed_at
from transforms.contamination_words import (
    FOLDING,
    WORD,
    Flags,
    Hashes,
    Integers,
    fold,
    fold_spans,
    hash_folded,
    number_words,
)
from transforms.kernels import kernel, prefetch
from transforms.segmentation import Bytes, Words, find_words, text_buffers
from transforms.unicode_tables import CLASS

PORTION: Final = 1 << 19
"""Bytes of text at a time, or one document."""
SLACK: Final = 40
"""Words that may stand between the parts of a unit, beyond its own number of words."""
AHEAD: Final = 128
"""Words looked up at a time; changes no outcome."""
CLOSE: Final = 8
"""Words of a document between two that are the unit's, up to which they are one span."""


@dataclass(frozen=True, slots=True)
class Match:
    """A unit found in a document.

    Of a weight of `total`, `same` is there and `changed` is there as another number or name. The total has the words
    that do not count only where they are missing: they are no evidence for the item, but some against it. Of all words
    of the unit, `numbers` and `names` are changed and `missing` have nothing like them. `longest` words in sequence
    are equal; `spans` are byte positions within the text.
    """

    document: int
    unit: int
    same: int
    changed: int
    total: int
    numbers: int
    names: int
    missing: int
    longest: int
    spans: tuple[tuple[int, int], ...]


def find_matches(text: pa.LargeStringArray, index: Index, least: int, of: int) -> Iterator[Match]:
    """Yield what is found in each of `text`, in order, where same + changed words are at least least/of of a unit.

    A unit may be found several times in a document.
    """
    _, places = text_buffers(text)
    for first, words in _portions(text):
        for match in _matches_in(words, index, least, of):
            yield _placed(match, first, int(places[first + match.document]))


def find_seeds(text: pa.LargeStringArray, index: Index) -> Integers:
    """Return rows (document, seed of the index), a row for each place where a seed stands."""
    rows = [np.zeros((0, 2), np.int64)]
    for first, words in _portions(text):
        found = _seeds_in(words, index)
        found[:, 0] = np.searchsorted(words.documents, found[:, 0], side="right") - 1 + first
        rows.append(found)
    return np.concatenate(rows)


def _portions(text: pa.LargeStringArray) -> Iterator[tuple[int, Words]]:
    """Yield the first document and the words of portions of `text`."""
    _, places = text_buffers(text)
    first = 0
    while first < len(text):
        last = int(np.searchsorted(places, places[first] + PORTION))
        last = min(max(last, first + 1), len(text))
        yield first, find_words(text.slice(first, last - first))
        first = last


def _placed(match: Match, first: int, base: int) -> Match:
    spans = tuple((start - base, end - base) for start, end in match.spans)
    return replace(match, document=match.document + first, spans=spans)


def _seeds_in(words: Words, index: Index) -> Integers:
    """Return rows (word, seed) of all seeds that begin at a word."""
    hashes, places = hash_folded(words)
    documents = np.searchsorted(places, words.documents)
    seeds = index.seeds
    found = _look_up(hashes, documents, seeds.hashes, seeds.directory, seeds.filter)
    if len(found):
        found[:, 0] = places[found[:, 0]]
    return found


def _matches_in(words: Words, index: Index, least: int, of: int) -> Iterator[Match]:
    found = _seeds_in(words, index)
    if not len(found):
        return
    stretches = _stretches(found, words.documents, index)
    units, folded = index.units, index.units.folded
    side = (folded.hashes, folded.powers, folded.kinds, folded.capital)
    passes = _passing(
        stretches, words.data, words.starts, words.ends, (FOLDING, CLASS, number_words()), side,
        (units.first, units.last, units.weight, index.total), np.int64(least), np.int64(of),
    )  # fmt: skip
    for document, unit, start, end in stretches[passes].tolist():
        yield _look_into(words, index, document, unit, start, end)


def _stretches(found: Integers, documents: Integers, index: Index) -> Integers:
    """Return rows (document, unit, first word, last word) that show enough seeds of a unit, in this order."""
    word, seed = found[:, 0], found[:, 1]
    unit, offset = index.seeds.unit[seed].astype(np.int64), index.seeds.offset[seed].astype(np.int64)
    document = np.searchsorted(documents, word, side="right") - 1
    order = np.lexsort((word, unit, document))
    sizes = index.units.last - index.units.first
    columns = (document[order], unit[order], word[order], offset[order])
    longest = np.int64(sizes.max(initial=0))
    return _group(*columns, documents, sizes, index.needs, longest)


def _look_into(words: Words, index: Index, document: int, unit: int, start: int, end: int) -> Match:
    """Align the unit with the words start:end, and count."""
    units = index.units
    mine = slice(int(units.first[unit]), int(units.last[unit]))
    side = units.folded
    other = fold(words, start, end)
    place, marks = align(
        (side.hashes[mine], side.powers[mine], side.kinds[mine], side.capital[mine]),
        (other.hashes, other.powers, other.kinds, other.capital),
    )
    weight = units.weight[mine]
    changed = (marks == NUMBER_CHANGED) | (marks == NAME_CHANGED)
    against = int(((weight == 0) & (marks == MISSING)).sum())
    same, total = int(weight[marks == SAME].sum()), int(index.total[unit]) + against
    numbers, names, missing = (int((marks == mark).sum()) for mark in (NUMBER_CHANGED, NAME_CHANGED, MISSING))
    there = np.unique(place[place >= 0]) + start
    return Match(
        document, unit, same, int(weight[changed].sum()), total, numbers, names, missing,
        _longest_run(place), _spans(words, there),
    )  # fmt: skip


def _longest_run(place: Integers) -> int:
    breaks = np.flatnonzero((place[1:] != place[:-1] + 1) | (place[:-1] < 0)) + 1
    edges = np.concatenate([[0], breaks, [len(place)]])
    starts = edges[:-1]
    return int((np.diff(edges) * (place[starts] >= 0)).max(initial=0))


def _spans(words: Words, there: Integers) -> tuple[tuple[int, int], ...]:
    breaks = np.flatnonzero(np.diff(there) > CLOSE + 1)
    first = there[np.concatenate([[0], breaks + 1])]
    last = there[np.concatenate([breaks, [len(there) - 1]])]
    return tuple(zip(words.starts[first].tolist(), words.ends[last].tolist(), strict=True))


@kernel
def _passing(
    stretches: Integers,
    data: Bytes,
    starts: Integers,
    ends: Integers,
    tables: tuple[npt.NDArray[np.int32], Bytes, Hashes],
    side: Side,
    units: tuple[Integers, Integers, npt.NDArray[np.uint8], Integers],
    least: np.int64,
    of: np.int64,
) -> Flags:
    """Return which stretches have at least least/of of the weight of their unit, by alignment.

    Not aligned at all are those in which not even half as much stands in any order.
    """
    passes = np.zeros(len(stretches), np.bool_)
    for row in range(len(stretches)):
        unit, start, end = stretches[row, 1], stretches[row, 2], stretches[row, 3]
        low, high, total = units[0][unit], units[1][unit], units[3][unit]
        weight = units[2][low:high]
        mine = (side[0][low:high], side[1][low:high], side[2][low:high], side[3][low:high])
        other = fold_spans(data, starts[start:end], ends[start:end], tables[0], tables[1], tables[2])
        if _most(mine, other[0], weight) * 2 * of < least * total:
            continue
        _, marks = align(mine, other)
        covered = np.int64(0)
        for word in range(len(weight)):
            if marks[word] != MISSING:
                covered += weight[word]
            elif weight[word] == 0:
                total += 1
        passes[row] = covered > 0 and covered * of >= least * total
    return passes


@kernel
def _most(unit: Side, stretch: Hashes, weight: npt.NDArray[np.uint8]) -> np.int64:
    """Return the weight of the words of the unit that stand in the stretch, or may be changed there."""
    most = np.int64(0)
    for word in range(len(weight)):
        there = unit[2][word] != WORD or unit[3][word]
        if not there:
            for other in stretch:
                if other == unit[0][word]:
                    there = True
                    break
        most += weight[word] * there
    return most


@kernel
def _look_up(hashes: Hashes, documents: Integers, seeds: Hashes, directory: Integers, bits: Hashes) -> Integers:
    """Return rows (word, seed) of all seeds that begin at a word.

    `AHEAD` words at a time, so that what is looked up of one comes from memory while others are hashed.
    """
    found, count = np.empty((256, 2), np.int64), 0
    filter_shift, directory_shift = np.uint64(58), np.uint64(64)
    size = len(bits)
    while size > 1:
        size >>= 1
        filter_shift -= np.uint64(1)
    size = len(directory) - 1
    while size > 1:
        size >>= 1
        directory_shift -= np.uint64(1)
    values, ahead = np.empty(AHEAD, np.uint64), np.empty(AHEAD, np.int64)
    for document in range(len(documents) - 1):
        stop = documents[document + 1] - SEED + 1
        for first in range(documents[document], stop, AHEAD):
            last, left = min(first + AHEAD, stop), 0
            for word in range(first, last):
                value = seed_at(hashes, np.int64(word))
                values[word - first] = value
                prefetch(bits, np.int64(value >> filter_shift >> np.uint64(6)))
            for word in range(first, last):
                bit = values[word - first] >> filter_shift
                if bits[bit >> np.uint64(6)] >> (bit & np.uint64(63)) & np.uint64(1):
                    ahead[left] = word
                    left += 1
                    prefetch(directory, np.int64(values[word - first] >> directory_shift))
            for word in ahead[:left]:
                prefetch(seeds, directory[values[word - first] >> directory_shift])
            for word in ahead[:left]:
                value = values[word - first]
                bucket = value >> directory_shift
                for seed in range(directory[bucket], directory[bucket + np.uint64(1)]):
                    if seeds[seed] == value:
                        if count == len(found):
                            larger = np.empty((2 * count, 2), np.int64)
                            larger[:count] = found
                            found = larger
                        found[count, 0], found[count, 1] = word, seed
                        count += 1
    return found[:count]


@kernel
def _group(
    document: Integers,
    unit: Integers,
    word: Integers,
    offset: Integers,
    documents: Integers,
    sizes: Integers,
    needs: Integers,
    longest: np.int64,
) -> Integers:
    """Return the stretches of `_stretches`: seeds of one unit within its size and `SLACK`."""
    stamps = np.full(longest, np.int64(-1), np.int64)
    rows, count, i = np.empty((len(word), 4), np.int64), 0, 0
    while i < len(word):
        size, distinct, j = sizes[unit[i]], 0, i
        low, high = word[i], word[i]
        while j < len(word) and document[j] == document[i] and unit[j] == unit[i]:
            if word[j] > word[i] + size + SLACK:
                break
            if stamps[offset[j]] != i:
                stamps[offset[j]] = i
                distinct += 1
            low = min(low, word[j] - offset[j])
            high = max(high, word[j] - offset[j] + size)
            j += 1
        if distinct >= needs[unit[i]]:
            rows[count, 0], rows[count, 1] = document[i], unit[i]
            rows[count, 2] = max(low - SLACK, documents[document[i]])
            rows[count, 3] = min(high + SLACK, documents[document[i] + 1])
            count += 1
        i = j
    return rows[:count]
