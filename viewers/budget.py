"""Keeping a page small: parts are taken in order while they fit into a budget of bytes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from viewers.markup import Markup

SAMPLE_BYTES: Final = 700_000
"""HTML of all samples on a page."""

DUPLICATE_BYTES: Final = 150_000
"""HTML of the sample pairs of one page."""

SOURCE_BYTES: Final = 500_000
"""HTML of the sections of single sources."""

LINEAGE_BYTES: Final = 300_000
"""HTML of the descriptions of stages."""

ROWS: Final = 60
"""Rows of a table whose length follows the data."""


def fitting(parts: Iterable[Markup], limit: int) -> tuple[list[Markup], int]:
    """Return the first of `parts` whose UTF-8 bytes together stay within `limit`, and how many were left out."""
    taken: list[Markup] = []
    used = 0
    left = 0
    for part in parts:
        size = len(part.html.encode())
        if left or used + size > limit:
            left += 1
        else:
            taken.append(part)
            used += size
    return taken, left
