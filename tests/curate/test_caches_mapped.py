"""Caches whose tokens are mapped: the same content, in place, and plain zarr3 to every other reader."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from curate.caches import DamagedCacheError, TokenCache
from curate.caches.arrays import open_array, reading_context
from curate.caches.layout import LAYOUT, MAPPED
from curate.caches.local_shards import LocalArray
from curate.configuration import ConfigurationError
from curate.digests import digest_json
from curate.recipes.cells import tokenize
from curate.recipes.stages import without_inputs
from curate.store import Store
from tests.curate.token_corpus import END, SMALL, build, dataset_of, described, lines, write_tokenizer
from transforms.tokens import Tokenizer

DOCUMENTS = lines(40)


@pytest.fixture(scope="module")
def caches(memory: Path) -> dict[str, TokenCache]:
    """One dataset, compressed and mapped, several shards each."""
    tokenizer = Tokenizer(write_tokenizer(memory), eos=END)
    layouts = {"compressed": SMALL, "mapped": replace(SMALL, codec="none", inner_tokens=128)}
    return {
        name: build(dataset_of(memory / name, DOCUMENTS), tokenizer, layout=layout).caches["all"]
        for name, layout in layouts.items()
    }


def test_mapped_cache_has_the_content_of_a_compressed_one(caches: dict[str, TokenCache]) -> None:
    mapped, packed = caches["mapped"], caches["compressed"]
    assert mapped.digest == packed.digest and mapped.verify() == []
    assert mapped.read(0, mapped.tokens).tolist() == packed.read(0, packed.tokens).tolist()
    windows = list(range(0, mapped.tokens - 100, 37))
    assert mapped.read_windows(windows, 100).tolist() == packed.read_windows(windows, 100).tolist()
    assert mapped.description.array("tokens").shards > 1


def test_window_within_a_chunk_is_not_copied(caches: dict[str, TokenCache]) -> None:
    window, again = (caches["mapped"].read(140, 200) for _ in range(2))
    assert np.shares_memory(window, again) and not window.flags.writeable
    assert not np.shares_memory(caches["mapped"].read(100, 200), caches["mapped"].read(100, 200))  # of two chunks


def test_mapped_cache_is_plain_zarr_to_others(caches: dict[str, TokenCache]) -> None:
    mapped = caches["mapped"]
    expected = mapped.read(0, mapped.tokens).tolist()
    spec = mapped.description.array("tokens")
    assert open_array(mapped.store, spec, reading_context(1 << 20)).read(0, mapped.tokens).tolist() == expected
    zarr = pytest.importorskip("zarr")
    assert zarr.open_array(str(mapped.store.root / "tokens"), mode="r")[:].tolist() == expected


def test_flipped_token_is_found_when_its_chunk_is_first_read(caches: dict[str, TokenCache], tmp_path: Path) -> None:
    copy = Path(shutil.copytree(caches["mapped"].store.root, tmp_path / "copy"))
    shard = copy / "tokens" / "c" / "0"
    content = bytearray(shard.read_bytes())
    content[300] ^= 1
    shard.write_bytes(content)
    cache = TokenCache.open(copy)
    assert len(cache.read(0, 100)) == 100
    with pytest.raises(DamagedCacheError, match="inner chunk 1 has another checksum"):
        cache.read(130, 140)


def test_shard_whose_chunks_lie_otherwise_is_read_through_its_index(
    caches: dict[str, TokenCache], tmp_path: Path
) -> None:
    """Another zarr writer may put them in any order, with gaps."""
    from transforms.crc32c import TABLES, crc32c

    mapped = caches["mapped"]
    copy = Path(shutil.copytree(mapped.store.root, tmp_path / "copy"))
    shard = copy / "tokens" / "c" / "0"
    content = shard.read_bytes()
    step = 128 * 2 + 4
    chunks = [content[place : place + step] for place in (0, step)]
    index = np.array([[step + 3, step], [0, step]], "<u8").tobytes()
    crc = int(crc32c(np.frombuffer(index, np.uint8), TABLES)).to_bytes(4, "little")
    shard.write_bytes(chunks[1] + b"gap" + chunks[0] + index + crc)
    array = LocalArray(mapped.description.array("tokens"), Store(copy), {}, 1)
    assert array.read(0, 256).tolist() == mapped.read(0, 256).tolist()


def test_how_a_cache_is_stored_is_in_the_key_where_it_is_given(tmp_path: Path) -> None:
    texts, tokenizer = described(tmp_path), Tokenizer(write_tokenizer(tmp_path), eos=END)
    plain, mapped = tokenize(texts, tokenizer), tokenize(texts, tokenizer, stored="mapped")
    assert plain.layout == LAYOUT and mapped.layout == MAPPED and MAPPED.inner_tokens >= 1 << 15
    assert digest_json(without_inputs(plain)) == digest_json(without_inputs(tokenize(texts, tokenizer, fast="never")))
    assert digest_json(without_inputs(plain)) != digest_json(without_inputs(mapped))
    with pytest.raises(ConfigurationError, match="'compressed' or 'mapped'"):
        tokenize(texts, tokenizer, stored="flat")  # type: ignore[arg-type]
