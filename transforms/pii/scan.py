"""Where personal data may be: one compiled pass over the bytes of a batch, before anything is verified.

Invariants: a candidate is a trigger (an ``@``, the first digit of a number, a colon …) whose neighbourhood looks like
one of the kinds; the verdict is given by the modules beside this one, on the same bytes. Every match they can give has
its candidate here. Candidates of a text depend on it only, and come in ascending order.

Cost: one pass with a bounded look around each trigger (a chain of numbers is looked at once, from its start), so linear
in any text; 1 GB/s and more on prose. 17 bytes per candidate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from transforms.kernels import inlined, kernel
from transforms.segmentation import Bytes, Int, Positions

Flags = npt.NDArray[np.uint16]
Table = TypeVar("Table", Bytes, Flags)

EMAIL: Final = 1
IPV4: Final = 2
IPV6: Final = 3
PHONE: Final = 4
CARD: Final = 5
IBAN: Final = 6
TOKEN: Final = 7
ASSIGNMENT: Final = 8
JWT: Final = 9
PRIVATE_KEY: Final = 10

# What a byte may trigger.
DIGIT: Final = 1
AT: Final = 2
COLON: Final = 3
EQUALS: Final = 4
JOINER: Final = 5
CAPITAL: Final = 6

# Properties of bytes, as bits.
ALNUM: Final = 1
HEX: Final = 2
NUMBER: Final = 4
SEPARATOR: Final = 8
SPACE: Final = 16
QUOTE: Final = 32
TOKENS: Final = 64
UPPER: Final = 128
JOINT: Final = 256
INSIDE: Final = 512

SHORTEST_CARD: Final = 12
LONGEST_CARD: Final = 19
CHAIN_DIGITS: Final = 20
"""More digits than any phone number has: so far a chain of numbers is counted."""

EXPECTED: Final = 64
"""Bytes of text to a candidate for which there is room at first."""

LEAST_PHONE: Final = 7
LEAST_SECRET: Final = 16


def _triggers() -> Bytes:
    table = np.zeros(256, np.uint8)
    for characters, trigger in (
        (b"0123456789", DIGIT),
        (b"@", AT),
        (b":", COLON),
        (b"=", EQUALS),
        (b"_-", JOINER),
        (b"ABEJS", CAPITAL),
    ):
        table[list(characters)] = trigger
    return _frozen(table)


def _properties() -> Flags:
    table = np.zeros(256, np.uint16)
    digits, hexadecimal, capitals = b"0123456789", b"0123456789ABCDEFabcdef", bytes(range(65, 91))
    letters = capitals + capitals.lower()
    for characters, bit in (
        (letters + digits, ALNUM),
        (hexadecimal, HEX),
        (digits, NUMBER),
        (b" -./()", SEPARATOR),
        (b" \t", SPACE),
        (b"\"'`]", QUOTE),
        (letters + digits + b"_-", TOKENS),
        (capitals, UPPER),
        (capitals.lower() + digits, INSIDE),
        (b" -./()" + "\u00a0\u2010\u2011\u202f".encode(), JOINT),
    ):
        table[list(characters)] |= bit
    return _frozen(table)


def _pairs() -> Bytes:
    """Return which two bytes before ``_`` or ``-`` end the prefix of a published kind of token."""
    table = np.zeros(1 << 16, np.uint8)
    before = {
        "_": ("hp", "ho", "hu", "hs", "hr", "ub", "pm", "hf", "sk", "rk", "ec"),
        "-": ("at", "sk", "pi", "xb", "xa", "xp", "xr", "xs", "xe", "pp", "PX"),
    }
    for bit, pairs in enumerate(before.values()):
        for pair in pairs:
            table[ord(pair[0]) << 8 | ord(pair[1])] |= 1 << bit
    return _frozen(table)


def _frozen(table: Table) -> Table:
    table.flags.writeable = False
    return table


LABEL_ENDS: Final = np.array(
    [int.from_bytes(end.encode(), "big") for end in ("ken", "ret", "ord", "swd", "pwd", "key", "ial", "als", "ass")],
    np.int64,
)
"""The last three letters of what a secret is assigned to: token, secret, password, passwd, pwd, key, credential(s)."""
LABEL_ENDS.flags.writeable = False

TRIGGERS: Final = _triggers()
PROPERTIES: Final = _properties()
PAIRS: Final = _pairs()


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
                place = _digits_end(data, high, here, properties)
                found = _number(data, low, high, here, place, properties)
                place = _inside_end(data, high, place, properties)
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


@kernel
def _grown(array: Positions) -> Positions:
    larger = np.empty(2 * len(array), np.int64)
    larger[: len(array)] = array
    return larger


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


@inlined
def _digits_end(data: Bytes, high: Int, place: Int, properties: Flags) -> Int:
    while place < high and properties[data[place]] & NUMBER:
        place += 1
    return place


@inlined
def _inside_end(data: Bytes, high: Int, place: Int, properties: Flags) -> Int:
    """Return the end of the small letters and digits from `place`, behind a digit, on: nothing starts among them."""
    while place < high and properties[data[place]] & INSIDE:
        place += 1
    return place


@inlined
def _number(data: Bytes, low: Int, high: Int, place: Int, end: Int, properties: Flags) -> Int:
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
