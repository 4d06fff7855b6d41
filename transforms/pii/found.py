"""What a rule finds: the span of one piece of personal data and its kind, and how overlapping ones become one.

Invariants: spans are byte positions of a text, never empty; after `disjoint` they are ordered and do not overlap.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

KINDS: Final = ("secret", "email", "iban", "payment_card", "ip", "phone")
"""The kinds, in the order of precedence where spans overlap; also the names of the fields of `MaskPII`."""

REASONS: Final = {
    "email": "e-mail",
    "phone": "phone number",
    "ip": "ip address",
    "payment_card": "payment card",
    "iban": "iban",
    "secret": "secret",
}
"""The reason of an edit of each kind."""


class Found(NamedTuple):
    """One piece of personal data: bytes [start, end) of a text."""

    start: int
    end: int
    kind: str


def disjoint(found: Iterable[Found]) -> list[Found]:
    """Return `found` in order, overlapping ones as one span of the kind that comes first in `KINDS`.

    The union is masked, so that no part of either stays.
    """
    result: list[Found] = []
    for item in sorted(found):
        if result and item.start < result[-1].end:
            last = result[-1]
            kind = min(last.kind, item.kind, key=KINDS.index)
            result[-1] = Found(last.start, max(last.end, item.end), kind)
        else:
            result.append(item)
    return result
