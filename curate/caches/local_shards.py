"""Arrays of a cache in a local folder, read without TensorStore: map the shard, find the chunk, unpack it.

TensorStore is made for reads that wait; in files that the kernel has at hand its bookkeeping is most of a small read's
time. What is read here is the same zarr3: per shard an index of (offset, length) at the end, per inner chunk a zstd
frame and its CRC-32C, which is checked whenever a chunk is unpacked.

Invariants: each value read passed its chunk's checksum; an array gives what `StoredArray` gives. Safe to use from many
threads. Cost: 15-30 µs per inner chunk of 8,192 tokens that is not at hand; memory: `pool` bytes of unpacked chunks,
and an index of 16 bytes per chunk of each shard that was touched; mapped files are the kernel's to drop. A file that is
cut short while it is mapped ends the process (SIGBUS), as with any mapped file; opening a cache compares sizes.
"""

from __future__ import annotations

import mmap
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock, local
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import zstandard

from curate.caches.errors import DamagedCacheError
from curate.caches.layout import ArraySpec
from curate.store import Store
from transforms.crc32c import TABLES, crc32c

Values = npt.NDArray[Any]

_CHECKSUM: Final = 4
_ABSENT: Final = np.uint64(0xFFFFFFFFFFFFFFFF)


@dataclass(frozen=True, slots=True)
class _Shard:
    """A mapped shard: its bytes, and where each inner chunk lies in them.

    Where nothing is compressed and the chunks lie one after the other, `rows` are they, in place, and `checked` says of
    which the checksum was found right.
    """

    content: npt.NDArray[np.uint8]
    index: npt.NDArray[np.int64]
    rows: Values | None = None
    checked: bytearray = field(default_factory=bytearray)


@dataclass(frozen=True, slots=True)
class LocalArray:
    """The array `spec` of the finished cache in `store`: its shards are here, or are copied to this node when needed.

    `digests` are those of the cache's files, by name; `pool` is how many bytes of unpacked chunks are kept. Reads as
    `StoredArray` does.
    """

    spec: ArraySpec
    store: Store
    digests: Mapping[str, str]
    pool: int
    _shards: dict[int, _Shard] = field(default_factory=dict, repr=False)
    _chunks: OrderedDict[int, Values] = field(default_factory=OrderedDict, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)
    _threads: local = field(default_factory=local, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return LocalArray, (self.spec, self.store, self.digests, self.pool)

    def read(self, start: int, stop: int) -> Values:
        """Return rows `start` to `stop`.

        Raises:
            DamagedCacheError: a chunk is not what was written.
        """
        inner, width = self.spec.inner, self.spec.width
        first, last = start // inner, -(-stop // inner)
        if first + 1 == last:
            return self._chunk(first)[start - first * inner : stop - first * inner]
        values = np.empty((stop - start, width) if width else stop - start, self.spec.dtype)
        for number in range(first, last):
            base = number * inner
            low, high = max(start, base), min(stop, base + inner)
            values[low - start : high - start] = self._chunk(number)[low - base : high - base]
        values.flags.writeable = False  # one type for kernels, whether it is a part of a chunk or not
        return values

    def read_many(self, ranges: list[tuple[int, int]]) -> list[Values]:
        """Return the rows of each range.

        Raises:
            DamagedCacheError: a chunk is not what was written.
        """
        return [self.read(start, stop) for start, stop in ranges]

    def _chunk(self, number: int) -> Values:
        """Return inner chunk `number` of the array, not to be written to; the last used ones are kept."""
        if self.spec.codec == "none":
            each = self.spec.shard // self.spec.inner
            shard = self._shards.get(number // each) or self._shard(number // each)
            if shard.rows is not None:
                place = number % each
                if not shard.checked[place]:
                    self._stored(number)
                    shard.checked[place] = 1
                row: Values = shard.rows[place]
                return row
        with self._lock:
            found = self._chunks.get(number)
            if found is not None:
                self._chunks.move_to_end(number)
                return found
        made = self._unpacked(number)
        with self._lock:
            self._chunks[number] = made
            while len(self._chunks) > 1 and len(self._chunks) * made.nbytes > self.pool:
                self._chunks.popitem(last=False)
        return made

    def _stored(self, number: int) -> npt.NDArray[np.uint8]:
        """Return the bytes of inner chunk `number` without its checksum, which is right.

        Raises:
            DamagedCacheError: it is not, or the chunk is not there.
        """
        each = self.spec.shard // self.spec.inner
        shard = self._shard(number // each)
        offset, size = shard.index[number % each].tolist()
        if size < _CHECKSUM:
            raise self._damaged(number // each, f"inner chunk {number % each} is not there")
        stored = shard.content[offset : offset + size]
        packed = stored[:-_CHECKSUM]
        if int(crc32c(packed, TABLES)) != int.from_bytes(stored[-_CHECKSUM:].tobytes(), "little"):
            raise self._damaged(number // each, f"inner chunk {number % each} has another checksum")
        return packed

    def _unpacked(self, number: int) -> Values:
        each = self.spec.shard // self.spec.inner
        packed = self._stored(number)
        length = self.spec.inner * max(1, self.spec.width) * np.dtype(self.spec.dtype).itemsize
        content = packed.tobytes() if self.spec.codec == "none" else self._decompressed(number, packed, length)
        if len(content) != length:
            raise self._damaged(number // each, f"inner chunk {number % each} has {len(content)} of {length} bytes")
        values = np.frombuffer(content, np.dtype(self.spec.dtype).newbyteorder("<"))
        return values.reshape(-1, self.spec.width) if self.spec.width else values

    def _decompressed(self, number: int, packed: npt.NDArray[np.uint8], length: int) -> bytes:
        each = self.spec.shard // self.spec.inner
        try:
            if (said := zstandard.frame_content_size(packed)) > length:
                raise self._damaged(number // each, f"inner chunk {number % each} has {said} of {length} bytes")
            return bytes(self._decompressor().decompress(packed, max_output_size=length))
        except zstandard.ZstdError as error:
            raise self._damaged(number // each, f"inner chunk {number % each}: {error}") from error

    def _decompressor(self) -> zstandard.ZstdDecompressor:
        """Return the decompressor of this thread: it may not be shared."""
        found: zstandard.ZstdDecompressor | None = getattr(self._threads, "decompressor", None)
        if found is None:
            found = self._threads.decompressor = zstandard.ZstdDecompressor()
        return found

    def _shard(self, number: int) -> _Shard:
        found = self._shards.get(number)
        if found is None:
            found = self._shards.setdefault(number, self._mapped(number))
        return found

    def _mapped(self, number: int) -> _Shard:
        """Map shard `number` and read its index.

        Raises:
            DamagedCacheError: the index is not what was written, or points beyond the chunks.
            StoreError: a copy of the shard is not what was written.
        """
        name = self._name(number)
        with self.store.local(name, self.digests.get(name)).open("rb") as file:
            content = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
        length = 16 * (self.spec.shard // self.spec.inner)
        index = content[max(0, len(content) - length - _CHECKSUM) : len(content) - _CHECKSUM]
        said = int.from_bytes(content[-_CHECKSUM:].tobytes(), "little")
        if len(index) != length or int(crc32c(index, TABLES)) != said:
            raise self._damaged(number, "its index has another checksum")
        places = index.view("<u8").reshape(-1, 2)
        there = places[:, 0] != _ABSENT
        ends = places[there].sum(axis=1, dtype=np.uint64)
        if (places[there] > len(content)).any() or (ends > len(content) - length - _CHECKSUM).any():
            raise self._damaged(number, "its index points beyond its chunks")
        chunks = np.where(there[:, None], places, 0).astype(np.int64)
        rows = self._in_place(content, chunks, int(there.sum()))
        return _Shard(content, chunks, rows, bytearray(0 if rows is None else len(rows)))

    def _in_place(self, content: npt.NDArray[np.uint8], chunks: npt.NDArray[np.int64], count: int) -> Values | None:
        """Return the first `count` chunks as rows of the mapped bytes, or None where they do not lie in order."""
        dtype = np.dtype(self.spec.dtype).newbyteorder("<")
        step = self.spec.inner * dtype.itemsize + _CHECKSUM
        expected = np.stack([np.arange(count) * step, np.full(count, step)], axis=1)
        if self.spec.codec != "none" or self.spec.width or not np.array_equal(chunks[:count], expected):
            return None
        return np.ndarray((count, self.spec.inner), dtype, content, 0, (step, dtype.itemsize))

    def _name(self, shard: int) -> str:
        return f"{self.spec.name}/{self.spec.file(shard)}"

    def _damaged(self, shard: int, what: str) -> DamagedCacheError:
        return DamagedCacheError(
            f"{self.store.url(self._name(shard))} is damaged ({what}): the file changed after it was written. Copy "
            "the cache again, or remove its folder and run the recipe again"
        )
