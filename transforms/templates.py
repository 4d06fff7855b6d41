"""Templates: shingles that occur in more than a share of a source's documents, as licence headers and navigation do.

Such shingles glue unlike texts; `band_keys` and `shingle_sets` can leave them out (`left_out`). Two passes find them:

    frequent     per batch of one source   a summary of `capacity` counters, mergeable in any order (`merged`)
    suspects     once per source           every shingle that may lie above the share: none is missed
    occurrences  per batch                 in how many documents each suspect occurs, exactly; summed over batches
    templates    once per source           those above the share, with their counts: data, to be recorded

The summary is that of Misra and Gries (1982), merged as by Agarwal et al. (2012, "Mergeable summaries"): counts are
never too high, and too low by `undercount` at most, which is below shingles / capacity. `capacity_for` gives what finds
every template of a share; a summary that was too small says so.

What is left out is one set for all documents (`left_out`), the union over sources: a shingle that counted in one
document and not in the other would make the similarity of two documents of different sources depend on their sources.

Invariants: templates depend on the documents, the share and the least count alone, not on batches, order or capacity.
Cost: 16 bytes per counter; 50 to 100 MB of text per second for `frequent` (it sorts the shingles), 2 GB/s for
`occurrences`; leaving some hundred shingles out costs `band_keys` a tenth.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt

from transforms.exact_numbers import exact
from transforms.kernels import kernel
from transforms.shingles import NOTHING, Sets, sort_runs
from transforms.word_hashes import Hashes

Indices = npt.NDArray[np.int64]

_BITS: Final = 12  # highest bits of a shingle that the directory knows
_CHUNK: Final = 1 << 18  # shingles sorted at a time


@dataclass(frozen=True, slots=True)
class TemplateRule:
    """What counts as a template: a shingle in more than `share` of a source's documents, and in at least `least`.

    `least` protects small sources, where a share is a handful of documents: a family of near duplicates is no template.

    Raises:
        ValueError: `share` is no decimal between 0 and 1, or `least` below 2.
    """

    share: Fraction | float | str
    least: int = 100

    def __post_init__(self) -> None:
        share = exact(self.share)
        object.__setattr__(self, "share", share)
        if not 0 < share < 1 or share.denominator > 1_000_000 or self.least < 2:
            raise ValueError(
                f"TemplateRule(share={self.share}, least={self.least}): give a share between 0 and 1, of six places at "
                "most, and at least 2 documents"
            )

    @property
    def ratio(self) -> Fraction:
        """The share as the exact fraction that it is."""
        return Fraction(self.share)

    def enough(self, documents: int) -> int:
        """Return how many of a source's `documents` have a template at the least."""
        return _enough(documents, self.ratio, self.least)


@dataclass(frozen=True, slots=True)
class Summary:
    """How often shingles occur: `counts[i]` ≤ documents with shingles[i] ≤ counts[i] + undercount.

    One that is not listed occurs at most `undercount` times. `shingles` is sorted; of at most `capacity` entries.
    """

    capacity: int
    shingles: Hashes
    counts: Indices
    undercount: int
    documents: int


@dataclass(frozen=True, slots=True)
class Templates:
    """The shingles in more than `share` of the `documents` of `source`, and in at least `least`: with their counts."""

    source: str
    share: Fraction
    least: int
    documents: int
    shingles: Hashes
    counts: Indices


class TooFewCountersError(ValueError):
    """A summary was too small for its shingles: templates might be missing."""


def capacity_for(share: Fraction, shingles_per_document: int) -> int:
    """Return the counters that miss no template of `share`, whatever the number of documents.

    `shingles_per_document` is the mean size of the sets, or more.
    """
    return -(-shingles_per_document * share.denominator // share.numerator)


def frequent(sets: Sets, capacity: int) -> Summary:
    """Return the summary of the documents of one batch."""
    largest, first = max(2 * capacity, _CHUNK), 0
    parts: list[Summary] = []
    while first < len(sets) or not parts:
        last = int(np.searchsorted(sets.offsets, sets.offsets[first] + largest, "right")) - 1
        last = min(max(last, first + 1), len(sets))
        parts.append(_counted(sets.values[sets.offsets[first] : sets.offsets[last]], capacity, last - first))
        first = last
    return merged(parts)


def merged(summaries: Iterable[Summary]) -> Summary:
    """Return the summary of all documents of `summaries`, which have one capacity; at least one is given."""
    parts = list(summaries)
    shingles, places = np.unique(np.concatenate([part.shingles for part in parts]), return_inverse=True)
    counts = np.zeros(len(shingles), np.int64)
    np.add.at(counts, places.reshape(-1), np.concatenate([part.counts for part in parts]))
    undercount, documents = (sum(getattr(part, name) for part in parts) for name in ("undercount", "documents"))
    return _reduced(parts[0].capacity, shingles, counts, undercount, documents)


def suspects(summary: Summary, share: Fraction, least: int) -> Hashes:
    """Return all shingles that may be templates, sorted.

    Raises:
        TooFewCountersError: shingles above the share may be missing from the summary.
    """
    enough = _enough(summary.documents, share, least)
    if summary.undercount >= enough:
        raise TooFewCountersError(
            f"{summary.capacity:,} counters tell shingles in {summary.undercount:,} of {summary.documents:,} documents "
            f"at the most, templates begin at {enough:,}: take more counters (capacity_for), or a higher share"
        )
    return summary.shingles[summary.counts + summary.undercount >= enough]


def occurrences(sets: Sets, shingles: Hashes) -> Indices:
    """Return in how many of `sets` each of `shingles` (sorted, unique) occurs."""
    counts = np.zeros(len(shingles), np.int64)
    _count(sets.values, np.ascontiguousarray(shingles), _directory(shingles), counts)
    return counts


def templates(source: str, shingles: Hashes, counts: Indices, documents: int, share: Fraction, least: int) -> Templates:
    """Return those of the `suspects` whose exact counts over all `documents` lie above the share."""
    above = counts >= _enough(documents, share, least)
    return Templates(source, share, least, documents, shingles[above], counts[above])


def left_out(lists: Sequence[Templates]) -> Hashes:
    """Return the shingles that do not count: those of all lists, sorted."""
    return np.unique(np.concatenate([NOTHING, *(templates.shingles for templates in lists)]))


def _counted(values: Hashes, capacity: int, documents: int) -> Summary:
    ordered = values.copy()
    sort_runs(np.array([0, len(ordered)], np.int64), ordered)
    borders = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1], [True]]))[: len(ordered) + 1]
    counts = np.diff(borders).astype(np.int64)
    return _reduced(capacity, ordered[borders[: len(counts)]], counts, 0, documents)


def _enough(documents: int, share: Fraction, least: int) -> int:
    """Return the least number of documents above the share, and not below `least`."""
    return max(documents * share.numerator // share.denominator + 1, least)


def _reduced(capacity: int, shingles: Hashes, counts: Indices, undercount: int, documents: int) -> Summary:
    """Return the summary with `capacity` counters: all counts lowered by the largest that does not fit."""
    if len(counts) > capacity:
        lost = int(np.partition(counts, len(counts) - capacity - 1)[len(counts) - capacity - 1])
        stay = counts > lost
        shingles, counts, undercount = shingles[stay], counts[stay] - lost, undercount + lost
    return Summary(capacity, shingles, counts, undercount, documents)


def _directory(shingles: Hashes) -> Indices:
    """Return where shingles with each value of the highest bits begin, and the end."""
    return np.searchsorted(shingles >> np.uint64(64 - _BITS), np.arange((1 << _BITS) + 1, dtype=np.uint64))


@kernel
def _count(values: Hashes, shingles: Hashes, directory: Indices, counts: Indices) -> None:
    for value in values:
        prefix = value >> np.uint64(64 - _BITS)
        first, last = directory[prefix], directory[prefix + np.uint64(1)]
        while first < last:
            middle = (first + last) >> 1
            if shingles[middle] < value:
                first = middle + 1
            else:
                last = middle
        if first < len(shingles) and shingles[first] == value:
            counts[first] += 1
