"""Finding words and phrases in texts by the hashes of their words, in any case.

A phrase is found where its words stand in a row in one line, with nothing but White_Space and hyphens between them:
"lorem ipsum" is in "Lorem  Ipsum, …" and "lorem-ipsum", and in none of "lorem. Ipsum", "florem ipsum", "loremipsum".

Invariants: what is found in a text depends on that text only. A 64-bit hash that collides by chance finds a phrase that
is not there once in 10^11 words for a list of a hundred. Cost: 1 ns per word, whatever the length of the list; where
a phrase may begin, a look at each of those that begin so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa

from transforms.findings import Findings
from transforms.kernels import kernel
from transforms.segmentation import Bytes, Flags, Int, Positions, decode, find_words
from transforms.unicode_tables import WHITESPACE
from transforms.word_hashes import Hashes, hash_words

SIEVE: Final = 2**14
"""Entries of the table, by the low bits of a hash, that most words do not pass."""


@dataclass(frozen=True, slots=True, eq=False)
class Phrases:
    """Phrases as hashes: phrase p has the words offsets[p]:offsets[p + 1] of `hashes` and the group groups[p].

    They are ordered by their first hash, as `firsts`.
    """

    firsts: Hashes
    offsets: Positions
    hashes: Hashes
    groups: Positions
    sieve: Flags


def phrases(*groups: Sequence[str]) -> Phrases:
    """Return the phrases of up to eight groups, prepared.

    Raises:
        ValueError: a phrase has no word as `find_words` sees it, or begins or ends with something else, or there are
            more groups.
    """
    return _prepare(tuple(tuple(group) for group in groups))


@lru_cache(maxsize=64)
def _prepare(groups: tuple[tuple[str, ...], ...]) -> Phrases:
    if len(groups) > 8:
        raise ValueError(f"phrases have at most eight groups, got {len(groups)}")
    texts = [text for group in groups for text in group]
    numbers = np.array([number for number, group in enumerate(groups) for _ in group], np.int64)
    found = find_words(pa.array(texts, pa.large_string()))
    for text, words in zip(texts, found.strings(), strict=True):
        if not words or not text.startswith(words[0]) or not text.endswith(words[-1]):
            raise ValueError(f"a phrase begins and ends with a word, and {text!r} is {words} to the segmentation")
    hashes, lengths = hash_words(found), np.diff(found.documents)
    order = np.argsort(hashes[found.documents[:-1]], kind="stable")
    sieve = np.zeros(SIEVE, np.bool_)
    firsts = hashes[found.documents[:-1]][order]
    sieve[(firsts & np.uint64(SIEVE - 1)).astype(np.int64)] = True
    places = [np.arange(found.documents[phrase], found.documents[phrase + 1]) for phrase in order]
    offsets = np.concatenate([[0], np.cumsum(lengths[order])]).astype(np.int64)
    joined = hashes[np.concatenate(places)] if places else hashes
    return Phrases(firsts, offsets, joined, numbers[order], sieve)


def find_phrases(found: Findings, wanted: Phrases) -> Bytes:
    """Return, per line, the groups of which it holds a phrase, as bits: group 0 is the lowest."""
    words = found.words
    return _find_phrases(
        words.data, words.starts, words.ends, found.word_hashes, found.line_words, WHITESPACE,
        wanted.firsts, wanted.offsets, wanted.hashes, wanted.groups, wanted.sieve,
    )  # fmt: skip


@kernel
def _find_phrases(
    data: Bytes,
    starts: Positions,
    ends: Positions,
    hashes: Hashes,
    line_words: Positions,
    whitespace: Flags,
    firsts: Hashes,
    offsets: Positions,
    wanted: Hashes,
    groups: Positions,
    sieve: Flags,
) -> Bytes:
    lines = np.zeros(len(line_words) - 1, np.uint8)
    low = np.uint64(len(sieve) - 1)
    for line in range(len(lines)):
        last = line_words[line + 1]
        for word in range(line_words[line], last):
            if not sieve[hashes[word] & low]:
                continue
            phrase = _first_at_least(firsts, hashes[word])
            while phrase < len(firsts) and firsts[phrase] == hashes[word]:
                expected = wanted[offsets[phrase] : offsets[phrase + 1]]
                if word + len(expected) <= last and _stands(data, starts, ends, hashes, word, expected, whitespace):
                    lines[line] |= np.uint8(1) << np.uint8(groups[phrase])
                phrase += 1
    return lines


@kernel
def _first_at_least(ordered: Hashes, value: np.uint64) -> Int:
    """Return the place of the first of `ordered` that is not less than `value`."""
    low, high = np.int64(0), np.int64(len(ordered))
    while low < high:
        middle = (low + high) // 2
        if ordered[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _stands(
    data: Bytes, starts: Positions, ends: Positions, hashes: Hashes, word: Int, expected: Hashes, whitespace: Flags
) -> bool:
    """Return whether the words from `word` on have the hashes `expected`, and White_Space or hyphens between them."""
    for index in range(1, len(expected)):
        if hashes[word + index] != expected[index]:
            return False
        position = ends[word + index - 1]
        while position < starts[word + index]:
            code_point, position = decode(data, position, starts[word + index])
            if not whitespace[code_point] and code_point not in (0x2D, 0x2010, 0x2011):
                return False
    return True
