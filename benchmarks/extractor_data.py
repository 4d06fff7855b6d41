r"""Pages with gold text for the block engine: read, cut into blocks, labelled by aligning blocks with the gold text.

A block's label is the share of its words that a longest common subsequence of page and gold text takes. Words are
runs of `\w`, lower case, ideographs and kana one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from transforms.decoding import decode
from transforms.kernels import kernel
from transforms.pages.engine import parsed
from transforms.pages.model import block_rows
from transforms.pages.surroundings import Surroundings
from transforms.pages.words import MOST_BUCKETS, block_buckets

DATA: Final = Path(__file__).parents[2] / "shared" / "data" / "extraction"
SETS: Final = ("aeb", "wcxb_dev", "wcxb_dev2")
MOST_GOLD: Final = 15_000
MOST_WORDS: Final = 60_000

_WORD: Final = re.compile(r"\w+")
_SINGLE: Final = re.compile("[\u3040-\u9fff]")
_SECOND_LEVEL: Final = frozenset({"ac", "co", "com", "edu", "gov", "net", "org"})

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class GoldPage:
    """A page of a gold set."""

    where: str
    number: int
    url: str
    kind: str
    html: bytes
    gold: str

    @property
    def domain(self) -> str:
        """The registered domain, by a rule of thumb; pages without address are their own."""
        if not self.url:
            return f"{self.where} {self.number}"
        parts = urlsplit(self.url if "//" in self.url else f"//{self.url}").netloc.split(".")
        return ".".join(parts[-3:] if len(parts) > 2 and parts[-2] in _SECOND_LEVEL else parts[-2:])


@dataclass(frozen=True, slots=True)
class Example:
    """A page made ready for training.

    Attributes:
        rows: features per block, columns of words' score and context still 0.
        around: what stands around each block.
        buckets: buckets of all blocks' words, one block's after the other's, `ends` their ends.
        label: share of a block's words that stand in the gold text.
        weight: of a block in training: its share of the gold text, less on pages with much else.
    """

    page: GoldPage
    rows: Array
    around: Surroundings
    buckets: Array
    ends: Array
    label: Array
    weight: Array


def read_gold(names: tuple[str, ...] = SETS) -> Iterator[GoldPage]:
    """Yield the pages of the sets."""
    for name in names:
        rows = pq.read_table(DATA / f"{name}.parquet", columns=["url", "page_type", "html", "gold_text"]).to_pylist()
        for number, row in enumerate(rows):
            html = row["html"] if isinstance(row["html"], bytes) else row["html"].encode("utf-8", "replace")
            yield GoldPage(name, number, row["url"] or "", row["page_type"] or "article", html, row["gold_text"] or "")


def content_of(html: bytes) -> bytes:
    """Return a page as UTF-8: as it is where it is valid, else decoded as `transforms.decoding` says."""
    try:
        html.decode("utf-8")
    except UnicodeDecodeError:
        return decode(html, None).text.encode()
    return html


def has_blocks(page: GoldPage) -> bool:
    """Return whether the engine finds any text in the page."""
    return bool(parsed(content_of(page.html)).state[0]["blocks"])


def words_of(text: str) -> list[str]:
    """Return the words of a text that labels compare."""
    return _WORD.findall(_SINGLE.sub(lambda found: f" {found[0]} ", text.lower()))


@kernel
def _rows_of(masks: Array, columns: Array, rows: Array) -> None:
    """Set row i to the complement of the LCS bit vector after word i (Hyyrö 2004, bit-parallel LCS)."""
    size = masks.shape[1]
    state = np.full(size, 0xFFFFFFFFFFFFFFFF, np.uint64)
    for at in range(columns.size):
        carry = np.uint64(0)
        for part in range(size):
            old = state[part]
            both = old & masks[columns[at], part]
            added = old + both + carry
            carry = np.uint64(1) if added < old or (carry and added == old) else np.uint64(0)
            state[part] = added | (old - both)
        rows[at] = state


@kernel
def _matched(rows: Array, gold: int, found: Array) -> None:
    row, column = rows.shape[0], gold
    while row > 0 and column > 0:
        part, bit = (column - 1) >> 6, np.uint64((column - 1) & 63)
        if (rows[row - 1, part] >> bit) & np.uint64(1):
            column -= 1
        else:
            row -= 1
            if row == 0 or (rows[row - 1, part] >> bit) & np.uint64(1):
                found[row] = True
                column -= 1


def aligned(page: list[str], gold: list[str]) -> Array:
    """Return for each word of `page` whether a longest common subsequence with `gold` takes it."""
    gold = gold[:MOST_GOLD]
    ids = {word: number for number, word in enumerate(dict.fromkeys(gold))}
    masks = np.zeros((len(ids) + 1, len(gold) // 64 + 1), np.uint64)
    for place, word in enumerate(gold):
        masks[ids[word], place >> 6] |= np.uint64(1 << (place & 63))
    known = [place for place, word in enumerate(page[:MOST_WORDS]) if word in ids]
    rows = np.zeros((len(known), masks.shape[1]), np.uint64)
    _rows_of(masks, np.array([ids[page[place]] for place in known], np.int64), rows)
    taken = np.zeros(len(known), np.bool_)
    _matched(rows, np.int64(len(gold)), taken)
    found = np.zeros(len(page), np.bool_)
    found[known] = taken
    return found


def example_of(page: GoldPage) -> Example | None:
    """Return a page made ready; None where it has no blocks."""
    arrays = parsed(content_of(page.html))
    count = int(arrays.state[0]["blocks"])
    if count == 0:
        return None
    rows, around = block_rows(arrays)
    found, sizes, blocks = np.zeros((count, MOST_BUCKETS), np.int32), [], []
    for at in range(count):
        sizes.append(int(block_buckets(arrays, np.int64(at), found[at])))
        block = arrays.blocks[at]
        blocks.append(words_of(arrays.text[block["start"] : block["end"]].tobytes().decode("utf-8", "replace")))
    buckets = np.concatenate([found[at, :size] for at, size in enumerate(sizes)])
    lengths = np.array([len(block) for block in blocks])
    gold = words_of(page.gold)
    taken = aligned([word for block in blocks for word in block], gold)
    sums = np.concatenate([[0], np.cumsum(taken)])
    ends = np.cumsum(lengths)
    label = (sums[ends] - sums[ends - lengths]) / np.maximum(1, lengths)
    weight = np.minimum(lengths / max(60, len(gold)), 1)
    weight = weight / max(1, weight.sum() / 2.5) + 0.002
    return Example(page, rows, around, buckets, np.cumsum(sizes), label, weight)
