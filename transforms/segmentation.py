"""Words of a batch of texts, found once, script-aware, and shared by filters, shingles and statistics.

Words follow the word boundaries of UAX #29 (Unicode text segmentation, rules WB1-WB999) on our pinned tables: runs of
letters, digits and marks; an apostrophe or full stop between letters ("can't", "e.g"), a comma or full stop between
digits ("1,000.5"); underscores join; marks, joiners and format characters stay with what precedes them. A boundary
segment counts as a word if it has a letter or a digit; punctuation, spaces, symbols, emoji, superscripts and fractions
are no words. Han and Hiragana: each character is a word; Katakana and Hangul: each run. Thai, Lao, Khmer, Myanmar and
their like have no spaces, and a dictionary would be one more thing to pin: a word there is a letter with the marks
that follow it, so counts are of such units (about three to a Thai word).

One choice beyond UAX #29: a word starts at its first word character, also where rule WB3c (joiner × pictograph) would
glue an emoji before the letter-like pictographs U+2139, U+24C2, U+1F170 … to it.

Invariants: positions are absolute byte positions in the text buffer, at character borders, ascending, within their
document; the words of a document depend on its text only; no byte outside [first offset, last offset) is read.
Cost: one pass; 16 bytes per word, plus 8 per document. 300 to 400 MB/s on one core for English.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numba.cpython.unsafe.numbers import trailing_zeros

from transforms.byte_blocks import bits_between, count_bits
from transforms.eight_bytes import BYTE, FLAGS, count_starts, flag_word_bytes, gather, load, load_some
from transforms.kernels import inlined, kernel
from transforms.unicode_tables import (
    PICTOGRAPHIC,
    WB_ALETTER,
    WB_DOUBLE_QUOTE,
    WB_EXTEND,
    WB_EXTENDNUMLET,
    WB_FORMAT,
    WB_HEBREW_LETTER,
    WB_KATAKANA,
    WB_MIDLETTER,
    WB_MIDNUM,
    WB_MIDNUMLET,
    WB_NUMERIC,
    WB_OTHER,
    WB_SINGLE_QUOTE,
    WB_UNIT,
    WB_ZWJ,
    WORD_BREAK,
)

Bytes = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Spans = tuple[Positions, Positions, Positions]

Int = int | np.int64
"""A scalar of a kernel: what numba makes an int64."""

KIND: Final = PICTOGRAPHIC - 1
"""Mask that leaves the `WB_` value of an entry of `WORD_BREAK`."""

# Sets of kinds as bit masks: `MASK >> kind & 1`.
LETTERS: Final = 1 << WB_ALETTER | 1 << WB_HEBREW_LETTER
ALPHANUMERIC: Final = LETTERS | 1 << WB_NUMERIC
WORD: Final = ALPHANUMERIC | 1 << WB_KATAKANA | 1 << WB_UNIT
ATTACHED: Final = 1 << WB_EXTEND | 1 << WB_FORMAT | 1 << WB_ZWJ
IN_LETTERS: Final = 1 << WB_MIDLETTER | 1 << WB_MIDNUMLET | 1 << WB_SINGLE_QUOTE
IN_NUMBERS: Final = 1 << WB_MIDNUM | 1 << WB_MIDNUMLET | 1 << WB_SINGLE_QUOTE
MIDDLE: Final = IN_LETTERS | IN_NUMBERS | 1 << WB_DOUBLE_QUOTE

SKIP: Final = 0
RUN: Final = 1
LOOK: Final = 2
DECODE: Final = 3
UNDERSCORE: Final = 0x5F
ALL: Final = np.uint64(0xFFFFFFFFFFFFFFFF)
ONE: Final = np.uint64(1)
NO_BIT: Final = np.uint64(0)
LAST: Final = np.uint64(63)


@dataclass(frozen=True, slots=True)
class Words:
    """The words of n texts.

    `data` is the UTF-8 buffer of the texts (not copied). Document d owns the words documents[d]:documents[d + 1]
    (n + 1 entries); word w is data[starts[w]:ends[w]].
    """

    data: Bytes
    documents: Positions
    starts: Positions
    ends: Positions

    def strings(self) -> list[list[str]]:
        """Return the words of each document as Python strings (for tests and for looking at)."""
        return spans_as_strings(self.data, self.documents, self.starts, self.ends)


def spans_as_strings(data: Bytes, documents: Positions, starts: Positions, ends: Positions) -> list[list[str]]:
    """Return data[start:end] of each document as Python strings."""
    spans = [data[start:end].tobytes().decode() for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    return [spans[documents[d] : documents[d + 1]] for d in range(len(documents) - 1)]


def text_buffers(text: pa.LargeStringArray) -> tuple[Bytes, Positions]:
    """Return the UTF-8 bytes of `text` and its n + 1 absolute offsets, both read-only views where possible.

    Sliced arrays keep their whole buffer, so offsets need not start at 0. A null counts as the empty text.

    Raises:
        TypeError: `text` is not a large_string array.
    """
    if text.type != pa.large_string():
        raise TypeError(f"texts are a large_string array, got {text.type}")
    values = text.fill_null("") if text.null_count else text
    _, offsets, data = values.buffers()
    if len(values) == 0 or offsets is None:
        return _read_only(np.zeros(0, np.uint8)), _read_only(np.zeros(1, np.int64))
    bounds = np.frombuffer(memoryview(offsets), np.int64, len(values) + 1, values.offset * 8)
    content = np.frombuffer(memoryview(data), np.uint8) if data is not None and data.size else np.zeros(0, np.uint8)
    return _read_only(content), _read_only(bounds)


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a read-only view: kernels are compiled for these only, whatever Arrow's buffers allow."""
    view = array.view()
    view.flags.writeable = False
    return view


def find_words(text: pa.LargeStringArray) -> Words:
    """Return the words of each of `text`."""
    data, bounds = text_buffers(text)
    return Words(data, *_find_words(data, bounds, WORD_BREAK))


def count_characters(data: Bytes, starts: Positions, ends: Positions) -> Positions:
    """Return the number of code points of each data[start:end]."""
    return _count_characters(data, starts, ends)


@kernel
def decode(data: Bytes, position: Int, end: Int) -> tuple[Int, Int]:
    """Return the code point at `position` and where the next one starts; U+FFFD if it would reach beyond `end`."""
    first = np.int64(data[position])
    if first < 0x80:
        return first, position + 1
    if first < 0xE0:
        if position + 2 > end:
            return 0xFFFD, end
        return (first & 0x1F) << 6 | data[position + 1] & 0x3F, position + 2
    if first < 0xF0:
        if position + 3 > end:
            return 0xFFFD, end
        return (first & 0x0F) << 12 | (data[position + 1] & 0x3F) << 6 | data[position + 2] & 0x3F, position + 3
    if position + 4 > end:
        return 0xFFFD, end
    high = (first & 0x07) << 18 | (data[position + 1] & 0x3F) << 12
    return min(high | (data[position + 2] & 0x3F) << 6 | data[position + 3] & 0x3F, 0x10FFFF), position + 4


@kernel
def _followers(kind: Int) -> Int:
    """Rules WB5, 8, 9, 10, 13, 13a, 13b: return the set of kinds that no boundary divides from `kind` before them."""
    if ALPHANUMERIC >> kind & 1:
        return ALPHANUMERIC | 1 << WB_EXTENDNUMLET
    if kind == WB_KATAKANA:
        return 1 << WB_KATAKANA | 1 << WB_EXTENDNUMLET
    if kind == WB_EXTENDNUMLET:
        return ALPHANUMERIC | 1 << WB_KATAKANA | 1 << WB_EXTENDNUMLET
    return 0


@kernel
def _is_bridge(before: Int, middle: Int, after: Int) -> bool:
    """Rules WB6 and 7, 7b and 7c, 11 and 12: does `middle` join what stands on both its sides?"""
    if before == WB_NUMERIC:
        return after == WB_NUMERIC and (IN_NUMBERS >> middle & 1) == 1
    if before == WB_HEBREW_LETTER and after == WB_HEBREW_LETTER and middle == WB_DOUBLE_QUOTE:
        return True
    return (LETTERS >> before & LETTERS >> after & IN_LETTERS >> middle & 1) == 1


@kernel
def _next_base(data: Bytes, position: Int, end: Int, breaks: Bytes) -> tuple[Int, Int]:
    """Return the kind of the first character that is not attached, and the position behind it."""
    while position < end:
        code_point, position = decode(data, position, end)
        kind = np.int64(breaks[code_point] & KIND)
        if not ATTACHED >> kind & 1:
            return kind, position
    return np.int64(WB_OTHER), end


@kernel
def _word_end(data: Bytes, position: Int, end: Int, base: Int, is_word: bool, breaks: Bytes) -> tuple[Int, bool]:
    """Return where the word ends whose characters before `position` end in kind `base`, and whether it is one."""
    followers = _followers(base)
    after_joiner = False
    while position < end:
        code_point, following = decode(data, position, end)
        entry = np.int64(breaks[code_point])
        kind: Int = entry & KIND
        if ATTACHED >> kind & 1:
            after_joiner = kind == WB_ZWJ
            position = following
            continue
        if not followers >> kind & 1 and not (after_joiner and entry & PICTOGRAPHIC):
            if not MIDDLE >> kind & 1 or not ALPHANUMERIC >> base & 1:
                break
            after, beyond = _next_base(data, following, end, breaks)
            if _is_bridge(base, kind, after):
                kind, following = after, beyond
            elif base != WB_HEBREW_LETTER or kind != WB_SINGLE_QUOTE:  # else WB7a
                break
        is_word |= (WORD >> kind & 1) == 1
        after_joiner = False
        base, position, followers = kind, following, _followers(kind)
    return position, is_word


@kernel
def _ascii_steps(breaks: Bytes) -> Bytes:
    """Return per byte how the scan goes on: `SKIP`, `RUN`, `LOOK` (may stand within a word) or `DECODE`."""
    steps = np.full(256, DECODE, np.uint8)
    for byte in range(128):
        kind = np.int64(breaks[byte] & KIND)
        joins = ALPHANUMERIC >> kind & 1 or kind == WB_EXTENDNUMLET
        steps[byte] = RUN if joins else LOOK if MIDDLE >> kind & 1 else SKIP
    return steps


@kernel
def _rest_of_word(data: Bytes, position: Int, end: Int, start: Int, steps: Bytes, breaks: Bytes) -> tuple[Int, bool]:
    """Return where the word that began at `start` ends, of which the ASCII run up to `position` is known.

    The word goes on if the next character is not ASCII, or may stand within words and is followed by another run.
    """
    if start == position:
        code_point, position = decode(data, position, end)
    else:
        code_point = data[position - 1] & np.int64(0x7F)
    base: Int = np.int64(breaks[code_point] & KIND)
    is_word = (WORD >> base & 1) == 1
    for place in range(start, position - 1):
        is_word |= steps[data[place]] == RUN and breaks[data[place]] != WB_EXTENDNUMLET
    if not is_word and base != WB_EXTENDNUMLET:
        return position, False
    return _word_end(data, position, end, base, is_word, breaks)


@kernel
def _scan(data: Bytes, block: Int, end: Int, steps: Bytes) -> tuple[np.uint64, np.uint64]:
    """Return, as bits of the 64 bytes from `block` on, which are `RUN`, and which are `RUN` or `DECODE`; 0 from `end`.

    `RUN` bytes are those of `flag_word_bytes`, which a test compares with the tables.
    """
    runs, others = np.uint64(0), np.uint64(0)
    if block + 64 <= end:
        for part in range(8):
            chunk = load(data, np.uint64(block) + np.uint64(8 * part))
            runs |= gather(flag_word_bytes(chunk)) << np.uint64(8 * part)
            others |= gather(chunk & FLAGS) << np.uint64(8 * part)
    else:
        for place in range(end - block):
            step = steps[data[block + place]]
            runs |= np.uint64(step == RUN) << np.uint64(place)
            others |= np.uint64(step == DECODE) << np.uint64(place)
    return runs, runs | others


@inlined
def _ascii_words(
    data: Bytes, block: Int, end: Int, last: Int, open_run: np.uint64, letter: np.uint64, digit: np.uint64
) -> tuple[Any, np.uint64, np.uint64, np.uint64]:
    """Return whether the 64 bytes from `block` on are plain, and as bits of them what lies in words; 0 from `end`.

    Plain is ASCII in which each run holds a letter or digit. There rules WB5 to WB13b make words of runs of letters,
    digits and underscores, joined by one stop, colon or apostrophe between two letters, or one stop, comma, semicolon
    or apostrophe between two digits. Which bytes these are is compared with the tables by a test. `open_run`, `letter`
    and `digit` are 1 where a word goes on from the byte before, and where that byte is one; the latter two are returned
    for the last byte. No byte from `last` on is read.
    """
    if block + 64 > last:
        return False, NO_BIT, NO_BIT, NO_BIT
    strange = bits_between(data, block, 0, 0x80, 0x80)
    letters = bits_between(data, block, 0x20, 0x61, 26)
    digits = bits_between(data, block, 0, 0x30, 10)
    lines = bits_between(data, block, 0, UNDERSCORE, 1)
    stops = bits_between(data, block, 0, 0x2E, 1) | bits_between(data, block, 0, 0x27, 1)
    colons = bits_between(data, block, 0, 0x3A, 1)
    commas = bits_between(data, block, 0, 0x2C, 1) | bits_between(data, block, 0, 0x3B, 1)
    following = np.int64(data[block + 64]) if block + 64 < end else np.int64(0)
    if block + 64 > end:
        there = (ONE << np.uint64(end - block)) - ONE
        strange, letters, digits, lines = strange & there, letters & there, digits & there, lines & there
    next_letter = np.uint64(0x61 <= (following | 0x20) <= 0x7A) << LAST
    next_digit = np.uint64(0x30 <= following <= 0x39) << LAST
    in_letters = (letters << ONE | letter) & (letters >> ONE | next_letter) & (stops | colons)
    in_numbers = (digits << ONE | digit) & (digits >> ONE | next_digit) & (stops | commas)
    words = letters | digits | lines | in_letters | in_numbers
    first_lines = lines & ~(words << ONE | open_run)
    behind = lines + first_lines  # a carry runs through the underscores that begin a run, to what stands behind them
    plain = strange == 0 and behind >= lines and (behind & ~lines & ~words) == 0
    plain = plain and (following < 0x80 or words >> LAST == 1)  # else what the last byte is depends on the next
    return plain, words, letters >> LAST, digits >> LAST


@inlined
def _write_bits(bits: np.uint64, block: Int, out: Positions, count: Int) -> Int:
    """Write the positions of `bits` to `out` from place `count` on, eight at a time, and return where the next goes."""
    end: Int = count + count_bits(bits)
    place, last = np.uint64(count), np.uint64(end)  # unsigned: no test for negative indices
    while place < last:
        for more in range(8):
            out[place + np.uint64(more)] = block + np.int64(trailing_zeros(bits))
            bits &= bits - ONE
        place += np.uint64(8)
    return end


@kernel
def _find_words(data: Bytes, bounds: Positions, breaks: Bytes) -> Spans:
    """Find all words, a block of 64 bytes at a time: those of plain ASCII from bits alone, all others run by run.

    A text of b bytes has at most b / 2 + 1 words, so the arrays cannot overflow: two words that touch have no common
    kind of ASCII; so the one after an ASCII word of one byte has at least three (Katakana or a unit), and all other
    words have two bytes or a byte behind them. Positions are written eight at a time.
    """
    steps = _ascii_steps(breaks)
    documents = np.zeros(len(bounds), np.int64)
    starts = np.empty((bounds[-1] - bounds[0]) // 2 + len(bounds) + 8, np.int64)  # untouched pages cost nothing
    ends = np.empty(len(starts), np.int64)
    count: Int = 0
    for document in range(len(bounds) - 1):
        block, end = bounds[document], bounds[document + 1]
        ended: Int = count
        letter, digit = NO_BIT, NO_BIT
        while block < end:
            open_run = np.uint64(count > ended)
            plain, words, letter, digit = _ascii_words(data, block, end, bounds[-1], open_run, letter, digit)
            if plain:
                earlier = words << ONE | open_run
                count = _write_bits(words & ~earlier, block, starts, count)
                ended = _write_bits(earlier & ~words, block, ends, ended)
                block += 64
                continue
            start = starts[count - 1] if open_run else block
            block, ended = _block_of_words(data, start, block, end, steps, breaks, starts, ends, ended)
            count, letter, digit = ended, NO_BIT, NO_BIT
        if count > ended:
            ends[ended] = end
        documents[document + 1] = count
    return documents, starts[:count], ends[:count]


@kernel
def _block_of_words(
    data: Bytes,
    start: Int,
    block: Int,
    end: Int,
    steps: Bytes,
    breaks: Bytes,
    starts: Positions,
    ends: Positions,
    count: Int,
) -> tuple[Int, Int]:
    """Find the words that begin in the 64 bytes from `block` on, and the one that began before it at `start`.

    ASCII runs from bits, whatever else from `_rest_of_word`. Return where to go on, and how many words there are now.
    """
    runs, active = _scan(data, block, end, steps)  # of `active`, what lies before `position` is cleared
    is_open = start < block
    while is_open or active != 0:
        first = np.uint64(0)
        if not is_open:
            first = np.uint64(trailing_zeros(active))
            start = block + np.int64(first)
        is_open = False
        gaps = ~runs & ALL << first
        while gaps == 0 and block + 64 < end:
            block += 64
            runs, active = _scan(data, block, end, steps)
            gaps = ~runs
        position = block + np.int64(trailing_zeros(gaps)) if gaps else end
        step, is_word = steps[data[position]] if position < end else SKIP, True
        if step == LOOK:  # a stop or comma, as a rule before a space
            step = steps[data[position + 1]] if position + 1 < end else SKIP
        if step in (RUN, DECODE) or data[start] == UNDERSCORE:
            position, is_word = _rest_of_word(data, position, end, start, steps, breaks)
        if is_word:
            starts[count], ends[count] = start, position
            count += 1
        if position - block < 64:
            active &= ALL << np.uint64(position - block)
        else:
            block = position
            runs, active = _scan(data, block, end, steps)
    return block + 64, count


@kernel
def _count_characters(data: Bytes, starts: Positions, ends: Positions) -> Positions:
    counts = np.empty(len(starts), np.int64)
    for span in range(len(starts)):
        position, end, count = np.uint64(starts[span]), np.uint64(ends[span]), np.int64(0)
        while end - position >= BYTE:
            count += count_starts(load(data, position))
            position += BYTE
        rest = end - position
        counts[span] = count + count_starts(load_some(data, position, rest)) - np.int64(BYTE - rest)
    return counts
