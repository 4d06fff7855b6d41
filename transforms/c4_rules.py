"""The rules of C4 (Raffel et al. 2020, "Exploring the Limits of Transfer Learning …", JMLR 21/140, section 2.2).

`C4Lines` cuts lines, `C4Documents` drops documents, `MC4Paragraphs` holds the rule that mC4 added (Xue et al. 2021,
arXiv:2010.11934, section 3.1). "The code" below is that published with the paper (TensorFlow Datasets, `c4_utils`),
which made the data set and does things that the paper does not mention. The paper looks for brackets and "lorem ipsum"
in pages: put `C4Documents(min_sentences=None)` before `C4Lines`; the code looks for them in what is left, line by line:
put `C4Documents` behind. `transforms.presets.c4` is the paper's order.

Invariants: counts and cuts of a text depend on it only; lines that stay keep their characters, citations apart. Cost:
`C4Lines` 2 ms per MB beyond finding words and lines, `C4Documents` 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
import pyarrow as pa

from transforms.eight_bytes import first_flag, flag_equal, load
from transforms.exact_numbers import Number, exact
from transforms.filters import Filter, Measure, at_least, at_most, rule
from transforms.findings import Findings
from transforms.kernels import kernel
from transforms.line_rules import BLANK, KEEP, Flagged, LineRules
from transforms.lines import grown
from transforms.marks import table
from transforms.phrases import find_phrases, phrases
from transforms.segmentation import Bytes, Flags, Int, Positions, Spans, decode, text_buffers
from transforms.sentences import count_sentences
from transforms.unicode_tables import WHITESPACE

END_MARKS: Final = (".", "!", "?", '"', "”")
"""The paper's terminal punctuation: period, exclamation mark, question mark, end quotation mark."""

POLICY: Final = (
    "terms of use",
    "privacy policy",
    "cookie policy",
    "uses cookies",
    "use of cookies",
    "use cookies",
)
"""Phrases of lines on cookies and privacy, from the paper and the code."""

CURLY: Final = np.uint64(0x7B)
SQUARE: Final = np.uint64(0x5B)
UNLIMITED: Final = 2**62


@dataclass(frozen=True, slots=True)
class C4Lines(LineRules):
    """Cuts lines, tested in the code's order: long word, end mark, words, JavaScript, policies.

    What the paper leaves open, and the choice here:

    - *End quotation mark*: U+0022 and U+201D. (The code: U+0022. datatrove: the apostrophe, too.) A line that ends in
      "..." is cut, as in the code. White_Space and citations behind the mark do not count. (The code removes citations
      after it stripped the line, so "text. [1]" ends in a space and goes.)
    - *Words* are those of `find_words`, without citations: "— a b c —" has three. (The code: what stands between
      spaces.) Five are wanted, as in the published text and the code; earlier versions of the paper had three, and
      five sentences instead of three, and datatrove follows those.
    - *The word Javascript*: the word, in any case; "javascripts" is another. (The code: the letters anywhere.)
    - *Policy phrases*: their words in a row. (The code: the letters anywhere.)
    - *Long words* (code only): a run of more than 1,000 characters without White_Space.
    - *Citations* (code only): "[edit]", "[citation needed]" and bracketed digits, "[]" among them, are cut out of lines
      that stay.
    - *Blank lines* are no lines that the paper retains: they are cut, whatever rules are on.

    None or () switches a rule off. Rules were made for English: give other languages their phrases and `SENTENCE_ENDS`
    as end marks.
    """

    end_marks: tuple[str, ...] | None = END_MARKS
    min_words: int | None = 5
    max_word_length: int | None = 1000
    scripts: tuple[str, ...] = ("javascript",)
    policies: tuple[str, ...] = POLICY
    citations: tuple[str, ...] | None = ("edit", "citation needed")

    version: ClassVar[int] = 1
    reasons: ClassVar[tuple[str, ...]] = (
        BLANK,
        "lines with a long word",
        "lines without an end mark",
        "lines of few words",
        "lines on scripts",
        "policy lines",
        "citations",
    )
    line_reasons: ClassVar[int] = 6

    def __post_init__(self) -> None:
        """Check the fields.

        Raises:
            ValueError: an end mark is not one character, or a phrase could never be found.
        """
        table(self.end_marks or ())
        phrases(self.scripts, self.policies)

    def flag(self, found: Findings) -> Flagged:
        """Return the lines and citations that go."""
        lines, words = found.lines, found.words
        data, bounds = text_buffers(found.text)
        contents = np.frombuffer("\0".join(self.citations or ()).encode(), np.uint8)
        _, starts, ends = _find_citations(data, bounds, contents, self.citations is not None)
        piece_lines = np.searchsorted(lines.starts, starts, "right") - 1
        limits = np.array([self.min_words or 0, UNLIMITED if self.max_word_length is None else self.max_word_length])
        flagged = _flag_lines(
            data, *found.trimmed, lines.blank, words.starts, found.line_words, starts, ends,
            find_phrases(found, phrases(self.scripts, self.policies)),
            table(self.end_marks or ()), self.end_marks is not None, limits, WHITESPACE,
        )  # fmt: skip
        return Flagged(flagged, starts, ends, piece_lines, np.full(len(starts), self.line_reasons, np.uint8))


@dataclass(frozen=True, slots=True)
class C4Documents(Filter):
    """Drops documents with a curly bracket, placeholder text or a banned word, or too few sentences.

    What the paper leaves open, and the choice here:

    - *A curly bracket*: "{", as in the code.
    - *The phrase "lorem ipsum"*: its two words in a row, in any case. (The code: the letters.)
    - *Banned words*: the paper's list is not part of this package; give `banned`, of words and phrases. They are found
      as words. (The code: between characters that are no word characters; anywhere in Japanese, Thai and Chinese.)
    - *Sentences*: of `count_sentences`, summed over lines. (The code: NLTK's Punkt; datatrove: spaCy's sentencizer.)

    None or () switches a rule off.
    """

    max_curly_brackets: Number | None = 0
    placeholders: tuple[str, ...] = ("lorem ipsum",)
    banned: tuple[str, ...] = ()
    min_sentences: Number | None = 3

    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        """Check the fields.

        Raises:
            ValueError: a threshold is no number, or a phrase could never be found.
        """
        for threshold in (self.max_curly_brackets, self.min_sentences):
            exact(threshold or 0)
        phrases(self.placeholders, self.banned)

    def measures(self, batch: pa.RecordBatch) -> list[Measure]:
        """Return the measures of the rules that are on."""
        return self.judge(Findings(batch.column("text")))

    def judge(self, found: Findings) -> list[Measure]:
        """Return the measures of the rules that are on, of texts of which words and lines are shared."""
        one, documents, none = np.ones(len(found.text), np.int64), found.lines.documents, 0
        listed = find_phrases(found, phrases(self.placeholders, self.banned))
        measures: list[Measure] = []
        if self.max_curly_brackets is not None:
            brackets = _count_byte(*text_buffers(found.text), CURLY)
            measures += rule("curly bracket", "curly brackets", brackets, one, self.max_curly_brackets, at_most)
        for group, reason, name in ((0, "placeholder text", "placeholder lines"), (1, "banned word", "banned lines")):
            if (self.placeholders, self.banned)[group]:
                lines = _sum((listed >> group & 1).astype(np.int64), documents)
                measures += rule(reason, name, lines, one, none, at_most)
        if self.min_sentences is not None:
            sentences = _sum(count_sentences(found), documents)
            measures += rule("too few sentences", "sentences", sentences, one, self.min_sentences, at_least)
        return measures


@dataclass(frozen=True, slots=True)
class MC4Paragraphs(Filter):
    """Wants at least `min_lines` lines of at least `min_line_length` characters: mC4's "line length filter".

    The paper: "at least three lines of text with 200 or more characters". Characters are code points without
    White_Space at both ends of the line. (The code: with it.)
    """

    min_lines: Number = 3
    min_line_length: int = 200

    version: ClassVar[int] = 1

    def measures(self, batch: pa.RecordBatch) -> list[Measure]:
        """Return the one measure."""
        return self.judge(Findings(batch.column("text")))

    def judge(self, found: Findings) -> list[Measure]:
        """Return the one measure, of texts of which lines are shared."""
        long = _sum((found.line_lengths >= self.min_line_length).astype(np.int64), found.lines.documents)
        one = np.ones(len(found.text), np.int64)
        return [Measure("too few long lines", "long lines", long, one, at_least(self.min_lines))]


def _sum(values: Positions, documents: Positions) -> Positions:
    """Return the sum of each document's values."""
    before = np.concatenate([[0], np.cumsum(values)])
    return np.asarray(before[documents[1:]] - before[documents[:-1]], np.int64)


@kernel
def _count_byte(data: Bytes, bounds: Positions, byte: np.uint64) -> Positions:
    counts = np.zeros(len(bounds) - 1, np.int64)
    for text in range(len(counts)):
        position = bounds[text]
        while position < bounds[text + 1]:
            position = _next_byte(data, position, bounds[text + 1], byte)
            counts[text] += position < bounds[text + 1]
            position += 1
    return counts


@kernel
def _next_byte(data: Bytes, position: Int, end: Int, byte: np.uint64) -> Int:
    """Return where `byte` stands next, or `end`."""
    while position + 8 <= end:
        flags = flag_equal(load(data, np.uint64(position)), byte)
        if flags:
            return position + first_flag(flags)
        position += 8
    while position < end and data[position] != byte:
        position += 1
    return position


@kernel
def _find_citations(data: Bytes, bounds: Positions, contents: Bytes, wanted: bool) -> Spans:
    """Return "[…]" of digits, or of one of the strings in `contents`, which zeros divide."""
    documents = np.zeros(len(bounds), np.int64)
    starts, ends = np.empty(64, np.int64), np.empty(64, np.int64)
    count = np.int64(0)
    for text in range(len(bounds) - 1):
        position, end = bounds[text], bounds[text + 1]
        while wanted and position < end:
            position = _next_byte(data, position, end, SQUARE)
            closed = _citation_end(data, position, end, contents)
            if closed > 0:
                if count == len(starts):
                    starts, ends = grown(starts), grown(ends)
                starts[count], ends[count] = position, closed
                count += 1
            position += 1
        documents[text + 1] = count
    return documents, starts[:count], ends[:count]


@kernel
def _citation_end(data: Bytes, opening: Int, end: Int, contents: Bytes) -> Int:
    """Return where the citation ends whose bracket is at `opening`; 0: it is none."""
    position = opening + 1
    while position < end and 0x30 <= data[position] <= 0x39:
        position += 1
    if position < end and data[position] == 0x5D:
        return position + 1
    first = np.int64(0)
    while first < len(contents):
        last = first
        while last < len(contents) and contents[last] != 0:
            last += 1
        closing = opening + 1 + last - first
        if closing < end and data[closing] == 0x5D:
            same = True
            for place in range(last - first):
                same &= data[opening + 1 + place] == contents[first + place]
            if same:
                return closing + 1
        first = last + 1
    return np.int64(0)


@kernel
def _flag_lines(
    data: Bytes,
    starts: Positions,
    ends: Positions,
    blank: Flags,
    words: Positions,
    line_words: Positions,
    cited: Positions,
    cited_to: Positions,
    found: Bytes,
    marks: Flags,
    want_marks: bool,
    limits: Positions,
    whitespace: Flags,
) -> Bytes:
    reasons = np.full(len(starts), KEEP, np.uint8)
    citation = np.int64(0)
    for line in range(len(starts)):
        start, end = starts[line], ends[line]
        count, word, first = line_words[line + 1] - line_words[line], line_words[line], citation
        while citation < len(cited) and cited[citation] < end:
            while word < line_words[line + 1] and words[word] < cited_to[citation]:
                count -= words[word] > cited[citation]
                word += 1
            citation += 1
        uncited = _end_before(data, start, end, cited[first:citation], cited_to[first:citation], whitespace)
        if blank[line]:
            reasons[line] = 0
        elif end - start > limits[1] and _longest_run(data, start, end, whitespace) > limits[1]:
            reasons[line] = 1
        elif want_marks and not _ends_in_mark(data, start, uncited, marks):
            reasons[line] = 2
        elif count < limits[0]:
            reasons[line] = 3
        elif found[line] & 1:
            reasons[line] = 4
        elif found[line] & 2:
            reasons[line] = 5
    return reasons


@kernel
def _last(data: Bytes, start: Int, end: Int) -> Int:
    """Return where the last character of data[start:end] begins."""
    last = end - 1
    while last > start and data[last] & 0xC0 == 0x80:
        last -= 1
    return last


@kernel
def _end_before(data: Bytes, start: Int, end: Int, cited: Positions, cited_to: Positions, whitespace: Flags) -> Int:
    """Return where data[start:end] ends without citations and White_Space at its end."""
    citation = len(cited) - 1
    while citation >= 0 and cited_to[citation] == end:
        end = cited[citation]
        citation -= 1
        while end > start:
            last = _last(data, start, end)
            code_point, _ = decode(data, last, end)
            if not whitespace[code_point]:
                break
            end = last
    return end


@kernel
def _ends_in_mark(data: Bytes, start: Int, end: Int, marks: Flags) -> bool:
    """Return whether data[start:end] ends in one of `marks`, and not in three full stops."""
    if end <= start:
        return False
    code_point, _ = decode(data, _last(data, start, end), end)
    if code_point == 0x2E and end - start >= 3 and data[end - 2] == 0x2E and data[end - 3] == 0x2E:
        return False
    return bool(marks[code_point])


@kernel
def _longest_run(data: Bytes, start: Int, end: Int, whitespace: Flags) -> Int:
    """Return the most characters in a row that are no White_Space."""
    longest, run, position = np.int64(0), np.int64(0), start
    while position < end:
        code_point, position = decode(data, position, end)
        run = np.int64(0) if whitespace[code_point] else run + 1
        longest = max(longest, run)
    return longest
