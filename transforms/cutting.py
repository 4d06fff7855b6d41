"""Cutting pieces out of texts, by byte positions, and accounting for every code point that goes.

Pieces may touch or overlap: what they cover goes, nothing else. Removal is by place: other occurrences of the same
words stay. Where the characters on both sides of a cut would grow together into one word, one space is put there.

Invariants: a piece lies within its document and begins and ends at borders of characters, or the call fails; code
points add up (before = after + cut - inserted); documents without pieces are copied as they are.
Cost: one copy of the texts, 16 bytes per piece.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transforms.canonical import canonical_json
from transforms.kernels import kernel
from transforms.lines import find_lines
from transforms.outcome import Outcome, kept
from transforms.schema import set_columns
from transforms.segmentation import ATTACHED, KIND, Bytes, Int, Positions, decode, text_buffers
from transforms.unicode_tables import (
    WB_ALETTER,
    WB_EXTENDNUMLET,
    WB_HEBREW_LETTER,
    WB_KATAKANA,
    WB_NUMERIC,
    WORD_BREAK,
)

_SHOWN = 8  # pieces that the evidence lists
_JOINING = 1 << WB_ALETTER | 1 << WB_HEBREW_LETTER | 1 << WB_NUMERIC | 1 << WB_KATAKANA | 1 << WB_EXTENDNUMLET


@dataclass(frozen=True, slots=True)
class Pieces:
    """Pieces of n texts: document d owns the pieces offsets[d]:offsets[d + 1], in order of their starts.

    Piece p is data[starts[p]:ends[p]], absolute byte positions in the buffer of the texts.
    """

    offsets: Positions
    starts: Positions
    ends: Positions


@dataclass(frozen=True, slots=True)
class Cut:
    """Texts without their pieces, and per document the code points `cut` and `inserted`."""

    text: pa.LargeStringArray
    cut: Positions
    inserted: Positions


def cut_pieces(text: pa.LargeStringArray, pieces: Pieces) -> Cut:
    """Return `text` without `pieces`.

    Raises:
        ValueError: a piece leaves its document, splits a character, or comes before the one before it.
    """
    data, bounds = text_buffers(text)
    wrong = _first_wrong(data, bounds, pieces.offsets, pieces.starts, pieces.ends)
    if wrong >= 0:
        document = int(np.searchsorted(pieces.offsets, wrong, "right")) - 1
        first = int(bounds[document])
        raise ValueError(
            f"bytes {pieces.starts[wrong] - first}:{pieces.ends[wrong] - first} of text {document}, which has "
            f"{bounds[document + 1] - first} bytes, are no piece of it: pieces come in order, within their text, and "
            "begin and end between characters; give byte positions, not character positions"
        )
    content, offsets, cut, inserted = _cut(data, bounds, pieces.offsets, pieces.starts, pieces.ends, WORD_BREAK)
    left = pa.LargeStringArray.from_buffers(len(text), pa.py_buffer(offsets), pa.py_buffer(content))
    return Cut(left, cut, inserted)


def cut_outcome(batch: pa.RecordBatch, pieces: Pieces, transform: str, reason: str) -> Outcome:
    """Return `batch` without the `pieces` of its texts, edits under `reason`.

    The evidence of an edit has the number of pieces and the first eight, in bytes of the text as it was. A document of
    which White_Space alone is left, or nothing, is dropped as "nothing but" `reason`.
    """
    result = cut_pieces(batch.column("text"), pieces)
    edited = result.cut > 0
    empty = _are_empty(result.text) & edited
    ids: Any = batch.column("id")
    dropped = [
        {"id": ids[row].as_py(), "transform": transform, "reason": f"nothing but {reason}"}
        for row in np.flatnonzero(empty).tolist()
    ]
    _, bounds = text_buffers(batch.column("text"))
    edits = [
        {
            "id": ids[row].as_py(),
            "transform": transform,
            "reason": reason,
            "cut": int(result.cut[row]),
            "inserted": int(result.inserted[row]),
            "evidence": _evidence(pieces, row, int(bounds[row])),
        }
        for row in np.flatnonzero(edited & ~empty).tolist()
    ]
    if edited.any():
        batch = set_columns(batch, {batch.schema.field("text"): result.text})
    return kept(batch.filter(pa.array(~empty)), dropped=dropped, edits=edits)


def _evidence(pieces: Pieces, row: int, first: int) -> str:
    start, end = int(pieces.offsets[row]), int(pieces.offsets[row + 1])
    shown = slice(start, min(end, start + _SHOWN))
    places = (np.stack([pieces.starts[shown], pieces.ends[shown]], axis=1) - first).tolist()
    return canonical_json({"bytes": places, "pieces": end - start})


def _are_empty(text: pa.LargeStringArray) -> npt.NDArray[np.bool_]:
    """Return which texts have no line that is not blank."""
    lines = find_lines(text)
    filled = np.concatenate([[0], np.cumsum(~lines.blank)])
    return np.asarray(filled[lines.documents[1:]] == filled[lines.documents[:-1]])


@kernel
def _first_wrong(data: Bytes, bounds: Positions, offsets: Positions, starts: Positions, ends: Positions) -> np.int64:
    """Return the first piece that is none, or -1."""
    for document in range(len(bounds) - 1):
        before = bounds[document]
        for piece in range(offsets[document], offsets[document + 1]):
            start, end = starts[piece], ends[piece]
            if start < before or end < start or end > bounds[document + 1]:
                return np.int64(piece)
            for place in (start, end):
                if place < bounds[document + 1] and data[place] & 0xC0 == 0x80:
                    return np.int64(piece)
            before = start
    return np.int64(-1)


@kernel
def _count(data: Bytes, start: Int, end: Int) -> Int:
    count = np.int64(0)
    for place in range(start, end):
        count += np.int64(data[place] & 0xC0 != 0x80)
    return count


@kernel
def _base_before(data: Bytes, first: Int, position: Int, breaks: Bytes) -> Int:
    """Return the word break kind of the last character before `position` that is not attached; 0 for none."""
    while position > first:
        position -= 1
        while position > first and data[position] & 0xC0 == 0x80:
            position -= 1
        code_point, _ = decode(data, position, np.int64(len(data)))
        kind = np.int64(breaks[code_point] & KIND)
        if not ATTACHED >> kind & 1:
            return kind
    return np.int64(0)


@kernel
def _grow_together(data: Bytes, first: Int, start: Int, end: Int, last: Int, breaks: Bytes) -> bool:
    """Return whether words on both sides of data[start:end] would be one without it, in the text data[first:last]."""
    if start == first or end == last:
        return False
    code_point, _ = decode(data, end, last)
    after = np.int64(breaks[code_point] & KIND)
    return bool(_JOINING >> after & _JOINING >> _base_before(data, first, start, breaks) & 1)


@kernel
def _cut(
    data: Bytes, bounds: Positions, offsets: Positions, starts: Positions, ends: Positions, breaks: Bytes
) -> tuple[Bytes, Positions, Positions, Positions]:
    texts = len(bounds) - 1
    out = np.empty(bounds[-1] - bounds[0], np.uint8)  # an inserted space has at least the byte of its piece
    new, cut, inserted = np.zeros(texts + 1, np.int64), np.zeros(texts, np.int64), np.zeros(texts, np.int64)
    place = np.int64(0)
    for text in range(texts):
        first, last = bounds[text], bounds[text + 1]
        copied, piece = first, offsets[text]
        while piece < offsets[text + 1]:
            start, end = starts[piece], ends[piece]
            piece += 1
            while piece < offsets[text + 1] and starts[piece] <= end:
                end = max(end, ends[piece])
                piece += 1
            out[place : place + start - copied] = data[copied:start]
            place += start - copied
            cut[text] += _count(data, start, end)
            if start < end and _grow_together(data, first, start, end, last, breaks):
                out[place] = 0x20
                place += 1
                inserted[text] += 1
            copied = end
        out[place : place + last - copied] = data[copied:last]
        place += last - copied
        new[text + 1] = place
    return out[:place], new, cut, inserted
