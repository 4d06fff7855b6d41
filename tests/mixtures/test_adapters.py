from __future__ import annotations

import pickle

import numpy as np
import pytest

from mixtures import Chunks, Loader, Mixture, Phase
from mixtures.adapters import ARRAYS, BatchSource, SequenceSource, jax_batches
from tests.mixtures.memory import caches_of

CACHES = caches_of(web=[40, 1, 0, 7] * 30, code=[7, 93, 300, 55])
PHASE = Phase("main", 16 * 64, {"web": 3, "code": 1})
LOADER = Loader(Mixture(None, PHASE, sequences=Chunks(16), repeats=None, batch=8).compile(CACHES), CACHES)


def same(found, batch, rows=slice(None)):
    return all(np.array_equal(np.asarray(found[name]), getattr(batch, name)[rows]) for name in ARRAYS)


def test_sequences_are_the_rows_of_batches_in_the_order_of_the_plan():
    source = SequenceSource(LOADER)
    assert len(source) == 64 and LOADER.digest in repr(source)
    for sequence in range(64):
        step, row = divmod(sequence, 8)
        assert same(source[sequence], LOADER.batch(step), row)
    with pytest.raises(IndexError):
        source[64]


def test_parts_of_batches_make_up_the_batch():
    parts = [BatchSource(LOADER, process, 4) for process in range(4)]
    for step in range(len(parts[0])):
        batch = LOADER.batch(step)
        assert same(BatchSource(LOADER)[step], batch)
        assert all(same(part[step], batch, slice(2 * at, 2 * at + 2)) for at, part in enumerate(parts))


def test_sources_that_were_pickled_give_the_same():
    for source in (SequenceSource(LOADER), BatchSource(LOADER, 1, 2)):
        again = pickle.loads(pickle.dumps(source))
        assert all(np.array_equal(again[3][name], source[3][name]) for name in ARRAYS) and repr(again) == repr(source)


def test_batches_on_devices_hold_what_the_loader_gives():
    jax = pytest.importorskip("jax")
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("data",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    steps = 0
    for step, found in enumerate(jax_batches(LOADER, sharding, 2, 6), 2):
        assert same(found, LOADER.batch(step)) and found["tokens"].sharding == sharding
        steps += 1
    assert steps == 4
