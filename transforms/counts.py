"""Counts per text on which heuristic filters rest: words, symbols, lines, stop words. All are integers.

Invariants: a count depends on its text only; words and lines are those of `transforms.segmentation`. Cost: one pass
over the bytes, one over the words, one over the lines; nothing is kept but the counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from transforms.findings import Findings
from transforms.kernels import kernel
from transforms.segmentation import Bytes, Flags, Int, Positions, decode, find_words, text_buffers
from transforms.unicode_tables import ALPHABETIC, WHITESPACE
from transforms.word_hashes import Hashes, hash_words


@dataclass(frozen=True, slots=True)
class WordCounts:
    """Words of each text.

    `characters`: code points of all words. `alphabetic`: words with at least one letter. `bare_symbols`: runs between
    White_Space that hold no word, as a "|" or "--" that stands alone. `hashes`: characters "#". `ellipses`: characters
    "…", and runs of three or more full stops, each run once.
    """

    words: Positions
    characters: Positions
    alphabetic: Positions
    bare_symbols: Positions
    hashes: Positions
    ellipses: Positions


@dataclass(frozen=True, slots=True)
class LineCounts:
    """Lines of each text that are not blank; those that begin with a bullet; those that end with an ellipsis."""

    lines: Positions
    bulleted: Positions
    with_ellipsis: Positions


def count_words(found: Findings) -> WordCounts:
    """Return the counts of the words that were found."""
    words, (_, bounds) = found.words, text_buffers(found.text)
    lengths = _sums(found.word_lengths, words.documents)
    alphabetic = _count_alphabetic(words.data, words.documents, words.starts, words.ends, ALPHABETIC)
    symbols = _count_symbols(words.data, bounds, words.documents, words.starts, words.ends, WHITESPACE)
    return WordCounts(np.diff(words.documents), lengths, alphabetic, *symbols)


def count_lines(found: Findings, bullets: Sequence[str]) -> LineCounts:
    """Return the counts of the lines; a line begins, after White_Space, with one of the characters `bullets`."""
    marks, lines = np.array([ord(bullet) for bullet in bullets], np.int64), found.lines
    return LineCounts(*_count_lines(lines.data, lines.documents, *found.trimmed, lines.blank, marks))


def count_distinct(found: Findings, wanted: Sequence[str]) -> Positions:
    """Return how many of the words `wanted` each text holds at least once, in any case.

    Raises:
        ValueError: one of `wanted` is not exactly one word as `find_words` sees it, so it could never be found.
    """
    return _count_distinct(found.words.documents, found.word_hashes, hash_list(wanted))


def hash_list(wanted: Sequence[str]) -> Hashes:
    """Return the hashes of single words, each once.

    Raises:
        ValueError: one of `wanted` is not exactly one word as `find_words` sees it.
    """
    found = find_words(pa.array(list(wanted), pa.large_string()))
    for word, pieces in zip(wanted, found.strings(), strict=True):
        if pieces != [word]:
            raise ValueError(f"a stop word is one word, and {word!r} is {pieces} to the segmentation of texts")
    return np.unique(hash_words(found))


def _sums(values: Positions, documents: Positions) -> Positions:
    """Return the sum of each document's values."""
    before = np.zeros(len(values) + 1, np.int64)
    np.cumsum(values, out=before[1:])
    return before[documents[1:]] - before[documents[:-1]]


@kernel
def _count_alphabetic(
    data: Bytes, documents: Positions, starts: Positions, ends: Positions, alphabetic: Flags
) -> Positions:
    counts = np.zeros(len(documents) - 1, np.int64)
    for document in range(len(counts)):
        for word in range(documents[document], documents[document + 1]):
            position = starts[word]
            while position < ends[word]:
                code_point, position = decode(data, position, ends[word])
                if alphabetic[code_point]:
                    counts[document] += 1
                    break
    return counts


@kernel
def _count_symbols(
    data: Bytes, bounds: Positions, documents: Positions, starts: Positions, ends: Positions, whitespace: Flags
) -> tuple[Positions, Positions, Positions]:
    """Return bare symbols, hashes and ellipses of each text: they lie between words, never within one."""
    texts = len(bounds) - 1
    bare, hashes, ellipses = np.zeros(texts, np.int64), np.zeros(texts, np.int64), np.zeros(texts, np.int64)
    for text in range(texts):
        position, last_word = bounds[text], documents[text + 1]
        for word in range(documents[text], last_word + 1):
            gap_end = starts[word] if word < last_word else bounds[text + 1]
            touches_word, is_run, stops = word > documents[text], False, 0
            while position < gap_end:
                code_point, position = decode(data, position, gap_end)
                hashes[text] += code_point == 0x23
                stops = stops + 1 if code_point == 0x2E else 0
                ellipses[text] += code_point == 0x2026 or stops == 3
                if whitespace[code_point]:
                    bare[text] += is_run and not touches_word
                    touches_word = is_run = False
                else:
                    is_run = True
            if word < last_word:
                position = ends[word]
            else:
                bare[text] += is_run and not touches_word
    return bare, hashes, ellipses


@kernel
def _count_lines(
    data: Bytes, documents: Positions, starts: Positions, ends: Positions, blank: Flags, bullets: Positions
) -> tuple[Positions, Positions, Positions]:
    texts = len(documents) - 1
    lines, bulleted, with_ellipsis = np.zeros(texts, np.int64), np.zeros(texts, np.int64), np.zeros(texts, np.int64)
    for text in range(texts):
        for line in range(documents[text], documents[text + 1]):
            if blank[line]:
                continue
            lines[text] += 1
            first, _ = decode(data, starts[line], ends[line])
            for bullet in bullets:
                if first == bullet:
                    bulleted[text] += 1
                    break
            with_ellipsis[text] += _ends_in_ellipsis(data, starts[line], ends[line])
    return lines, bulleted, with_ellipsis


@kernel
def _ends_in_ellipsis(data: Bytes, start: Int, end: Int) -> bool:
    if end - start < 3:
        return False
    last, middle, first = data[end - 1], data[end - 2], data[end - 3]
    stops = first == 0x2E and middle == 0x2E and last == 0x2E
    return bool(stops or (first == 0xE2 and middle == 0x80 and last == 0xA6))


@kernel
def _count_distinct(documents: Positions, hashes: Hashes, wanted: Hashes) -> Positions:
    counts = np.zeros(len(documents) - 1, np.int64)
    seen_in = np.full(len(wanted), -1, np.int64)
    possible, low = np.uint64(0), np.uint64(63)  # one bit for the low bits of each wanted hash: most words fail there
    for value in wanted:
        possible |= np.uint64(1) << (value & low)
    for document in range(len(counts)):
        for word in range(documents[document], documents[document + 1]):
            if not possible >> (hashes[word] & low) & np.uint64(1):
                continue
            for index in range(len(wanted)):
                if wanted[index] == hashes[word] and seen_in[index] != document:
                    seen_in[index] = document
                    counts[document] += 1
    return counts
