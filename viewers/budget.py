"""Keeping a page small: parts are taken in order while they fit into a budget of bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from viewers.markup import Markup

Item = TypeVar("Item")

SAMPLE_BYTES: Final = 700_000
"""HTML of all samples on a page."""

DUPLICATE_BYTES: Final = 150_000
"""HTML of the sample pairs of one page."""

CELL_BYTES: Final = 200_000
"""HTML of the samples of cells of one page."""

SOURCE_BYTES: Final = 1_200_000
"""HTML of the sections of single sources."""

LINEAGE_BYTES: Final = 300_000
"""HTML of the descriptions of stages."""

ROWS: Final = 60
"""Rows of a table whose length follows the data."""

LONG_ROWS: Final = 300
"""Rows of a table with one for each cell of a mixture, or for each reason of a source: 200 of either are shown."""


def fitting(items: Sequence[Item], render: Callable[[Item], Markup], limit: int) -> list[Markup]:
    """Return the first of `items` as HTML, as many as stay within `limit` bytes of UTF-8; nothing else is rendered."""
    taken: list[Markup] = []
    used = 0
    for item in items:
        part = render(item)
        used += len(part.html.encode())
        if used > limit:
            break
        taken.append(part)
    return taken


def in_rounds(batches: Sequence[Sequence[Item]], render: Callable[[Item], Markup], limit: int) -> list[list[Markup]]:
    """Return for each of `batches` its first items as HTML: the first of each, then the second of each, and so on.

    It ends at the first item that does not fit into `limit` bytes; what comes after is not rendered.
    """
    taken: list[list[Markup]] = [[] for _ in batches]
    used = 0
    for turn in range(max(map(len, batches), default=0)):
        for batch, made in zip(batches, taken, strict=True):
            if turn < len(batch):
                part = render(batch[turn])
                used += len(part.html.encode())
                if used > limit:
                    return taken
                made.append(part)
    return taken
