"""Text of documents as it may stand in a page: nothing invisible, nothing that changes what stands beside it.

Invariants: control characters, bidirectional controls, invisible format characters, line and paragraph separators,
noncharacters and lone surrogates come out as their code point ("U+202E"); line feed and tab stay. The ranges are our
own, so the page does not depend on a Python version. Joiners (U+200C, U+200D) stay: Persian, Hindi and emoji need them.
Cost: one pass over the text.
"""

from __future__ import annotations

import re
from typing import Final

HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ud800-\udfff\ufdd0-\ufdef\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U000e0000-\U000e0fff]+"
)
"""A run of characters that a reader could not see, or that reorder what they stand in."""

ELLIPSIS: Final = "…"
NAME_LENGTH: Final = 120
"""Code points shown of a name that comes from data: a licence, a host, a reason."""


def code_points(run: str) -> str:
    """Return the names of the characters of `run`: "U+0000", "U+0000 ×12", "U+202E U+0041"."""
    names: list[tuple[str, int]] = []
    for character in run:
        name = f"U+{ord(character):04X}"
        if names and names[-1][0] == name:
            names[-1] = (name, names[-1][1] + 1)
        else:
            names.append((name, 1))
    return " ".join(name if count == 1 else f"{name} ×{count}" for name, count in names)


def plain(text: str) -> str:
    """Return `text` on one line with hidden characters named in brackets, for attributes and titles."""
    return HIDDEN.sub(lambda run: f"[{code_points(run[0])}]", text).replace("\n", " ").replace("\t", " ")


def shortened(text: str, limit: int = NAME_LENGTH) -> str:
    """Return `text`, cut after `limit` code points with an ellipsis where it is longer."""
    return text if len(text) <= limit else text[:limit] + ELLIPSIS
