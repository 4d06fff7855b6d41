"""Writing a cache outside of a run: from documents that lie elsewhere as tokens, in any order.

What is known of each document is held in memory (56 bytes each); tokens are read zarr shard by zarr shard, in the order
of the format. Files are created, never changed, and `cache.json` comes last, as in a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from curate.accounting.statistics import Statistics, length_bin, merge, text_sum
from curate.caches.arrays import block_digests, shard_bytes
from curate.caches.cache import TokenCache
from curate.caches.counting import longest_documents, used_ids
from curate.caches.description import NAME, Description, content_of
from curate.caches.errors import CacheError
from curate.caches.layout import ARRAYS, GROUP, LAYOUT, UNTRAINED, ArraySpec, Layout
from curate.store import Store, json_line
from transforms.token_order import order_of

Counts = npt.NDArray[np.int64]
Digests = npt.NDArray[np.uint8]


class Source(Protocol):
    """Documents as tokens, by number."""

    def gather(self, documents: Counts) -> npt.NDArray[Any]:
        """Return the tokens of `documents` one after the other."""
        ...

    def masks(self, documents: Counts) -> npt.NDArray[np.uint8] | None:
        """Return for each of these tokens 1 if it is no target, else 0; None where all are."""
        ...


@dataclass(frozen=True, slots=True)
class Documents:
    """What is known of documents, a row for each, in any order.

    Attributes:
        source: which source each lies in, and `place` its number there.
        lengths: in tokens.
        ids, texts: 16 bytes each; `texts` are text digests.
        origin: two numbers each.
    """

    source: Counts
    place: Counts
    lengths: Counts
    ids: Digests
    texts: Digests
    origin: npt.NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.lengths)

    def ordered(self) -> Documents:
        """Return them in the order of the format.

        Raises:
            CacheError: two have one id and one text.
        """
        keys = np.empty((len(self), 32), np.uint8)
        for row, text in enumerate(self.texts):
            keys[row, :16] = np.frombuffer(order_of(text.tobytes()), np.uint8)
        keys[:, 16:] = self.ids
        names = [row.tobytes() for row in keys]
        order = np.array(sorted(range(len(self)), key=names.__getitem__), np.int64)
        for left, right in pairwise(order.tolist()):
            if names[left] == names[right]:
                raise CacheError(f"document {self.ids[left].tobytes().hex()} is there twice: leave one of them out")
        return Documents(
            self.source[order], self.place[order], self.lengths[order], self.ids[order], self.texts[order],
            self.origin[order],
        )  # fmt: skip


def write_cache(
    folder: Store,
    like: Description,
    documents: Documents,
    sources: Sequence[Source],
    layout: Layout = LAYOUT,
) -> TokenCache:
    """Write the cache of `documents` into `folder`, described as `like` but for what follows from them; open it.

    Raises:
        CacheError: `folder` holds a cache, or two documents are the same.
    """
    if (folder.names() and folder.exists(NAME)) or not len(documents):
        raise CacheError(f"{folder.url('')} holds a cache, or there are no documents for one: give an empty folder")
    found = documents.ordered()
    offsets = np.concatenate([[0], np.cumsum(found.lengths)])
    tokens = int(offsets[-1])
    masked = UNTRAINED in like.arrays
    names = (*ARRAYS, UNTRAINED) if masked else ARRAYS
    specs = {name: layout.array(name, like.dtype, tokens, len(found)) for name in names}
    values: dict[str, npt.NDArray[Any]] = {
        "offsets": offsets.astype(np.uint64), "ids": found.ids, "origin": found.origin, "texts": found.texts,
    }  # fmt: skip
    files: dict[str, Any] = {}
    used: Statistics = {"bits": "0"}
    blocks: dict[str, list[str]] = {"tokens": [], "offsets": [], **({UNTRAINED: []} if masked else {})}
    for name, spec in specs.items():
        _publish(folder, files, f"{name}/zarr.json", json_line(spec.metadata()))
        for shard in range(spec.shards):
            start, stop = spec.rows_of(shard)
            rows = values[name][start:stop] if name in values else _by_token(found, offsets, sources, spec, shard)
            _publish(folder, files, f"{name}/{spec.file(shard)}", shard_bytes(spec, shard, rows))
            used = merge(used, used_ids(rows)) if name == "tokens" else used
            if name in blocks:
                blocks[name] += block_digests(rows, layout.block(name))
    _publish(folder, files, "zarr.json", json_line(GROUP))
    described = _described(like, found, tokens, specs, files, blocks, layout)
    described = replace(described, statistics={**described.statistics, "used": used})
    folder.publish_bytes(described.to_bytes(), NAME)
    return TokenCache.open(folder)


def counted(statistics: Mapping[str, Any], documents: Documents) -> dict[str, Any]:
    """Return statistics with what follows from `documents`: how many, tokens, lengths, texts."""
    lengths: dict[str, int] = {}
    for length in documents.lengths.tolist():
        name = length_bin(length)
        lengths[name] = lengths.get(name, 0) + 1
    multiset = text_sum(row.tobytes() for row in documents.texts)
    sums = {"documents": len(documents), "tokens": int(documents.lengths.sum())}
    longest = longest_documents(documents.ids, documents.lengths)
    return {**statistics, **sums, "lengths": lengths, "multiset": multiset, "longest": longest}


def _described(
    like: Description, found: Documents, tokens: int, specs: Mapping[str, ArraySpec], files: dict[str, Any],
    blocks: Mapping[str, Sequence[str]], layout: Layout,
) -> Description:  # fmt: skip
    return replace(
        like, tokens=tokens, documents=len(found), content=content_of(like.dtype, tokens, len(found), blocks),
        blocks={name: layout.block(name) for name in blocks}, files=files,
        arrays={name: spec.lengths for name, spec in specs.items()},
        statistics=counted(like.statistics, found),
    )  # fmt: skip


def _publish(folder: Store, files: dict[str, Any], name: str, content: bytes) -> None:
    files[name] = {"bytes": len(content), "digest": folder.publish_bytes(content, name)}


def _by_token(
    found: Documents, offsets: Counts, sources: Sequence[Source], spec: ArraySpec, shard: int
) -> npt.NDArray[Any]:
    """Return one zarr shard of tokens, or of their masks, from the documents that reach into it."""
    start, stop = spec.rows_of(shard)
    first = int(np.searchsorted(offsets, start, side="right")) - 1
    last = int(np.searchsorted(offsets, stop, side="left"))
    base, values = int(offsets[first]), np.empty(int(offsets[last] - offsets[first]), spec.dtype)
    for number, source in enumerate(sources):
        mine = first + np.flatnonzero(found.source[first:last] == number)
        if not len(mine):
            continue
        places, at = found.place[mine], 0
        tokens = source.masks(places) if spec.name == UNTRAINED else source.gather(places)
        if tokens is None:
            tokens = np.zeros(int(found.lengths[mine].sum()), np.uint8)
        for row in mine.tolist():
            length = int(found.lengths[row])
            begin = int(offsets[row]) - base
            values[begin : begin + length] = tokens[at : at + length]
            at += length
    return values[start - base : stop - base]


@dataclass(frozen=True, slots=True)
class FromCache:
    """The documents of a cache, asked for in its order."""

    cache: TokenCache

    def gather(self, documents: Counts) -> npt.NDArray[Any]:
        """Return the tokens of `documents`, which ascend: one read per run of neighbours."""
        return np.concatenate([self.cache.read(start, stop) for start, stop in self._runs(documents)])

    def masks(self, documents: Counts) -> npt.NDArray[np.uint8] | None:
        """Return for each of these tokens 1 if it is no target, else 0; None where all are."""
        found = self.cache.read_untrained(self._runs(documents))
        return None if found is None else np.concatenate(found)

    def _runs(self, documents: Counts) -> list[tuple[int, int]]:
        starts = self.cache.starts
        runs = np.split(documents, np.flatnonzero(np.diff(documents) != 1) + 1)
        return [(int(starts[run[0]]), int(starts[run[-1] + 1])) for run in runs]
