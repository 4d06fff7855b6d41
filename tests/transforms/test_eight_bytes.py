from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms import eight_bytes

chunks = st.binary(min_size=8, max_size=8)


def number(chunk: bytes) -> np.uint64:
    return np.uint64(int.from_bytes(chunk, "little"))


def flags_of(marked: list[bool]) -> int:
    return sum(0x80 << 8 * place for place, is_marked in enumerate(marked) if is_marked)


@given(chunks, st.integers(0, 255))
@settings(max_examples=300)
def test_flags_of_any_chunk_equal_plain_comparison(chunk: bytes, byte: int) -> None:
    for wanted in (byte, chunk[3]):
        marked = [value == wanted for value in chunk]
        found = np.uint64(eight_bytes.flag_equal(number(chunk), np.uint64(wanted)))
        assert found == flags_of(marked)
        assert eight_bytes.count_flags(found) == sum(marked)
        if any(marked):
            assert eight_bytes.first_flag(found) == marked.index(True)


@given(chunks)
@settings(max_examples=300)
def test_characters_of_any_chunk_are_counted_by_their_first_bytes(chunk: bytes) -> None:
    assert eight_bytes.count_starts(number(chunk)) == sum(byte & 0xC0 != 0x80 for byte in chunk)


@given(st.binary(min_size=8, max_size=20), st.integers(0, 20), st.integers(0, 7))
@settings(max_examples=300)
def test_loaded_bytes_are_those_of_the_buffer(raw: bytes, place: int, count: int) -> None:
    data = np.frombuffer(raw, np.uint8)
    place = min(place, len(raw) - count)
    assert eight_bytes.load_some(data, np.uint64(place), np.uint64(count)) == number(raw[place : place + count])
    place = min(place, len(raw) - 8)
    assert eight_bytes.load(data, np.uint64(place)) == number(raw[place : place + 8])


def test_lower_case_of_every_ascii_byte_is_that_of_python() -> None:
    for byte in range(128):
        chunk = bytes([byte, 0x41, 0x7F, byte, 0, 0x5A, 0x40, byte])
        assert eight_bytes.lower_ascii(number(chunk)) == number(chunk.lower())


@given(chunks)
@settings(max_examples=300)
def test_gathered_flags_of_any_chunk_are_its_bits(chunk: bytes) -> None:
    flags = np.uint64(eight_bytes.flag_word_bytes(number(chunk)))
    plain = [chr(byte).isalnum() or byte == 0x5F if byte < 0x80 else False for byte in chunk]
    assert flags == flags_of(plain)
    assert eight_bytes.gather(flags) == sum(1 << place for place, is_marked in enumerate(plain) if is_marked)
