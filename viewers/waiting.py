"""What a long page keeps for later: pieces of panels in `noscript`, which cost a browser next to nothing to load.

A browser without script reads them as ever. With it they are one text each until the page's script makes elements of
them (`viewers/scripts/waiting.js`): when nothing else is to do, when an address leads there, before a search, before
printing. Most of the time until a page can be used is that of making elements: 57,000 of them take four times as long
as the 8,000 of the beginning.

Invariants: the same elements in the same order with and without script; a page of up to `AT_ONCE` bytes waits for
nothing. Cost: one pass over the page.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from viewers.markup import Markup, element
from viewers.panels.panel import Panel

AT_ONCE: Final = 400_000
"""Bytes of panels that are made into elements while the page loads."""

_PIECE: Final = re.compile(r"(?=<section )")
"""Panels hold their sections side by side, so what stands between two beginnings is whole."""


def sections(panels: Sequence[Panel], at_once: int = AT_ONCE) -> list[Markup]:
    """Return the sections of `panels`; what comes after the first `at_once` bytes waits."""
    found, before = [], 0
    for panel in panels:
        pieces = []
        for piece in filter(None, _PIECE.split(panel.anchored().html)):
            before += len(piece.encode())
            pieces.append(Markup(piece) if before <= at_once else element("noscript", Markup(piece)))
        found.append(panel.markup(pieces))
    return found
