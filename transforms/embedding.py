"""Texts as vectors: the protocol of embedders, and the default one, hashed TF-IDF under a fixed integer projection.

An embedder is a frozen dataclass whose fields are its whole configuration. Only the direction of a row means something:
similarity is the cosine. A row of zeros is a text about nothing (no words). `directions` calls any embedder, checks
what it gives and turns floats into integers, so that everything after it is exact.

`HashedTfidf` counts the words of a text (`transforms.segmentation`, folded as `transforms.word_hashes` says) in 2^18
buckets by their hash. Words that touch ("中文", "ภาษา": scripts without spaces, whose words are characters) count as
pairs too. A bucket weighs (1 + log2 of its count) × its rarity, in sixteenths; each weight is added, with a sign, to
one place in each of eight blocks of the vector, chosen by the bucket's number: the sparse Johnson-Lindenstrauss
projection of Kane & Nelson 2014 ("Sparser Johnson-Lindenstrauss Transforms", §3, block construction). The row is then
scaled to its largest value. Rarity is log2 of documents (and one) / documents with the bucket, counted on a corpus
(`document_frequencies`, `rarity_of`); without it every bucket weighs the same.

Invariants: a row depends on its text and the fields alone; integers only: the same on any CPU.
Cost: one pass, 100 to 160 MB/s on one core; 1 MB of counters, and `dimension` bytes per text.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, ClassVar, Final, Protocol, cast, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from blake3 import blake3

from transforms.kernels import kernel
from transforms.segmentation import Int, Positions, find_words
from transforms.shingles import PORTION, portions
from transforms.word_hashes import FACTOR, Hashes, hash_words, mix

Vectors = npt.NDArray[np.int8]
Weights = npt.NDArray[np.int64]

BUCKET_BITS: Final = 18
BUCKETS: Final = 1 << BUCKET_BITS
BLOCKS: Final = 8
SIXTEENTHS: Final = 16
LARGEST: Final = 127
MOST_COUNTED: Final = 4096  # a word more often than this in a text weighs no more

_PAIR: Final = np.uint64(0xC2B2AE3D27D4EB4F)  # keeps pairs apart from words
_PLACES: Final = np.uint64(0x9E3779B97F4A7C15)


class EmbeddingError(ValueError):
    """An embedder gave something else than a finite number per text and dimension."""


@runtime_checkable
class Embedder(Protocol):
    """What turns texts into vectors; a frozen dataclass whose fields are its whole configuration.

    It may say more: `ready()` loads what it needs or raises a RuntimeError with the remedy, and `isolated = True` has
    it run in a child process, as for any transform.
    """

    version: ClassVar[int]
    """Raised whenever the vector of some text changes; part of every key downstream."""

    libraries: ClassVar[tuple[str, ...]]
    """Distributions whose exact version reaches the vectors."""

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""
        ...

    def embed(self, texts: pa.LargeStringArray) -> npt.NDArray[Any]:
        """Return an array (texts, dimension) of int8 or floats; a row depends on its own text only."""
        ...


def directions(embedder: Embedder, texts: pa.LargeStringArray) -> Vectors:
    """Return the vectors of `texts` as int8, (n, dimension): floats are scaled to the largest of their row and rounded.

    Raises:
        EmbeddingError: the embedder gave another shape or type, or a number that is not finite.
    """
    found = embedder.embed(texts)
    wanted = (len(texts), embedder.dimension)
    if not isinstance(found, np.ndarray) or found.shape != wanted:
        shape = getattr(found, "shape", None)
        raise EmbeddingError(f"{embedder!r} gave {type(found).__name__} of shape {shape}, wanted an array {wanted}")
    if found.dtype == np.int8:
        return np.ascontiguousarray(found)
    if found.dtype not in (np.float16, np.float32, np.float64) or not np.isfinite(found).all():
        raise EmbeddingError(f"{embedder!r} gave {found.dtype} or numbers that are not finite, wanted int8 or floats")
    values = found.astype(np.float64)
    largest = np.abs(values).max(axis=1, initial=0.0, keepdims=True)
    return cast(Vectors, np.rint(values / np.where(largest > 0, largest, 1.0) * LARGEST).astype(np.int8))


@dataclass(frozen=True, slots=True)
class Rarity:
    """How much each of the `BUCKETS` weighs, in sixteenths of log2 (little-endian uint16), as counted on a corpus."""

    weights: bytes = field(repr=False)
    documents: int

    def __post_init__(self) -> None:
        if len(self.weights) != 2 * BUCKETS:
            raise ValueError(f"a rarity has {2 * BUCKETS:,} bytes, got {len(self.weights):,}")

    def description(self) -> dict[str, Any]:
        """Return what stands for it in keys: the digest of its weights."""
        return {"class": "Rarity", "digest": blake3(self.weights).hexdigest(), "documents": self.documents}


@dataclass(frozen=True, slots=True)
class HashedTfidf:
    """The default embedder: hashed words, weighed by how often they stand in the text and how rare they are.

    Args:
        dimension: numbers in a vector: a power of two, 64 to 1024. The cosine of two vectors lies within about
            1 / sqrt(dimension) of that of the words' weights.
        rarity: of words, counted on a corpus; None: all words weigh the same, "the" as much as any.

    Raises:
        ValueError: another dimension.
    """

    dimension: int = 512
    rarity: Rarity | None = None

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if self.dimension not in (64, 128, 256, 512, 1024):
            raise ValueError(f"HashedTfidf(dimension={self.dimension}): give 64, 128, 256, 512 or 1024")

    def fitted(self, rarity: Rarity) -> HashedTfidf:
        """Return this embedder with the rarity of words."""
        return replace(self, rarity=rarity)

    def embed(self, texts: pa.LargeStringArray) -> Vectors:
        """Return the vectors of `texts`."""
        rows = np.zeros((len(texts), self.dimension), np.int8)
        rarity, counted = _rarity_of(self.rarity), _count_weights()
        counts = np.zeros(BUCKETS, np.int32)
        for first, last in portions(texts, PORTION):
            words = find_words(texts.slice(first, last - first))
            terms = (words.documents, words.starts, words.ends, hash_words(words))
            _embed(*terms, rarity, counted, counts, rows[first:last])
        return rows


def document_frequencies(texts: pa.LargeStringArray) -> Weights:
    """Return in how many of `texts` each bucket occurs; sums over batches are those of all texts."""
    found = np.zeros(BUCKETS, np.int64)
    counts = np.zeros(BUCKETS, np.int32)
    for first, last in portions(texts, PORTION):
        words = find_words(texts.slice(first, last - first))
        _count_documents(words.documents, words.starts, words.ends, hash_words(words), counts, found)
    return found


def rarity_of(frequencies: Weights, documents: int, *, least: int = 0, lightest: int = 0) -> Rarity:
    """Return log2((documents + 1) / frequency) of each bucket in sixteenths; one that no document has counts as one.

    Args:
        frequencies: documents with each bucket.
        documents: how many there were.
        least: a bucket in fewer documents weighs nothing: too rare to say anything.
        lightest: sixteenths that any other bucket weighs at least; 1: a text of words that all have is not empty.
    """
    values, places = np.unique(frequencies, return_inverse=True)
    weights = [
        max(lightest, sixteenths(documents + 1, max(value, 1))) if value >= least else 0 for value in values.tolist()
    ]
    table = np.array(weights, "<u2")[places.reshape(-1)]
    return Rarity(table.tobytes(), documents)


def sixteenths(numerator: int, denominator: int) -> int:
    """Return log2(numerator / denominator) in whole sixteenths, rounded down, 0 where it is negative: exact."""
    ratio = numerator**SIXTEENTHS // denominator**SIXTEENTHS
    return max(0, ratio.bit_length() - 1)


@lru_cache(maxsize=1)
def _count_weights() -> Weights:
    """Return 1 + log2(count) in sixteenths for each count."""
    weights = np.array([0, *(SIXTEENTHS + sixteenths(count, 1) for count in range(1, MOST_COUNTED + 1))], np.int64)
    weights.flags.writeable = False
    return weights


@lru_cache(maxsize=4)
def _rarity_of(rarity: Rarity | None) -> npt.NDArray[np.uint16]:
    if rarity is None:
        table = np.full(BUCKETS, SIXTEENTHS, np.uint16)
    else:
        table = np.frombuffer(rarity.weights, "<u2").astype(np.uint16)
    table.flags.writeable = False
    return table


@kernel
def bucket_of(value: np.uint64) -> np.int64:
    """Return the bucket of a word or pair with this hash."""
    return np.int64(value >> np.uint64(64 - BUCKET_BITS))


@kernel
def pair_hash(before: np.uint64, value: np.uint64) -> np.uint64:
    """Return the hash of two words that touch."""
    return mix(before * FACTOR + value ^ _PAIR)


@kernel
def _count(
    first: Int, last: Int, starts: Positions, ends: Positions, hashes: Hashes, counts: Any, touched: Any
) -> np.int64:
    """Count the terms of words first … last - 1 in `counts`, list their buckets in `touched`, return how many."""
    distinct = np.int64(0)
    for word in range(first, last):
        bucket = bucket_of(hashes[word])
        if counts[bucket] == 0:
            touched[distinct] = bucket
            distinct += 1
        counts[bucket] += 1
        if word > first and ends[word - 1] == starts[word]:
            bucket = bucket_of(pair_hash(hashes[word - 1], hashes[word]))
            if counts[bucket] == 0:
                touched[distinct] = bucket
                distinct += 1
            counts[bucket] += 1
    return distinct


@kernel
def _embed(
    documents: Positions,
    starts: Positions,
    ends: Positions,
    hashes: Hashes,
    rarity: npt.NDArray[np.uint16],
    counted: Weights,
    counts: npt.NDArray[np.int32],
    rows: Vectors,
) -> None:
    dimension = rows.shape[1]
    width = np.uint64(dimension // BLOCKS)
    bits: Any = np.uint64(1)
    while np.uint64(1) << bits - np.uint64(1) < width:
        bits += np.uint64(1)  # one more than the place needs: the sign
    touched = np.empty(BUCKETS, np.int64)
    sums = np.empty(dimension, np.int64)
    for document in range(len(documents) - 1):
        distinct = _count(documents[document], documents[document + 1], starts, ends, hashes, counts, touched)
        sums[:] = 0
        for i in range(distinct):
            bucket = touched[i]
            weight = counted[min(counts[bucket], MOST_COUNTED)] * np.int64(rarity[bucket])
            counts[bucket] = 0
            if weight == 0:
                continue
            drawn: Any = mix(np.uint64(bucket + 1) * _PLACES)
            for block in range(BLOCKS):
                place = np.uint64(block) * width + (drawn & (width - np.uint64(1)))
                sign = np.int64(drawn >> (bits - np.uint64(1)) & np.uint64(1))
                sums[place] += weight - np.int64(2) * sign * weight
                drawn >>= bits
        largest = np.int64(0)
        for place in range(dimension):
            largest = max(largest, abs(sums[place]))
        if largest > 0:
            for place in range(dimension):
                rows[document, place] = (2 * LARGEST * sums[place] + largest) // (2 * largest)


@kernel
def _count_documents(
    documents: Positions,
    starts: Positions,
    ends: Positions,
    hashes: Hashes,
    counts: npt.NDArray[np.int32],
    found: Weights,
) -> None:
    touched = np.empty(BUCKETS, np.int64)
    for document in range(len(documents) - 1):
        distinct = _count(documents[document], documents[document + 1], starts, ends, hashes, counts, touched)
        for i in range(distinct):
            found[touched[i]] += 1
            counts[touched[i]] = 0
