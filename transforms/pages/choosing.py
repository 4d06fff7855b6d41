"""Which blocks make a page's main text, from their probabilities: those that give the best F1 to expect.

With blocks in falling order of probability, taking the first k has the expected F1 of 2 Σ p w / (Σ w + Σ_all p w), w
being words; half the best of these is the threshold that reaches it (Lewis 1995, "Evaluating and optimizing autonomous
text classification systems", for F1 over sets). Pages that declare themselves articles take blocks of seven tenths of
the mean probability of those of one half and more, at least one half: where the story is sure, what is merely likely is
a teaser or a comment, and many such blocks are wrong together. Text that was taken before is not taken again.
Cost: a sort of the blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from transforms.kernels import kernel
from transforms.pages.characters import slot
from transforms.pages.compiled import Int
from transforms.pages.forest import CERTAIN, Int32s
from transforms.pages.head import ARTICLE, LD_ARTICLE
from transforms.pages.layout import even_out, fill_groups
from transforms.pages.page import Page

ARTICLE_SHARE: Final = 7
"""Tenths of the mean probability of an article's likely blocks that a block needs."""
REPEATED_WORDS: Final = 6
"""Fewest words of a block that is dropped where its text came before."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which blocks are taken, and how they stand to each other.

    Attributes:
        blocks: per block whether it is taken.
        found: per block its probability in 1/65536, evened out over rows of tables and `pre`.
        rows: per block the element that is its row of a table, -1 for none.
        pres: per block the `pre` around it, -1 for none.
    """

    blocks: npt.NDArray[np.bool_]
    found: Int32s
    rows: Int32s
    pres: Int32s


def choose(page: Page, found: Int32s) -> Choice:
    """Return the choice for blocks of these probabilities, which are evened out in place."""
    rows, pres = np.empty(found.size, np.int32), np.empty(found.size, np.int32)
    fill_groups(page, rows, pres)
    even_out(page, found, rows, pres)
    chosen = np.zeros(found.size, np.bool_)
    _choose(page, found, np.argsort(-found, kind="stable"), chosen)
    return Choice(chosen, found, rows, pres)


@kernel
def _threshold(page: Page, found: Int32s, order: npt.NDArray[np.int64]) -> Int:
    """Return half the best expected F1, in 1/65536."""
    total = np.int64(0)
    for at in range(found.size):
        total += np.int64(found[at]) * page.blocks[at].words
    hits, words, best = np.int64(0), np.int64(0), np.int64(0)
    for at in order:
        hits += np.int64(found[at]) * page.blocks[at].words
        words += page.blocks[at].words
        best = max(best, (hits << 10) // max(np.int64(1), (words * CERTAIN + total) >> 6))
    return best


@kernel
def _article_threshold(page: Page, found: Int32s) -> Int:
    """Return seven tenths of the mean, by words, of the probabilities of one half and more; at least one half."""
    total, words = np.int64(0), np.int64(0)
    for at in range(found.size):
        if 2 * found[at] >= CERTAIN:
            size = max(np.int64(1), np.int64(page.blocks[at].words))
            total += size * found[at]
            words += size
    return max(np.int64(CERTAIN // 2), ARTICLE_SHARE * total // (10 * max(np.int64(1), words)))


@kernel
def _choose(page: Page, found: Int32s, order: npt.NDArray[np.int64], chosen: npt.NDArray[np.bool_]) -> None:
    if found.size == 0:
        return
    most = np.int64(found[order[0]])
    is_article = page.state[0].declared & (ARTICLE | LD_ARTICLE) != 0 and 2 * most >= CERTAIN
    threshold = _article_threshold(page, found) if is_article else min(most, _threshold(page, found, order))
    size = np.int64(16)
    while size < 2 * found.size:
        size *= 2
    texts = np.zeros((size, 2), np.uint64)
    for at in range(found.size):
        if found[at] < threshold:
            continue
        key = max(page.blocks[at].hash, np.uint64(1))
        place = slot(texts, key)
        if page.blocks[at].words >= REPEATED_WORDS:
            if texts[place, 0] == key:
                continue
            texts[place, 0] = key
        chosen[at] = True
