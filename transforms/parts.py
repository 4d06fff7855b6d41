"""Lines and paragraphs that the corpus repeats: found per text, decided per digest, cut where they stand.

    find_parts     per batch      the lines or paragraphs that take part, with digests   → exchange by digest
    later_ones     per partition  all occurrences but the first in keep order (or       → exchange by document
                                  `Occurrences`, in a stream of sorted rows)
    too_frequent   per partition  or: all occurrences of what is seen more than n times → exchange by document
    cut_parts      per batch      the texts without those parts

A paragraph is a run of lines that are not blank. A part is compared by the bytes between its first and last character
that is not White_Space; blank lines and parts of fewer than `least` characters take no part and always stay. A part
goes with the line breaks (and blank lines, for paragraphs) behind it, the last one with those before it.

What keeping the first promises: each part that is cut stays once in the corpus, at its first occurrence in keep order
(and in its document, at the first place there), as the first occurrence is never cut.

Invariants: what is cut depends on the texts and the keep order, not on batches or partitions. Digests are 16 bytes of
BLAKE3: equal digests, equal parts.
Cost: 400 MB/s to find lines, 800 MB/s paragraphs, .2 µs for the digest of a part; 32 bytes per part, plus digests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.cutting import Pieces, cut_outcome
from transforms.duplicates import numbered
from transforms.kernels import kernel
from transforms.lines import find_lines, trim
from transforms.many_digests import short_span_digests
from transforms.outcome import Outcome
from transforms.segmentation import Bytes, Flags, Positions, count_characters, text_buffers

PartUnit = Literal["line", "paragraph"]


@dataclass(frozen=True, slots=True)
class RepeatedParts:
    """What is compared and what goes.

    `unit` is "line" or "paragraph"; parts of fewer than `least` code points take no part. `more_than` = None keeps the
    first occurrence of each; a number drops every occurrence of what is seen more often than that, the first too.
    """

    unit: PartUnit = "line"
    least: int = 20
    more_than: int | None = None

    def __post_init__(self) -> None:
        """Check the fields.

        Raises:
            ValueError: a field is out of its range.
        """
        if self.unit not in ("line", "paragraph"):
            raise ValueError(f'unit is "line" or "paragraph": got {self.unit!r}')
        if self.least < 1 or (self.more_than is not None and self.more_than < 1):
            raise ValueError(f"least and more_than are at least 1: got {self.least} and {self.more_than}")

    @property
    def reason(self) -> str:
        """The reason of edits in the ledger."""
        if self.more_than is None:
            return f"repeated {self.unit}s"
        return f"{self.unit}s seen more than {self.more_than} times"


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of n texts that take part: document d owns parts offsets[d]:offsets[d + 1].

    Part p is compared by data[starts[p]:ends[p]]; if it goes, data[cut_starts[p]:cut_ends[p]] goes.
    """

    data: Bytes
    offsets: Positions
    starts: Positions
    ends: Positions
    cut_starts: Positions
    cut_ends: Positions

    def digests(self) -> pa.FixedSizeBinaryArray:
        """Return the digest of each part."""
        return short_span_digests(self.data, self.starts, self.ends)

    def documents(self) -> Positions:
        """Return the text of each part."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))


def find_parts(text: pa.LargeStringArray, parts: RepeatedParts) -> Parts:
    """Return the parts of each of `text` that take part."""
    lines = find_lines(text)
    starts, ends = trim(lines.data, lines.starts, lines.ends)
    _, bounds = text_buffers(text)
    followers = _followers(lines.documents, lines.starts, bounds)
    is_line = np.bool_(parts.unit == "line")
    found = _join(lines.documents, lines.starts, starts, ends, followers, lines.blank, is_line)
    offsets, starts, ends, cut_starts, cut_ends = found
    long = count_characters(lines.data, starts, ends) >= parts.least
    counted = np.concatenate([[0], np.cumsum(long)])
    columns = (column[long] for column in (starts, ends, cut_starts, cut_ends))
    return Parts(lines.data, counted[offsets], *columns)


class Occurrences:
    """Finds later occurrences in a stream that is ordered by (digest, order key, place): all but the first of a digest.

    Whatever the batches, and however many rows have one digest: what is carried to the next batch is one row.
    """

    def __init__(self) -> None:
        self._first: tuple[bytes, bytes, int] | None = (
            None  # digest, order key and place of the last digest's first row
        )

    def later(
        self,
        digests: pa.FixedSizeBinaryArray,
        orders: pa.LargeBinaryArray,
        places: Positions,
        lengths: Positions | None = None,
    ) -> Flags:
        """Return which of the next rows, one at least, are not the first of their digest.

        `orders` are the order keys of their documents, `places` numbers that ascend within a document. With `lengths`,
        in the unit of `places`, a row is none that overlaps the first one in its document.
        """
        new = np.concatenate([[True], np.asarray(pc.not_equal(digests[1:], digests[:-1]))])
        carried = self._first is not None and self._first[0] == digests[0].as_py()
        new[0] = not carried
        later = ~new
        first = np.flatnonzero(new)[np.cumsum(new) - 1] if new.any() else np.zeros(len(new), np.int64)
        known = np.cumsum(new) > 0  # the others continue the digest with which the last batch ended
        owners, begins = orders.take(pa.array(first)), places[first]
        if lengths is not None:
            here = np.asarray(pc.equal(orders, owners)) & known & (places < begins + lengths)
            if self._first is not None:
                before = np.asarray(pc.equal(orders, pa.scalar(self._first[1], orders.type))) & ~known
                here |= before & (places < self._first[2] + lengths)
            later &= ~here
        if known[-1]:
            self._first = (digests[-1].as_py(), owners[-1].as_py(), int(begins[-1]))
        return later


def later_ones(
    digests: pa.FixedSizeBinaryArray,
    orders: pa.LargeBinaryArray,
    places: Positions,
    lengths: Positions | None = None,
) -> Flags:
    """Return what `Occurrences.later` finds for all rows of some digests, in any order."""
    if len(digests) == 0:
        return np.zeros(0, np.bool_)
    columns = {"digest": digests, "order": orders, "place": places}
    keys: Any = [(name, "ascending") for name in columns]
    rows = pc.sort_indices(pa.table(columns), sort_keys=keys)
    order = np.asarray(rows).astype(np.int64)
    sizes = None if lengths is None else lengths[order]
    later = np.zeros(len(digests), np.bool_)
    later[order] = Occurrences().later(digests.take(rows), orders.take(rows), places[order], sizes)
    return later


def too_frequent(digests: pa.FixedSizeBinaryArray, more_than: int) -> Flags:
    """Return which rows have a digest that occurs more than `more_than` times. All rows of a digest are here."""
    groups, sizes = numbered(digests)
    return np.asarray(sizes[groups] > more_than)


def cut_parts(batch: pa.RecordBatch, parts: Parts, goes: Flags, reason: str) -> Outcome:
    """Return `batch` without those of its `parts` that go."""
    data, bounds = text_buffers(batch.column("text"))
    counted = np.concatenate([[0], np.cumsum(goes)])
    starts, ends = parts.cut_starts[goes].copy(), parts.cut_ends[goes]
    offsets = counted[parts.offsets]
    _retreat(data, bounds, offsets, starts, ends)
    return cut_outcome(batch, Pieces(offsets, starts, ends), "RepeatedParts", reason)


def _followers(documents: Positions, starts: Positions, bounds: Positions) -> Positions:
    """Return where the line after each one begins, or its text ends."""
    followers = np.append(starts[1:], 0) if len(starts) else starts.copy()
    filled = documents[1:] > documents[:-1]
    followers[documents[1:][filled] - 1] = bounds[1:][filled]
    return followers


@kernel
def _join(
    documents: Positions,
    lines: Positions,
    starts: Positions,
    ends: Positions,
    followers: Positions,
    blank: Flags,
    is_line: np.bool_,
) -> tuple[Positions, Positions, Positions, Positions, Positions]:
    """Return the parts of all texts: their offsets, compared spans and spans to cut."""
    offsets = np.zeros(len(documents), np.int64)
    part_starts, part_ends = np.empty(len(lines), np.int64), np.empty(len(lines), np.int64)
    cut_starts, cut_ends = np.empty(len(lines), np.int64), np.empty(len(lines), np.int64)
    count = np.int64(0)
    for document in range(len(documents) - 1):
        inside = False
        for line in range(documents[document], documents[document + 1]):
            if blank[line]:
                if not is_line and count > offsets[document]:
                    cut_ends[count - 1] = followers[line]
                inside = False
                continue
            if is_line or not inside:
                part_starts[count], cut_starts[count] = starts[line], lines[line]
                count += 1
            part_ends[count - 1], cut_ends[count - 1] = ends[line], followers[line]
            inside = True
        offsets[document + 1] = count
    return offsets, part_starts[:count], part_ends[:count], cut_starts[:count], cut_ends[:count]


@kernel
def _retreat(data: Bytes, bounds: Positions, offsets: Positions, starts: Positions, ends: Positions) -> None:
    """Move the start of what is cut at the end of a text before the line breaks that precede it."""
    for document in range(len(bounds) - 1):
        border = bounds[document + 1]
        for piece in range(offsets[document + 1] - 1, offsets[document] - 1, -1):
            if ends[piece] != border:
                break
            border = starts[piece]
            while starts[piece] > bounds[document] and data[starts[piece] - 1] in (0x0A, 0x0D):
                starts[piece] -= 1
