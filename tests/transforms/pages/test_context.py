"""What the second stage is told of the blocks around: the main run, groups, lists and tables, shared words."""

from __future__ import annotations

import numpy as np
import pytest

from transforms.pages.choosing import choose
from transforms.pages.context import CONTAINER, CONTEXT, GROUPS, OUTSIDE, RUN, WORDS, fill_context
from transforms.pages.engine import parsed
from transforms.pages.forest import CERTAIN
from transforms.pages.model import FIRST, block_rows
from transforms.pages.surroundings import MOST_OF_BLOCK, MOST_WORDS

PAGE = (
    b"<nav><ul class=menu><li>Home page<li>News page</ul></nav>"
    b"<div><p>Glaciers retreat slowly while farmers watch<p>Farmers measure glaciers every summer since childhood</div>"
    b"<ul class=more><li>Football results yesterday<li>Glaciers quiz</ul>"
)
FOUND = np.array([0.1, 0.1, 0.9, 0.8, 0.4, 0.2])


def context_of(html: bytes, found: np.ndarray) -> np.ndarray:
    rows, around = block_rows(parsed(html))
    assert len(rows) == len(found)
    fill_context(around, np.round(found * CERTAIN).astype(np.int32), rows[:, FIRST:])
    return rows[:, FIRST:]


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return context_of(PAGE, FOUND)


def test_main_run_is_where_words_are_likely(rows: np.ndarray) -> None:
    assert rows.shape == (6, CONTEXT)
    assert rows[:, RUN].tolist() == [-1, -1, 0, 0, 1, 1]
    assert rows[:, RUN + 1].tolist() == [2, 1, 0, 0, 1, 2]
    assert rows[:, RUN + 5].tolist() == [-1, -1, 0, 1024 * 6 // 13, -1, -1]
    assert context_of(PAGE, FOUND / 4)[:, RUN].tolist() == [-2] * 6


def test_group_is_that_of_the_others_of_the_same_path_or_siblings(rows: np.ndarray) -> None:
    shares = rows[:, GROUPS] / CERTAIN
    assert shares[2:4] == pytest.approx([0.8, 0.9], abs=1e-4)
    assert shares[4:] == pytest.approx([0.2, 0.4], abs=1e-4)
    assert context_of(b"<p>alone", np.array([0.5]))[0, GROUPS] == -1


def test_list_is_told_with_what_stands_before_and_after(rows: np.ndarray) -> None:
    inside, before, after, size = (rows[:, CONTAINER + place] for place in range(4))
    assert inside[4] / CERTAIN == pytest.approx((3 * 0.4 + 2 * 0.2) / 5, abs=1e-4)
    assert before[4] / CERTAIN == pytest.approx((2 * 0.1 + 6 * 0.9 + 7 * 0.8) / 15, abs=1e-4)
    assert (after[4], before[0], size[4], size[2]) == (-1, -1, 2, 1)
    assert rows[0, OUTSIDE] == rows[1, CONTAINER + 2] or rows[0, OUTSIDE] > 0


def test_shared_words_tell_a_teaser_from_the_story(rows: np.ndarray) -> None:
    count, shared, main, mean = (rows[:, WORDS + place] for place in range(4))
    assert count[3] > count[4] > 0
    assert shared[4] == 0 and mean[4] == -1  # nobody else speaks of football
    assert shared[3] == main[3] == 1024 * 2 // 7
    assert mean[3] / CERTAIN == pytest.approx(((0.9 + 0.2) / 2 + 0.9) / 2, abs=1e-4)


def test_words_are_bounded_by_block_and_page() -> None:
    words = [f"word{chr(97 + at // 676)}{chr(97 + at // 26 % 26)}{chr(97 + at % 26)}" for at in range(10_000)]
    html = "".join(f"<p>{' '.join(words[at : at + 100])}" for at in range(0, 10_000, 100)) * 6
    _, around = block_rows(parsed(html.encode()))
    assert around.words.size == MOST_WORDS
    assert np.diff(around.ends, prepend=0).max() == MOST_OF_BLOCK


def test_article_takes_what_is_near_the_mean_of_its_likely_blocks() -> None:
    html = b"<meta property=og:type content=article><body>" + b"".join(b"<p>a b c d e %d" % at for at in range(4))
    page = parsed(html)
    found = np.round(np.array([0.95, 0.97, 0.62, 0.4]) * CERTAIN).astype(np.int32)
    assert choose(page, found).blocks.tolist() == [True, True, True, False]  # 7/10 of .847 is .593
    found = np.round(np.array([0.98, 0.98, 0.58, 0.4]) * CERTAIN).astype(np.int32)
    assert choose(page, found).blocks.tolist() == [True, True, False, False]
    found = np.round(np.array([0.55, 0.52, 0.4, 0.3]) * CERTAIN).astype(np.int32)
    assert choose(page, found).blocks.tolist() == [True, True, False, False]
