"""Where personal data may be: one compiled pass over the bytes of a batch, before anything is verified.

Invariants: a candidate is a trigger (an ``@``, the first digit of a number, a colon …) whose neighbourhood looks like
one of the kinds; the verdict is given by the modules beside this one, on the same bytes. Every match they can give has
its candidate here. Candidates of a text depend on it only, and come in ascending order.

Cost: one pass with a bounded look around each trigger (a chain of numbers is looked at once, from its start), so linear
in any text; 1 GB/s and more on prose. 17 bytes per candidate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from transforms.kernels import inlined, kernel
from transforms.pii.scan_numbers import digits_end, inside_end, number_codes
from transforms.pii.scan_tables import (
    ALNUM,
    ASSIGNMENT,
    AT,
    CAPITAL,
    COLON,
    DIGIT,
    EMAIL,
    HEX,
    IPV6,
    JOINER,
    JWT,
    LABEL_ENDS,
    PAIRS,
    PRIVATE_KEY,
    PROPERTIES,
    QUOTE,
    SPACE,
    TOKEN,
    TOKENS,
    TRIGGERS,
    Flags,
)
from transforms.segmentation import Bytes, Int, Positions

EXPECTED: Final = 64
"""Bytes of text to a candidate for which there is room at first."""

LEAST_SECRET: Final = 16


@dataclass(frozen=True, slots=True)
class Candidates:
    """Places at which to verify: per candidate its text, its byte position below the text's start, and its code."""

    texts: Positions
    places: Positions
    codes: Bytes


def scan(data: Bytes, bounds: Positions) -> Candidates:
    """Return the candidates of the texts data[bounds[i]:bounds[i + 1]], ascending; both arrays are read-only."""
    room = int(bounds[-1] - bounds[0]) // EXPECTED + 64
    while True:
        texts, places, codes = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.uint8)
        count = _scan(data, bounds, TRIGGERS, PROPERTIES, PAIRS, LABEL_ENDS, texts, places, codes)
        if count <= room:
            return Candidates(texts[:count], places[:count], codes[:count])
        room = int(count)


@kernel
def _scan(
    data: Bytes,
    bounds: Positions,
    triggers: Bytes,
    properties: Flags,
    pairs: Bytes,
    label_ends: Positions,
    texts: Positions,
    places: Positions,
    codes: Bytes,
) -> Int:
    """Write candidates as far as there is room; return how many there are."""
    count = np.int64(0)
    for text in range(len(bounds) - 1):
        low, high = bounds[text], bounds[text + 1]
        place = _next(data, high, low, triggers)
        while place < high:
            here, trigger = place, triggers[data[place]]
            if trigger == DIGIT:
                place = digits_end(data, high, here, properties)
                found = number_codes(data, low, high, here, place, properties)
                place = inside_end(data, high, place, properties)
            else:
                place += 1
                found = _sign(data, low, high, here, trigger, properties, pairs, label_ends)
            while found != 0:
                if count < len(codes):
                    texts[count], places[count], codes[count] = text, here - low, found & 0xFF
                count += 1
                found >>= 8
            place = _next(data, high, place, triggers)
    return count


@inlined
def _next(data: Bytes, high: Int, place: Int, triggers: Bytes) -> Int:
    while place < high and triggers[data[place]] == 0:
        place += 1
    return place


@inlined
def _sign(
    data: Bytes,
    low: Int,
    high: Int,
    place: Int,
    trigger: Int,
    properties: Flags,
    pairs: Bytes,
    label_ends: Positions,
) -> Int:
    """Return the codes of what the character at `place`, no digit, may belong to, a byte each."""
    if trigger == AT:
        return np.int64(EMAIL if _is_at(data, low, high, place, properties) else 0)
    if trigger == JOINER:
        return np.int64(TOKEN if _is_prefix(data, low, high, place, properties, pairs) else 0)
    if trigger == CAPITAL:
        return _capital(data, low, high, place, properties)
    found = np.int64(ASSIGNMENT if _is_assignment(data, low, high, place, properties, label_ends) else 0)
    if trigger == COLON and _is_hextet(data, low, high, place, properties):
        found = found << 8 | IPV6
    return found


@inlined
def _is_at(data: Bytes, low: Int, high: Int, place: Int, properties: Flags) -> bool:
    return bool(place > low and data[place - 1] > 0x20 and place + 1 < high and properties[data[place + 1]] & ALNUM)


@inlined
def _is_hextet(data: Bytes, low: Int, high: Int, place: Int, properties: Flags) -> bool:
    """Say whether the colon follows four hexadecimal digits of the global unicast range (2000::/3)."""
    if place - low < 4 or place + 1 == high or data[place - 4] & 0xFE != 0x32:
        return False
    for before in range(place - 3, place):
        if properties[data[before]] & HEX == 0:
            return False
    return bool(data[place + 1] == 0x3A or properties[data[place + 1]] & HEX)


@inlined
def _is_prefix(data: Bytes, low: Int, high: Int, place: Int, properties: Flags, pairs: Bytes) -> bool:
    """Say whether ``_`` or ``-`` ends a prefix of a token, and eight characters of one follow."""
    if place - low < 2 or place + 8 >= high:
        return False
    bit = np.uint8(1) if data[place] == 0x5F else np.uint8(2)
    if pairs[np.int64(data[place - 2]) << 8 | np.int64(data[place - 1])] & bit == 0:
        return False
    token = True
    for ahead in range(place + 1, place + 9):
        token &= properties[data[ahead]] & TOKENS != 0
    return token


@inlined
def _capital(data: Bytes, low: Int, high: Int, place: Int, properties: Flags) -> Int:
    """Return the code of what an A, B, E, J or S may belong to: AKIA…, AIza…, -----BEGIN or END, eyJ…, SG.…"""
    byte = data[place]
    if byte == 0x4A:  # J
        return np.int64(JWT if place - low >= 2 and data[place - 1] == 0x79 and data[place - 2] == 0x65 else 0)
    if byte == 0x42 or byte == 0x45:  # B, E
        if place - low < 5:
            return np.int64(0)
        for before in range(place - 5, place):
            if data[before] != 0x2D:
                return np.int64(0)
        return np.int64(PRIVATE_KEY)
    if place + LEAST_SECRET >= high or (place > low and properties[data[place - 1]] & ALNUM):
        return np.int64(0)
    if byte == 0x53:  # S
        return np.int64(TOKEN if data[place + 1] == 0x47 and data[place + 2] == 0x2E else 0)
    second, third, fourth = data[place + 1], data[place + 2], data[place + 3]
    is_amazon = fourth == 0x41 and (third == 0x49 or (third == 0x43 and second == 0x43))
    is_google = second == 0x49 and third == 0x7A and fourth == 0x61
    return np.int64(TOKEN if is_amazon or is_google else 0)


@kernel
def _is_assignment(data: Bytes, low: Int, high: Int, place: Int, properties: Flags, label_ends: Positions) -> bool:
    """Say whether a word such as token or password stands before ``:`` or ``=``, and 16 characters in one behind."""
    before = place - 1
    while before > low and place - before < 4 and properties[data[before]] & (SPACE | QUOTE):
        before -= 1
    if before - low < 2:
        return False
    end = np.int64(0)
    for letter in range(before - 2, before + 1):
        end = end << 8 | np.int64(data[letter] | 0x20)
    known = False
    for label in label_ends:
        known |= label == end
    if not known:
        return False
    after = place + 1
    while after < high and after - place < 6 and (properties[data[after]] & (SPACE | QUOTE) or data[after] == 0x3D):
        after += 1
    if after < high and data[after] == 0x3E:  # =>
        after += 1
        while after < high and after - place < 8 and properties[data[after]] & (SPACE | QUOTE):
            after += 1
    if after + LEAST_SECRET > high:
        return False
    for character in range(after, after + LEAST_SECRET):
        byte = data[character]
        if byte <= 0x20 or byte >= 0x7F or byte == 0x3C or byte == 0x3E:
            return False
    return True
