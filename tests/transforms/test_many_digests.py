"""Digests of many messages equal those of the BLAKE3 package, message by message."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from blake3 import blake3
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.many_digests import BLOCK, CHUNK, LANES, LONG, digests_of, short_digests


def by_package(messages: list[bytes]) -> list[bytes]:
    return [blake3(message).digest() for message in messages]


def by_kernel(messages: list[bytes], before: bytes = b"") -> list[bytes]:
    bounds = np.cumsum([len(before), *map(len, messages)]).astype(np.int64)
    data = np.frombuffer(before + b"".join(messages), np.uint8)
    return [row.tobytes() for row in digests_of(data, bounds)]


def made(sizes: list[int], seed: int = 1) -> list[bytes]:
    draw = random.Random(seed)
    return [draw.randbytes(size) for size in sizes]


def test_digests_of_every_length_around_blocks_and_chunks_equal_the_package() -> None:
    edges = [k * CHUNK + d for k in range(18) for d in (-1, 0, 1) if k * CHUNK + d >= 0]
    messages = made([*range(2 * BLOCK + 2), *edges, LONG - 1, LONG, LONG + 1, 5 * LONG])
    assert by_kernel(messages) == by_package(messages)


@pytest.mark.parametrize("count", [0, 1, LANES - 1, LANES, LANES + 1, 3 * LANES])
def test_digests_of_any_number_of_messages_equal_the_package(count: int) -> None:
    messages = made([CHUNK + 7] * count)
    assert by_kernel(messages) == by_package(messages)


@settings(max_examples=60)
@given(sizes=st.lists(st.integers(0, 9000), max_size=40), before=st.binary(max_size=9), seed=st.integers(0, 99))
def test_digests_of_messages_anywhere_in_a_buffer_equal_the_package(sizes: list[int], before: bytes, seed: int) -> None:
    messages = made(sizes, seed)
    assert by_kernel(messages, before) == by_package(messages)


def test_short_digests_are_the_first_half() -> None:
    messages = made([3, 3000])
    bounds = np.array([0, 3, 3003], np.int64)
    found = short_digests(np.frombuffer(b"".join(messages), np.uint8), bounds)
    assert found.type == pa.binary(16)
    assert found.to_pylist() == [digest[:16] for digest in by_package(messages)]
