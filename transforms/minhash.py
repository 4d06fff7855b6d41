"""MinHash over word 5-grams: which texts may be near-duplicates, without comparing all with all.

A document is the set of its shingles: 64-bit hashes of `ngram` consecutive words (words as `find_words` sees them,
folded as `transforms.word_hashes` says: lower case, one apostrophe). Fewer words than `ngram` make one shingle of all
of them; text without words ("!!!") is one shingle of its bytes; a text of no bytes has no shingle and must be dropped
before. Two sets with Jaccard similarity J agree in one MinHash value with probability J; `rows` values make a band;
texts that agree in all values of one band are candidates (Broder 1997; Leskovec, Rajaraman, Ullman, *Mining of Massive
Datasets*, §3.4), which a verification then compares.

Hash family: h_k(x) = a_k·x + b_k mod 2^32, x the upper 32 bits of a shingle, a_k odd: linear permutations of the
32-bit numbers (Bohman, Cooper, Frieze 2000), whose arithmetic is modulo 2^32 by definition; shingles are mixed well
before, and tests hold bias and variance against exact Jaccard. b_k, then a_k with its lowest bit set, are the two
4-byte words of BLAKE2b-64(seed, k), seed and k as 8 bytes, person "curate minhash", all little-endian: the k-th
function depends on seed and k alone, and on no library's generator.

Invariants: a document's values depend on its text and the configuration alone. Band keys hold the band's index.
Cost: linear in the words; about 4 ns per word for 120 functions with AVX2 or AVX-512, beside finding and hashing the
words (three quarters of the time). Working memory: 40 kB, 24 bytes per word of half a megabyte or of the longest text,
8 bytes per band and document.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transforms.kernels import kernel
from transforms.segmentation import find_words, text_buffers
from transforms.word_hashes import Hashes, hash_words, mix

Values = npt.NDArray[np.uint32]
Offsets = npt.NDArray[np.int64]

_BASE: Final = np.uint64(0x9E3779B97F4A7C15)  # odd: the rolling polynomial loses no bit
_FNV_START: Final = np.uint64(0xCBF29CE484222325)
_FNV_PRIME: Final = np.uint64(0x100000001B3)
_SHORT: Final = np.uint64(0xFF51AFD7ED558CCD)  # sets texts shorter than a shingle apart, by their number of words
_WORDLESS: Final = np.uint64(0x5851F42D4C957F2D)  # keeps shingles of bytes apart from shingles of words
_MOST: Final = np.uint32(0xFFFFFFFF)
_HALF: Final = np.uint64(32)
_BLOCK: Final = 2048  # shingles at a time: they stay in the first-level cache, and memory does not grow with a document
_PORTION: Final = 1 << 19  # bytes of text at a time, or one document: their words stay in the second-level cache
_VECTOR: Final = 32  # values padded to whole vectors; divides _BLOCK
_LANES: Final = 4  # hash functions evaluated together, so that a shingle is loaded once for four
_LEVELS: Final = 8  # bands that fit into a split key, one byte each


@dataclass(frozen=True, slots=True)
class MinHash:
    """The configuration of near-duplicate search. The defaults find a pair at Jaccard .8 with probability .9977.

    `threshold` is the Jaccard similarity from which on two texts are duplicates, kept as the exact fraction of its
    decimal (.8 is 4/5); `ngram` words make a shingle; `bands` × `rows` hash functions; `cap` is the number of
    documents above which a bucket is split; `seed` selects the functions.
    """

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    threshold: Fraction | float | str = Fraction(4, 5)
    ngram: int = 5
    bands: int = 20
    rows: int = 6
    cap: int = 1000
    seed: int = 1

    def __post_init__(self) -> None:
        """Make the threshold exact, check every field.

        Raises:
            ValueError: a field is out of its range.
        """
        threshold = self.threshold if isinstance(self.threshold, Fraction) else Fraction(str(self.threshold))
        if not 0 < threshold <= 1 or threshold.denominator > 1_000_000:
            raise ValueError(
                f"threshold is a decimal above 0 and at most 1, six places at most: got {self.threshold!r}"
            )
        object.__setattr__(self, "threshold", threshold)
        for name, least, most in (("ngram", 1, 64), ("bands", 1, 1024), ("rows", 1, 64), ("cap", 2, 20_000)):
            if not least <= getattr(self, name) <= most:
                raise ValueError(f"{name} is a number from {least} to {most}: got {getattr(self, name)!r}")
        if not 0 <= self.seed < 1 << 64:
            raise ValueError(f"seed is a number from 0 to 2^64 - 1: got {self.seed!r}")

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


@dataclass(frozen=True, slots=True)
class Sets:
    """Shingle sets of documents: document d owns values[offsets[d]:offsets[d + 1]], sorted, each value once."""

    offsets: Offsets
    values: Hashes

    def __len__(self) -> int:
        """Return the number of sets."""
        return len(self.offsets) - 1


def permutations(minhash: MinHash) -> tuple[Values, Values]:
    """Return a_k and b_k of the bands × rows permutations: a pure function of (seed, k)."""
    drawn = [_function(minhash.seed, k) for k in range(minhash.bands * minhash.rows)]
    words = np.frombuffer(b"".join(drawn), "<u4").astype(np.uint32).reshape(-1, 2)
    return words[:, 1] | np.uint32(1), np.ascontiguousarray(words[:, 0])


def band_keys(text: pa.LargeStringArray, minhash: MinHash) -> Hashes:
    """Return the bucket keys, documents × bands: equal where two texts agree in all MinHash values of that band.

    The band's index is part of the key, so keys of all bands can be exchanged together. Texts of no bytes get the keys
    of the empty set: drop them before.
    """
    a, b = permutations(minhash)
    spare = -len(a) % _LANES
    a, b = np.concatenate([a, np.ones(spare, np.uint32)]), np.concatenate([b, np.zeros(spare, np.uint32)])
    keys = np.empty((len(text), minhash.bands), np.uint64)
    for first, last in portions(text, _PORTION):
        part = text.slice(first, last - first)
        words = find_words(part)
        scale = np.int64(minhash.ngram), np.int64(minhash.rows)
        _band_keys(hash_words(words), words.documents, *text_buffers(part), *scale, a, b, keys[first:last])
    return keys


def signatures(text: pa.LargeStringArray, minhash: MinHash) -> Values:
    """Return the MinHash values themselves, documents × (bands · rows): for estimates of Jaccard, not for dedup.

    The share of equal values estimates Jaccard without bias, with variance J(1 - J) / (bands · rows).
    """
    a, b = permutations(minhash)
    sets = shingle_sets(text, minhash.ngram)
    values = np.empty((len(text), len(a)), np.uint32)
    _signatures(sets.offsets, sets.values, a, b, values)
    return values


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


def shingle_sets(text: pa.LargeStringArray, ngram: int) -> Sets:
    """Return the shingle set of each text: what verification compares. 8 bytes per shingle."""
    sets = [_shingle_sets(text.slice(first, last - first), ngram) for first, last in portions(text, _PORTION)]
    sizes = [np.zeros(1, np.int64), *(np.diff(part.offsets) for part in sets)]
    values = [np.zeros(0, np.uint64), *(part.values for part in sets)]
    return Sets(np.cumsum(np.concatenate(sizes)), np.concatenate(values))


def _shingle_sets(text: pa.LargeStringArray, ngram: int) -> Sets:
    words = find_words(text)
    offsets, values = _shingles(hash_words(words), words.documents, *text_buffers(text), np.int64(ngram))
    for first, last in pairwise(offsets.tolist()):
        values[first:last].sort()
    sets = np.zeros(len(text) + 1, np.int64)
    return Sets(sets, values[: _distinct(offsets, values, sets)].copy())


def portions(text: pa.LargeStringArray, size: int) -> Iterator[tuple[int, int]]:
    """Yield ranges (first, end) of texts that hold `size` bytes or little more, or one text that is longer."""
    _, places = text_buffers(text)
    first = 0
    while first < len(text):
        last = int(np.searchsorted(places, places[first] + size))
        last = min(max(last, first + 1), len(text))
        yield first, last
        first = last


def _function(seed: int, k: int) -> bytes:
    counter = seed.to_bytes(8, "little") + k.to_bytes(8, "little")
    return hashlib.blake2b(counter, digest_size=8, person=b"curate minhash").digest()


@kernel
def _shingle_count(words: np.int64, size: np.int64, ngram: np.int64) -> np.int64:
    """Return the number of shingles (with repeats) of a text of `words` words and `size` bytes."""
    if words >= ngram:
        return words - ngram + 1
    return np.int64(1) if size > 0 else np.int64(0)


@kernel
def _wordless(data: npt.NDArray[np.uint8], first: np.int64, last: np.int64) -> np.uint64:
    value = _FNV_START
    for i in range(first, last):
        value = (value ^ np.uint64(data[i])) * _FNV_PRIME
    return mix(value ^ _WORDLESS)


@kernel
def _fill(hashes: Hashes, first: np.int64, count: np.int64, width: np.int64, short: np.uint64, out: Hashes) -> None:
    """Write the shingles of `width` words that begin at words first … first + count - 1 to `out`.

    A polynomial in the words' hashes, then a bijective mix. `short` is the width of a text shorter than a shingle, else
    0, so that no short text equals a part of a longer one.
    """
    for i in range(count):
        out[i] = 0
    for j in range(width):
        words = hashes[first + j : first + j + count]  # a slice and no offset below: only then vector code comes of it
        for i in range(count):
            out[i] = out[i] * _BASE + words[i]
    for i in range(count):
        out[i] = mix(out[i] + short * _SHORT)


@kernel
def _block(
    hashes: Hashes,
    words: npt.NDArray[np.int64],
    data: npt.NDArray[np.uint8],
    place: npt.NDArray[np.int64],
    ngram: np.int64,
    start: np.int64,
    count: np.int64,
    out: Hashes,
) -> None:
    """Write shingles start … start + count - 1 of the document of words[0]:words[1] and data[place[0]:place[1]]."""
    total = words[1] - words[0]
    if total >= ngram:
        _fill(hashes, words[0] + start, count, ngram, np.uint64(0), out)
    elif total > 0:
        _fill(hashes, words[0], np.int64(1), total, np.uint64(total), out)
    else:
        out[0] = _wordless(data, place[0], place[1])


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
def _band_keys(
    hashes: Hashes,
    documents: Offsets,
    data: npt.NDArray[np.uint8],
    places: Offsets,
    ngram: np.int64,
    rows: np.int64,
    a: Values,
    b: Values,
    keys: Hashes,
) -> None:
    shingles, x, minima = np.empty(_BLOCK, np.uint64), np.empty(_BLOCK, np.uint32), np.empty(a.shape[0], np.uint32)
    for d in range(keys.shape[0]):
        words, place = documents[d : d + 2], places[d : d + 2]
        total = _shingle_count(words[1] - words[0], place[1] - place[0], ngram)
        minima[:] = _MOST
        for start in range(0, total, _BLOCK):
            count = np.int64(total - start if total - start < _BLOCK else _BLOCK)
            _block(hashes, words, data, place, ngram, np.int64(start), count, shingles)
            _lower_minima(x[: _narrow(shingles, count, x)], a, b, minima)
        _combine(minima, rows, keys[d])


@kernel
def _shingles(
    hashes: Hashes, documents: Offsets, data: npt.NDArray[np.uint8], places: Offsets, ngram: np.int64
) -> tuple[Offsets, Hashes]:
    offsets = np.zeros(documents.shape[0], np.int64)
    for d in range(documents.shape[0] - 1):
        count = _shingle_count(documents[d + 1] - documents[d], places[d + 1] - places[d], ngram)
        offsets[d + 1] = offsets[d] + count
    values = np.empty(offsets[-1], np.uint64)
    for d in range(documents.shape[0] - 1):
        count = offsets[d + 1] - offsets[d]
        if count > 0:
            out = values[offsets[d] : offsets[d + 1]]
            _block(hashes, documents[d : d + 2], data, places[d : d + 2], ngram, np.int64(0), count, out)
    return offsets, values


@kernel
def _distinct(offsets: Offsets, values: Hashes, sets: Offsets) -> np.int64:
    """Move the distinct values of each run to the front of `values`; write their offsets, return their number."""
    kept = np.int64(0)
    for d in range(offsets.shape[0] - 1):
        for i in range(offsets[d], offsets[d + 1]):
            if i == offsets[d] or values[i] != values[kept - 1]:
                values[kept] = values[i]
                kept += 1
        sets[d + 1] = kept
    return kept


@kernel
def _signatures(offsets: Offsets, values: Hashes, a: Values, b: Values, out: Values) -> None:
    for d in range(out.shape[0]):
        for k in range(a.shape[0]):
            least = _MOST
            for i in range(offsets[d], offsets[d + 1]):
                least = min(least, np.uint32(a[k] * np.uint32(values[i] >> _HALF) + b[k]))
            out[d, k] = least


@kernel
def _scoped(keys: Hashes, groups: Hashes, out: Hashes) -> None:
    for d in range(keys.shape[0]):
        for band in range(keys.shape[1]):
            out[d, band] = mix(keys[d, band] * _BASE + groups[d])
