"""The order of hashes is numpy's stable one, for evenly spread values and for all others."""

from __future__ import annotations

import numpy as np
import pytest

from transforms.hash_order import FEW, stable_order

DRAW = np.random.default_rng(5)
SPREAD = DRAW.integers(0, 1 << 64, 2 * FEW, np.uint64)


@pytest.mark.parametrize(
    "values",
    [
        SPREAD,
        SPREAD[:3],
        np.concatenate([SPREAD, SPREAD, SPREAD[:100]]),  # ties keep the order of arrival
        SPREAD >> np.uint64(40),  # all in one bucket
        np.sort(SPREAD)[::-1].copy(),
        np.where(DRAW.integers(0, 4, len(SPREAD)) > 0, SPREAD, SPREAD[0]),  # one of them very often
        np.full(FEW, 2**64 - 1, np.uint64),
        np.zeros(0, np.uint64),
    ],
    ids=["spread", "few", "twice", "narrow", "descending", "frequent", "equal", "none"],
)
def test_stable_order_of_any_values_is_that_of_numpy(values: np.ndarray) -> None:
    assert stable_order(values).tolist() == np.argsort(values, kind="stable").tolist()
