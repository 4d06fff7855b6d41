"""The heuristic filters of Gopher (Rae et al. 2021, "Scaling Language Models", arXiv:2112.11446, appendix A.1.1).

`GopherQuality` holds the rules on words, symbols, lines and stop words of the section's text, `GopherRepetition` those
of its table A1. Thresholds are the paper's and are fields; None switches a rule off. What the paper leaves open is
settled in the class docstrings, with datatrove's answer where it differs. Rules were chosen for English: for other
languages give stop words and other word lengths, and for scripts of which words here are single characters or units
(Chinese, Thai) other thresholds for n-grams too.

Invariants: every measure is a ratio of integers; the empty text fails "too few words" and divides nothing. Cost: see
`transforms.segmentation`, `transforms.counts`, `transforms.repetition`; some 100 MB/s for the first and 60 to
100 for the second on one core.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
import pyarrow as pa

from transforms.counts import count_distinct, count_lines, count_words, hash_list
from transforms.exact_numbers import Integers, Number, exact
from transforms.filters import Filter, Measure, at_least, at_most, rule
from transforms.findings import Findings
from transforms.gopher_stop_words import ENGLISH
from transforms.repetition import LONGEST, find_duplicate_lines, find_duplicate_paragraphs, find_repeated_grams

MEAN: Final = "mean word length"

Grams = tuple[tuple[int, Number], ...]
"""Pairs of n and the threshold for n-grams."""


@dataclass(frozen=True, slots=True)
class GopherQuality(Filter):
    """Quality rules of appendix A.1.1, tested in the paper's order.

    What the paper leaves open, and the choice here:

    - *Words* are those of `find_words`: no punctuation, script-aware. (datatrove: tokens of a spaCy tokenizer.)
    - *Word length* is in code points; the mean is over those words.
    - *Symbol-to-word ratio*: each of "#" and the ellipsis has its own ratio to words. An ellipsis is one "…" or one run
      of three or more full stops. (datatrove counts "..." without overlap, so "......" is two.)
    - *Lines* are those that are not blank; a *bullet* is one of `bullets` after White_Space. (datatrove divides by all
      lines, blank ones too, so that double-spaced bullets pass.)
    - *At least 80 % of words contain an alphabetic character*: a symbol that stands alone between spaces ("|", "--")
      is a word here, without a letter; or else a table of symbols would have no words to fail by.
    - *At least two stop words*: two different ones, in any case. (datatrove: as written, so "The" is none.)
    """

    min_words: Number | None = 50
    max_words: Number | None = 100_000
    min_mean_word_length: Number | None = 3
    max_mean_word_length: Number | None = 10
    max_hashes_per_word: Number | None = 0.1
    max_ellipses_per_word: Number | None = 0.1
    max_bulleted_lines: Number | None = 0.9
    max_ellipsis_lines: Number | None = 0.3
    min_alphabetic_words: Number | None = 0.8
    min_stop_words: Number | None = 2
    stop_words: tuple[str, ...] = ENGLISH
    bullets: tuple[str, ...] = ("•", "-")

    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        """Check the fields.

        Raises:
            ValueError: a threshold is no number, or a bullet is not one character.
            TypeError: `stop_words` or `bullets` is no tuple.
        """
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name not in ("stop_words", "bullets") and value is not None:
                exact(value)
        if not isinstance(self.stop_words, tuple) or not isinstance(self.bullets, tuple):
            raise TypeError(f"stop words and bullets are tuples, got {self.stop_words!r} and {self.bullets!r}")
        for bullet in self.bullets:
            if len(bullet) != 1:
                raise ValueError(f"a bullet is one character, got {bullet!r}")

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return `schema`.

        Raises:
            SchemaError: there is no column `text`.
            ValueError: a stop word is not one word, so it could never be found.
        """
        hash_list(self.stop_words)
        return Filter.output_schema(self, schema)

    def measures(self, batch: pa.RecordBatch) -> list[Measure]:
        """Return the measures of the rules that are on."""
        return self.judge(Findings(batch.column("text")))

    def judge(self, found: Findings) -> list[Measure]:
        """Return the measures of the rules that are on, of texts of which words and lines are shared."""
        words, lines = count_words(found), count_lines(found, self.bullets)
        stop_words = count_distinct(found, self.stop_words)
        one = np.ones(len(found.text), np.int64)
        tokens = words.words + words.bare_symbols
        return [
            *rule("too few words", "words", words.words, one, self.min_words, at_least),
            *rule("too many words", "words", words.words, one, self.max_words, at_most),
            *rule("words too short", MEAN, words.characters, words.words, self.min_mean_word_length, at_least),
            *rule("words too long", MEAN, words.characters, words.words, self.max_mean_word_length, at_most),
            *rule("too many hashes", "hashes per word", words.hashes, words.words, self.max_hashes_per_word, at_most),
            *rule(
                "too many ellipses",
                "ellipses per word",
                words.ellipses,
                words.words,
                self.max_ellipses_per_word,
                at_most,
            ),
            *rule(
                "too many bulleted lines",
                "bulleted lines",
                lines.bulleted,
                lines.lines,
                self.max_bulleted_lines,
                at_most,
            ),
            *rule(
                "too many lines end with an ellipsis",
                "lines ending with an ellipsis",
                lines.with_ellipsis,
                lines.lines,
                self.max_ellipsis_lines,
                at_most,
            ),
            *rule(
                "too few alphabetic words",
                "alphabetic words",
                words.alphabetic,
                tokens,
                self.min_alphabetic_words,
                at_least,
            ),
            *rule("too few stop words", "stop words", stop_words, one, self.min_stop_words, at_least),
        ]


@dataclass(frozen=True, slots=True)
class GopherRepetition(Filter):
    """Repetition rules of table A1: duplicate lines and paragraphs, frequent and duplicate n-grams.

    What the paper leaves open, and the choice here:

    - A *duplicate* is an occurrence after the first, so a text repeats nothing unless something occurs twice.
    - *Lines* and *paragraphs*: blank lines are no lines and divide paragraphs; lines are compared without White_Space
      at their ends, in their own case. Fractions of characters are of the characters of such lines.
    - *n-grams* are of words in lower case, without punctuation, across lines. Characters are those of words, without
      what stands between them, in numerator and denominator. (datatrove: numerator with spaces for frequent n-grams,
      without for duplicate ones, over the length of the text.)
    - *Most frequent n-gram*: all its occurrences, if there are at least two; of equally frequent ones the one that
      covers most characters. Where occurrences overlap, characters count once, so no fraction exceeds 1. (datatrove: a
      single occurrence counts, which rejects "The cat sat."; "a a a a" exceeds 1.)
    - *Duplicate n-grams*: characters within occurrences after the first, each once.
    """

    max_duplicate_lines: Number | None = 0.3
    max_duplicate_paragraphs: Number | None = 0.3
    max_characters_in_duplicate_lines: Number | None = 0.2
    max_characters_in_duplicate_paragraphs: Number | None = 0.2
    max_characters_in_top_grams: Grams = ((2, 0.2), (3, 0.18), (4, 0.16))
    max_characters_in_duplicate_grams: Grams = ((5, 0.15), (6, 0.14), (7, 0.13), (8, 0.12), (9, 0.11), (10, 0.1))

    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        """Check the fields.

        Raises:
            ValueError: a threshold is no number, or n is not in 2 … 10.
        """
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            for n, threshold in value if isinstance(value, tuple) else ((2, value or 0),):
                exact(threshold)
                if not 2 <= n <= LONGEST:
                    raise ValueError(f"{field.name}: n-grams have 2 to {LONGEST} words, got n = {n!r}")

    def measures(self, batch: pa.RecordBatch) -> list[Measure]:
        """Return the measures of the rules that are on."""
        return self.judge(Findings(batch.column("text")))

    def judge(self, found: Findings) -> list[Measure]:
        """Return the measures of the rules that are on, of texts of which words and lines are shared."""
        lines, paragraphs = find_duplicate_lines(found.line_hashes), find_duplicate_paragraphs(found.line_hashes)
        grams = find_repeated_grams(found)
        by_line = [
            *_most("duplicate lines", lines.duplicates, lines.items, self.max_duplicate_lines),
            *_most("duplicate paragraphs", paragraphs.duplicates, paragraphs.items, self.max_duplicate_paragraphs),
            *_most(
                "characters in duplicate lines",
                lines.duplicate_characters,
                lines.characters,
                self.max_characters_in_duplicate_lines,
            ),
            *_most(
                "characters in duplicate paragraphs",
                paragraphs.duplicate_characters,
                paragraphs.characters,
                self.max_characters_in_duplicate_paragraphs,
            ),
        ]
        top = [
            _most(f"characters in the top {n}-gram", grams.top[:, n].copy(), grams.characters, threshold)
            for n, threshold in self.max_characters_in_top_grams
        ]
        duplicate = [
            _most(f"characters in duplicate {n}-grams", grams.duplicate[:, n].copy(), grams.characters, threshold)
            for n, threshold in self.max_characters_in_duplicate_grams
        ]
        return [measure for measures in (by_line, *top, *duplicate) for measure in measures]


def _most(name: str, numerator: Integers, denominator: Integers, threshold: Number | None) -> list[Measure]:
    """Return the one measure of repetition, or none where the rule is off."""
    return rule(f"too many {name}", name, numerator, denominator, threshold, at_most)
