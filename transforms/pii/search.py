"""Everything personal in one text: candidates verified, overlaps joined, until masking would find nothing more.

A mask changes what its neighbours stand beside, so what was no match before may be one after: ``8.8.8.8`` in
``8.8.8.8-x@example.org`` once the address is masked. So the neighbourhoods of new masks are searched again, in the
text as it then reads, until nothing is new: masking is idempotent by construction.

Invariants: spans are byte positions of the text that came in, ordered, disjoint; no match reaches into a mask (no rule
takes ``<`` or ``>``). Locality, on which searching again rests: a verdict depends on `REACH` bytes before and behind
its trigger at most, but for JSON Web Tokens and private keys, which ask for nothing beside them and are settled in the
first pass.

Cost: a candidate takes 1 to 5 µs; searching again costs as much for the neighbourhoods. Linear in any text.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from transforms.pii import accounts, addresses, phones, secrets
from transforms.pii.found import Found, disjoint
from transforms.pii.scan import scan
from transforms.pii.scan_tables import ASSIGNMENT, CARD, EMAIL, IBAN, IPV4, IPV6, JWT, PHONE, PRIVATE_KEY, TOKEN

REACH: Final = 320
"""Bytes before and behind a trigger on which a verdict depends (an address has 64 + 253, a token 255)."""

Rule = Callable[[bytes, int], Found | None]
Candidate = tuple[int, int]
"""Place and code, as `transforms.pii.scan` gives them."""


def _at(text: bytes, place: int) -> Found | None:
    """Return the password of a URL, or else the e-mail address, around the ``@`` at `place`."""
    is_password, found = secrets.password(text, place)
    return found if is_password else addresses.email(text, place)


RULES: Final[Mapping[int, Rule]] = {
    EMAIL: _at,
    IPV4: addresses.ipv4,
    IPV6: addresses.ipv6,
    PHONE: phones.phone,
    CARD: accounts.card,
    IBAN: accounts.iban,
    TOKEN: secrets.token,
    ASSIGNMENT: secrets.assignment,
    JWT: secrets.web_token,
    PRIVATE_KEY: secrets.private_key,
}


def search(text: bytes, candidates: Sequence[Candidate], masks: Mapping[str, bytes]) -> list[Found]:
    """Return what is personal in `text`, of the kinds that have a mask in `masks`; `candidates` are its own, all."""
    found = _verified(text, candidates, masks)
    fresh: Sequence[Found] = found
    while fresh:
        fresh = disjoint([new for region in _regions(text, found, fresh, masks) for new in region.search(masks)])
        for new in fresh:
            insort(found, new)
    return found


def _verified(text: bytes, candidates: Sequence[Candidate], masks: Mapping[str, bytes]) -> list[Found]:
    verdicts = (RULES[code](text, place) for place, code in candidates)
    return disjoint(found for found in verdicts if found is not None and found.kind in masks)


@dataclass(frozen=True, slots=True)
class _Region:
    """A stretch of the text as it reads masked: `gaps` of the original, by their place here; what is at its heart."""

    text: bytes
    gaps: tuple[Sequence[int], Sequence[int]]
    heart: tuple[int, int]

    def search(self, masks: Mapping[str, bytes]) -> Iterator[Found]:
        """Yield what is found with its trigger in the heart, as spans of the original."""
        data = np.frombuffer(self.text, np.uint8)
        found = scan(data, _bounds(len(data)))
        low, high = self.heart
        candidates = [
            (place, code)
            for place, code in zip(found.places.tolist(), found.codes.tolist(), strict=True)
            if low <= place < high and code not in (JWT, PRIVATE_KEY)
        ]
        for item in _verified(self.text, candidates, masks):
            shift = self._shift(item.start)
            yield Found(item.start + shift, item.end + shift, item.kind)

    def _shift(self, place: int) -> int:
        here, there = self.gaps
        gap = bisect_left(here, place + 1) - 1
        return there[gap] - here[gap]


def _bounds(size: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    bounds = np.array([0, size], np.int64)
    bounds.flags.writeable = False
    return bounds


def _regions(
    text: bytes, found: Sequence[Found], fresh: Sequence[Found], masks: Mapping[str, bytes]
) -> Iterator[_Region]:
    """Yield the neighbourhoods of the `fresh` ones among `found`; those near each other are one."""
    index = 0
    while index < len(fresh):
        last = index
        while last + 1 < len(fresh) and fresh[last + 1].start - fresh[last].end <= 4 * REACH:
            last += 1
        yield _region(text, found, bisect_left(found, fresh[index]), bisect_left(found, fresh[last]), masks)
        index = last + 1


def _region(text: bytes, found: Sequence[Found], first: int, last: int, masks: Mapping[str, bytes]) -> _Region:
    """Return the masked text around found[first:last + 1], with twice `REACH` on both sides where there is so much."""
    low, start = _left_end(found, first, masks)
    pieces, here, there, size = [], [], [], 0
    heart_start = heart_end = 0
    room = 2 * REACH
    for index in range(low, len(found) + 1):
        end = found[index].start if index < len(found) else len(text)
        if index > last:
            end = min(end, start + room)
            room -= end - start
        here.append(size)
        there.append(start)
        pieces.append(text[start:end])
        size += end - start
        if index == first:
            heart_start = size - REACH
        if index == len(found) or room <= 0:
            break
        pieces.append(masks[found[index].kind])
        size += len(pieces[-1])
        if index == last:
            heart_end = size + REACH
        if index > last:
            room = max(room - len(pieces[-1]), 0)
        start = found[index].end
    return _Region(b"".join(pieces), (here, there), (heart_start, heart_end))


def _left_end(found: Sequence[Found], first: int, masks: Mapping[str, bytes]) -> tuple[int, int]:
    """Return where the region before found[first] starts, twice `REACH` back, and the first match behind that."""
    room, low = 2 * REACH, first
    while True:
        end = found[low].start
        start = max(found[low - 1].end if low else 0, end - room)
        room -= end - start
        if room <= 0 or low == 0:
            return low, start
        low -= 1
        room -= len(masks[found[low].kind])
        if room <= 0:
            return low, found[low].start
