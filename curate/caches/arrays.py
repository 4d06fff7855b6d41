"""Arrays of a cache through TensorStore: one zarr shard as bytes, and a finished array to read.

Memory: a shard and its compressed form while it is made; reading holds what is read and a pool of `pool` bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from blake3 import blake3

from curate.caches.errors import DamagedCacheError
from curate.caches.layout import ArraySpec
from curate.store import Store, json_line


def shard_bytes(spec: ArraySpec, shard: int, values: npt.NDArray[Any]) -> bytes:
    """Return the file of one shard of `spec` that holds `values`: the same bytes for the same values.

    Raises:
        ValueError: `values` are not all rows of the shard, or of another type.
    """
    import tensorstore

    first, stop = spec.rows_of(shard)
    if values.shape != (stop - first, *([spec.width] if spec.width else [])) or values.dtype != spec.dtype:
        raise ValueError(f"{spec.name}, shard {shard}: rows {first} to {stop} of {spec.dtype}, got {values.shape}")
    context = tensorstore.Context()
    memory = tensorstore.KvStore.open({"driver": "memory"}, context=context).result()
    memory.write("zarr.json", json_line(spec.metadata())).result()
    # Else a chunk of zeros is left out, and a reader cannot tell it from one that was lost.
    options = {"driver": "zarr3", "kvstore": {"driver": "memory"}, "store_data_equal_to_fill_value": True}
    tensorstore.open(options, open=True, context=context).result()[first:stop].write(values).result()
    return bytes(memory.read(spec.file(shard)).result().value)


def block_digests(values: npt.NDArray[Any], block: int) -> list[str]:
    """Return BLAKE3 of each `block` rows of `values`, little-endian; the last may be shorter."""
    little = np.ascontiguousarray(values, values.dtype.newbyteorder("<")).view(np.uint8).reshape(len(values), -1)
    return [blake3(little[row : row + block].reshape(-1).data).hexdigest() for row in range(0, len(little), block)]


@dataclass(frozen=True, slots=True)
class StoredArray:
    """An array of a finished cache."""

    spec: ArraySpec
    place: str
    _array: Any

    def read(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Return rows `start` to `stop`.

        Raises:
            DamagedCacheError: a chunk is not what was written.
        """
        return self.read_many([(start, stop)])[0]

    def read_many(self, ranges: list[tuple[int, int]]) -> list[npt.NDArray[Any]]:
        """Return the rows of each range; requests for one shard are put together.

        Raises:
            DamagedCacheError: a chunk is not what was written.
        """
        import tensorstore

        try:
            with tensorstore.Batch() as batch:
                futures = [self._array[start:stop].read(batch=batch) for start, stop in ranges]
            return [np.asarray(future.result()) for future in futures]
        except ValueError as error:
            what = ", ".join(f"{start:,} to {stop:,}" for start, stop in ranges[:3])
            raise DamagedCacheError(
                f"{self.place} is damaged (rows {what}: {_reason(error)}): the file changed after "
                "it was written. Copy the cache again, or remove its folder and run the recipe again"
            ) from error


def open_array(folder: Store, spec: ArraySpec, context: Any) -> StoredArray:
    """Open the array `spec` of the cache at `folder`; its metadata are those of `spec`."""
    import tensorstore

    options = {
        "driver": "zarr3",
        "kvstore": folder.kvstore(spec.name),
        "recheck_cached_data": False,  # files of a finished cache do not change
        "recheck_cached_metadata": False,
    }
    array = tensorstore.open(options, open=True, read=True, context=context).result()
    return StoredArray(spec, folder.url(spec.name), array)


def reading_context(pool: int) -> Any:
    """Return the context that arrays of one cache share: a pool of `pool` bytes for shard indices and chunks."""
    import tensorstore

    return tensorstore.Context({"cache_pool": {"total_bytes_limit": pool}})


def _reason(error: ValueError) -> str:
    return str(error).partition(" [source locations")[0][:300]
