"""How good the text of a page is: F1 as each gold set defines it, elements kept, glued words, bootstrap over pages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from benchmarks.extractor_tree import element_texts, tree_blocks

KINDS: Final = frozenset({"pre", "td", "li", "math"})
LEAST_CHARACTERS: Final = 20
"""Shortest text of an element that is looked for in gold and output: shorter ones stand there by chance."""

_WORD: Final = re.compile(r"\w+")
_MATH: Final = re.compile(r"\$[^$]*\$")
Floats = npt.NDArray[np.float64]


def shingles(text: str) -> Counter[tuple[str, ...]]:
    """Return the multiset of 4-token shingles of `text`."""
    words = _WORD.findall(text)
    return Counter(tuple(words[i : i + 4]) for i in range(len(words) - 3))


def shares(gold: Sequence[str], found: Sequence[str]) -> Floats:
    """Return precision and recall of each page over shingles, as the article extraction benchmark defines them."""
    rows = []
    for wanted, got in zip(map(shingles, gold), map(shingles, found), strict=True):
        both = (wanted & got).total()
        rows.append((both / got.total() if got else not wanted, both / wanted.total() if wanted else not got))
    return np.array(rows, np.float64)


def f1_of(rows: Floats) -> float:
    """Return F1 of the means of precision and recall."""
    precision, recall = rows.mean(axis=0).tolist()
    return float(2 * precision * recall / (precision + recall))


def word_f1(gold: str, found: str) -> float:
    """Return F1 over multisets of lower-case words, as WCXB defines it."""
    wanted, got = Counter(_WORD.findall(gold.lower())), Counter(_WORD.findall(found.lower()))
    if not wanted or not got:
        return float(not wanted and not got)
    return 2 * (wanted & got).total() / (wanted.total() + got.total())


def bootstrap(ours: Floats, theirs: Floats, measure: Callable[[Floats], Any], draws: int = 2000) -> tuple[float, float]:
    """Return the 2.5th and 97.5th percentile of measure(ours) - measure(theirs) over pages drawn with replacement."""
    random = np.random.RandomState(7)
    drawn = [random.randint(0, len(ours), len(ours)) for _ in range(draws)]
    low, high = np.percentile([measure(ours[rows]) - measure(theirs[rows]) for rows in drawn], [2.5, 97.5]).tolist()
    return low, high


def _folded(text: str) -> str:
    return " ".join(text.split())


def kept_elements(html: str, gold: str, found: str) -> Counter[tuple[str, bool]]:
    """Count, by name, elements whose text stands in the gold text, and whether `found` has it.

    A `pre` is kept if its lines stand one after the other in `found`, ends of lines aside.
    """
    counts: Counter[tuple[str, bool]] = Counter()
    in_gold, in_found = _folded(gold), _folded(found)
    lines = "\n".join(line.rstrip() for line in found.split("\n"))
    for name, text in element_texts(html, KINDS):
        folded = _folded(text)
        if len(folded) < LEAST_CHARACTERS or folded not in in_gold:
            continue
        is_kept = folded in in_found
        if name == "pre":
            is_kept = "\n".join(line.rstrip() for line in text.strip().replace("\r", "").split("\n")) in lines
        counts[name, is_kept] += 1
    return counts


def glued_words(html: str, found: str) -> list[str]:
    """Return the words of `found` that the page has only as two words next to each other."""
    blocks = " ".join(tree_blocks(html))
    words = _WORD.findall(blocks)
    known = set(words)
    pairs = {first + second for first, second in pairwise(words)}
    return [word for word in set(_WORD.findall(_MATH.sub(" ", found))) if word not in known and word in pairs]
