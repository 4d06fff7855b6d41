"""A map puts what resembles each other near to each other, the same on any machine."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
from blake3 import blake3
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.embedding import HashedTfidf
from transforms.flat_map import SIDE, flat_map
from transforms.spherical_kmeans import Rows, unit_rows

SUBJECTS = ("sail harbour anchor tide mast keel wave gull", "flour oven yeast crust dough salt knead loaf")
GOLDEN = "697bfb3f52363f0c"


def texts(count: int) -> list[str]:
    draw = random.Random(4)
    return [" ".join(draw.choices(SUBJECTS[n % 2].split(), k=30)) for n in range(count)]


def rows_of(some: list[str]) -> Rows:
    return unit_rows(HashedTfidf(64).embed(pa.array(some, pa.large_string())))


def test_map_keeps_subjects_together_and_is_the_same_everywhere() -> None:
    places = flat_map(rows_of(texts(200)))
    distance = ((places[:, None, :] - places[None]) ** 2).sum(-1) + np.eye(200, dtype=np.int64) * SIDE**2 * 4
    nearest = distance.argmin(axis=1)
    assert (nearest % 2 == np.arange(200) % 2).mean() > 0.95
    assert blake3(places.astype("<i8").tobytes()).hexdigest(8) == GOLDEN


@given(st.lists(st.lists(st.integers(-127, 127), min_size=8, max_size=8), max_size=40))
@settings(max_examples=30)
def test_map_of_any_rows_fills_the_square_and_repeats(vectors: list[list[int]]) -> None:
    rows = unit_rows(np.array(vectors, np.int8).reshape(-1, 8))
    places = flat_map(rows)
    assert places.shape == (len(vectors), 2)
    assert ((places >= 0) & (places < SIDE)).all()
    assert np.array_equal(places, flat_map(rows))
    if len(vectors) > 1:
        assert len(set(places[:, 0].tolist())) == len(set(places[:, 1].tolist())) == len(vectors)


def test_map_of_nothing_one_and_equal_rows() -> None:
    assert flat_map(rows_of([])).shape == (0, 2)
    assert flat_map(rows_of(["one"])).tolist() == [[SIDE // 2, SIDE // 2]]
    assert len(flat_map(rows_of(["same words here"] * 5 + [""] * 5))) == 10
