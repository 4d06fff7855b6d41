"""The quality rules of FineWeb (Penedo et al. 2024, arXiv:2406.17557, section 3.5 "Custom filters").

Invariants and cost as in `transforms.filters`: ratios of integers; little beyond finding words and lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from transforms.exact_numbers import Number, exact
from transforms.filters import Filter, Measure, at_least, at_most, rule
from transforms.findings import Findings
from transforms.kernels import kernel
from transforms.marks import SENTENCE_ENDS, table
from transforms.repetition import find_duplicate_lines
from transforms.segmentation import Bytes, Flags, Positions, decode, text_buffers


@dataclass(frozen=True, slots=True)
class FineWebQuality(Filter):
    """Wants lines that end in punctuation, few short lines, few repeated ones, and more words than line breaks.

    What the paper leaves open, and the choice here:

    - *Lines* are those that are not blank, without White_Space at both ends. (The code, datatrove: lines end at line
      feeds only and keep their White_Space, so "text. " does not end in punctuation.)
    - *Lines ending with punctuation*: in one of `SENTENCE_ENDS`. The paper removes where the share is ≤ .12, the code
      where it is < .12; here it is the code's, so that the threshold itself passes, as in every filter.
    - *Characters in duplicated lines*: the paper says .1, the code, whose default made the data set, .01. Here .1; give
      `max_characters_in_duplicate_lines=0.01` for the code's. They are the occurrences after the first, among the
      characters of lines. (The code: among all characters but line feeds.)
    - *Lines shorter than 30 characters*: the code has at most 30, and so has this.
    - *Line breaks per word* (code only): line breaks of any kind over the words of `find_words`.

    None switches a rule off.
    """

    min_punctuated_lines: Number | None = 0.12
    max_short_lines: Number | None = 0.67
    short_line: int = 30
    max_characters_in_duplicate_lines: Number | None = 0.1
    max_line_breaks_per_word: Number | None = 0.3
    end_marks: tuple[str, ...] = SENTENCE_ENDS

    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        """Check the fields.

        Raises:
            ValueError: a threshold is no number, or an end mark not one character.
        """
        thresholds = (self.min_punctuated_lines, self.max_short_lines, self.max_characters_in_duplicate_lines)
        for threshold in (*thresholds, self.max_line_breaks_per_word):
            exact(threshold or 0)
        table(self.end_marks)

    def measures(self, batch: pa.RecordBatch) -> list[Measure]:
        """Return the measures of the rules that are on."""
        return self.judge(Findings(batch.column("text")))

    def judge(self, found: Findings) -> list[Measure]:
        """Return the measures of the rules that are on, of texts of which words and lines are shared."""
        lines, duplicates = found.lines, find_duplicate_lines(found.line_hashes)
        marks = table(self.end_marks)
        short_line = np.int64(self.short_line)
        counts = _count_lines(
            lines.data, lines.documents, *found.trimmed, lines.blank, found.line_lengths, marks, short_line
        )
        punctuated, short = counts
        breaks = _count_breaks(lines.documents, lines.ends, text_buffers(found.text)[1])
        words = np.diff(found.words.documents)
        characters, most = duplicates.characters, self.max_characters_in_duplicate_lines
        return [
            *rule("too few lines end in punctuation", "lines ending in punctuation", punctuated, duplicates.items,
                  self.min_punctuated_lines, at_least),
            *rule("too many short lines", "short lines", short, duplicates.items, self.max_short_lines, at_most),
            *rule("too many characters in duplicate lines", "characters in duplicate lines",
                  duplicates.duplicate_characters, characters, most, at_most),
            *rule("too many line breaks", "line breaks per word", breaks, words,
                  self.max_line_breaks_per_word, at_most),
        ]  # fmt: skip


@kernel
def _count_lines(
    data: Bytes,
    documents: Positions,
    starts: Positions,
    ends: Positions,
    blank: Flags,
    lengths: Positions,
    marks: Flags,
    short_line: np.int64,
) -> tuple[Positions, Positions]:
    """Return, per text, the lines that end in one of `marks`, and those of at most `short_line` characters."""
    texts = len(documents) - 1
    punctuated, short = np.zeros(texts, np.int64), np.zeros(texts, np.int64)
    for text in range(texts):
        for line in range(documents[text], documents[text + 1]):
            if blank[line]:
                continue
            last = ends[line] - 1
            while last > starts[line] and data[last] & 0xC0 == 0x80:
                last -= 1
            code_point, _ = decode(data, last, ends[line])
            punctuated[text] += marks[code_point]
            short[text] += lengths[line] <= short_line
    return punctuated, short


@kernel
def _count_breaks(documents: Positions, ends: Positions, bounds: Positions) -> Positions:
    """Return the line breaks of each text: its lines, without the last one where no break ends it."""
    breaks = np.zeros(len(documents) - 1, np.int64)
    for text in range(len(breaks)):
        breaks[text] = documents[text + 1] - documents[text]
        if breaks[text] > 0 and ends[documents[text + 1] - 1] == bounds[text + 1]:
            breaks[text] -= 1
    return breaks
