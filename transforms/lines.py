"""Lines of a batch of texts, found once.

Invariants: positions are absolute byte positions in the text buffer, at character borders, ascending, within their
document; the lines of a document depend on its text only; no byte outside [first offset, last offset) is read.
Cost: one pass, eight bytes at a time; 17 bytes per line, plus 8 per document.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from transforms.eight_bytes import first_flag, flag_equal, load
from transforms.kernels import kernel
from transforms.segmentation import Bytes, Flags, Int, Positions, Spans, decode, spans_as_strings, text_buffers
from transforms.unicode_tables import WHITESPACE

LINE_FEED: Final = np.uint64(0x0A)
RETURN: Final = np.uint64(0x0D)
SEPARATOR: Final = np.uint64(0xE2)  # first byte of U+2028 and U+2029, and of many others


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of n texts, without what ends them; fields as in `transforms.segmentation.Words`.

    A line ends at U+000A, U+000D U+000A, U+000D, U+2028 or U+2029. What follows the last of them is a line unless it
    is empty, so a text has as many lines with a final line feed as without, and the empty text has none. `blank[l]`
    is true where line l is empty or White_Space only.
    """

    data: Bytes
    documents: Positions
    starts: Positions
    ends: Positions
    blank: Flags

    def strings(self) -> list[list[str]]:
        """Return the lines of each document as Python strings (for tests and for looking at)."""
        return spans_as_strings(self.data, self.documents, self.starts, self.ends)


def find_lines(text: pa.LargeStringArray) -> Lines:
    """Return the lines of each of `text`."""
    data, bounds = text_buffers(text)
    documents, starts, ends = _find_lines(data, bounds)
    return Lines(data, documents, starts, ends, _are_blank(data, starts, ends, WHITESPACE))


def trim(data: Bytes, starts: Positions, ends: Positions) -> tuple[Positions, Positions]:
    """Return starts and ends without White_Space at both ends; a blank span becomes empty, at its start."""
    return _trim(data, starts, ends, WHITESPACE)


@kernel
def grown(array: Positions) -> Positions:
    """Return `array` with room for as many more entries."""
    larger = np.empty(2 * len(array), np.int64)
    larger[: len(array)] = array
    return larger


@kernel
def _find_lines(data: Bytes, bounds: Positions) -> Spans:
    documents = np.zeros(len(bounds), np.int64)
    starts = np.empty((bounds[-1] - bounds[0]) // 32 + 16, np.int64)
    ends = np.empty(len(starts), np.int64)
    count = 0
    for document in range(len(bounds) - 1):
        position, end = bounds[document], bounds[document + 1]
        while position < end:
            start = position
            position, following = _line_end(data, position, end)
            if count == len(starts):
                starts, ends = grown(starts), grown(ends)
            starts[count], ends[count] = start, position
            count += 1
            position = following
        documents[document + 1] = count
    return documents, starts[:count], ends[:count]


@kernel
def _line_end(data: Bytes, position: Int, end: Int) -> tuple[Int, Int]:
    """Return where the line at `position` ends and where the next one starts."""
    while position < end:
        if position + 8 <= end:
            chunk = load(data, np.uint64(position))
            flags = flag_equal(chunk, LINE_FEED) | flag_equal(chunk, RETURN) | flag_equal(chunk, SEPARATOR)
            if flags == 0:
                position += 8
                continue
            position += first_flag(flags)
        byte = data[position]
        if byte == 0x0A:
            return position, position + 1
        if byte == 0x0D:
            return position, position + (2 if position + 1 < end and data[position + 1] == 0x0A else 1)
        if byte == 0xE2 and position + 2 < end and data[position + 1] == 0x80 and data[position + 2] & 0xFE == 0xA8:
            return position, position + 3
        position += 1
    return end, end


@kernel
def _are_blank(data: Bytes, starts: Positions, ends: Positions, whitespace: Flags) -> Flags:
    blank = np.ones(len(starts), np.bool_)
    for span in range(len(starts)):
        position = starts[span]
        while position < ends[span]:
            code_point, position = decode(data, position, ends[span])
            if not whitespace[code_point]:
                blank[span] = False
                break
    return blank


@kernel
def _trim(data: Bytes, starts: Positions, ends: Positions, whitespace: Flags) -> tuple[Positions, Positions]:
    new_starts, new_ends = starts.copy(), starts.copy()
    for span in range(len(starts)):
        start, end = starts[span], ends[span]
        while start < end:
            code_point, following = decode(data, start, end)
            if not whitespace[code_point]:
                break
            start = following
        while start < end:
            last = end - 1
            while last > start and data[last] & 0xC0 == 0x80:
                last -= 1
            code_point, _ = decode(data, last, end)
            if not whitespace[code_point]:
                new_starts[span], new_ends[span] = start, end
                break
            end = last
    return new_starts, new_ends
