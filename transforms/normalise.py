"""Making characters that say nothing uniform: line breaks, control characters, runs of spaces and of blank lines, and
the ways of writing one character.

`NormalizeText` changes no letter but for its canonical form (`transforms.composition`): no quotes or dashes, no
compatibility forms. Zero-width characters (joiners that Persian, Indic scripts and emoji need, spaces of width zero in
Thai and Khmer) and U+FFFD stay.

Invariants: exact per document and reason, in + inserted = out + cut in code points; doing it twice changes nothing; a
document's result depends on it alone. Cost: two passes, several hundred MB/s on one core; the text column is rewritten
only in batches where something changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transforms.composition import compose
from transforms.kernels import kernel
from transforms.outcome import Outcome, kept, require
from transforms.schema import set_columns
from transforms.segmentation import Bytes, Int, Positions, decode, text_buffers
from transforms.unicode_tables import CLASS, CODE_POINTS, CONTROL, LINE_BREAK, SPACE

Counts = npt.NDArray[np.int64]

REASONS: Final = (
    "line breaks",
    "control characters",
    "byte order marks",
    "trailing spaces",
    "runs of spaces",
    "blank lines",
    "composition",
)
"""The kinds of edits, in the order in which they are made and reported."""

BREAKS: Final = 0
CONTROLS: Final = 1
MARKS: Final = 2
TRAILING: Final = 3
SPACES: Final = 4
BLANK: Final = 5
COMPOSITION: Final = 6

# What the scan does at a code point.
COPY: Final = 0
RUN: Final = 1
BREAK: Final = 2
CUT: Final = 3
CUT_MARK: Final = 4

UNLIMITED: Final = 2**62


def _actions() -> Bytes:
    actions = np.full(CODE_POINTS, COPY, np.uint8)
    actions[CLASS == SPACE] = RUN
    actions[CLASS == CONTROL] = CUT
    actions[CLASS == LINE_BREAK] = BREAK
    actions[[0x0B, 0x0C, 0x85]] = BREAK  # vertical tab, form feed, next line
    actions[0xFEFF] = CUT_MARK
    actions.flags.writeable = False
    return actions


ACTIONS: Final = _actions()
"""Per code point what the scan does."""


@dataclass(frozen=True, slots=True)
class NormalizeText:
    """Makes line breaks, control characters and white space uniform; rules in this order, each its own edit reason.

    - *line breaks*: U+000D U+000A, U+000D, vertical tab, form feed, U+0085, U+2028 and U+2029 become U+000A.
    - *control characters*: all other Cc (C0, U+007F, C1) but tab and U+000A are cut.
    - *byte order marks*: U+FEFF is cut, wherever it stands.
    - *trailing spaces*: of White_Space before a line break or the end, `max_trailing_spaces` stay.
    - *runs of spaces*: of any other run of White_Space, the first `max_spaces` characters stay. The default lets any
      indentation or table through; runs of megabytes, which exhaust tokenizers, do not pass.
    - *blank lines*: of consecutive lines that are empty or White_Space only, `max_blank_lines` stay.
    - *composition*: Unicode Normalization Form C; counted are the characters of the stretches that change.

    None switches a rule off.
    """

    max_trailing_spaces: int | None = 0
    max_spaces: int | None = 256
    max_blank_lines: int | None = 2
    form: Literal["NFC"] | None = "NFC"

    version: ClassVar[int] = 2
    libraries: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            ValueError: a number is negative, `max_spaces` is 0, which would glue words together, or `form` is another.
        """
        if self.form not in ("NFC", None):
            raise ValueError(f'form={self.form!r}: choose "NFC" or None; compatibility forms would change what is said')
        if any(number is not None and number < 0 for number in (self.max_trailing_spaces, self.max_blank_lines)):
            raise ValueError(f"numbers of spaces and lines are at least 0: {self}")
        if self.max_spaces is not None and self.max_spaces < 1:
            raise ValueError(f"max_spaces is at least 1, or words would be glued together: {self}")

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return `schema`.

        Raises:
            SchemaError: there is no column `text`.
        """
        require(schema, "NormalizeText", text=pa.large_string())
        return schema

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Return all rows, their texts normalised."""
        data, bounds = text_buffers(batch.column("text"))
        limits = (self.max_trailing_spaces, self.max_spaces, self.max_blank_lines)
        caps = np.array([UNLIMITED if limit is None else limit for limit in limits], np.int64)
        content, offsets, cut, inserted = _normalize(data, bounds, ACTIONS, caps)
        if self.form is not None:
            content, offsets, cut[:, COMPOSITION], inserted[:, COMPOSITION] = compose(content, offsets)
        rows, kinds = np.nonzero(cut)  # nothing is inserted where nothing is cut
        if len(rows) == 0:
            return kept(batch)
        text = pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(content))
        ids = batch.column("id")
        edits = [
            {
                "id": ids[row].as_py(),
                "transform": "NormalizeText",
                "reason": REASONS[kind],
                "cut": int(cut[row, kind]),
                "inserted": int(inserted[row, kind]),
            }
            for row, kind in zip(rows.tolist(), kinds.tolist(), strict=True)
        ]
        return kept(set_columns(batch, {batch.schema.field("text"): text}), edits=edits)


@kernel
def _normalize(data: Bytes, bounds: Positions, actions: Bytes, caps: Counts) -> tuple[Bytes, Positions, Counts, Counts]:
    """Return bytes and offsets of the normalised texts, and code points cut and inserted per text and kind."""
    texts = len(bounds) - 1
    out, offsets = np.empty(bounds[-1] - bounds[0], np.uint8), np.zeros(texts + 1, np.int64)
    cut, inserted = np.zeros((texts, len(REASONS)), np.int64), np.zeros((texts, len(REASONS)), np.int64)
    end: Int = np.int64(0)
    for text in range(texts):
        end = _normalize_text(data, bounds[text], bounds[text + 1], actions, caps, out, end, cut[text], inserted[text])
        offsets[text + 1] = end
    return out[:end], offsets, cut, inserted


@kernel
def _normalize_text(
    data: Bytes,
    position: Int,
    end: Int,
    actions: Bytes,
    caps: Counts,
    out: Bytes,
    place: Int,
    cut: Counts,
    inserted: Counts,
) -> Int:
    """Write one text to `out` from `place` on, counting edits; return where it ends there.

    Spaces are written before it is known whether they are trailing; `run_end` is where they would end if so. `line` is
    where the current line begins in `out`, for taking back blank lines.
    """
    line, run_end, run, blank_lines, is_blank = place, place, np.int64(0), np.int64(0), True
    while position < end:
        here = position
        code_point, position = decode(data, position, end)
        action = actions[code_point]
        if action == COPY:
            if run > caps[1]:
                cut[SPACES] += run - caps[1]
            run, is_blank = np.int64(0), False
            position = _plain_end(data, position, end, actions)
            place = _copy(data, here, position, out, place)
        elif action == RUN:
            if run == 0:
                run_end = place
            run += 1
            if run <= caps[1]:
                place = _copy(data, here, position, out, place)
            if run <= caps[0]:
                run_end = place
        elif action == CUT:
            cut[CONTROLS] += 1
        elif action == CUT_MARK:
            cut[MARKS] += 1
        elif code_point == 0x0D and position < end and data[position] == 0x0A:
            cut[BREAKS] += 1
        else:
            cut[BREAKS] += code_point != 0x0A
            inserted[BREAKS] += code_point != 0x0A
            left = _end_run(run, caps, cut)
            place = run_end if run > 0 else place
            blank_lines = blank_lines + 1 if is_blank else np.int64(0)
            if blank_lines > caps[2]:
                cut[BLANK] += left + 1
                place = line
            else:
                out[place] = 0x0A
                place += 1
            line, run, is_blank = place, np.int64(0), True
    _end_run(run, caps, cut)
    return run_end if run > 0 else place


@kernel
def _plain_end(data: Bytes, position: Int, end: Int, actions: Bytes) -> Int:
    """Return the end of the ASCII characters from `position` on that are copied, single spaces between them too."""
    while position < end:
        byte = data[position]
        if byte == 0x20:
            byte = data[position + 1] if position + 1 < end else np.uint8(0)
        if byte >= 0x80 or actions[byte] != COPY:
            break
        position += 1
    return position


@kernel
def _copy(data: Bytes, start: Int, end: Int, out: Bytes, place: Int) -> Int:
    for position in range(start, end):
        out[place] = data[position]
        place += 1
    return place


@kernel
def _end_run(run: Int, caps: Counts, cut: Counts) -> Int:
    """Count what is cut of a run of spaces at the end of a line; return how many are left."""
    trailing = max(run - caps[0], 0)
    excess = max(run - trailing - caps[1], 0)
    cut[TRAILING] += trailing
    cut[SPACES] += excess
    left: Int = run - trailing - excess
    return left
