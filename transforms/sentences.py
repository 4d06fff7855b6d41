"""How many sentences a line has, by its marks: for rules that count sentences, not for cutting texts.

A sentence ends at marks of `SENTENCE_ENDS` with closing quotes and brackets behind them, where White_Space follows, or
where the line ends; 。！？ and their forms need no space. A full stop ends none before a lower-case letter (UAX #29,
SB8), and none behind a single letter, which is an initial (beyond UAX #29). Abbreviations are not known: "Mr. Smith" is
two sentences here, as it is to UAX #29; a trained splitter (the C4 code's NLTK Punkt) knows some and errs on others.
What follows the last mark of a line is a sentence if it has a word; a line without words has none.

Invariants: a count depends on its line only; a line has at most as many sentences as words. Cost: a look at each gap
between words, 1 to 2 GB/s for English.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from transforms.findings import Findings
from transforms.kernels import kernel
from transforms.marks import CLOSERS, LOWER_CASE, SENTENCE_ENDS, STOPS, WIDE_ENDS, table
from transforms.segmentation import Bytes, Int, Positions, decode
from transforms.unicode_tables import CODE_POINTS, WHITESPACE

END: Final = 1
STOP: Final = 2
WIDE: Final = 4
CLOSER: Final = 8
SPACE: Final = 16
LOWER: Final = 32


def _roles() -> Bytes:
    roles = np.zeros(CODE_POINTS, np.uint8)
    sets = (table(SENTENCE_ENDS), table(STOPS), table(WIDE_ENDS), table(CLOSERS), WHITESPACE, LOWER_CASE)
    for role, members in zip((END, STOP, WIDE, CLOSER, SPACE, LOWER), sets, strict=True):
        roles[members] |= role
    roles.flags.writeable = False
    return roles


ROLES: Final = _roles()
"""Per code point what it is to sentences, as bits."""


def count_sentences(found: Findings) -> Positions:
    """Return the number of sentences of each line."""
    words = found.words
    return _count_sentences(words.data, words.starts, words.ends, found.line_words, ROLES)


@kernel
def _count_sentences(data: Bytes, starts: Positions, ends: Positions, line_words: Positions, roles: Bytes) -> Positions:
    counts = np.zeros(len(line_words) - 1, np.int64)
    for line in range(len(counts)):
        first, last = line_words[line], line_words[line + 1]
        if first < last:
            counts[line] = 1
        for word in range(first, last - 1):
            gap = starts[word + 1] - ends[word]  # a mark and a space, or a wide mark, takes two bytes
            if gap > 2 or (gap == 2 and roles[data[ends[word]]] & END):
                counts[line] += _ends_sentence(data, starts[word], ends[word], starts[word + 1], roles)
    return counts


@kernel
def _ends_sentence(data: Bytes, word: Int, position: Int, following: Int, roles: Bytes) -> bool:
    """Return whether a sentence ends between the word from `word` to `position` and the one at `following`."""
    gap, is_ended, only_stops, is_wide = position, False, True, False
    while position < following:
        code_point, after = decode(data, position, following)
        role = roles[code_point]
        if role & END:
            is_ended, is_wide = True, is_wide or (role & WIDE) != 0
            only_stops = only_stops and (role & STOP) != 0
        elif is_ended and role & SPACE:
            break
        elif not (is_ended and role & CLOSER):
            if is_ended and is_wide:
                return True
            is_ended, only_stops = False, True
        position = after
    if not is_ended:
        return False
    if is_wide:
        return True
    if position == following:
        return False
    if not only_stops:
        return True
    _, after_letter = decode(data, word, gap)
    next_letter, _ = decode(data, following, len(data))
    return not (after_letter == gap or roles[next_letter] & LOWER)
