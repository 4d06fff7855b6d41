"""MinHash: which texts may be near-duplicates, without comparing all with all.

A document is the set of its shingles (`transforms.shingles`). Two sets with Jaccard similarity J agree in one MinHash
value with probability J; `rows` values make a band; texts that agree in all values of one band are candidates (Broder
1997; Leskovec, Rajaraman, Ullman, *Mining of Massive Datasets*, §3.4), which a verification then compares
(`transforms.similarity`).

Hash family: h_k(x) = a_k·x + b_k mod 2^32, x the upper 32 bits of a shingle, a_k odd: linear permutations of the
32-bit numbers (Bohman, Cooper, Frieze 2000), whose arithmetic is modulo 2^32 by definition; shingles are mixed well
before, and tests hold bias and variance against exact Jaccard. b_k, then a_k with its lowest bit set, are the two
4-byte words of BLAKE2b-64(seed, k), seed and k as 8 bytes, person "curate minhash", all little-endian: the k-th
function depends on seed and k alone, and on no library's generator.

Invariants: a document's values depend on its text and the configuration alone. Band keys hold the band's index.
Cost: linear in the words; about 4 ns per word for 120 functions with AVX2 or AVX-512, beside finding and hashing the
words (three quarters of the time). Working memory: 40 kB, that of `transforms.shingles`, 8 bytes per band and document.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transforms.kernels import kernel
from transforms.segmentation import text_buffers
from transforms.shingles import (
    NOTHING,
    PORTION,
    Offsets,
    Sets,
    Unit,
    leave_out,
    membership,
    portions,
    shingle_block,
    shingle_count,
    shingle_sets,
    unit_hashes,
)
from transforms.similarity import Indices, Measure
from transforms.word_hashes import Hashes, mix

__all__ = [
    "MinHash",
    "Sets",
    "band_keys",
    "first_bands",
    "permutations",
    "portions",
    "scoped_keys",
    "sets_of",
    "shingle_sets",
    "signatures",
    "split_keys",
]

Values = npt.NDArray[np.uint32]

_BASE: Final = np.uint64(0x9E3779B97F4A7C15)
_MOST: Final = np.uint32(0xFFFFFFFF)
_HALF: Final = np.uint64(32)
_BLOCK: Final = 2048  # shingles at a time: they stay in the first-level cache, and memory does not grow with a document
_VECTOR: Final = 32  # values padded to whole vectors; divides _BLOCK
_LANES: Final = 4  # hash functions evaluated together, so that a shingle is loaded once for four
_EDGES: Final = 1 << 14  # compared at a time: 1 kB each, and one template gives millions
_BANDS: Final = 4  # looked at together for the first one in which a pair agrees
_LEVELS: Final = 8  # bands that fit into a split key, one byte each


@dataclass(frozen=True, slots=True)
class MinHash:
    """The configuration of near-duplicate search. The defaults find a pair at Jaccard .8 with probability .9977.

    `threshold` is the similarity from which on two texts are duplicates, kept as the exact fraction of its decimal (.8
    is 4/5); `ngram` words (or characters, by `unit`) make a shingle; `bands` × `rows` hash functions; `cap` is the
    number of documents above which a bucket is split; `seed` selects the functions. `measure` is the similarity
    that verification decides by; candidates are found by Jaccard similarity in any case, so with "containment" only
    pairs of like size are found surely (`transforms.similarity` says how surely).
    """

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    threshold: Fraction | float | str = Fraction(4, 5)
    ngram: int = 5
    bands: int = 20
    rows: int = 6
    cap: int = 1000
    seed: int = 1
    unit: Unit = "word"
    measure: Measure = "jaccard"

    def __post_init__(self) -> None:
        """Make the threshold exact, check every field.

        Raises:
            ValueError: a field is out of its range.
        """
        object.__setattr__(self, "threshold", _threshold(self.threshold))
        for name, least, most in (("ngram", 1, 64), ("bands", 1, 1024), ("rows", 1, 64), ("cap", 2, 20_000)):
            if not least <= getattr(self, name) <= most:
                raise ValueError(f"{name} is a number from {least} to {most}: got {getattr(self, name)!r}")
        if not 0 <= self.seed < 1 << 64:
            raise ValueError(f"seed is a number from 0 to 2^64 - 1: got {self.seed!r}")
        for name, words in (("unit", ("word", "character")), ("measure", ("jaccard", "containment"))):
            if getattr(self, name) not in words:
                raise ValueError(f"{name} is a choice of {' and '.join(map(repr, words))}: got {getattr(self, name)!r}")

    @classmethod
    def for_recall(
        cls, threshold: Fraction | float | str, recall: float, *, most: int = 128, ngram: int = 5, unit: Unit = "word"
    ) -> MinHash:
        """Return the banding that proposes a pair at `threshold` with probability ≥ `recall` and few pairs below it.

        Of all bandings with at most `most` hash functions it has the most rows per band, so the steepest curve and the
        fewest pairs to compare in vain, and of those the fewest bands. The cost of signatures grows with bands · rows.

        Raises:
            ValueError: `recall` is not between 0 and 1, or `most` functions do not reach it even with one row.
        """
        exact = _threshold(threshold)
        if not 0 < recall < 1:
            raise ValueError(f"recall is a probability between 0 and 1, both excluded: got {recall!r}")
        for rows in range(min(most, 64), 0, -1):
            bands = _bands_for(float(exact), recall, rows, most // rows)
            if bands is not None:
                return cls(threshold=exact, ngram=ngram, bands=bands, rows=rows, unit=unit)
        raise ValueError(f"{most} hash functions cannot find pairs at {float(exact):g} with probability {recall:g}")

    @classmethod
    def fineweb(cls) -> MinHash:
        """Return the parameters of FineWeb (Penedo et al. 2024, §3.4): 5-grams, 14 bands of 8, Jaccard .75.

        Ambiguity settled: FineWeb drops candidates unverified, aiming at pairs "at least 75 % similar"; here that
        is the threshold of verification. Its word splitter, seed and hash family are not reproduced.
        """
        return cls(threshold=Fraction(3, 4), bands=14, rows=8)

    @classmethod
    def olmo(cls) -> MinHash:
        """Return the banding of OLMo 3 and Marin: 26 bands of 11, Jaccard .8. Splitter and seed are our own."""
        return cls(bands=26, rows=11)

    @property
    def ratio(self) -> Fraction:
        """The threshold as the exact fraction that it is."""
        return Fraction(self.threshold)

    def recall(self, jaccard: float) -> float:
        """Return the probability that two texts of similarity `jaccard` become candidates: 1 - (1 - s^rows)^bands."""
        return float(1.0 - (1.0 - jaccard**self.rows) ** self.bands)

    def similar(self, intersection: Offsets, union: Offsets) -> npt.NDArray[np.bool_]:
        """Return where intersection / union ≥ threshold, in integers; sets below 10^12 shingles."""
        return intersection * self.ratio.denominator >= union * self.ratio.numerator


def permutations(minhash: MinHash) -> tuple[Values, Values]:
    """Return a_k and b_k of the bands × rows permutations: a pure function of (seed, k)."""
    words = np.frombuffer(_drawn(minhash.seed, minhash.bands * minhash.rows), "<u4").astype(np.uint32).reshape(-1, 2)
    return words[:, 1] | np.uint32(1), np.ascontiguousarray(words[:, 0])


def band_keys(text: pa.LargeStringArray, minhash: MinHash, left_out: Hashes = NOTHING) -> Hashes:
    """Return the bucket keys, documents × bands: equal where two texts agree in all MinHash values of that band.

    The band's index is part of the key, so keys of all bands can be exchanged together. Texts of no bytes get the keys
    of the empty set: drop them before. `left_out` are shingles that do not count, as in `shingle_sets`.
    """
    a, b = _whole_lanes(*permutations(minhash))
    keys, table = np.empty((len(text), minhash.bands), np.uint64), membership(left_out)
    scale = np.int64(minhash.ngram), np.int64(minhash.rows)
    for first, last in portions(text, PORTION):
        part = text.slice(first, last - first)
        units, hashes = unit_hashes(part, minhash.unit)
        _band_keys(hashes, units, *text_buffers(part), *scale, a, b, table, keys[first:last])
    return keys


def sets_of(text: pa.LargeStringArray, minhash: MinHash, left_out: Hashes = NOTHING) -> Sets:
    """Return the shingle sets that `band_keys` looks at: what candidates are to be verified on."""
    return shingle_sets(text, minhash.ngram, minhash.unit, left_out)


def signatures(text: pa.LargeStringArray, minhash: MinHash, left_out: Hashes = NOTHING) -> Values:
    """Return the MinHash values themselves, documents × (bands · rows): for estimates of Jaccard, not for dedup.

    The share of equal values estimates Jaccard without bias, with variance J(1 - J) / (bands · rows).
    """
    return _values_of(sets_of(text, minhash, left_out), np.arange(len(text)), permutations(minhash))


def first_bands(sets: Sets, a: Indices, b: Indices, minhash: MinHash) -> Indices:
    """Return the first band in which sets a[i] and b[i] agree, -1 where none: what made them candidates.

    A function of the two sets, so nothing has to be carried from bucket to verdict. For edges, not for all candidates:
    it costs some functions for each shingle of a document that occurs in `a` or `b`. Bands are looked at `_BANDS` at a
    time, the later ones for pairs that agree in none before: similar pairs mostly agree in one of the first.
    """
    found = np.full(len(a), -1, np.int64)
    functions = permutations(minhash)
    open_pairs = np.arange(len(a))
    for band in range(0, minhash.bands, _BANDS):
        some = slice(band * minhash.rows, (band + _BANDS) * minhash.rows)
        agree = _agreeing(sets, a[open_pairs], b[open_pairs], (functions[0][some], functions[1][some]), minhash.rows)
        found[open_pairs] = np.where(agree >= 0, band + agree, -1)
        open_pairs = open_pairs[agree < 0]
    return found


def _agreeing(sets: Sets, a: Indices, b: Indices, functions: tuple[Values, Values], rows: int) -> Indices:
    """Return the first of some bands, of `rows` functions each, in which sets a[i] and b[i] agree, -1 where none."""
    documents, local = np.unique(np.concatenate([a, b]), return_inverse=True)
    values = _values_of(sets, documents, functions)
    left, right = local.reshape(-1)[: len(a)], local.reshape(-1)[len(a) :]
    found = np.empty(len(a), np.int64)
    for first in range(0, len(a), _EDGES):
        some = slice(first, first + _EDGES)
        agree = (values[left[some]] == values[right[some]]).reshape(-1, len(functions[0]) // rows, rows).all(axis=2)
        found[some] = np.where(agree.any(axis=1), agree.argmax(axis=1), -1)
    return found


def _whole_lanes(a: Values, b: Values) -> tuple[Values, Values]:
    """Return the functions and as many more as fill `_LANES`."""
    spare = -len(a) % _LANES
    return np.concatenate([a, np.ones(spare, np.uint32)]), np.concatenate([b, np.zeros(spare, np.uint32)])


def _values_of(sets: Sets, documents: Indices, functions: tuple[Values, Values]) -> Values:
    """Return the MinHash values of some of the sets."""
    a, b = _whole_lanes(*functions)
    values = np.empty((len(documents), len(a)), np.uint32)
    _signatures(sets.offsets, sets.values, documents, a, b, values)
    return np.ascontiguousarray(values[:, : len(functions[0])])


def split_keys(keys: Hashes) -> Hashes:
    """Return, for each band key, 8 bytes: one byte each of the keys of the next eight bands, the next one first.

    Sorting the texts of one bucket by it groups them by the next band's hash, within that by the one after, and so on:
    what `transforms.duplicates.split_buckets` needs to split a bucket with nothing but its rows. Bands follow each
    other in a circle; with fewer than nine bands the last bytes are 0.
    """
    split = np.zeros_like(keys)
    for level in range(min(_LEVELS, keys.shape[1] - 1)):
        following = np.roll(keys, -1 - level, axis=1) & np.uint64(0xFF)
        split |= following << np.uint64(56 - 8 * level)
    return split


def scoped_keys(keys: Hashes, groups: Hashes) -> Hashes:
    """Return band keys that are equal only within one group: `groups` is one hash per document (`within=`).

    Two groups share a key by accident once in 2^64 pairs.
    """
    scoped = np.empty_like(keys)
    _scoped(keys, groups, scoped)
    return scoped


@lru_cache(maxsize=16)
def _drawn(seed: int, functions: int) -> bytes:
    return b"".join(_function(seed, k) for k in range(functions))


def _function(seed: int, k: int) -> bytes:
    counter = seed.to_bytes(8, "little") + k.to_bytes(8, "little")
    return hashlib.blake2b(counter, digest_size=8, person=b"curate minhash").digest()


def _threshold(value: Fraction | float | str) -> Fraction:
    threshold = value if isinstance(value, Fraction) else Fraction(str(value))
    if not 0 < threshold <= 1 or threshold.denominator > 1_000_000:
        raise ValueError(f"threshold is a decimal above 0 and at most 1, six places at most: got {value!r}")
    return threshold


def _bands_for(similarity: float, recall: float, rows: int, most: int) -> int | None:
    """Return the fewest bands of `rows` rows that propose a pair at `similarity` with probability `recall`."""
    for bands in range(1, min(most, 1024) + 1):
        if 1.0 - (1.0 - similarity**rows) ** bands >= recall:
            return bands
    return None


@kernel
def _narrow(shingles: Hashes, count: np.int64, out: Values) -> np.int64:
    """Write the upper halves of `count` shingles to `out`, fill the last vector with the first; return the length."""
    for i in range(count):
        out[i] = np.uint32(shingles[i] >> _HALF)
    length = (count + _VECTOR - 1) // _VECTOR * _VECTOR
    for i in range(count, length):
        out[i] = out[0]  # changes no minimum
    return length


@kernel
def _lower_minima(x: Values, a: Values, b: Values, minima: Values) -> None:
    """Lower the minima of all permutations by the values `x`."""
    for k in range(0, a.shape[0], 4):
        a0, a1, a2, a3 = a[k], a[k + 1], a[k + 2], a[k + 3]
        b0, b1, b2, b3 = b[k], b[k + 1], b[k + 2], b[k + 3]
        m0, m1, m2, m3 = minima[k], minima[k + 1], minima[k + 2], minima[k + 3]
        for i in range(x.shape[0]):
            m0 = min(m0, np.uint32(a0 * x[i] + b0))
            m1 = min(m1, np.uint32(a1 * x[i] + b1))
            m2 = min(m2, np.uint32(a2 * x[i] + b2))
            m3 = min(m3, np.uint32(a3 * x[i] + b3))
        minima[k], minima[k + 1], minima[k + 2], minima[k + 3] = m0, m1, m2, m3


@kernel
def _combine(minima: Values, rows: np.int64, keys: Hashes) -> None:
    """Write the key of each band: its index and its values, mixed one after the other."""
    for band in range(keys.shape[0]):
        key = np.uint64(band)
        for row in range(rows):
            key = mix(key * _BASE + np.uint64(minima[band * rows + row]))
        keys[band] = key


@kernel
def _lower_by_text(
    hashes: Hashes,
    words: Offsets,
    data: npt.NDArray[np.uint8],
    place: Offsets,
    ngram: np.int64,
    a: Values,
    b: Values,
    table: Hashes,
    shingles: Hashes,
    x: Values,
    minima: Values,
) -> np.int64:
    """Lower the minima by the shingles of one text that are not in `table`; return how many those were."""
    total, seen = shingle_count(words[1] - words[0], place[1] - place[0], ngram), np.int64(0)
    for start in range(0, total, _BLOCK):
        count = np.int64(total - start if total - start < _BLOCK else _BLOCK)
        shingle_block(hashes, words, data, place, ngram, np.int64(start), count, shingles)
        count = leave_out(shingles, count, table)
        if count > 0:
            _lower_minima(x[: _narrow(shingles, count, x)], a, b, minima)
        seen += count
    return seen


@kernel
def _band_keys(
    hashes: Hashes,
    documents: Offsets,
    data: npt.NDArray[np.uint8],
    places: Offsets,
    ngram: np.int64,
    rows: np.int64,
    a: Values,
    b: Values,
    table: Hashes,
    keys: Hashes,
) -> None:
    shingles, x, minima = np.empty(_BLOCK, np.uint64), np.empty(_BLOCK, np.uint32), np.empty(a.shape[0], np.uint32)
    for d in range(keys.shape[0]):
        words, place = documents[d : d + 2], places[d : d + 2]
        minima[:] = _MOST
        seen = _lower_by_text(hashes, words, data, place, ngram, a, b, table, shingles, x, minima)
        if seen == 0:  # all are left out: then none is
            _lower_by_text(hashes, words, data, place, ngram, a, b, table[:0], shingles, x, minima)
        _combine(minima, rows, keys[d])


@kernel
def _signatures(offsets: Offsets, values: Hashes, documents: Indices, a: Values, b: Values, out: Values) -> None:
    x = np.empty(_BLOCK, np.uint32)
    for d in range(documents.shape[0]):
        first, end = offsets[documents[d]], offsets[documents[d] + 1]
        out[d, :] = _MOST
        for start in range(first, end, _BLOCK):
            count = np.int64(end - start if end - start < _BLOCK else _BLOCK)
            _lower_minima(x[: _narrow(values[start:end], count, x)], a, b, out[d])


@kernel
def _scoped(keys: Hashes, groups: Hashes, out: Hashes) -> None:
    for d in range(keys.shape[0]):
        for band in range(keys.shape[1]):
            out[d, band] = mix(keys[d, band] * _BASE + groups[d])
