from __future__ import annotations

import numpy as np

from transforms.byte_blocks import BLOCK, bits_between, count_bits
from transforms.kernels import kernel


@kernel
def _letters(data: np.typing.NDArray[np.uint8], place: np.int64) -> np.uint64:
    return bits_between(data, place, 0x20, 0x61, 26)


@kernel
def _high(data: np.typing.NDArray[np.uint8], place: np.int64) -> np.uint64:
    return bits_between(data, place, 0, 0x80, 0x80)


@kernel
def _count(bits: np.uint64) -> np.int64:
    return count_bits(bits)


def test_bits_of_a_block_are_those_of_its_bytes() -> None:
    data = np.random.default_rng(1).permutation(np.arange(256, dtype=np.uint8))
    for place in range(0, 256 - BLOCK, 5):
        block = data[place : place + BLOCK].tolist()
        letters = sum(1 << i for i, byte in enumerate(block) if byte < 0x80 and chr(byte).isalpha())
        assert int(_letters(data, np.int64(place))) == letters
        assert int(_high(data, np.int64(place))) == sum(1 << i for i, byte in enumerate(block) if byte >= 0x80)
        assert _count(np.uint64(letters)) == letters.bit_count()
