from __future__ import annotations

import numpy as np
import pytest

from transforms.crc32c import POLYNOMIAL, TABLES, crc32c


def checksum(data: bytes) -> int:
    return int(crc32c(np.frombuffer(data, np.uint8), TABLES))


def bit_by_bit(data: bytes) -> int:
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (POLYNOMIAL if value & 1 else 0)
    return value ^ 0xFFFFFFFF


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
    ],
)
def test_checksum_of_published_examples_is_the_published_one(data, value):
    assert checksum(data) == value  # RFC 3720, B.4


def test_checksum_of_any_length_is_that_of_one_bit_after_the_other():
    data = np.random.default_rng(1).integers(0, 256, 70).astype(np.uint8).tobytes()
    for length in range(70):
        assert checksum(data[:length]) == bit_by_bit(data[:length])
