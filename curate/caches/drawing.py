"""A document with the borders of its tokens drawn into its text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from transforms.tokens import Spans

BORDER: Final = "│"
SHARED: Final = "·"
"""Stands for a token that has no character of its own: a further part of the bytes of the character before."""


def draw_borders(text: str, spans: Spans, names: Callable[[int], str], visible: Callable[[str], str]) -> Iterator[str]:
    """Yield lines of `text`, a border after each token; BOS and EOS stand as they are written.

    `names` gives the text of a control token by its id, `visible` makes hostile characters harmless.
    """
    line, reached = "", 0
    for index, start, end in zip(spans.ids.tolist(), spans.starts.tolist(), spans.ends.tolist(), strict=True):
        piece = names(index) if start == end else text[max(start, reached) : end] or SHARED
        if start < end and start > reached:  # characters that no token stands for, as spaces that are put together
            piece = text[reached:start] + piece
        reached = max(reached, end)
        *whole, rest = piece.split("\n")
        for part in whole:
            yield line + visible(part) + "⏎"
            line = ""
        line += visible(rest) + BORDER
    if line:
        yield line
