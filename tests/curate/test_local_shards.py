"""Shards read without TensorStore: the same values, and damage of each kind told apart."""

from __future__ import annotations

import pickle
import shutil
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import zstandard

from curate.caches import DamagedCacheError, TokenCache
from curate.caches.arrays import open_array, reading_context
from curate.caches.layout import ARRAYS
from curate.caches.local_shards import LocalArray
from curate.store import Store
from tests.curate.token_corpus import END, SMALL, build, dataset_of, lines, write_tokenizer
from transforms.crc32c import TABLES, crc32c
from transforms.tokens import Tokenizer


@pytest.fixture(scope="module")
def cache(memory: Path) -> TokenCache:
    tokenizer = Tokenizer(write_tokenizer(memory), eos=END)
    return build(dataset_of(memory / "cached", lines()), tokenizer, layout=SMALL).caches["all"]


def local(cache: TokenCache, name: str = "tokens", pool: int = 1 << 20, folder: Path | None = None) -> LocalArray:
    return LocalArray(cache.description.array(name), Store(folder or cache.store.root), {}, pool)


@pytest.mark.parametrize("pool", [1, 1 << 20])
@pytest.mark.parametrize("name", ARRAYS)
def test_ranges_of_each_array_are_those_of_tensorstore(cache, name, pool):
    spec = cache.description.array(name)
    ours, theirs = local(cache, name, pool), open_array(cache.store, spec, reading_context(1 << 20))
    generator = np.random.default_rng(0)
    ends = np.sort(generator.integers(0, spec.rows + 1, (200, 2)), axis=1).tolist()
    ranges = [(0, spec.rows), (0, 0), (spec.rows, spec.rows), *((start, stop) for start, stop in ends)]
    for found, wanted in zip(ours.read_many(ranges), theirs.read_many(ranges), strict=True):
        assert found.dtype == wanted.dtype and found.shape == wanted.shape and found.tolist() == wanted.tolist()


def test_threads_that_read_one_array_get_what_each_asks_for(cache):
    array, whole = local(cache, pool=64), cache.read(0, cache.tokens).tolist()
    starts = np.random.default_rng(1).integers(0, cache.tokens - 50, 400).tolist()
    with ThreadPoolExecutor(4) as pool:
        windows = list(pool.map(lambda start: array.read(start, start + 50).tolist(), starts))
    assert windows == [whole[start : start + 50] for start in starts]


def test_array_that_was_pickled_reads_the_same(cache):
    again = pickle.loads(pickle.dumps(local(cache)))
    assert again.read(3, 99).tolist() == cache.read(3, 99).tolist()


def test_pool_keeps_no_more_bytes_than_it_may(cache):
    array = local(cache, pool=3 * SMALL.inner_tokens * 2)
    array.read(0, cache.tokens)
    assert len(array._chunks) == 3


def damage(cache: TokenCache, tmp_path: Path, change) -> LocalArray:
    folder = Path(shutil.copytree(cache.store.root, tmp_path / "copy"))
    shard = folder / "tokens" / "c" / "0"
    content, count = bytearray(shard.read_bytes()), SMALL.shard_tokens // SMALL.inner_tokens
    shard.write_bytes(change(content, len(content) - 16 * count - 4))
    return local(cache, folder=folder)


def sealed(content: bytes) -> bytes:
    return content + struct.pack("<I", int(crc32c(np.frombuffer(content, np.uint8), TABLES)))


def with_chunk(content: bytearray, index: int, chunk: bytes) -> bytes:
    """Append `chunk` before the index, as inner chunk 0."""
    entries = struct.pack("<QQ", index, len(chunk)) + bytes(content[index + 16 : -4])
    return bytes(content[:index]) + chunk + sealed(entries)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content, index: with_chunk(content, index, sealed(b"no frame")), "inner chunk 0: "),
        (lambda content, index: with_chunk(content, index, b"\0\0\0\0\0\0\0\0"), "inner chunk 0 has another checksum"),
        (lambda content, index: with_chunk(content, index, b""), "inner chunk 0 is not there"),
        (
            lambda content, index: with_chunk(content, index, sealed(zstandard.compress(b"short"))),
            "inner chunk 0 has 5 of",
        ),
        (
            lambda content, index: with_chunk(content, index, sealed(zstandard.compress(bytes(1 << 20)))),
            "inner chunk 0 has 1048576 of",
        ),
        (
            lambda content, index: content[:index] + sealed(struct.pack("<QQ", 1 << 40, 8) + content[index + 16 : -4]),
            "its index points beyond its chunks",
        ),
        (
            lambda content, index: (
                content[:index] + sealed(struct.pack("<QQ", 4, 2**64 - 2) + content[index + 16 : -4])
            ),
            "its index points beyond its chunks",
        ),
        (lambda content, index: content[:9], "its index has another checksum"),
    ],
)
def test_damage_of_each_kind_is_said(cache, tmp_path, change, message):
    with pytest.raises(DamagedCacheError, match=message):
        damage(cache, tmp_path, change).read(0, 10)
