"""Reading token caches: all ways of access agree, the format can be read by hand, and damage is told apart."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.caches import (
    CacheError,
    CutShortError,
    DamagedCacheError,
    OldFormatError,
    OtherTokenizerError,
    TokenCache,
    arrays,
    check,
)
from curate.caches.arrays import block_digests, shard_bytes
from curate.caches.description import content_of
from curate.caches.layout import ARRAYS, LAYOUT, Layout
from mixtures.cache import Cache
from tests.curate.token_corpus import BEGIN, END, SMALL, build, dataset_of, edit_description, lines, write_tokenizer
from transforms.tokens import Tokenizer

DOCUMENTS = lines()


@pytest.fixture(scope="module")
def tokenizer(memory: Path) -> Tokenizer:
    return Tokenizer(write_tokenizer(memory), eos=END)


@pytest.fixture(scope="module")
def cache(memory: Path, tokenizer: Tokenizer) -> TokenCache:
    """A cache of several shards; nobody writes to it."""
    return build(dataset_of(memory / "cached", DOCUMENTS), tokenizer, layout=SMALL).caches["all"]


@pytest.fixture
def copy(cache: TokenCache, tmp_path: Path) -> Path:
    """A copy of the cache that a test may damage."""
    return Path(shutil.copytree(cache.store.root, tmp_path / "copy"))


@given(data=st.data())
@settings(max_examples=60)
def test_ways_of_access_give_the_same_tokens(cache: TokenCache, data: st.DataObject) -> None:
    whole = cache.read(0, cache.tokens)
    start = data.draw(st.integers(0, cache.tokens))
    stop = data.draw(st.integers(start, cache.tokens))
    assert cache.read(start, stop).tolist() == whole[start:stop].tolist()
    borders = cache.borders(start, stop)
    assert borders.dtype == np.int64
    assert borders.tolist() == [place for place in cache.starts[:-1].tolist() if start <= place < stop]
    length = data.draw(st.integers(0, 200))
    starts = data.draw(st.lists(st.integers(0, cache.tokens - length), max_size=8))
    windows = cache.read_windows(starts, length)
    assert windows.shape == (len(starts), length) and windows.dtype == whole.dtype
    assert all(window.tolist() == whole[s : s + length].tolist() for s, window in zip(starts, windows, strict=True))
    document = data.draw(st.integers(0, len(cache) - 1))
    assert cache[document].tolist() == whole[cache.starts[document] : cache.starts[document + 1]].tolist()
    assert cache[document - len(cache)].tolist() == cache[document].tolist()
    for token in {*borders.tolist(), *range(start, min(start + 1, stop))}:
        assert cache.starts[cache.document_at(token)] <= token < cache.starts[cache.document_at(token) + 1]


def test_cache_is_a_sequence_of_documents(cache: TokenCache) -> None:
    assert len(list(cache)) == len(cache) == cache.documents == len(DOCUMENTS)
    assert np.concatenate(list(cache)).tolist() == cache.read(0, cache.tokens).tolist()
    assert [int(document[-1]) for document in cache] == [cache.eos] * len(cache)
    assert repr(cache).startswith("TokenCache('all', ") and f"{cache.tokens:,} tokens of 60 documents" in repr(cache)


def test_attributes_say_what_a_mixture_asks_for(cache: TokenCache, tokenizer: Tokenizer) -> None:
    assert isinstance(cache, Cache)
    encoder = tokenizer.encoder()
    assert (cache.name, cache.tokenizer, cache.vocabulary) == ("all", tokenizer.digest, encoder.vocabulary)
    assert (cache.eos, cache.bos, cache.digest) == (encoder.eos, None, cache.description.content)
    assert cache.text_digests().shape == cache.ids(0, len(cache)).shape == (60, 16)
    assert cache.text_digests().dtype == np.uint8 and cache.origin(3, 5).shape == (2, 2)


OUTSIDE: dict[str, Callable[[TokenCache], object]] = {
    "before": lambda cache: cache.read(-1, 3),
    "behind": lambda cache: cache.read(0, cache.tokens + 1),
    "backwards": lambda cache: cache.read(5, 4),
    "document": lambda cache: cache[60],
    "document from the end": lambda cache: cache[-61],
    "borders": lambda cache: cache.borders(0, 1 << 40),
    "windows": lambda cache: cache.read_windows([cache.tokens - 3], 4),
    "ids": lambda cache: cache.ids(0, 61),
    "token": lambda cache: cache.document_at(cache.tokens),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_what_lies_outside_of_a_cache_is_an_index_error(cache: TokenCache, name: str) -> None:
    with pytest.raises(IndexError, match=r"of a cache with|of the cache 'all', which has"):
        OUTSIDE[name](cache)


def test_opening_checks_the_content_digest_that_is_asked_for(cache: TokenCache, tokenizer: Tokenizer) -> None:
    assert TokenCache.open(str(cache.store.root), tokenizer, cache.digest).digest == cache.digest
    with pytest.raises(DamagedCacheError, match="asked for was 00"):
        TokenCache.open(cache.store.root, digest="00")


def crc32c(data: bytes) -> int:
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 & -(value & 1))
    return value ^ 0xFFFFFFFF


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_can_be_read_by_hand(cache: TokenCache, name: str) -> None:
    """The way of docs/formats.md: index at the end of a shard, inner chunks of zstd with a checksum behind."""
    spec = cache.description.array(name)
    metadata = json.loads((cache.store.root / name / "zarr.json").read_bytes())
    (sharding,) = metadata["codecs"]
    outer, inner = (
        part["chunk_shape"] for part in (metadata["chunk_grid"]["configuration"], sharding["configuration"])
    )
    rows = []
    for shard in range(-(-metadata["shape"][0] // outer[0])):
        stored = (cache.store.root / name / spec.file(shard)).read_bytes()
        count = outer[0] // inner[0]
        index = stored[-16 * count - 4 :]
        assert crc32c(index[:-4]) == int.from_bytes(index[-4:], "little")
        for offset, length in struct.iter_unpack("<QQ", index[:-4]):
            if offset == 2**64 - 1:
                continue
            chunk = stored[offset : offset + length]
            assert crc32c(chunk[:-4]) == int.from_bytes(chunk[-4:], "little")
            plain = zstandard.ZstdDecompressor().decompressobj().decompress(chunk[:-4])
            rows.append(np.frombuffer(plain, np.dtype(metadata["data_type"]).newbyteorder("<")).reshape(inner))
    found = np.concatenate(rows)[: metadata["shape"][0]]
    ours = {
        "tokens": cache.read(0, cache.tokens),
        "offsets": cache.starts,
        "ids": cache.ids(0, len(cache)),
        "origin": cache.origin(0, len(cache)),
        "texts": cache.text_digests(),
    }
    assert found.tolist() == ours[name].tolist()


def test_description_holds_what_a_reader_needs(cache: TokenCache, tokenizer: Tokenizer) -> None:
    value = json.loads((cache.store.root / "cache.json").read_bytes())
    assert value["format"] == 1 and value["kind"] == "cache" and value["dtype"] == "uint16"
    assert value["tokenizer"]["eos"] == END and value["tokenizer"]["eos_id"] == cache.eos
    assert value["canary"]["ids"] == tokenizer.encoder().canary()
    assert set(value["files"]) == {
        path.relative_to(cache.store.root).as_posix() for path in cache.store.root.rglob("*") if path.is_file()
    } - {"cache.json"}
    assert value["tokenizer"]["forbidden"] == sorted(tokenizer.encoder().controls.values())


def test_cache_cut_short_is_told_apart(cache: TokenCache, copy: Path) -> None:
    shard = copy / "tokens" / "c" / "1"
    content = shard.read_bytes()
    shard.write_bytes(content[:-1])
    with pytest.raises(CutShortError, match=r"tokens/c/1 has [0-9]+ bytes, written were .*Copy the cache again"):
        TokenCache.open(copy)
    shard.unlink()
    with pytest.raises(CutShortError, match=r"tokens/c/1 is missing: the cache is cut short"):
        TokenCache.open(copy)
    (copy / "cache.json").unlink()
    with pytest.raises(CutShortError, match=r"has no cache\.json: .* its build did not finish"):
        TokenCache.open(copy)


def test_cache_of_another_tokenizer_is_told_apart(cache: TokenCache, tokenizer: Tokenizer, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_bytes(Path(tokenizer.path).read_bytes() + b"\n")
    with pytest.raises(OtherTokenizerError, match=r"another tokenizer .digest '.*', asked for '.*'.: open it with"):
        TokenCache.open(cache.store.root, Tokenizer(other, eos=END))
    with pytest.raises(
        OtherTokenizerError, match=r"bos None, asked for '<\|begin\|>'; eos '<\|end\|>', asked for None"
    ):
        TokenCache.open(cache.store.root, Tokenizer(tokenizer.path, bos=BEGIN))


def test_tokenizer_that_gives_the_canary_other_ids_is_told_apart(copy: Path, tokenizer: Tokenizer) -> None:
    value = json.loads((copy / "cache.json").read_bytes())
    edit_description(copy, canary={**value["canary"], "ids": value["canary"]["ids"][1:]})
    assert TokenCache.open(copy).tokens
    with pytest.raises(OtherTokenizerError, match=r"the canary other ids than then: .*made with tokenizers 0\."):
        TokenCache.open(copy, tokenizer)


def test_flipped_chunk_is_told_apart(copy: Path) -> None:
    shard = copy / "tokens" / "c" / "0"
    content = bytearray(shard.read_bytes())
    content[10] ^= 4
    shard.write_bytes(content)
    damaged = TokenCache.open(copy)
    assert len(damaged.read(300, 400)) == 100  # another shard
    with pytest.raises(DamagedCacheError, match=r"tokens/c/0 is damaged \(inner chunk 0 has .*Copy the cache again"):
        damaged.read(0, 10)
    assert any("tokens/c/0 has the digest" in problem for problem in damaged.verify())
    content[10] ^= 4
    content[-6] ^= 1  # in the index
    shard.write_bytes(content)
    with pytest.raises(DamagedCacheError, match=r"tokens/c/0 is damaged \(its index"):
        TokenCache.open(copy).read_windows([0], 10)


@pytest.mark.parametrize("version", [0, 2, None])
def test_other_format_is_told_apart(copy: Path, version: int | None) -> None:
    edit_description(copy, format=version)
    with pytest.raises(OldFormatError, match=f"has format {version}, this version of curate reads format 1"):
        TokenCache.open(copy)


def test_kinds_of_errors_are_kinds_of_cache_errors() -> None:
    kinds = (CutShortError, OtherTokenizerError, DamagedCacheError, OldFormatError)
    assert all(issubclass(kind, CacheError) for kind in kinds) and len(set(kinds)) == 4


def test_any_flipped_byte_of_a_cache_is_found(copy: Path) -> None:
    for path in sorted(path for path in copy.rglob("*") if path.is_file()):
        content = path.read_bytes()
        for place in {0, len(content) // 2, len(content) - 2}:
            path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
            try:
                problems = TokenCache.open(copy).verify()
            except CacheError as error:
                problems = [str(error)]
            assert problems, f"{path.name}, byte {place}"
        path.write_bytes(content)
    assert TokenCache.open(copy).verify() == []
    (copy / "tokens" / "stranger").write_bytes(b"")
    assert TokenCache.open(copy).verify() == [f"{copy}: tokens/stranger is not listed in cache.json"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: {"content": "0" * 64}, "do not have its content digest"),
        (lambda t: {"tokenizer": {**t, "eos_id": t["eos_id"] + 1}}, "lack BOS .* or EOS"),
        (lambda t: {"tokenizer": {**t, "forbidden": list(range(258))}}, "hold other control tokens"),
        (lambda t: {"tokenizer": {**t, "vocabulary": 300}}, "ids that the vocabulary lacks"),
        (lambda t: {"statistics": {}}, "text digests are not those that were counted"),
    ],
)
def test_verify_looks_at_what_a_description_claims(copy: Path, change: object, message: str) -> None:
    edit_description(copy, **change(json.loads((copy / "cache.json").read_bytes())["tokenizer"]))  # type: ignore[operator]
    (problem,) = TokenCache.open(copy).verify()
    assert message.split(" .* ")[0] in problem and message.split(" .* ")[-1] in problem


def test_verify_finds_another_order_of_documents(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "order_of", lambda digest: digest[::-1])
    assert TokenCache.open(copy).verify() == [f"{copy}: its documents are not in the order of the format"]


def test_shard_bytes_are_the_same_again_and_hold_zeros() -> None:
    spec = Layout(inner_tokens=64, shard_tokens=256).array("tokens", "uint16", 300, 1)
    assert (spec.shards, spec.rows_of(1), spec.file(1)) == (2, (256, 300), "c/1")
    zeros = np.zeros(44, np.uint16)
    assert shard_bytes(spec, 1, zeros) == shard_bytes(spec, 1, zeros)
    (index,) = struct.iter_unpack("<QQ", shard_bytes(spec, 1, zeros)[-68:-52])
    assert index[0] == 0 and index[1] > 0  # a chunk of zeros is stored, not left out
    with pytest.raises(ValueError, match="rows 256 to 300 of uint16"):
        shard_bytes(spec, 1, zeros[1:])
    with pytest.raises(ValueError, match="rows 256 to 300 of uint16"):
        shard_bytes(spec, 1, zeros.astype(np.uint32))


def test_shards_are_no_longer_than_needed() -> None:
    lengths = [LAYOUT.shard("tokens", rows) for rows in (0, 1, 8192, 8193, 100_000, 1 << 25, 1 << 40)]
    assert lengths == [8192, 8192, 8192, 16384, 131072, 1 << 25, 1 << 25]
    assert LAYOUT.shard("ids", 1 << 40) == 1 << 20
    for array in ARRAYS:
        assert LAYOUT.shard(array, 1 << 40) % LAYOUT.block(array) == 0


def test_content_digest_of_the_format() -> None:
    """Golden: one that changes means another format."""
    tokens, offsets = np.arange(10, dtype=np.uint16), np.array([0, 4, 10], np.uint64)
    blocks = {"tokens": block_digests(tokens, 4), "offsets": block_digests(offsets, 8)}
    assert [len(blocks["tokens"]), len(blocks["offsets"])] == [3, 1]
    assert content_of("uint16", 10, 2, blocks) == "1c05985b7c5dd171ebf638c6eb2de6453c4b0793deaedbd05a6de85f379f814e"


def test_metadata_of_the_format(cache: TokenCache) -> None:
    """Golden: what zarr readers see."""
    assert json.loads((cache.store.root / "zarr.json").read_bytes()) == {
        "zarr_format": 3, "node_type": "group", "attributes": {},
    }  # fmt: skip
    value = json.loads((cache.store.root / "ids" / "zarr.json").read_bytes())
    (sharding,) = value.pop("codecs")
    assert value == {
        "zarr_format": 3, "node_type": "array", "shape": [60, 16], "data_type": "uint8", "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [8, 16]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "dimension_names": ["document", "value"], "attributes": {},
    }  # fmt: skip
    assert sharding["name"] == "sharding_indexed"
    assert [codec["name"] for codec in sharding["configuration"]["codecs"]] == ["bytes", "zstd", "crc32c"]
    assert [codec["name"] for codec in sharding["configuration"]["index_codecs"]] == ["bytes", "crc32c"]
    assert sharding["configuration"]["index_location"] == "end" and arrays.reading_context(1)
