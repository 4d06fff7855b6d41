"""What a classifier learns from and what it is judged by: deduplicated, held out by site and by a source, balanced.

Candidates are documents of two classes (1 positive, 0 negative) as windows of text. In this order:

1. A text that stands in both classes says nothing and goes; of equal texts in one class one stays, and of near
   duplicates in one class (`near`) likewise. Contrasts across classes stay: a page and its cut copy are what to learn.
2. Documents of the left-out source are for judging alone. So are those of held-out sites: a keyed digest of the site
   chooses, so the choice is that of the sites and no run of luck, and no site is on both sides. A document without a
   site is a site of its own.
3. Of the rest a class gets at most `documents`, and at most `RATIO` times as many as the other; what weighs less than
   the other is counted more, so both classes weigh the same in training.

Which documents these are follows from texts, sites and numbers alone: from no order of arrival, shard or worker. Cost:
sorting, and the shingles of all candidates where near duplicates are looked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from blake3 import blake3

from transforms.duplicates import split_buckets, survivors
from transforms.learners import Examples
from transforms.minhash import MinHash, band_keys, sets_of, split_keys
from transforms.schema import ID
from transforms.similarity import edges

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

POSITIVE: Final = 1
NEGATIVE: Final = 0
TARGET: Final = -1
"""Class of documents that have no label: those that the classifier is for."""

RATIO: Final = 4

CANDIDATES: Final = pa.schema(
    [
        pa.field("class", pa.int8(), nullable=False),
        pa.field("key", pa.uint64(), nullable=False),  # keyed digest of the text: the order in which texts are taken
        pa.field("digest", ID, nullable=False),
        pa.field("source", pa.large_string(), nullable=False),
        pa.field("site", pa.large_string()),
        pa.field("topic", pa.large_string()),
        pa.field("language", pa.large_string()),
        pa.field("characters", pa.int64(), nullable=False),
        pa.field("windows", pa.large_list(pa.large_string()), nullable=False),
    ]
)
"""A document that may be learned from."""

ORDER: Final = [("class", "ascending"), ("key", "ascending"), ("digest", "ascending"), ("source", "ascending"),
                ("site", "ascending")]  # fmt: skip

SITE_KEY: Final = blake3(b"curate classifier site 1").digest()
TEXT_KEY: Final = blake3(b"curate classifier text 1").digest()
"""Keys of the digests that decide; constants of the format."""


@dataclass(frozen=True, slots=True)
class Selection:
    """How candidates are divided.

    Attributes:
        documents: most of a class in training.
        held_out: share of the sites that are for judging.
        leave_out: source that is for judging; None for none.
        near: near duplicates of one class; None looks for equal texts only.
    """

    documents: int
    held_out: Fraction
    leave_out: str | None
    near: MinHash | None


@dataclass(frozen=True, slots=True)
class Divided:
    """Candidates for training, of held-out sites, of the left-out source; and how many went, by reason and class."""

    training: pa.Table
    held_out: pa.Table
    left_out: pa.Table
    gone: dict[str, dict[str, int]]


def text_keys(digests: pa.FixedSizeBinaryArray) -> npt.NDArray[np.uint64]:
    """Return 64 bits of a keyed digest for each text digest: the order in which texts are taken."""
    drawn = b"".join([blake3(digest, key=TEXT_KEY).digest(8) for digest in digests.to_pylist()])
    return np.frombuffer(drawn, ">u8").astype(np.uint64)


def first_candidates(table: pa.Table, documents: int) -> pa.Table:
    """Return those of each class that come first, each text once: at most `documents` of it. What is first in a part
    of all candidates is among the first of all, so parts can be cut down before they are joined.
    """
    ordered = table.sort_by(ORDER)
    rows = np.flatnonzero(_first_of_text(ordered))
    classes = ordered.column("class").to_numpy()[rows]
    chosen = [rows[classes == label][:documents] for label in (TARGET, NEGATIVE, POSITIVE)]
    return ordered.take(pa.array(np.concatenate(chosen)))


def _first_of_text(ordered: pa.Table) -> Flags:
    """Return which rows are the first of their class and text."""
    names = np.array(ordered.column("digest").to_pylist(), "S16")
    classes = ordered.column("class").to_numpy()
    new = np.ones(len(names), np.bool_)
    new[1:] = (names[1:] != names[:-1]) | (classes[1:] != classes[:-1])
    return new


def divide(candidates: pa.Table, selection: Selection) -> Divided:
    """Return the documents of both classes, divided as `selection` says."""
    table = candidates.filter(pc.not_equal(candidates.column("class"), TARGET)).sort_by(ORDER)
    gone: dict[str, dict[str, int]] = {}
    table = _without(table, ~_first_of_text(table), "equal text", gone)
    table = _without(table, _in_both(table), "text in both classes", gone)
    if selection.near is not None:
        table = _without(table, _near_duplicates(table, selection.near), "near duplicate", gone)
    left_out = np.zeros(table.num_rows, np.bool_)
    if selection.leave_out is not None:
        left_out = np.asarray(pc.equal(table.column("source"), selection.leave_out))
    held_out = _held_out(table, selection.held_out) & ~left_out
    training = table.filter(pa.array(~held_out & ~left_out))
    training = _without(training, _over(training, selection.documents), "more than were asked for", gone)
    return Divided(training, table.filter(pa.array(held_out)), table.filter(pa.array(left_out)), gone)


def _without(table: pa.Table, goes: Flags, reason: str, gone: dict[str, dict[str, int]]) -> pa.Table:
    classes = table.column("class").to_numpy()[goes]
    gone[reason] = {name: int((classes == label).sum()) for name, label in (("positive", 1), ("negative", 0))}
    return table.filter(pa.array(~goes))


def _in_both(table: pa.Table) -> Flags:
    digests = table.column("digest").combine_chunks()
    classes = table.column("class").to_numpy()
    sides = [set(digests.filter(pa.array(classes == label)).to_pylist()) for label in (NEGATIVE, POSITIVE)]
    both = sides[0] & sides[1]
    return np.array([digest in both for digest in digests.to_pylist()], np.bool_)


def _near_duplicates(table: pa.Table, near: MinHash) -> Flags:
    """Return which documents resemble an earlier one of their class that stays."""
    goes = np.zeros(table.num_rows, np.bool_)
    for label in (NEGATIVE, POSITIVE):
        rows = np.flatnonzero(table.column("class").to_numpy() == label)
        texts = joined_windows(table.take(pa.array(rows)))
        keys = band_keys(texts, near)
        documents = np.repeat(np.arange(len(rows)), keys.shape[1])
        order = table.column("key").to_numpy()[rows][documents]
        pairs = split_buckets(keys.reshape(-1), split_keys(keys).reshape(-1), order, documents, near.cap)
        found = edges(sets_of(texts, near), pairs.a, pairs.b, near.ratio, near.measure)
        a, b = pairs.a[found.pair], pairs.b[found.pair]
        stays = survivors(np.arange(len(rows)), a, b, found.shared, found.whole)
        goes[rows] = stays.keeper >= 0
    return goes


def joined_windows(table: pa.Table) -> pa.LargeStringArray:
    """Return the windows of each document as one text: the text itself where they are all of it."""
    windows, sizes = (table.column(name).to_pylist() for name in ("windows", "characters"))
    touch = [sum(map(len, parts)) == size for parts, size in zip(windows, sizes, strict=True)]
    joined = [("" if whole else "\n").join(parts) for parts, whole in zip(windows, touch, strict=True)]
    return pa.array(joined, pa.large_string())


def is_held_out(site: bytes, share: Fraction) -> bool:
    """Return whether a site (or the text digest of a document without one) is among the `share` that judges."""
    drawn = int.from_bytes(blake3(site, key=SITE_KEY).digest(8), "big")
    return drawn * share.denominator < share.numerator << 64


def _held_out(table: pa.Table, share: Fraction) -> Flags:
    named = zip(table.column("site").to_pylist(), table.column("digest").to_pylist(), strict=True)
    sites = [digest if site is None else site.encode() for site, digest in named]
    return np.array([is_held_out(site, share) for site in sites], np.bool_)


def _over(table: pa.Table, documents: int) -> Flags:
    """Return which documents are more than training takes; the first of each class, in their order, stay."""
    classes = table.column("class").to_numpy()
    counts = [int((classes == label).sum()) for label in (NEGATIVE, POSITIVE)]
    over = np.zeros(len(classes), np.bool_)
    for label in (NEGATIVE, POSITIVE):
        most = min(documents, RATIO * min(documents, counts[1 - label]))
        over[np.flatnonzero(classes == label)[most:]] = True
    return over


def examples_of(training: pa.Table) -> Examples:
    """Return the windows of `training`: all of a document count as one, and both classes weigh the same."""
    lists = training.column("windows").combine_chunks()
    counts = np.asarray(lists.value_lengths().to_numpy(zero_copy_only=False), np.int64)
    classes = training.column("class").to_numpy()
    totals = np.bincount(classes, minlength=2)
    weight = len(classes) / (2.0 * totals[classes] * counts)
    return Examples(lists.flatten(), np.repeat(classes, counts).astype(np.int8), np.repeat(weight, counts))


def source_to_leave_out(candidates: pa.Table) -> str | None:
    """Return the source whose absence costs training least: of a class that keeps another, the one of fewest documents.

    None where each class comes from one source. Of equal ones the first by name.
    """
    counted = candidates.group_by(["class", "source"]).aggregate([([], "count_all")]).to_pylist()
    by_class: dict[int, dict[str, int]] = {NEGATIVE: {}, POSITIVE: {}}
    for row in counted:
        if row["class"] != TARGET:
            by_class[row["class"]][row["source"]] = row["count_all"]
    can_go = [
        (sum(sources.get(name, 0) for sources in by_class.values()), name)
        for name in sorted({name for sources in by_class.values() for name in sources})
        if all(set(sources) - {name} for sources in by_class.values())
    ]
    return min(can_go)[1] if can_go else None
