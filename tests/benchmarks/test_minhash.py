"""The checks of MinHash's hash family hold for ours and fail for families that are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from benchmarks import minhash_family
from benchmarks.minhash_family import bias_and_spread, checks_of, correlations, pairs_at
from transforms.minhash import MinHash, shingle_sets, signatures

Values = npt.NDArray[np.uint32]


def test_our_family_is_one_and_its_pairs_have_the_similarity_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(minhash_family.PAIRS, "small", 300)
    assert all(holds for _, _, holds in checks_of("small").values())
    exact, left, right = pairs_at(0.75, 3)
    sets = [shingle_sets(column, 1) for column in (left, right)]
    a, b = (set(found.values[: found.offsets[1]].tolist()) for found in sets)
    assert len(a & b) / len(a | b) == exact == 0.75


def test_functions_that_repeat_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def repeated(text: pa.LargeStringArray, minhash: MinHash) -> Values:
        values = signatures(text, minhash)
        return np.concatenate([values[:, :60], values[:, :60]], axis=1)

    monkeypatch.setattr(minhash_family, "signatures", repeated)
    square, largest = correlations(0.5, 300)
    assert square > 1.07 and largest > 5.5
    assert bias_and_spread(0.5, 300)[1] > 1.1


def test_values_of_too_few_bits_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def coarse(text: pa.LargeStringArray, minhash: MinHash) -> Any:
        return signatures(text, minhash) >> np.uint32(24)

    monkeypatch.setattr(minhash_family, "signatures", coarse)
    assert bias_and_spread(0.5, 300)[0] > 4
