"""Samples: for each (kind, transform, reason) the documents with the lowest digest of their text; of cells `PER_CELL`.

The choice depends on the texts alone, so it is the same for any layout, and the samples of a dataset are the lowest of
its shards' samples. Excerpts pass the PII mask; a text of up to `WHOLE` code points is shown whole, a longer one by its
first `HEAD` and last `TAIL`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from blake3 import blake3

from curate.accounting.ledger import SAMPLES
from transforms.duplicates import leading_bits
from transforms.outcome import rows
from transforms.pii import mask_excerpt

PER_REASON: Final = 8
CELL: Final = "cell"
PER_CELL: Final = 2
MOST_CELLS: Final = 512
"""Cells that have samples: those with the lowest digests of their names, as of a union these are among its parts'."""
WHOLE: Final = 1600
HEAD: Final = 1200
TAIL: Final = 300
MARGIN: Final = 400  # read beyond the cut, so that an address across it is masked whole
AROUND: Final = 120  # code points shown before and after an edit

_Key = tuple[str, str, str]


def excerpt(text: str) -> str:
    """Return `text` masked, and shortened by the rule in the module docstring."""
    if len(text) <= WHOLE:
        return mask_excerpt(text)
    return _joined(text[: HEAD + MARGIN], text[-TAIL - MARGIN :])


def excerpt_of(text: pa.LargeStringScalar, characters: int) -> str:
    """Return `excerpt` of a text with this many code points, of which no more is decoded than is looked at."""
    content = memoryview(text.as_buffer())
    if characters <= WHOLE:
        return excerpt(str(content, "utf-8"))
    head = str(content[: 4 * (HEAD + MARGIN)], "utf-8", "ignore")[: HEAD + MARGIN]  # a code point has up to 4 bytes
    tail = str(content[-4 * (TAIL + MARGIN) :], "utf-8", "ignore")[-TAIL - MARGIN :]
    return _joined(head, tail)


def _joined(head: str, tail: str) -> str:
    return f"{mask_excerpt(head)[:HEAD]} […] {mask_excerpt(tail)[-TAIL:]}"


def edit_excerpt(before: str, after: str) -> tuple[str, str]:
    """Return the stretch around the first difference in both texts, masked; at most `HEAD` code points each."""
    limit = min(len(before), len(after))
    start = 0
    while start < limit and before[start : start + HEAD] == after[start : start + HEAD]:
        start += HEAD
    start = next((i for i in range(start, limit) if before[i] != after[i]), limit)
    begin = max(0, start - AROUND)
    return tuple(mask_excerpt(text[begin : begin + HEAD + MARGIN])[:HEAD] for text in (before, after))  # type: ignore[return-value]


def _most(key: _Key) -> int:
    return PER_CELL if key[0] == CELL else PER_REASON


def lowest_cells(keys: Sequence[_Key]) -> Sequence[_Key]:
    """Return those of `keys`, all of cells, that may have samples: the `MOST_CELLS` with the lowest digests."""
    if len(keys) <= MOST_CELLS:
        return keys
    return sorted(keys, key=lambda key: blake3("\0".join(key).encode()).digest(16))[:MOST_CELLS]


class Samples:
    """The lowest entries of each (kind, transform, reason) seen so far: `PER_REASON`, of cells `PER_CELL`."""

    def __init__(self) -> None:
        self._held: dict[_Key, dict[tuple[bytes, bytes], Mapping[str, Any]]] = {}
        self._highest: dict[_Key, tuple[bytes, bytes]] = {}

    def wants(self, key: _Key, text_digest: bytes, identity: bytes) -> bool:
        """Return whether `offer` would keep this document: ask before making an excerpt."""
        held = self._held.get(key)
        return held is None or len(held) < _most(key) or (text_digest, identity) < self._highest[key]

    def candidates(self, key: _Key, digests: pa.FixedSizeBinaryArray) -> list[int]:
        """Return the few of these documents that `wants` can say yes to, whatever their ids: ask it for each."""
        if not len(digests):
            return []
        leading, most = leading_bits(digests), _most(key)
        bound = np.partition(leading, most - 1)[most - 1] if len(leading) > most else leading.max()
        if len(self._held.get(key, ())) == most:
            bound = min(bound, np.uint64(int.from_bytes(self._highest[key][0][:8], "big")))
        return [int(row) for row in np.flatnonzero(leading <= bound)]

    def offer(self, row: Mapping[str, Any]) -> None:
        """Keep `row` (columns of `SAMPLES`) if its text digest is among the lowest."""
        key = (row["kind"], row["transform"], row["reason"])
        held = self._held.setdefault(key, {})
        held[row["text_digest"], row["id"]] = row
        if len(held) > _most(key):
            del held[max(held)]
        self._highest[key] = max(held)
        if key[0] == CELL and len(self._held) > 2 * MOST_CELLS:
            self._forget()

    def merge(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Offer all rows of a table of schema `SAMPLES`."""
        for row in batch.to_pylist():
            if self.wants((row["kind"], row["transform"], row["reason"]), row["text_digest"], row["id"]):
                self.offer(row)

    def batch(self) -> pa.RecordBatch:
        """Return what is held, ordered by (kind, transform, reason, text digest, id)."""
        self._forget()
        return rows(SAMPLES, _ordered(self._held))

    def _forget(self) -> None:
        """Let go of cells that are not among the lowest: they never will be."""
        cells = [key for key in self._held if key[0] == CELL]
        for key in set(cells).difference(lowest_cells(cells)):
            del self._held[key], self._highest[key]


def _ordered(held: Mapping[_Key, Mapping[tuple[bytes, bytes], Mapping[str, Any]]]) -> Iterable[Mapping[str, Any]]:
    for key in sorted(held):
        for entry in sorted(held[key]):
            yield held[key][entry]
