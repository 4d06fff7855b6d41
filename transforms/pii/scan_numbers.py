"""What a number in a text may be: part of an IBAN, an IPv4 address, a payment card or a phone number."""

from __future__ import annotations

from typing import Final

import numpy as np

from transforms.kernels import inlined, kernel
from transforms.pii.scan_tables import ALNUM, CARD, IBAN, INSIDE, IPV4, JOINT, NUMBER, PHONE, SEPARATOR, UPPER, Flags
from transforms.segmentation import Bytes, Int

SHORTEST_CARD: Final = 12
LONGEST_CARD: Final = 19
CHAIN_DIGITS: Final = 20
"""More digits than any phone number has: so far a chain of numbers is counted."""
LEAST_PHONE: Final = 7


@inlined
def digits_end(data: Bytes, high: Int, place: Int, properties: Flags) -> Int:
    """Return the end of the digits from `place` on."""
    while place < high and properties[data[place]] & NUMBER:
        place += 1
    return place


@inlined
def inside_end(data: Bytes, high: Int, place: Int, properties: Flags) -> Int:
    """Return the end of the small letters and digits from `place`, behind a digit, on: nothing starts among them."""
    while place < high and properties[data[place]] & INSIDE:
        place += 1
    return place


@inlined
def number_codes(data: Bytes, low: Int, high: Int, place: Int, end: Int, properties: Flags) -> Int:
    """Return the codes of what the number from `place` to `end` may be, a byte each."""
    previous = data[place - 1] if place > low else np.uint8(0)
    if properties[previous] & ALNUM or previous == 0x5F:
        if end - place < 2 or place - low < 2 or not (properties[previous] & properties[data[place - 2]] & UPPER):
            return np.int64(0)
        return np.int64(IBAN if place - low == 2 or properties[data[place - 3]] & ALNUM == 0 else 0)
    if end < high and properties[data[end]] & ALNUM and data[end] != 0x78:  # x: an extension may follow
        return np.int64(0)
    found = np.int64(IPV4 if end - place <= 3 and _is_dotted(data, high, place, properties) else 0)
    opens = previous == 0x2B or previous == 0x28  # + and (
    is_chained = not opens and bool(
        place - low >= 2 and properties[previous] & SEPARATOR and properties[data[place - 2]] & NUMBER
    )
    if _is_card(data, high, end, end - place, properties, is_chained):
        found = found << 8 | CARD
    if is_chained:
        is_phone = previous == 0x20 and _is_tight(data, high, place, properties)
    else:
        is_date = previous != 0x2B and _is_date(data, high, place, end, properties)
        is_phone = not is_date and _chain_digits(data, high, place, properties) >= LEAST_PHONE
    return found << 8 | PHONE if is_phone else found


@inlined
def _is_dotted(data: Bytes, high: Int, place: Int, properties: Flags) -> bool:
    """Say whether four numbers of one to three digits are joined by full stops from `place` on."""
    for group in range(4):
        digits = 0
        while place < high and properties[data[place]] & NUMBER:
            place += 1
            digits += 1
            if digits > 3:
                return False
        if digits == 0:
            return False
        if group < 3:
            if place == high or data[place] != 0x2E:
                return False
            place += 1
    return True


@inlined
def _is_card(data: Bytes, high: Int, end: Int, size: Int, properties: Flags, is_chained: bool) -> bool:
    """Say whether `size` digits that end at `end` are 12 to 19, or the first four in groups of a card number."""
    if size != 4 or is_chained:
        return bool(SHORTEST_CARD <= size <= LONGEST_CARD)
    if end + 4 >= high or (data[end] != 0x20 and data[end] != 0x2D):
        return False
    following = end + 1
    while following < high and following - end <= 7 and properties[data[following]] & NUMBER:
        following += 1
    digits = following - end - 1
    return bool((digits == 3 or digits == 4 or digits == 6) and following < high and data[following] == data[end])


@kernel
def _is_tight(data: Bytes, high: Int, place: Int, properties: Flags) -> bool:
    """Say whether three, three and four digits are joined by ``-`` or ``.`` from `place` on, perhaps behind ``1-``."""
    if place + 1 < high and data[place] == 0x31 and (data[place + 1] == 0x2D or data[place + 1] == 0x2E):
        place += 2
    if place + 12 > high:
        return False
    for offset in range(12):
        byte = data[place + offset]
        if offset == 3 or offset == 7:
            if byte != 0x2D and byte != 0x2E:
                return False
        elif properties[byte] & NUMBER == 0:
            return False
    return True


@inlined
def _is_date(data: Bytes, high: Int, place: Int, end: Int, properties: Flags) -> bool:
    """Say whether the number starts a date: 2024-01-31 or 31.1.2024, with any of ``-``, ``.`` and ``/``."""
    first = end - place
    if end + 4 >= high or (data[end] != 0x2D and data[end] != 0x2E and data[end] != 0x2F):
        return False
    middle = end + 1
    while middle < high and properties[data[middle]] & NUMBER:
        middle += 1
    if middle - end < 2 or middle - end > 3 or middle + 1 >= high or data[middle] != data[end]:
        return False
    last = middle + 1
    while last < high and properties[data[last]] & NUMBER:
        last += 1
    third = last - middle - 1
    return bool((first == 4 and 1 <= third <= 2) or (first <= 2 and third == 4))


@kernel
def _chain_digits(data: Bytes, high: Int, place: Int, properties: Flags) -> Int:
    """Return how many digits follow from `place` on, at most `CHAIN_DIGITS`, over separators of up to three bytes."""
    digits, gap = np.int64(0), np.int64(0)
    while place < high and digits < CHAIN_DIGITS and gap <= 3:
        byte = data[place]
        if properties[byte] & NUMBER:
            digits += 1
            gap = np.int64(0)
        elif properties[byte] & JOINT:
            gap += 1
        else:
            break
        place += 1
    return digits
