"""What an edit changed: two stretches of text as pieces, each the same on both sides or changed.

Myers' greedy algorithm ("An O(ND) difference algorithm and its variations", Algorithmica 1, 1986) over code points, or
over words where two documents are compared, on what remains between the common beginning and end. Invariants: the
pieces of a side join to its text; cost is bounded by the most changes that are told apart, squared, plus the length
times it; beyond, all between the common ends is one change.

Excerpts of edits are windows cut after the same number of code points, so one side may show text that the other has
beyond its window: where a window is full, what hangs over at the end is not called a change.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

MOST_CHANGES: Final = 200
"""Code points cut and inserted that are told apart."""

MOST_WORDS: Final = 2 * MOST_CHANGES
"""Words that are: two documents differ in more than an edit, and each has some hundred words."""

ISLAND: Final = 2
"""An equal stretch of at most so many code points between two changes is shown as part of them."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of one side; `changed` tells whether the other side has it too."""

    text: str
    changed: bool


TOKENS: Final = re.compile("[0-9A-Za-z]+|[ \t\n]+|.", re.DOTALL)
"""What is compared of texts by words: ASCII words, white space, and every other character."""

Pieces = tuple[Piece, ...]
_Block = tuple[int, int, int]  # begin before, begin after, length: an equal stretch


def compare(before: str, after: str, window: int) -> tuple[Pieces, Pieces]:
    """Return the pieces of both sides, each of which was cut after `window` code points."""
    open_end = max(len(before), len(after)) >= window
    start = _common_start(before, after)
    stop = 0 if open_end else _common_stop(before, after, start)
    left, right = before[start : len(before) - stop], after[start : len(after) - stop]
    blocks, rest = _blocks(left, right, open_end)
    shifted = [(0, 0, start), *((a + start, b + start, size) for a, b, size in blocks)]
    if stop:
        shifted.append((len(before) - stop, len(after) - stop, stop))
    shifted = _without_islands(_joined(shifted))
    ends = (rest[0] + start, rest[1] + start) if open_end else (len(before), len(after))
    return (
        _pieces(before, [(a, size) for a, _, size in shifted], ends[0]),
        _pieces(after, [(b, size) for _, b, size in shifted], ends[1]),
    )


def compare_words(before: str, after: str) -> tuple[Pieces, Pieces]:
    """Return the pieces of both sides, word by word: for texts that are alike, not one an edit of the other."""
    left, right = TOKENS.findall(before), TOKENS.findall(after)
    start = _common_start(left, right)
    stop = _common_stop(left, right, start)
    blocks, _ = _blocks(left[start : len(left) - stop], right[start : len(right) - stop], False, MOST_WORDS)
    found = [(0, 0, start), *((a + start, b + start, size) for a, b, size in blocks)]
    found.append((len(left) - stop, len(right) - stop, stop))
    equal = _without_islands(_joined(found))
    return (
        _pieces(left, [(a, size) for a, _, size in equal], len(left)),
        _pieces(right, [(b, size) for _, b, size in equal], len(right)),
    )


def _common_start(before: Sequence[str], after: Sequence[str]) -> int:
    limit = min(len(before), len(after))
    return next((i for i in range(limit) if before[i] != after[i]), limit)


def _common_stop(before: Sequence[str], after: Sequence[str], start: int) -> int:
    limit = min(len(before), len(after)) - start
    return next((i for i in range(limit) if before[-1 - i] != after[-1 - i]), limit)


def _blocks(
    left: Sequence[str], right: Sequence[str], open_end: bool, most: int = MOST_CHANGES
) -> tuple[list[_Block], tuple[int, int]]:
    """Return equal stretches in order, and where the comparison ended on both sides."""
    furthest = {1: 0}
    trace: list[dict[int, int]] = []
    for changes in range(most + 1):
        trace.append(dict(furthest))
        for diagonal in range(-changes, changes + 1, 2):
            x = _step(furthest, diagonal, changes)
            y = x - diagonal
            while x < len(left) and y < len(right) and left[x] == right[y]:
                x, y = x + 1, y + 1
            furthest[diagonal] = x
            ends = x >= len(left), y >= len(right)
            if any(ends) if open_end else all(ends):
                return _walk_back(trace, x, y), (x, y)
    return [], (len(left), len(right))


def _is_insertion(furthest: dict[int, int], diagonal: int, changes: int) -> bool:
    lower, upper = furthest.get(diagonal - 1, -1), furthest.get(diagonal + 1, -1)
    return diagonal == -changes or (diagonal != changes and lower < upper)


def _step(furthest: dict[int, int], diagonal: int, changes: int) -> int:
    if _is_insertion(furthest, diagonal, changes):
        return furthest[diagonal + 1]
    return furthest[diagonal - 1] + 1


def _walk_back(trace: list[dict[int, int]], x: int, y: int) -> list[_Block]:
    blocks = []
    for changes in range(len(trace) - 1, -1, -1):
        furthest, diagonal = trace[changes], x - y
        begin = _step(furthest, diagonal, changes)
        blocks.append((begin, begin - diagonal, x - begin))
        is_insertion = _is_insertion(furthest, diagonal, changes)
        x, y = (begin, begin - diagonal - 1) if is_insertion else (begin - 1, begin - diagonal)
    return blocks[::-1]


def _joined(blocks: list[_Block]) -> list[_Block]:
    joined: list[_Block] = []
    for a, b, size in blocks:
        if joined and joined[-1][0] + joined[-1][2] == a and joined[-1][1] + joined[-1][2] == b:
            joined[-1] = (joined[-1][0], joined[-1][1], joined[-1][2] + size)
        elif size:
            joined.append((a, b, size))
    return joined


def _without_islands(blocks: list[_Block]) -> list[_Block]:
    return [block for i, block in enumerate(blocks) if block[2] > ISLAND or i in (0, len(blocks) - 1)]


def _pieces(side: Sequence[str], equal: list[tuple[int, int]], end: int) -> Pieces:
    pieces = []
    place = 0
    for begin, size in equal:
        pieces.append(Piece("".join(side[place:begin]), True))
        pieces.append(Piece("".join(side[begin : begin + size]), False))
        place = begin + size
    pieces.append(Piece("".join(side[place : max(end, place)]), True))
    pieces.append(Piece("".join(side[max(end, place) :]), False))
    return tuple(piece for piece in pieces if piece.text)
