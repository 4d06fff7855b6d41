"""How much of a text repeats itself: duplicate lines, paragraphs and word n-grams, in integers.

Definitions, for every kind of item: a *duplicate* is an occurrence after the first; what occurs once repeats nothing.
Items are compared by 64-bit hashes that are chained item by item, so ("ab", "c") and ("a", "bc") differ; a hash that
collides by chance (1 in 10^12 for a text of a million words) would shift a count, and decides about no identity.

Invariants: a row of counts depends on its text only; parts never exceed their whole. Cost: one hash-table pass over
the words for pairs; every longer n-gram is looked at only where the one shorter by a word occurs twice, so ordinary
text costs little more than its pairs. Time is linear in the words for each n; memory some 150 bytes per word of the
longest text of the batch, of whose n-grams the first `MOST_WORDS` words are looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from transforms.kernels import kernel
from transforms.segmentation import Bytes, Flags, Int, Lines, Positions, Words, count_characters, trim
from transforms.word_hashes import Hashes, hash_words, mix

LONGEST: Final = 10
"""The longest n-gram that is counted."""

MOST_WORDS: Final = 2**21
"""n-grams are counted in so many words of a text at most (some 12 MB of English), which bounds memory."""


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


def find_duplicate_lines(lines: Lines) -> Duplicates:
    """Return duplicates among the lines that are not blank, compared without White_Space at both ends."""
    starts, ends = trim(lines.data, lines.starts, lines.ends)
    hashes = _hash_bytes(lines.data, starts, ends)
    characters = count_characters(lines.data, starts, ends)
    return Duplicates(*_count_duplicates(lines.documents, hashes, characters, ~lines.blank))


def find_duplicate_paragraphs(lines: Lines) -> Duplicates:
    """Return duplicates among paragraphs: runs of lines that are not blank, each line as in `find_duplicate_lines`."""
    starts, ends = trim(lines.data, lines.starts, lines.ends)
    hashes = _hash_bytes(lines.data, starts, ends)
    characters = count_characters(lines.data, starts, ends)
    chained, summed, last = _join_lines(lines.documents, hashes, characters, lines.blank)
    return Duplicates(*_count_duplicates(lines.documents, chained, summed, last))


def find_repeated_grams(words: Words, most_words: int = MOST_WORDS) -> Grams:
    """Return the repeated n-grams of the first `most_words` words of each text, compared in lower case."""
    lengths = count_characters(words.data, words.starts, words.ends)
    return Grams(*_count_grams(words.documents, hash_words(words), lengths, np.int64(most_words)))


@kernel
def _hash_bytes(data: Bytes, starts: Positions, ends: Positions) -> Hashes:
    """Return a 64-bit hash of the bytes of each span."""
    hashes = np.empty(len(starts), np.uint64)
    for span in range(len(starts)):
        value = np.uint64(0xCBF29CE484222325)
        for position in range(starts[span], ends[span]):
            value = (value ^ np.uint64(data[position])) * np.uint64(0x9E3779B97F4A7C15)
            value ^= value >> np.uint64(32)
        hashes[span] = mix(value)
    return hashes


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
    """Return the slot of `value` in an open-addressing table of a power of two entries, never full."""
    slot = np.int64(value & np.uint64(mask))
    while used[slot] and table[slot] != value:
        slot = (slot + 1) & mask
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
    size = _table_size(longest)
    table, count = np.empty(size, np.uint64), np.empty(size, np.int64)
    covered, covered_to = np.empty(size, np.int64), np.empty(size, np.int64)
    for text in range(texts):
        first = documents[text]
        words: Int = min(documents[text + 1] - first, most_words)
        for word in range(words):
            before[word + 1] = before[word] + lengths[first + word]
            places[word], chained[word] = word, chain(np.uint64(0), hashes[first + word])
        characters[text] = before[words]
        candidates = words
        for n in range(2, LONGEST + 1):
            candidates = _extend(places, chained, candidates, n, words, hashes[first : first + words])
            mask = _table_size(candidates) - 1
            duplicate[text, n] = _cover(places, chained, candidates, n, before, mask, table, count, covered, covered_to)
            top[text, n] = _most_frequent(mask, count, covered)
            candidates = _keep_repeated(places, chained, candidates, mask, table, count)
            if candidates == 0:
                break
    return characters, top, duplicate


@kernel
def _extend(places: Positions, chained: Hashes, candidates: Int, n: Int, words: Int, hashes: Hashes) -> Int:
    """Make (n - 1)-grams at `places` n-grams, in place; return how many there are."""
    left = np.int64(0)
    for index in range(candidates):
        place = places[index]
        if place + n <= words:
            places[left], chained[left] = place, chain(chained[index], hashes[place + n - 1])
            left += 1
    return left


@kernel
def _cover(
    places: Positions,
    chained: Hashes,
    candidates: Int,
    n: Int,
    before: Positions,
    mask: Int,
    table: Hashes,
    count: Positions,
    covered: Positions,
    covered_to: Positions,
) -> Int:
    """Count each n-gram and the code points that it covers; return the code points that duplicates cover."""
    count[: mask + 1] = 0
    duplicate = np.int64(0)
    duplicate_to = np.int64(0)
    for index in range(candidates):
        place, end = places[index], places[index] + n
        slot = np.int64(chained[index] & np.uint64(mask))
        while count[slot] and table[slot] != chained[index]:
            slot = (slot + 1) & mask
        if count[slot] == 0:
            table[slot], covered[slot], covered_to[slot] = chained[index], 0, place
        else:
            duplicate += before[end] - before[max(place, duplicate_to)]
            duplicate_to = end
        count[slot] += 1
        covered[slot] += before[end] - before[max(place, covered_to[slot])]
        covered_to[slot] = end
    return duplicate


@kernel
def _most_frequent(mask: Int, count: Positions, covered: Positions) -> Int:
    """Return the code points that the most frequent n-gram covers, 0 if none occurs twice."""
    most, characters = np.int64(2), np.int64(0)
    for slot in range(mask + 1):
        if count[slot] > most or (count[slot] == most and covered[slot] > characters):
            most, characters = count[slot], covered[slot]
    return characters


@kernel
def _keep_repeated(
    places: Positions, chained: Hashes, candidates: Int, mask: Int, table: Hashes, count: Positions
) -> Int:
    """Leave only n-grams that occur twice: no longer one can repeat elsewhere. Return how many are left."""
    left = np.int64(0)
    for index in range(candidates):
        slot = np.int64(chained[index] & np.uint64(mask))
        while table[slot] != chained[index]:
            slot = (slot + 1) & mask
        if count[slot] > 1:
            places[left], chained[left] = places[index], chained[index]
            left += 1
    return left
