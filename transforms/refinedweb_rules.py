"""RefinedWeb's line-wise corrections (Penedo et al. 2023, arXiv:2306.01116, section 3.2 and appendix G.2).

The paper gives the kinds of lines and one example for most; its code is not public. Words and numbers that it leaves
out are those of the reproduction with which DCLM-baseline was made (Li et al. 2024, arXiv:2406.11794, appendix D.2 and
its published configuration `dclm_baseline_refinedweb.yaml`), "the reproduction" below.

Invariants: a text is cut and dropped by its own lines only. Cost: 2 ms per MB beyond finding words and lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from transforms.exact_numbers import Number, exact
from transforms.filters import Measure, at_most, rule
from transforms.findings import Findings
from transforms.kernels import kernel
from transforms.line_rules import KEEP, Flagged, LineRules
from transforms.lines import grown
from transforms.marks import UPPER_CASE
from transforms.phrases import find_phrases, phrases
from transforms.segmentation import Bytes, Flags, Int, Positions, decode
from transforms.unicode_tables import CLASS, NUMBER, WHITESPACE

COUNTED: Final = (
    "likes",
    "shares",
    "comments",
    "retweets",
    "reposts",
    "quotes",
    "bookmarks",
    "upvotes",
    "downvotes",
    "downloads",
    "views",
    "followers",
)
"""What counters count, in the reproduction."""

PREFIX: Final = 0
SUFFIX: Final = 1
ANYWHERE: Final = 2
LARGEST: Final = 2**31


@dataclass(frozen=True, slots=True)
class RefinedWebLines(LineRules):
    """Cuts navigation, counters and their like; drops a text of whose words this takes more than `max_removed_words`.

    A line goes (in this order)

    - if more than `max_upper_case` of its characters are upper case. ("Mainly composed of uppercase characters"; the
      reproduction: .5 of all characters, spaces too.)
    - if at least `least_numbers` of its characters, White_Space apart, are numbers. ("Only composed of numerical
      characters"; the reproduction: digits and no spaces.)
    - if it is a counter: a number, with K, M or B behind it or not, and one of `counted`, as "3 likes".
    - if it has fewer than `min_words` words of `find_words`, that is, one, or none: rows of dashes. (The reproduction:
      what stands between spaces.)
    - of lines of at most `pattern_words` words, `prefixes`, `suffixes` and `anywhere` are cut out, in any case of A-Z,
      with the White_Space to the rest of the line; the line goes if nothing is left. The paper's examples are the
      defaults. Patterns do not begin or end within a word.

    Blank lines stay. "If the words in the flagged lines represent more than 5 % of the total document words, the
    document is discarded": words that are cut, those of patterns too, as in the reproduction.

    None or () switches a rule off. The authors: rules "require adaptation across languages".
    """

    max_upper_case: Number | None = 0.5
    least_numbers: Number | None = 1
    counted: tuple[str, ...] = COUNTED
    min_words: int | None = 2
    prefixes: tuple[str, ...] = ("sign-in",)
    suffixes: tuple[str, ...] = ("read more...", "read more…")
    anywhere: tuple[str, ...] = ("items in cart",)
    pattern_words: int = 10
    max_removed_words: Number | None = 0.05

    version: ClassVar[int] = 1
    reasons: ClassVar[tuple[str, ...]] = (
        "upper-case lines",
        "lines of numbers",
        "counters",
        "lines of one word",
        "pattern lines",
        "patterns",
    )
    line_reasons: ClassVar[int] = 5

    def __post_init__(self) -> None:
        """Check the fields.

        Raises:
            ValueError: a threshold is no number or has too many digits, a pattern is empty, or a word counted is none.
        """
        phrases(self.counted)
        for threshold in (self.max_upper_case, self.least_numbers, self.max_removed_words):
            share = exact(threshold or 0)
            if max(abs(share.numerator), share.denominator) >= LARGEST:
                raise ValueError(f"a threshold of lines has at most nine digits, got {threshold!r}")
        if not all((*self.prefixes, *self.suffixes, *self.anywhere)):
            raise ValueError("a pattern has at least one character")

    def flag(self, found: Findings) -> Flagged:
        """Return the lines and patterns that go."""
        lines, words = found.lines, found.words
        counters = find_phrases(found, phrases(self.counted)) if self.counted else np.zeros(len(lines.starts), np.uint8)
        flagged = _flag_lines(
            lines.data, *found.trimmed, lines.blank, words.starts, words.ends, found.line_words, counters,
            _ratio(self.max_upper_case), _ratio(self.least_numbers), np.int64(self.min_words or 0),
            ROLES,
        )  # fmt: skip
        patterns = (self.prefixes, self.suffixes, self.anywhere)
        texts = [text.encode() for group in patterns for text in group]
        places = np.array([place for place, group in enumerate(patterns) for _ in group], np.int64)
        offsets = np.cumsum([0, *map(len, texts)]).astype(np.int64)
        content = np.frombuffer(b"".join(texts), np.uint8)
        pieces, starts, ends = _find_patterns(
            lines.data, *found.trimmed, found.line_words, flagged, np.int64(self.pattern_words), content, offsets,
            places, WHITESPACE,
        )  # fmt: skip
        return Flagged(flagged, starts, ends, pieces, np.full(len(starts), self.line_reasons, np.uint8))

    def limits(self, found: Findings, flagged: Flagged) -> list[Measure]:
        """Return the share of words that go."""
        words, lines = found.words, found.lines
        gone = np.diff(found.line_words) * (flagged.lines != KEEP)
        stays = flagged.lines[flagged.piece_lines] == KEEP
        inner = np.searchsorted(words.starts, flagged.ends) - np.searchsorted(words.starts, flagged.starts)
        np.add.at(gone, flagged.piece_lines[stays], inner[stays])
        before = np.concatenate([[0], np.cumsum(gone)])
        removed = before[lines.documents[1:]] - before[lines.documents[:-1]]
        total = np.diff(words.documents)
        return rule("too many words cut", "words cut", removed, total, self.max_removed_words, at_most)


UPPER: Final = 1
DIGIT: Final = 2
SPACE: Final = 4


def _roles() -> Bytes:
    roles = UPPER_CASE * np.uint8(UPPER) | (CLASS == NUMBER) * np.uint8(DIGIT) | WHITESPACE * np.uint8(SPACE)
    roles.flags.writeable = False
    return np.asarray(roles, np.uint8)


ROLES: Final = _roles()
"""Per code point: is it upper case, a number, White_Space, as bits."""


def _ratio(threshold: Number | None) -> Positions:
    """Return numerator and denominator; (0, 0) where the rule is off."""
    share = exact(threshold or 0)
    return np.array([0, 0] if threshold is None else [share.numerator, share.denominator], np.int64)


@kernel
def _flag_lines(
    data: Bytes,
    starts: Positions,
    ends: Positions,
    blank: Flags,
    words: Positions,
    word_ends: Positions,
    line_words: Positions,
    counters: Bytes,
    upper_case: Positions,
    numbers: Positions,
    min_words: Int,
    roles: Bytes,
) -> Bytes:
    reasons = np.full(len(starts), KEEP, np.uint8)
    for line in range(len(starts)):
        if blank[line]:
            continue
        characters, upper, digits, spaces = _count_roles(data, starts[line], ends[line], roles)
        first, count = line_words[line], line_words[line + 1] - line_words[line]
        if upper * upper_case[1] > characters * upper_case[0]:
            reasons[line] = 0
        elif digits > 0 and numbers[1] > 0 and digits * numbers[1] >= (characters - spaces) * numbers[0]:
            reasons[line] = 1
        elif count == 2 and counters[line] and _is_amount(data, words[first], word_ends[first]):
            reasons[line] = 2
        elif count < min_words:
            reasons[line] = 3
    return reasons


@kernel
def _count_roles(data: Bytes, position: Int, end: Int, roles: Bytes) -> tuple[Int, Int, Int, Int]:
    """Return the code points, and how many of them are upper case, numbers, White_Space."""
    characters, upper, digits, spaces = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    while position < end:
        code_point, position = decode(data, position, end)
        role = np.int64(roles[code_point])
        characters += 1
        upper += role & 1
        digits += role >> 1 & 1
        spaces += role >> 2
    return characters, upper, digits, spaces


@kernel
def _is_amount(data: Bytes, start: Int, end: Int) -> bool:
    """Return whether the word is ASCII digits, with stops and commas, and K, M or B at its end or not."""
    if not 0x30 <= data[start] <= 0x39:
        return False
    last = data[end - 1] | 0x20
    if last == 0x6B or last == 0x6D or last == 0x62:
        end -= 1
    for place in range(start, end):
        byte = data[place]
        if not (0x30 <= byte <= 0x39 or byte == 0x2E or byte == 0x2C):
            return False
    return True


@kernel
def _find_patterns(
    data: Bytes,
    starts: Positions,
    ends: Positions,
    line_words: Positions,
    flagged: Bytes,
    most_words: Int,
    patterns: Bytes,
    offsets: Positions,
    places: Positions,
    whitespace: Flags,
) -> tuple[Positions, Positions, Positions]:
    """Return line, start and end of each pattern in short lines that stay; a line that is a pattern is flagged."""
    lines, froms, tos = np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64, np.int64)
    count = np.int64(0)
    for line in range(len(starts)):
        if flagged[line] != KEEP or line_words[line + 1] - line_words[line] > most_words or starts[line] == ends[line]:
            continue
        for pattern in range(len(places)):
            wanted = patterns[offsets[pattern] : offsets[pattern + 1]]
            start, end = _pattern_at(data, starts[line], ends[line], wanted, places[pattern], whitespace)
            if end == start:
                continue
            if start == starts[line] and end == ends[line]:
                flagged[line] = 4
                break
            if count == len(lines):
                lines, froms, tos = grown(lines), grown(froms), grown(tos)
            lines[count], froms[count], tos[count] = line, start, end
            count += 1
            break
    return lines[:count], froms[:count], tos[:count]


@kernel
def _pattern_at(data: Bytes, start: Int, end: Int, wanted: Bytes, place: Int, whitespace: Flags) -> tuple[Int, Int]:
    """Return where the pattern stands in data[start:end], with White_Space to the rest; (start, start): nowhere."""
    if end - start < len(wanted):
        return start, start
    first, last = start, end - len(wanted)
    if place == PREFIX:
        last = start
    elif place == SUFFIX:
        first = last
    for place_of in range(first, last + 1):
        here: Int = place_of
        behind = here + len(wanted)
        if not _is_equal(data, here, wanted):
            continue
        if (here > start and _is_alphanumeric(data[here - 1]) and _is_alphanumeric(wanted[0])) or (
            behind < end and _is_alphanumeric(data[behind]) and _is_alphanumeric(wanted[-1])
        ):
            continue
        if here == start:
            while behind < end:
                code_point, after = decode(data, behind, end)
                if not whitespace[code_point]:
                    break
                behind = after
        else:
            while here > start and data[here - 1] == 0x20:
                here -= 1
        return here, behind
    return start, start


@kernel
def _is_equal(data: Bytes, here: Int, wanted: Bytes) -> bool:
    for place in range(len(wanted)):
        byte, expected = data[here + place], wanted[place]
        if 0x41 <= byte <= 0x5A:
            byte |= np.uint8(0x20)
        if 0x41 <= expected <= 0x5A:
            expected |= np.uint8(0x20)
        if byte != expected:
            return False
    return True


@kernel
def _is_alphanumeric(byte: np.uint8) -> bool:
    return bool(0x30 <= byte <= 0x39 or 0x61 <= byte | 0x20 <= 0x7A or byte >= 0x80)
