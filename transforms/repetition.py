"""How much of a text repeats itself: duplicate lines, paragraphs and word n-grams, in integers.

Definitions, for every kind of item: a *duplicate* is an occurrence after the first; what occurs once repeats nothing.
Items are compared by 64-bit hashes that are chained item by item, so ("ab", "c") and ("a", "bc") differ; a hash that
collides by chance (1 in 10^12 for a text of a million words) would shift a count, and decides about no identity.

Invariants: a row of counts depends on its text only; parts never exceed their whole. Cost: one hash-table pass over
the words for pairs; every longer n-gram is looked at only where both of the one shorter by a word occur twice, so that
ordinary text costs two or three times its pairs: some 40 ns per word, 100 to 250 MB/s. Time is linear in the words for
each n; memory some 60 bytes per word of the longest text of the batch, of whose n-grams the first `MOST_WORDS` words
are looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from transforms.findings import Findings
from transforms.kernels import kernel
from transforms.line_hashes import LineHashes
from transforms.segmentation import Flags, Int, Positions
from transforms.word_hashes import Hashes, mix

Positions32 = npt.NDArray[np.int32]

LONGEST: Final = 10
"""The longest n-gram that is counted."""

MOST_WORDS: Final = 2**21
"""n-grams are counted in so many words of a text at most (some 12 MB of English), which bounds memory."""

MOST_PROBES: Final = 1024
"""A table is probed so often for an item at most. By chance some 75 probes are the most in a table of 2^21 items; a
text built so that its hashes collide, which could take hours, has items that are taken to be unlike all others."""


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Items of each text and their duplicates, as counts and as code points (arrays over texts)."""

    items: Positions
    duplicates: Positions
    characters: Positions
    duplicate_characters: Positions


@dataclass(frozen=True, slots=True)
class Grams:
    """Repeated word n-grams of each text, in code points of its words (no spaces, no punctuation between words).

    `characters` are the code points of the words that were looked at. `top[d, n]`: code points within the occurrences
    of the most frequent n-gram, if it occurs at least twice; of equally frequent ones the one that covers most.
    `duplicate[d, n]`: code points within duplicates, that is, occurrences after the first, of any n-gram. Code points
    where occurrences overlap count once. n runs to `LONGEST`; entries 0 and 1 are zero.
    """

    characters: Positions
    top: Positions
    duplicate: Positions


def find_duplicate_lines(lines: LineHashes) -> Duplicates:
    """Return duplicates among the lines that are not blank, compared without White_Space at both ends."""
    return Duplicates(*_count_duplicates(lines.documents, lines.hashes, lines.characters, ~lines.blank))


def find_duplicate_paragraphs(lines: LineHashes) -> Duplicates:
    """Return duplicates among paragraphs: runs of lines that are not blank, each line as in `find_duplicate_lines`."""
    chained, summed, last = _join_lines(lines.documents, lines.hashes, lines.characters, lines.blank)
    return Duplicates(*_count_duplicates(lines.documents, chained, summed, last))


def find_repeated_grams(found: Findings, most_words: int = MOST_WORDS) -> Grams:
    """Return the repeated n-grams of the first `most_words` words of each text, compared in lower case."""
    counted = _count_grams(found.words.documents, found.word_hashes, found.word_lengths, np.int64(most_words))
    return Grams(*counted)


@kernel
def _join_lines(
    documents: Positions, hashes: Hashes, characters: Positions, blank: Flags
) -> tuple[Hashes, Positions, Flags]:
    """Return, at the last line of each paragraph, hash and code points of the paragraph, and which lines are last."""
    chained, summed = np.zeros(len(hashes), np.uint64), np.zeros(len(hashes), np.int64)
    last = np.zeros(len(hashes), np.bool_)
    for document in range(len(documents) - 1):
        for line in range(documents[document], documents[document + 1]):
            if blank[line]:
                continue
            chained[line], summed[line], last[line] = chain(np.uint64(0), hashes[line]), characters[line], True
            if line > documents[document] and not blank[line - 1]:
                chained[line] = chain(chained[line - 1], hashes[line])
                summed[line] += summed[line - 1]
                last[line - 1] = False
    return chained, summed, last


@kernel
def chain(before: np.uint64, item: np.uint64) -> np.uint64:
    """Return the hash of a sequence from that of all but its last item, and the last item's hash."""
    return mix(before * np.uint64(0x9E3779B97F4A7C15) + item + np.uint64(0x632BE59BD9B4E019))


@kernel
def _slot(table: Hashes, used: Flags, mask: Int, value: np.uint64) -> Int:
    """Return the slot of `value` in an open-addressing table of a power of two entries, never full; -1: not found."""
    slot, probes = np.int64(value & np.uint64(mask)), 0
    while used[slot] and table[slot] != value:
        slot, probes = (slot + 1) & mask, probes + 1
        if probes == MOST_PROBES:
            return np.int64(-1)
    return slot


@kernel
def _table_size(items: Int) -> Int:
    """Return the least power of two that is at least twice `items`."""
    size = np.int64(4)
    while size < 2 * items:
        size *= 2
    return size


@kernel
def _count_duplicates(
    documents: Positions, hashes: Hashes, characters: Positions, counted: Flags
) -> tuple[Positions, Positions, Positions, Positions]:
    texts = len(documents) - 1
    items, duplicates = np.zeros(texts, np.int64), np.zeros(texts, np.int64)
    total, duplicate = np.zeros(texts, np.int64), np.zeros(texts, np.int64)
    longest = np.int64(0)
    for text in range(texts):
        longest = max(longest, documents[text + 1] - documents[text])
    table, used = np.empty(_table_size(longest), np.uint64), np.zeros(_table_size(longest), np.bool_)
    for text in range(texts):
        size = _table_size(documents[text + 1] - documents[text])
        used[:size] = False
        for item in range(documents[text], documents[text + 1]):
            if not counted[item]:
                continue
            items[text] += 1
            total[text] += characters[item]
            slot = _slot(table, used, size - 1, hashes[item])
            if slot < 0:
                continue
            if used[slot]:
                duplicates[text] += 1
                duplicate[text] += characters[item]
            table[slot], used[slot] = hashes[item], True
    return items, duplicates, total, duplicate


@kernel
def _count_grams(
    documents: Positions, hashes: Hashes, lengths: Positions, most_words: Int
) -> tuple[Positions, Positions, Positions]:
    texts = len(documents) - 1
    characters = np.zeros(texts, np.int64)
    top, duplicate = np.zeros((texts, LONGEST + 1), np.int64), np.zeros((texts, LONGEST + 1), np.int64)
    longest = np.int64(0)
    for text in range(texts):
        longest = max(longest, min(documents[text + 1] - documents[text], np.int64(most_words)))
    places, chained = np.empty(longest, np.int64), np.empty(longest, np.uint64)
    before = np.zeros(longest + 1, np.int64)  # code points of the words before each
    table, count = np.empty(_table_size(longest), np.int32), np.empty(longest, np.int32)
    covered, covered_to = np.empty(longest, np.int64), np.empty(longest, np.int64)
    for text in range(texts):
        first = documents[text]
        words: Int = min(documents[text + 1] - first, most_words)
        for word in range(words):
            before[word + 1] = before[word] + lengths[first + word]
            places[word], chained[word] = word, hashes[first + word]
        characters[text] = before[words]
        candidates = words
        for n in range(2, LONGEST + 1):
            candidates = _extend(places, chained, candidates, n, hashes[first : first + words])
            if candidates < 2:
                break
            found = _cover(places, chained, candidates, n, before, table, count, covered, covered_to)
            top[text, n], duplicate[text, n] = found
            candidates = _keep_repeated(places, chained, candidates, count)
    return characters, top, duplicate


@kernel
def _extend(places: Positions, chained: Hashes, candidates: Int, n: Int, hashes: Hashes) -> Int:
    """Make (n - 1)-grams at `places` n-grams, in place; return how many there are.

    An n-gram can occur twice only if both (n - 1)-grams in it do, so the next place has to be a candidate, too.
    """
    left = np.int64(0)
    for index in range(candidates - 1):
        place = places[index]
        longer = chain(chained[index], hashes[min(place + n, len(hashes)) - 1])
        is_followed = places[index + 1] == place + 1
        places[left], chained[left] = place, longer
        left += is_followed
    return left


@kernel
def _cover(
    places: Positions,
    chained: Hashes,
    candidates: Int,
    n: Int,
    before: Positions,
    table: Positions32,
    count: Positions32,
    covered: Positions,
    covered_to: Positions,
) -> tuple[Int, Int]:
    """Return the code points that the most frequent n-gram covers (0: none occurs twice), and that duplicates cover.

    The table holds 1 + the index of the candidate at which an n-gram occurs first; what is counted of an n-gram stands
    at that index. `count` becomes how often each first candidate's n-gram occurs, and 0 for later ones.
    """
    mask = np.uint64(_table_size(candidates) - 1)
    table[: mask + np.uint64(1)] = 0
    most, top, duplicate, duplicate_to = np.int64(2), np.int64(0), np.int64(0), np.int64(0)
    for index in range(candidates):
        slot, probes = chained[index] & mask, 0
        while table[slot] and chained[table[slot] - 1] != chained[index] and probes < MOST_PROBES:
            slot, probes = (slot + np.uint64(1)) & mask, probes + 1
        if table[slot] == 0:
            table[slot], count[index] = index + 1, 1
            continue
        if probes == MOST_PROBES:
            count[index] = 1
            continue
        place, end, first = places[index], places[index] + n, np.int64(table[slot]) - 1
        if count[first] == 1:
            covered_to[first] = places[first] + n
            covered[first] = before[covered_to[first]] - before[places[first]]
        covered[first] += before[end] - before[max(place, covered_to[first])]
        covered_to[first] = end
        count[first] += 1
        count[index] = 0
        if count[first] > most:
            most, top = np.int64(count[first]), covered[first]
        elif count[first] == most:
            top = max(top, covered[first])
        duplicate += before[end] - before[max(place, duplicate_to)]
        duplicate_to = end
    return top, duplicate


@kernel
def _keep_repeated(places: Positions, chained: Hashes, candidates: Int, count: Positions32) -> Int:
    """Leave only n-grams that occur twice: no longer one can repeat elsewhere. Return how many are left."""
    left = np.int64(0)
    for index in range(candidates):
        places[left], chained[left] = places[index], chained[index]
        left += count[index] != 1
    return left
