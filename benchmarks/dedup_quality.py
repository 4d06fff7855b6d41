"""Whether deduplication through the engine decides what the sequential rule over all pairs says, and misses little.

Two corpora: the licence texts of ../shared/data/duplicates, the longest first; and passages of multidomain.parquet with
edited copies (`benchmarks.dedup_corpora`), in their order. Similarities are counted exactly for all pairs of distinct
texts whose sizes allow the threshold, and the rule is applied to them in plain Python; the engine's verdicts are read
from its store. `Truth` judges any set of survivors, those of other tools too.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from blake3 import blake3

from benchmarks.dedup_corpora import SHARED, joined, thinned
from benchmarks.dedup_runs import Gone, Measured, Spec, measure, verdicts_of
from transforms.duplicates import split_buckets
from transforms.minhash import MinHash, Sets, band_keys, sets_of, split_keys
from transforms.similarity import edges

Longs = npt.NDArray[np.int64]
Check = list[Any]

LICENCES: Final = SHARED / "duplicates" / "spdx_docs.parquet"
EVERY: Final = {"small": 12, "full": 1}
"""One passage of so many, with its copies."""
ASKED: Final = 0.9977
"""Of pairs at the threshold that 20 bands of 6 propose, so it is also asked of all pairs above it."""
NEAR: Final = 0.02
"""How far above the threshold a pair is still called one at it."""
FREQUENT: Final = 32
"""Sets that a shingle is in at most before it counts as frequent where all pairs are found by what they share."""
MOST_CANDIDATES: Final = 200_000_000


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs a < b of rows at or above a threshold, with their similarity as two integers."""

    a: Longs
    b: Longs
    shared: Longs
    whole: Longs

    def __len__(self) -> int:
        return len(self.a)

    @property
    def codes(self) -> Longs:
        """A number per pair."""
        return codes_of(self.a, self.b)


def codes_of(a: Longs, b: Longs) -> Longs:
    """Return a number per pair, whatever the order of the two."""
    return np.asarray(np.minimum(a, b) << 32 | np.maximum(a, b))


@dataclass(frozen=True)
class Truth:
    """All that is similar in `texts`: pairs of distinct texts at the threshold, and which texts are equal.

    `first` is for each row the first row with the same text. `pairs` are of such first rows.
    """

    texts: pa.LargeStringArray
    minhash: MinHash
    first: Longs
    pairs: Pairs

    @cached_property
    def candidates(self) -> Longs:
        """Codes of the pairs of distinct texts that share a band, as the arithmetic alone finds them, sorted."""
        rows = np.flatnonzero(self.first == np.arange(len(self.first)))
        keys = band_keys(self.texts.take(pa.array(rows)), self.minhash)
        documents = np.repeat(rows, self.minhash.bands)
        found = split_buckets(
            keys.ravel(), split_keys(keys).ravel(), documents.astype(np.uint64), documents, self.minhash.cap
        )
        return np.sort(codes_of(found.a, found.b))

    @cached_property
    def seen(self) -> npt.NDArray[np.bool_]:
        """Which of `pairs` are candidates."""
        return np.isin(self.pairs.codes, self.candidates)

    def judge(self, stays: npt.NDArray[np.bool_]) -> tuple[int, int, int]:
        """Return how many documents went, how many of these resemble no survivor, and pairs of survivors that do."""
        kept = np.zeros(len(stays), np.bool_)  # by text
        np.logical_or.at(kept, self.first, stays)
        a, b = self.pairs.a, self.pairs.b
        covered = kept.copy()
        covered[a[kept[b]]] = True
        covered[b[kept[a]]] = True
        alone = ~stays & ~covered[self.first]
        copies = np.bincount(self.first[stays], minlength=len(stays))
        equal = int((copies * (copies - 1) // 2).sum())
        near = int((copies[a] * copies[b]).sum())
        return int((~stays).sum()), int(alone.sum()), equal + near


def first_of_equals(texts: pa.LargeStringArray, rank: Longs) -> Longs:
    """Return for each row the row with the same text that comes first by `rank`."""
    best: dict[bytes, int] = {}
    digests = [blake3(text.encode()).digest() for text in texts.to_pylist()]
    for row in np.argsort(rank).tolist():
        best.setdefault(digests[row], row)
    return np.array([best[digest] for digest in digests], np.int64)


def all_pairs(sets: Sets, threshold: Fraction) -> tuple[Pairs, int]:
    """Return all pairs at the threshold, each set compared with all of a size that allows it; and their number."""
    sizes = np.diff(sets.offsets)
    order = np.argsort(sizes, kind="stable")
    ascending = sizes[order]
    ends = np.searchsorted(ascending, ascending * threshold.denominator // threshold.numerator, "right")
    found, compared = [], 0
    for first in range(0, len(order), 256):
        rows = np.arange(first, min(first + 256, len(order)))
        counts = np.maximum(ends[rows] - rows - 1, 0)
        a = np.repeat(rows, counts)
        b = np.arange(len(a)) - np.repeat(np.cumsum(counts) - counts, counts) + a + 1
        found.append(_verified(sets, order[a], order[b], threshold))
        compared += len(a)
    return _together(found), compared


def joined_pairs(sets: Sets, threshold: Fraction) -> Pairs:
    """Return all pairs at the threshold, exactly, but faster: only sets that share a shingle of their prefixes.

    Of two sets with Jaccard similarity t, the |x| - ceil(t |x|) + 1 first shingles of each have one in common, whatever
    order all sets agree on (Chaudhuri, Ganti, Kaushik 2006); here frequent ones come last, else that of the hashes.

    Raises:
        ValueError: so many sets share shingles that this is no faster.
    """
    sizes = np.diff(sets.offsets)
    least = -(-sizes * threshold.numerator // threshold.denominator)
    lengths = np.minimum(sizes - least + 1, sizes)
    documents = np.repeat(np.arange(len(sizes)), lengths)
    within = np.arange(len(documents)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    values = sets.values[_rare_first(sets)][np.repeat(sets.offsets[:-1], lengths) + within]
    order = np.argsort(values, kind="stable")
    values, documents = values[order], documents[order]
    starts = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
    counts = np.diff(np.concatenate([starts, [len(values)]]))
    if int((counts * (counts - 1) // 2).sum()) > MOST_CANDIDATES:
        raise ValueError("too many texts share shingles: compare all with all")
    codes = np.unique(np.concatenate([np.zeros(0, np.int64), *_pairs_of_groups(documents, starts, counts)]))
    return _verified(sets, codes >> 32, codes & 0xFFFFFFFF, threshold)


def _rare_first(sets: Sets) -> Longs:
    """Return the order of values in which those of each set that are in more than `FREQUENT` sets come last."""
    ordered = np.sort(sets.values)
    frequent = np.unique(ordered[:-FREQUENT][ordered[:-FREQUENT] == ordered[FREQUENT:]])
    if len(frequent) == 0:
        return np.arange(len(sets.values))
    place = np.minimum(np.searchsorted(frequent, sets.values), len(frequent) - 1)
    keys = np.repeat(2 * np.arange(len(sets.offsets) - 1), np.diff(sets.offsets)) + (frequent[place] == sets.values)
    return np.asarray(np.argsort(keys, kind="stable"))


def _pairs_of_groups(documents: Longs, starts: Longs, counts: Longs) -> Iterator[Longs]:
    for size in np.unique(counts[counts > 1]).tolist():
        groups = documents[starts[counts == size][:, None] + np.arange(size)]
        a, b = np.triu_indices(size, 1)
        yield np.unique(codes_of(groups[:, a], groups[:, b]).ravel())


def _verified(sets: Sets, a: Longs, b: Longs, threshold: Fraction) -> Pairs:
    found = edges(sets, a, b, threshold)
    x, y = a[found.pair], b[found.pair]
    return Pairs(np.minimum(x, y), np.maximum(x, y), found.shared, found.whole)


def _together(parts: Sequence[Pairs]) -> Pairs:
    names = ("a", "b", "shared", "whole")
    return Pairs(*(np.concatenate([np.zeros(0, np.int64), *(getattr(part, n) for part in parts)]) for n in names))


def truth_of(texts: pa.LargeStringArray, rank: Longs, minhash: MinHash) -> Truth:
    """Return what is similar, by comparing all with all; say how many pairs that were."""
    first, began = first_of_equals(texts, rank), time.process_time()
    rows = np.flatnonzero(first == np.arange(len(first)))
    found, compared = all_pairs(sets_of(texts.take(pa.array(rows)), minhash), minhash.ratio)
    print(
        f"  {len(texts):,} texts, {len(rows):,} distinct: {compared:,} pairs compared in "
        f"{time.process_time() - began:.0f} s, {len(found):,} at or above {float(minhash.ratio):g}",
        flush=True,
    )
    return Truth(texts, minhash, first, Pairs(rows[found.a], rows[found.b], found.shared, found.whole))


def fast_truth_of(texts: pa.LargeStringArray, minhash: MinHash) -> Truth:
    """Return what is similar, by `joined_pairs`."""
    first = first_of_equals(texts, np.arange(len(texts)))
    rows = np.flatnonzero(first == np.arange(len(first)))
    found = joined_pairs(sets_of(texts.take(pa.array(rows)), minhash), minhash.ratio)
    return Truth(texts, minhash, first, Pairs(rows[found.a], rows[found.b], found.shared, found.whole))


def sequential_rule(truth: Truth, rank: Longs) -> dict[int, tuple[int, Fraction]]:
    """Return for each distinct text that goes the one that stays and their similarity, pair by pair in plain Python."""
    near: dict[int, list[tuple[Fraction, int]]] = defaultdict(list)
    pairs = truth.pairs
    for a, b, shared, whole, seen in zip(
        *(column.tolist() for column in (pairs.a, pairs.b, pairs.shared, pairs.whole, truth.seen)), strict=True
    ):
        if seen:
            near[a].append((Fraction(shared, whole), b))
            near[b].append((Fraction(shared, whole), a))
    keeper: dict[int, tuple[int, Fraction]] = {}
    for row in sorted(near, key=lambda row: int(rank[row])):
        stay = [(-value, int(rank[o]), o) for value, o in near[row] if rank[o] < rank[row] and o not in keeper]
        if stay:
            value, _, other = min(stay)
            keeper[row] = (other, -value)
    return keeper


def expected(truth: Truth, rank: Longs) -> dict[int, tuple[int, str, Fraction]]:
    """Return for each row that goes: who stays, the reason, and the similarity that the ledger is to have."""
    keeper = sequential_rule(truth, rank)
    verdicts = {}
    for row, first in enumerate(truth.first.tolist()):
        if first in keeper:
            verdicts[row] = (keeper[first][0], "near duplicate", keeper[first][1])
        elif first != row:
            verdicts[row] = (first, "equal text", Fraction(1))
    return verdicts


def compared_with(
    expected: Mapping[int, tuple[int, str, Fraction]],
    stays: Sequence[str],
    names: Mapping[bytes, str],
    gone: Mapping[bytes, Gone],
    rows: Mapping[str, int],
) -> tuple[int, int]:
    """Return how many documents have another verdict than `expected`, and how many went without their survivor."""
    found = {
        rows[names[name]]: (
            rows[names[went.survivor]] if went.survivor else -1,
            went.reason,
            Fraction(went.shared or 0, went.whole or 1),
        )
        for name, went in gone.items()
    }
    staying = {rows[name] for name in stays}
    alone = sum(survivor not in staying for survivor, _, _ in found.values())
    other = sum(found.get(row) != expected.get(row) or (row in found) == (row in staying) for row in rows.values())
    return other, alone


def checks_of(
    name: str, truth: Truth, rank: Longs, made: Measured, store: Path, rows: Mapping[str, int]
) -> dict[str, Check]:
    """Return what must hold of the verdicts in `store`; print the pairs that no band proposed."""
    pairs, seen = truth.pairs, truth.seen
    for a, b, shared, whole in zip(
        *(column[~seen].tolist() for column in (pairs.a, pairs.b, pairs.shared, pairs.whole)), strict=True
    ):
        print(f"  no candidate: rows {a} and {b}, {shared}/{whole} = {shared / whole:.4f}")
    stays, names, gone = verdicts_of(store)
    other, alone = compared_with(expected(truth, rank), stays, names, gone, rows)
    kept = np.isin(np.arange(len(rank)), [rows[stay] for stay in stays])
    went, lonely, left = truth.judge(kept)
    missed = int((~seen).sum())
    compared = made.counts["compared"]
    print(f"  {made.documents:,} documents, {made.kept:,} stay; {compared:,} pairs compared; {left} similar pairs stay")
    return {
        f"{name}: dropped without a survivor at the threshold": [lonely + alone, f"0 of {went:,}", lonely + alone == 0],
        f"{name}: verdicts other than brute force gives": [other, f"0 of {len(rank):,}", other == 0],
        f"{name}: similar pairs that stay": [left, f"≤ {missed} without a common band", left <= missed],
        f"{name}: pairs compared": [compared, f"= {len(truth.candidates):,}", compared == len(truth.candidates)],
        f"{name}: pairs given up": [made.counts["given_up"], "0", made.counts["given_up"] == 0],
    }


def recall_checks(truth: Truth) -> dict[str, Check]:
    """Return that as many pairs are candidates as the curve promises at the threshold, less two standard errors."""
    jaccard, checks = truth.pairs.shared / truth.pairs.whole, {}
    for what, chosen in (
        ("at .80 to .82", jaccard < float(truth.minhash.ratio) + NEAR),
        ("at .8 and above", np.ones(len(jaccard), np.bool_)),
    ):
        count = int(chosen.sum())
        least = ASKED - 2 * (ASKED * (1 - ASKED) / max(count, 1)) ** 0.5
        recall = float(truth.seen[chosen].mean()) if count else 1.0
        checks[f"passages: recall, {count:,} pairs {what}"] = [round(recall, 5), f"≥ {least:.5f}", recall >= least]
    return checks


def spdx(work: Path) -> dict[str, Check]:
    """Run the licence texts, the longest first, and return what must hold."""
    table = pq.read_table(LICENCES, columns=["id", "text"])
    texts, rows = joined(table.column("text").cast(pa.large_string())), _rows(table)
    made = _run(work / "spdx", "unique_longest", table)
    ids = {rows[name]: identity for identity, name in verdicts_of(work / "spdx" / "store")[1].items()}
    rank = longest_first(texts.to_pylist(), ids)
    print("spdx, longest first:", flush=True)
    truth = truth_of(texts, rank, MinHash())
    checks = checks_of("spdx", truth, rank, made, work / "spdx" / "store", rows)
    missed = int((~truth.seen).sum())
    return {**checks, "spdx: similar pairs that are no candidates": [missed, "≤ 1", missed <= 1]}


def longest_first(texts: Sequence[str], ids: Mapping[int, bytes]) -> Longs:
    """Return the place of each text in the keep order of `prefer=("-length",)`: then come digest of the text and id."""
    order = sorted(range(len(texts)), key=lambda n: (-len(texts[n]), blake3(texts[n].encode()).digest(16), ids[n]))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank


def passage_checks(work: Path, size: str, table: pa.Table) -> dict[str, Check]:
    """Run `table`, which `passages` returned, in its order, and return what must hold."""
    table = thinned(table, EVERY[size])
    rank = np.arange(len(table))
    print("passages with edited copies, in their order:", flush=True)
    truth = truth_of(joined(table.column("text")), rank, MinHash())
    made = _run(work / "passages", "unique_by_place", table.append_column("place", pa.array(rank)))
    return checks_of("passages", truth, rank, made, work / "passages" / "store", _rows(table)) | recall_checks(truth)


def _run(work: Path, recipe: str, table: pa.Table) -> Measured:
    (work / "in").mkdir(parents=True)
    chosen = [name for name in ("id", "text", "place") if name in table.column_names]
    pq.write_table(table.select(chosen), work / "in" / "texts.parquet")
    return measure(Spec(recipe, work / "in", work / "store"))


def _rows(table: pa.Table) -> dict[str, int]:
    return {name: row for row, name in enumerate(table.column("id").to_pylist())}
