"""The zarr3 store of a cache: its arrays, how they are cut, and their metadata.

A cache is a zarr3 group with five arrays, written in zarr shards (one file each) of inner chunks. An array that fits
one shard has a shard no longer than it needs: a power of two of inner chunks, as the index of a shard has 16 bytes for
each. Metadata are written here, not by a library, so that their bytes do not depend on its version.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from curate.formats import Format

FORMAT: Final = Format(1, "open it with the version that wrote it, or tokenize the documents again into a new store")
"""Format of caches: of `cache.json`, and of the arrays that it describes."""

ARRAYS: Final = ("tokens", "offsets", "ids", "origin", "texts")
"""Names of the arrays. All but `tokens` have a row per document, `offsets` one more."""

UNTRAINED: Final = "untrained"
"""Name of the array that caches have whose documents had the column `not_trained`: a row per token."""

_BY_TOKEN: Final = ("tokens", UNTRAINED)

ZSTD_LEVEL: Final = 3


@dataclass(frozen=True, slots=True)
class Layout:
    """Lengths of inner chunks and shards, in tokens and documents; blocks are what the content digest is made of.

    A shard is a power of two of inner chunks and, where it is not the only one, a multiple of the block. `codec` is
    that of `tokens`: "zstd", or "none" where they are to be mapped into memory.
    """

    inner_tokens: int = 1 << 13
    shard_tokens: int = 1 << 25
    block_tokens: int = 1 << 22
    inner_documents: int = 1 << 12
    shard_documents: int = 1 << 20
    block_documents: int = 1 << 20
    codec: str = "zstd"

    def inner(self, array: str) -> int:
        """Return the length of an inner chunk of `array`."""
        return self.inner_tokens if array in _BY_TOKEN else self.inner_documents

    def shard(self, array: str, length: int) -> int:
        """Return the length of a shard of `array`, which has `length` rows in all."""
        shard, most = self.inner(array), self.shard_tokens if array in _BY_TOKEN else self.shard_documents
        while shard < min(length, most):
            shard *= 2
        return shard

    def array(self, name: str, dtype: str, tokens: int, documents: int) -> ArraySpec:
        """Return the array `name` of a cache with these numbers of tokens and documents, cut by this layout."""
        shard = self.shard(name, rows_of_array(name, tokens, documents))
        codec = self.codec if name == "tokens" else "zstd"
        return array_spec(name, dtype, tokens, documents, shard, self.inner(name), codec)

    def block(self, array: str) -> int:
        """Return the length of a block of the content digest of `array`."""
        return self.block_tokens if array in _BY_TOKEN else self.block_documents


LAYOUT: Final = Layout()
"""The layout of the format."""

MAPPED: Final = Layout(inner_tokens=1 << 15, codec="none")
"""The layout of caches whose tokens are mapped into memory: not compressed, in longer chunks."""


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """One array of a cache: `rows` × `width` values (width 0: one dimension) of a numpy type name, in shards."""

    name: str
    dtype: str
    rows: int
    width: int
    shard: int
    inner: int
    codec: str = "zstd"

    @property
    def lengths(self) -> dict[str, Any]:
        """Return how it is cut, as `cache.json` says it."""
        return {"shard": self.shard, "inner": self.inner, **({} if self.codec == "zstd" else {"codec": self.codec})}

    @property
    def shards(self) -> int:
        """How many zarr shards it has."""
        return -(-self.rows // self.shard)

    def rows_of(self, shard: int) -> tuple[int, int]:
        """Return the first row of a shard and the one after its last."""
        return min(shard * self.shard, self.rows), min((shard + 1) * self.shard, self.rows)

    def file(self, shard: int) -> str:
        """Return the name of a shard's file below the array's folder."""
        return f"c/{shard}/0" if self.width else f"c/{shard}"

    def metadata(self) -> dict[str, Any]:
        """Return the array's `zarr.json`."""
        across = [self.width] if self.width else []
        little = {"name": "bytes", "configuration": {"endian": "little"}}
        numbers = little if self.dtype != "uint8" else {"name": "bytes"}
        packed = {"name": "zstd", "configuration": {"level": ZSTD_LEVEL, "checksum": False}}
        sharding = {
            "chunk_shape": [self.inner, *across],
            # The checksum is over the stored bytes of a chunk.
            "codecs": [numbers, *([packed] if self.codec == "zstd" else []), {"name": "crc32c"}],
            "index_codecs": [little, {"name": "crc32c"}],
            "index_location": "end",
        }
        return {
            "zarr_format": 3,
            "node_type": "array",
            "shape": [self.rows, *across],
            "data_type": self.dtype,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [self.shard, *across]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": 0,
            "codecs": [{"name": "sharding_indexed", "configuration": sharding}],
            "dimension_names": ["token" if self.name in _BY_TOKEN else "document", *(["value"] if self.width else [])],
            "attributes": {},
        }


GROUP: Final[dict[str, Any]] = {"zarr_format": 3, "node_type": "group", "attributes": {}}
"""The `zarr.json` of the cache itself."""


def array_spec(
    name: str, dtype: str, tokens: int, documents: int, shard: int, inner: int, codec: str = "zstd"
) -> ArraySpec:
    """Return the array `name` of a cache with these numbers of tokens and documents; `dtype` is that of `tokens`."""
    types = {"tokens": dtype, "offsets": "uint64", "origin": "uint64"}  # all others are bytes
    widths = {"ids": 16, "origin": 2, "texts": 16}
    rows = rows_of_array(name, tokens, documents)
    return ArraySpec(name, types.get(name, "uint8"), rows, widths.get(name, 0), shard, inner, codec)


def rows_of_array(name: str, tokens: int, documents: int) -> int:
    """Return how many rows the array `name` has."""
    return {"tokens": tokens, UNTRAINED: tokens, "offsets": documents + 1}.get(name, documents)
