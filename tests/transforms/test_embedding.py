"""Embedding: the default embedder against its definition in plain Python, and what any embedder may give."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from transforms.embedding import (
    BLOCKS,
    BUCKETS,
    Embedder,
    EmbeddingError,
    HashedTfidf,
    Rarity,
    directions,
    document_frequencies,
    rarity_of,
)
from transforms.segmentation import find_words
from transforms.word_hashes import hash_words

MASK = (1 << 64) - 1
TEXTS = pa.array(
    [
        "The tide turned, and the boats lay on the sand of the harbour.",
        "",
        "!!! ... ???",
        "漢字かな交じり文、テスト。中文没有空格一二三",
        "ภาษาไทย and English",
        "tide " * 5000,
    ],
    pa.large_string(),
)


def mixed(value: int) -> int:
    for shift, factor in ((33, 0xFF51AFD7ED558CCD), (33, 0xC4CEB9FE1A85EC53), (33, 1)):
        value = (value ^ value >> shift) * factor & MASK
    return value


def terms(texts: pa.LargeStringArray) -> list[Counter[int]]:
    words = find_words(texts)
    hashes = [int(value) for value in hash_words(words)]
    found = []
    for first, last in zip(words.documents[:-1], words.documents[1:], strict=True):
        buckets = [value >> 46 for value in hashes[first:last]]
        for word in range(first + 1, last):
            if words.ends[word - 1] == words.starts[word]:
                joined = (hashes[word - 1] * 0x9E3779B97F4A7C15 + hashes[word] & MASK) ^ 0xC2B2AE3D27D4EB4F
                buckets.append(mixed(joined) >> 46)
        found.append(Counter(buckets))
    return found


def sixteenths(numerator: int, denominator: int) -> int:
    steps = 0
    while 2 ** (steps + 1) * denominator**16 <= numerator**16:
        steps += 1
    return steps


def plain(texts: pa.LargeStringArray, dimension: int, weights: dict[int, int]) -> list[list[int]]:
    rows = []
    for counts in terms(texts):
        sums = [0] * dimension
        width = dimension // BLOCKS
        bits = width.bit_length()
        for bucket, count in counts.items():
            weight = (16 + sixteenths(min(count, 4096), 1)) * weights.get(bucket, 16)
            drawn = mixed((bucket + 1) * 0x9E3779B97F4A7C15 & MASK)
            for block in range(BLOCKS):
                sign = -1 if drawn >> (bits - 1) & 1 else 1
                sums[block * width + drawn % width] += sign * weight
                drawn >>= bits
        largest = max(map(abs, sums)) or 1
        rows.append([(254 * value + largest) // (2 * largest) for value in sums])
    return rows


@pytest.mark.parametrize("dimension", [64, 256, 1024])
def test_hashed_tfidf_equals_its_definition(dimension: int) -> None:
    assert directions(HashedTfidf(dimension), TEXTS).tolist() == plain(TEXTS, dimension, {})


def test_hashed_tfidf_with_rarity_equals_its_definition() -> None:
    counted = Counter(bucket for document in terms(TEXTS) for bucket in document)
    frequencies = document_frequencies(TEXTS)
    assert {int(b): int(frequencies[b]) for b in np.flatnonzero(frequencies)} == counted
    weights = dict.fromkeys(range(BUCKETS), sixteenths(len(TEXTS) + 1, 1))
    weights |= {bucket: sixteenths(len(TEXTS) + 1, count) for bucket, count in counted.items()}
    embedder = HashedTfidf().fitted(rarity_of(frequencies, len(TEXTS)))
    assert embedder.embed(TEXTS).tolist() == plain(TEXTS, 512, weights)


def test_rarity_of_too_rare_words_is_nothing() -> None:
    frequencies = np.zeros(BUCKETS, np.int64)
    frequencies[:4] = 1, 2, 4, 8
    weights = np.frombuffer(rarity_of(frequencies, 8, least=2).weights, "<u2")
    assert weights[:5].tolist() == [0, 34, 18, 2, 0]


def test_embedding_of_any_slice_is_the_same() -> None:
    whole = HashedTfidf().embed(TEXTS)
    parts = [HashedTfidf().embed(TEXTS.slice(row, 1)) for row in range(len(TEXTS))]
    assert np.array_equal(whole, np.concatenate(parts))
    assert not whole[1].any() and not whole[2].any()


def test_hashed_tfidf_of_another_dimension_is_refused() -> None:
    with pytest.raises(ValueError, match="dimension=100"):
        HashedTfidf(100)
    with pytest.raises(ValueError, match="524,288 bytes"):
        Rarity(b"", 3)


@dataclass(frozen=True)
class Given:
    rows: npt.NDArray[Any]
    dimension: int = 3
    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    def embed(self, texts: pa.LargeStringArray) -> npt.NDArray[Any]:
        return self.rows


def test_directions_of_floats_are_scaled_to_their_largest() -> None:
    embedder = Given(np.array([[0.5, -1.0, 0.25], [0.0, 0.0, 0.0]], np.float32))
    assert isinstance(embedder, Embedder)
    assert directions(embedder, TEXTS[:2]).tolist() == [[64, -127, 32], [0, 0, 0]]


@pytest.mark.parametrize("rows", [np.zeros((2, 4), np.int8), np.zeros((2, 3), np.int32), np.full((2, 3), np.nan)])
def test_directions_of_something_else_are_refused(rows: npt.NDArray[Any]) -> None:
    with pytest.raises(EmbeddingError, match="Given"):
        directions(Given(rows), TEXTS[:2])
