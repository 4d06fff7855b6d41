"""Arrays on disk: one zarr3 array each, written and read through TensorStore, each chunk with the digest of its values.

    <folder>/<name>/  zarr.json  c.0.0  c.0.1 …

Uncompressed, little-endian, in chunks of at most `CHUNK_BYTES`. The grid of chunks and the metadata follow from type
and shape alone, so the same arrays give the same files whatever devices held them, and a reader that wants a part (that
of its own devices, on another mesh) reads and checks the chunks of that part only. Any zarr library can read them.

Cost: one pass over the values to hash and one to write; reading holds the chunks of what is read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from blake3 import blake3

from curate.digests import digest_json

CHUNK_BYTES: Final = 1 << 26

NamedArrays = Mapping[str, npt.NDArray[np.generic]]
Entry = dict[str, Any]
"""What a manifest says of an array: name, dtype, shape, digest of its values, and of each chunk (row-major)."""

Index = tuple[slice, ...]


class CheckpointError(RuntimeError):
    """A checkpoint that is damaged, or belongs to another run than the one that asks for it."""


REMOVE: Final = "Remove the folder of that step, and the run goes on from the checkpoint before it"


@dataclass(frozen=True, slots=True)
class StoredArray:
    """An array on disk: `array[index]` reads the part that a tuple of slices names, `np.asarray(array)` all of it."""

    folder: Path
    entry: Entry

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return tuple(self.entry["shape"])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its values."""
        return dtype_named(self.entry["dtype"])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.asarray(self[tuple(slice(None) for _ in self.shape)], dtype)

    def __getitem__(self, index: Index) -> npt.NDArray[Any]:
        """Return a part, after checking each chunk that it lies in.

        Raises:
            CheckpointError: a chunk or the metadata are missing or not what was written.
        """
        spans = [part.indices(size)[:2] for part, size in zip(index, self.shape, strict=True)]
        chunk = chunk_shape(self.shape, self.dtype.itemsize)
        first = [start // step * step for (start, _), step in zip(spans, chunk, strict=True)]
        last = [
            min(-(-stop // step) * step, size) for (_, stop), step, size in zip(spans, chunk, self.shape, strict=True)
        ]
        values = self._read(tuple(slice(a, b) for a, b in zip(first, last, strict=True)))
        self._check(values, first, chunk)
        return values[tuple(slice(a - begin, b - begin) for (a, b), begin in zip(spans, first, strict=True))]

    def _read(self, box: Index) -> npt.NDArray[Any]:
        import tensorstore

        stored = self.folder / self.entry["name"]
        metadata = metadata_of(self.shape, self.dtype)
        try:
            if json.loads((stored / "zarr.json").read_bytes()) != metadata:
                raise ValueError("zarr.json is another than was written")
            array = tensorstore.open(_spec(stored, metadata), open=True, read=True).result()
            return np.asarray(array[box].read().result())
        except (OSError, ValueError) as error:
            reason = str(error).partition(" [source")[0]
            raise CheckpointError(f"{stored} is damaged or missing: {reason}. {REMOVE}") from None

    def _check(self, values: npt.NDArray[Any], first: Sequence[int], chunk: Sequence[int]) -> None:
        grid = [-(-size // step) for size, step in zip(self.shape, chunk, strict=True)]
        for corner in _corners(values.shape, chunk):
            place = [(a + b) // step for a, b, step in zip(first, corner, chunk, strict=True)]
            number = int(np.ravel_multi_index(place, grid)) if place else 0
            if digest_values(values[_box(corner, chunk)]) != self.entry["chunks"][number]:
                where = self.folder / self.entry["name"]
                raise CheckpointError(f"{where}, chunk {number}, is damaged or missing. {REMOVE}")


def write_arrays(folder: Path, arrays: NamedArrays) -> list[Entry]:
    """Write `arrays` below `folder`, synced, and return what a manifest says of them."""
    import tensorstore

    futures = []
    for name, array in arrays.items():
        spec = _spec(folder / name, metadata_of(array.shape, array.dtype))
        stored = tensorstore.open(spec, create=True).result()
        futures.append(stored[...].write(array, can_reference_source_data_indefinitely=True))
    entries = describe(arrays)
    for future in futures:
        future.result()
    return entries


def describe(arrays: NamedArrays) -> list[Entry]:
    """Return what a manifest says of `arrays`, in their order."""
    return [_described(name, array) for name, array in arrays.items()]


def digest_entries(entries: Sequence[Entry]) -> str:
    """Return the digest of arrays with these entries: their names, types, shapes and values, in their order."""
    return digest_json([{key: entry[key] for key in ("name", "dtype", "shape", "digest")} for entry in entries])


def digest_values(values: npt.NDArray[Any]) -> str:
    """Return BLAKE3 of the bytes of `values`, row-major."""
    return blake3(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data).hexdigest()


def dtype_named(name: str) -> np.dtype[Any]:
    """Return the type of a name, those of JAX that NumPy lacks (bfloat16) included."""
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, name, name))


def chunk_shape(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Return the shape of chunks: the longest axis is halved (up) until a chunk has at most `CHUNK_BYTES`."""
    chunk = [max(size, 1) for size in shape]
    while int(np.prod(chunk)) * itemsize > CHUNK_BYTES:
        axis = chunk.index(max(chunk))
        chunk[axis] = -(-chunk[axis] // 2)
    return tuple(chunk)


def metadata_of(shape: Sequence[int], dtype: np.dtype[Any]) -> dict[str, Any]:
    """Return the zarr.json of an array."""
    endian = {} if dtype.itemsize == 1 else {"configuration": {"endian": "little"}}
    chunk = chunk_shape(shape, dtype.itemsize)
    return {
        "chunk_grid": {"configuration": {"chunk_shape": list(chunk)}, "name": "regular"},
        "chunk_key_encoding": {"configuration": {"separator": "."}, "name": "default"},
        "codecs": [{**endian, "name": "bytes"}],
        "data_type": dtype.name,
        "fill_value": False if dtype == np.bool_ else 0,
        "node_type": "array",
        "shape": list(shape),
        "zarr_format": 3,
    }


def _spec(folder: Path, metadata: Mapping[str, Any]) -> dict[str, Any]:
    # Else a chunk of zeros is left out, and a reader cannot tell it from one that was lost.
    kvstore = {"driver": "file", "path": f"{folder}/"}
    return {"driver": "zarr3", "kvstore": kvstore, "metadata": metadata, "store_data_equal_to_fill_value": True}


def _described(name: str, array: npt.NDArray[Any]) -> Entry:
    chunk = chunk_shape(array.shape, array.itemsize)
    digests = [digest_values(array[_box(corner, chunk)]) for corner in _corners(array.shape, chunk)]
    whole = digests[0] if len(digests) == 1 else digest_values(array)
    return {
        "name": name,
        "dtype": array.dtype.name,
        "shape": list(array.shape),
        "digest": whole,
        "chunks": digests,
    }


def _corners(shape: Sequence[int], chunk: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the first index of each chunk, row-major."""
    return list(product(*(range(0, size, step) for size, step in zip(shape, chunk, strict=True))))


def _box(corner: Sequence[int], chunk: Sequence[int]) -> Index:
    return tuple(slice(begin, begin + step) for begin, step in zip(corner, chunk, strict=True))
