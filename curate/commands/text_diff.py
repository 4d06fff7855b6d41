"""What differs between two texts, word by word, for a terminal: bounded in time and in length, whatever the texts.

Equal words at both ends are set aside; of what is left at most `WORDS` words of each are compared. Words that occur
often are no anchors (difflib's autojunk), so repetitive texts cost no more than others: below a second or two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final

from curate.visible import visible

WORDS: Final = 1000
"""Words of each text that are compared, after what both begin with."""

AROUND: Final = 6
"""Equal words shown on each side of a difference."""

CHANGES: Final = 40
"""Differences that are shown."""

LENGTH: Final = 400
"""Code points shown of one stretch of words."""

LOOKED_AT: Final = 200_000
"""Code points of each text that are looked at."""


def word_diff(before: str, after: str) -> Iterator[str]:
    """Yield lines: words around differences, `[-words of before only-]` and `{+words of after only+}`.

    Control and direction characters are escapes.
    """
    left, right = before[:LOOKED_AT].split(), after[:LOOKED_AT].split()
    first = _common(left, right)
    last = _common(left[first:][::-1], right[first:][::-1])
    left_middle, right_middle = left[first : len(left) - last], right[first : len(right) - last]
    if not left_middle and not right_middle:
        yield "the words are the same" if before != after else "the texts are the same"
    else:
        yield from _changes(left[:first], left_middle, right_middle, left[len(left) - last :])
    if max(len(left_middle), len(right_middle)) > WORDS or max(len(before), len(after)) > LOOKED_AT:
        yield f"… only the first {WORDS:,} words after what both begin with are compared"


def _common(left: Sequence[str], right: Sequence[str]) -> int:
    """Return how many words both begin with."""
    return next((n for n, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))


def _changes(begin: Sequence[str], left: Sequence[str], right: Sequence[str], end: Sequence[str]) -> Iterator[str]:
    """Yield a line for each stretch that differs, between what both begin and end with."""
    left, right = list(left[:WORDS]), list(right[:WORDS])
    shown = 0
    for tag, i, i_end, j, j_end in SequenceMatcher(None, left, right).get_opcodes():
        if tag == "equal":
            continue
        shown += 1
        if shown > CHANGES:
            yield "… more differences follow"
            return
        before, after = [*begin[-AROUND:], *left[:i]][-AROUND:], [*left[i_end:], *end[:AROUND]][:AROUND]
        cut = f"[-{_words(left[i:i_end])}-]" if i < i_end else ""
        put = f"{{+{_words(right[j:j_end])}+}}" if j < j_end else ""
        yield " ".join(part for part in (_words(before), cut, put, _words(after)) if part)


def _words(words: Sequence[str]) -> str:
    return visible(" ".join(words), LENGTH)
