"""A cache in the formats of other loaders. Each holds the same documents in the same order; none has ids or origin.

    megatron   <name>.bin, <name>.idx      Megatron-LM's indexed dataset, a sequence per document
    datatrove  <name>.ds, .ds.index, .ds.metadata
    mds        shard.NNNNN.mds, index.json MosaicML Streaming, a sample {"tokens": array} per document
    litdata    chunk-0-N.bin, index.json   Lightning's TokensLoader, an item per document
    npy        tokens.npy, offsets.npy     numpy

What names the files comes last, so an export that was cut short is not read. Memory: some 64 MiB.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt

from curate.caches.cache import TokenCache
from curate.configuration import ConfigurationError
from curate.digests import short

BLOCK: Final = 1 << 24
"""Tokens read at a time."""

SHARD_BYTES: Final = 1 << 26
"""Bytes at which a shard of MDS or chunk of litdata closes, a longer document alone in one."""

MEGATRON_MAGIC: Final = b"MMIDIDX\x00\x00"
MEGATRON_TYPES: Final = {"int32": 4, "uint16": 8}
LITDATA_TYPES: Final = {"uint16": 20, "int32": 15}
"""Places of types in litdata's list of torch's types."""


def export_cache(cache: TokenCache, folder: Path | str, form: str) -> list[Path]:
    """Write `cache` into `folder`, made if it is not there, in one of `FORMATS`, and return the files.

    Raises:
        ConfigurationError: there is no such format, or the folder is not empty.
        DamagedCacheError: a chunk is not what was written.
    """
    if form not in FORMATS:
        raise ConfigurationError(f"no format {form!r} to export to; there are {', '.join(FORMATS)}")
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    if any(place.iterdir()):
        raise ConfigurationError(f"{place} is not empty: an export needs a folder of its own")
    FORMATS[form](cache, place)
    return sorted(path for path in place.iterdir() if path.is_file())


def _name(cache: TokenCache) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_=.") else "-" for c in cache.name)


def _write_tokens(cache: TokenCache, file: BinaryIO, dtype: npt.DTypeLike) -> None:
    """Write all tokens to an open file."""
    for start in range(0, cache.tokens, BLOCK):
        file.write(cache.read(start, min(start + BLOCK, cache.tokens)).astype(dtype).tobytes())


def _signed(cache: TokenCache) -> str:
    """Return the type that other loaders have for this cache's ids: they know no uint32."""
    return "uint16" if cache.description.dtype == "uint16" else "int32"


def _megatron(cache: TokenCache, folder: Path) -> None:
    kind = _signed(cache)
    with (folder / f"{_name(cache)}.bin").open("wb") as file:
        _write_tokens(cache, file, f"<{kind[0]}{np.dtype(kind).itemsize}")
    lengths = np.diff(cache.starts)
    with (folder / f"{_name(cache)}.idx").open("wb") as file:
        file.write(MEGATRON_MAGIC + struct.pack("<QB", 1, MEGATRON_TYPES[kind]))
        file.write(struct.pack("<QQ", len(cache), len(cache) + 1))
        file.write(lengths.astype("<i4").tobytes())
        file.write((cache.starts[:-1] * np.dtype(kind).itemsize).astype("<i8").tobytes())
        file.write(np.arange(len(cache) + 1, dtype="<i8").tobytes())


def _datatrove(cache: TokenCache, folder: Path) -> None:
    width = np.dtype(cache.description.dtype).itemsize
    name = f"{_name(cache)}.ds"
    with (folder / name).open("wb") as file:
        _write_tokens(cache, file, f"<u{width}")
    (folder / f"{name}.metadata").write_text(f"{short(cache.tokenizer)}|{width}\n{cache.tokens}\n{cache.tokens}")
    (folder / f"{name}.index").write_bytes(cache.starts[1:].astype("<u8").tobytes())


def _npy(cache: TokenCache, folder: Path) -> None:
    with (folder / "tokens.npy").open("wb") as file:
        kind = np.dtype(cache.description.dtype).newbyteorder("<")
        header = {"descr": kind.str, "fortran_order": False, "shape": (cache.tokens,)}
        np.lib.format.write_array_header_1_0(file, header)
        _write_tokens(cache, file, kind)
    np.save(folder / "offsets.npy", cache.starts)


def _groups(cache: TokenCache, overhead: int) -> Iterator[tuple[int, int, list[bytes]]]:
    """Yield runs of documents of at most `SHARD_BYTES`: first, last + 1, and the values of each."""
    kind = np.dtype(_signed(cache))
    sizes = np.diff(cache.starts) * kind.itemsize + overhead
    first = 0
    while first < len(cache):
        fit = int(np.searchsorted(np.cumsum(sizes[first:]), SHARD_BYTES, side="right"))
        last = first + max(1, fit)
        tokens = cache.read(int(cache.starts[first]), int(cache.starts[last])).astype(kind.newbyteorder("<"))
        edges = cache.starts[first : last + 1] - cache.starts[first]
        yield first, last, [tokens[a:b].tobytes() for a, b in pairwise(edges)]
        first = last


def _packed(samples: Sequence[bytes], middle: bytes = b"") -> bytes:
    """Return samples behind their number, their places and `middle`: the shape of MDS and litdata alike."""
    head = 4 + 4 * (len(samples) + 1) + len(middle)
    places = np.cumsum([head, *map(len, samples)]).astype("<u4")
    return struct.pack("<I", len(samples)) + places.tobytes() + middle + b"".join(samples)


def _mds(cache: TokenCache, folder: Path) -> None:
    config: dict[str, Any] = {
        "column_encodings": [f"ndarray:{_signed(cache)}"], "column_names": ["tokens"], "column_sizes": [None],
        "compression": None, "format": "mds", "hashes": [], "size_limit": SHARD_BYTES, "version": 2,
    }  # fmt: skip
    middle = json.dumps(config, sort_keys=True).encode()
    width, shards = np.dtype(_signed(cache)).itemsize, list[dict[str, Any]]()
    for first, last, values in _groups(cache, 16):
        samples = [_mds_sample(value, len(value) // width) for value in values]
        name, content = f"shard.{len(shards):05}.mds", _packed(samples, middle)
        (folder / name).write_bytes(content)
        raw = {"basename": name, "bytes": len(content), "hashes": {}}
        shards.append({**config, "raw_data": raw, "samples": last - first, "zip_data": None})
    (folder / "index.json").write_text(json.dumps({"shards": shards, "version": 2}, sort_keys=True))


def _mds_sample(values: bytes, length: int) -> bytes:
    """Return one sample: its size; one dimension, whose length has 1 << `code` bytes; the values."""
    code = next(code for code in range(4) if length < 1 << (8 << code))
    body = bytes([1 << 2 | code]) + length.to_bytes(1 << code, "little") + values
    return struct.pack("<I", len(body)) + body


def _litdata(cache: TokenCache, folder: Path) -> None:
    chunks = list[dict[str, Any]]()
    width = np.dtype(_signed(cache)).itemsize
    for first, last, values in _groups(cache, 4):
        name, content = f"chunk-0-{len(chunks)}.bin", _packed(values)
        (folder / name).write_bytes(content)
        dim = sum(map(len, values)) // width
        chunks.append({"chunk_bytes": len(content), "chunk_size": last - first, "filename": name, "dim": dim})
    config = {
        "compression": None, "chunk_size": None, "chunk_bytes": SHARD_BYTES, "encryption": None,
        "data_format": [f"no_header_tensor:{LITDATA_TYPES[_signed(cache)]}"],
        "data_spec": '[1, {"type": null, "context": null, "children_spec": []}]', "item_loader": "TokensLoader",
    }  # fmt: skip
    (folder / "index.json").write_text(json.dumps({"chunks": chunks, "config": config}, sort_keys=True))


FORMATS: Final[Mapping[str, Callable[[TokenCache, Path], None]]] = {
    "megatron": _megatron,
    "datatrove": _datatrove,
    "mds": _mds,
    "litdata": _litdata,
    "npy": _npy,
}
"""Formats that a cache can be exported to."""
