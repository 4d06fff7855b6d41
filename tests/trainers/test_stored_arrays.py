import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainers import stored_arrays
from trainers.stored_arrays import CheckpointError, StoredArray, chunk_shape, describe, write_arrays

VALUES = np.random.Generator(np.random.Philox(3)).normal(size=(5, 7, 6)).astype(np.float32)


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """The values in chunks of at most 100 bytes."""
    monkeypatch.setattr(stored_arrays, "CHUNK_BYTES", 100)
    (entry,) = write_arrays(tmp_path, {"values": VALUES})
    return StoredArray(tmp_path, entry)


def test_any_part_of_an_array_is_read_as_it_was_stored(stored):
    assert len(stored.entry["chunks"]) > 8
    rng = np.random.Generator(np.random.Philox(4))
    for _ in range(40):
        ends = [sorted(rng.integers(0, size + 1, 2).tolist()) for size in VALUES.shape]
        index = tuple(slice(*pair) if pair[1] - pair[0] else slice(None) for pair in ends)
        assert np.array_equal(stored[index], VALUES[index])
    assert np.array_equal(np.asarray(stored), VALUES)


def test_damage_is_told_to_those_who_read_the_chunk_and_to_nobody_else(stored):
    path = stored.folder / "values" / "c.0.0.0"
    content = path.read_bytes()
    path.write_bytes(b"\x00" * len(content))
    step = chunk_shape(VALUES.shape, 4)[0]
    assert np.array_equal(stored[step:, :, :], VALUES[step:])
    with pytest.raises(CheckpointError, match=r"values, chunk 0,.*Remove the folder of that step"):
        stored[0:1, :, :]


@given(st.lists(st.integers(0, 40), max_size=3), st.integers(1, 8))
def test_chunks_are_small_and_cover_the_array(shape, itemsize):
    before, stored_arrays.CHUNK_BYTES = stored_arrays.CHUNK_BYTES, 64
    try:
        chunk = chunk_shape(shape, itemsize)
        assert int(np.prod(chunk)) * itemsize <= 64
        assert all(1 <= part <= max(size, 1) for part, size in zip(chunk, shape, strict=True))
    finally:
        stored_arrays.CHUNK_BYTES = before


def test_digest_of_an_array_does_not_depend_on_its_chunks(stored, monkeypatch):
    monkeypatch.setattr(stored_arrays, "CHUNK_BYTES", 1 << 26)
    assert describe({"values": VALUES})[0]["digest"] == stored.entry["digest"]
