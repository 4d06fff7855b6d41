"""Eight bytes of a text at a time, as one 64-bit number: what makes kernels over bytes fast without vector types.

The byte at the lower place is the lower one, whatever the machine's order. A *flag* is the highest bit of a byte; flags
of a chunk mark those of its bytes that have a property. Every function is exact for all bytes (no carry runs from one
byte into the next). See Warren, *Hacker's Delight*, §6-1; Mycroft's test for zero bytes in its exact form.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from transforms.kernels import kernel

Bytes = npt.NDArray[np.uint8]

FLAGS: Final = np.uint64(0x8080808080808080)
REST: Final = np.uint64(0x7F7F7F7F7F7F7F7F)
ONES: Final = np.uint64(0x0101010101010101)
BYTE: Final = np.uint64(8)
"""Bits of a byte, and bytes of a chunk."""


@kernel
def load(data: Bytes, place: np.uint64) -> np.uint64:
    """Return data[place:place + 8], all of which must be there (compilers make one load of it)."""
    value = np.uint64(data[place])
    for byte in range(1, 8):
        value |= np.uint64(data[place + np.uint64(byte)]) << np.uint64(8 * byte)
    return value


@kernel
def load_some(data: Bytes, place: np.uint64, count: np.uint64) -> np.uint64:
    """Return data[place:place + count] for 0 ≤ count < 8, zeros behind; reads up to 8 bytes where they are there."""
    if place + BYTE <= np.uint64(len(data)):
        return load(data, place) & (np.uint64(1) << count * BYTE) - np.uint64(1)
    value = np.uint64(0)
    for byte in range(count):
        value |= np.uint64(data[place + np.uint64(byte)]) << np.uint64(byte) * BYTE
    return value


@kernel
def flag_equal(chunk: np.uint64, byte: np.uint64) -> np.uint64:
    """Return flags of the bytes of `chunk` that equal `byte`."""
    difference = chunk ^ byte * ONES
    return ~((difference & REST) + REST | difference) & FLAGS


@kernel
def first_flag(flags: np.uint64) -> np.int64:
    """Return the place, 0 to 7, of the first byte that is flagged; at least one must be."""
    lowest = flags & (~flags + np.uint64(1))
    return np.int64((lowest >> np.uint64(7)) * np.uint64(0x0001020304050607) >> np.uint64(56))


@kernel
def count_flags(flags: np.uint64) -> np.int64:
    """Return how many flags there are."""
    return np.int64((flags >> np.uint64(7)) * ONES >> np.uint64(56))


@kernel
def gather(flags: np.uint64) -> np.uint64:
    """Return the flags of a chunk as its lowest eight bits, the first byte's as the lowest."""
    return (flags >> np.uint64(7)) * np.uint64(0x0102040810204080) >> np.uint64(56)


@kernel
def flag_word_bytes(chunk: np.uint64) -> np.uint64:
    """Return flags of ASCII letters, digits and underscores."""
    low = chunk & REST
    letter = low | np.uint64(0x2020202020202020)
    letters = (letter + np.uint64(0x1F1F1F1F1F1F1F1F)) ^ (letter + np.uint64(0x0505050505050505))  # 0x80 - "a", - "{"
    digits = (low + np.uint64(0x5050505050505050)) ^ (low + np.uint64(0x4646464646464646))  # 0x80 - "0", - ":"
    return (letters | digits | flag_equal(chunk, np.uint64(0x5F))) & ~chunk & FLAGS


@kernel
def count_starts(chunk: np.uint64) -> np.int64:
    """Return how many bytes of `chunk` begin a character of UTF-8: all but those of the form 10xxxxxx."""
    return np.int64(8) - count_flags(chunk & ~(chunk << np.uint64(1)) & FLAGS)


@kernel
def lower_ascii(chunk: np.uint64) -> np.uint64:
    """Return `chunk` with "A" to "Z" in lower case; all eight bytes must be ASCII."""
    from_a = chunk + np.uint64(0x3F3F3F3F3F3F3F3F)  # 0x80 - "A"
    beyond_z = chunk + np.uint64(0x2525252525252525)  # 0x80 - "Z" - 1
    return chunk | ((from_a ^ beyond_z) & FLAGS) >> np.uint64(2)
