"""What is found in the texts of a batch: words, their hashes and lengths, lines; each once, whoever asks for it.

Rules that follow each other ask for the same things. They get one `Findings`, which finds a thing when it is asked for
the first time and keeps it for as long as itself. See `transforms.sharing` for who gets which.

Invariants: all of it depends on the texts only, and what belongs to a text on that text only. Cost: that of
`transforms.segmentation`, `transforms.word_hashes` and `transforms.lines`; 40 bytes per word and per line.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa

from transforms.kernels import kernel
from transforms.line_hashes import LineHashes, hash_lines
from transforms.lines import Lines, find_lines, trim
from transforms.segmentation import Positions, Words, count_characters, find_words
from transforms.word_hashes import Hashes, hash_words


class Findings:
    """Words and lines of `text`, found when asked for."""

    def __init__(self, text: pa.LargeStringArray) -> None:
        """Nothing is found yet."""
        self.text = text

    @cached_property
    def words(self) -> Words:
        """The words of each text."""
        return find_words(self.text)

    @cached_property
    def word_lengths(self) -> Positions:
        """The code points of each word."""
        return count_characters(self.words.data, self.words.starts, self.words.ends)

    @cached_property
    def word_hashes(self) -> Hashes:
        """The hash of each word, in any case."""
        return hash_words(self.words)

    @cached_property
    def lines(self) -> Lines:
        """The lines of each text."""
        return find_lines(self.text)

    @cached_property
    def trimmed(self) -> tuple[Positions, Positions]:
        """Starts and ends of the lines without White_Space at both ends."""
        return trim(self.lines.data, self.lines.starts, self.lines.ends)

    @cached_property
    def line_lengths(self) -> Positions:
        """The code points of each line without White_Space at both ends."""
        return count_characters(self.lines.data, *self.trimmed)

    @cached_property
    def line_hashes(self) -> LineHashes:
        """The hash of each line without White_Space at both ends."""
        return hash_lines(self.lines, self.trimmed, self.line_lengths)

    @cached_property
    def line_words(self) -> Positions:
        """The words before each line, and all words: line l has the words line_words[l]:line_words[l + 1]."""
        return _words_before(self.words.starts, self.lines.starts)


@kernel
def _words_before(words: Positions, lines: Positions) -> Positions:
    before = np.empty(len(lines) + 1, np.int64)
    word = np.int64(0)
    for line in range(len(lines)):
        while word < len(words) and words[word] < lines[line]:
            word += 1
        before[line] = word
    before[len(lines)] = len(words)
    return before
