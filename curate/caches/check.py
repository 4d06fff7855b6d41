"""Checking a cache: bytes, content, order, and the contract of tokens. Cost: one pass over its bytes and tokens."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from curate.accounting.statistics import text_sum
from curate.caches.arrays import block_digests
from curate.caches.description import NAME, content_of
from curate.caches.errors import CacheError
from curate.caches.layout import UNTRAINED
from transforms.token_order import order_of

if TYPE_CHECKING:
    from curate.caches.cache import TokenCache


def problems_of(cache: TokenCache) -> list[str]:
    """Return what is wrong with an opened cache, in words; empty when nothing is."""
    found = list(_files(cache))
    try:
        found += [*_offsets(cache), *_tokens(cache), *_order(cache)]
    except CacheError as error:
        found.append(str(error))
    return [f"{cache.store.url('')}: {problem}" for problem in dict.fromkeys(found)]


def _files(cache: TokenCache) -> Iterator[str]:
    listed = cache.description.files
    for name, entry in listed.items():
        if (found := cache.store.digest(name)) != entry["digest"]:
            yield f"{name} has the digest {found}, written was {entry['digest']}: the file is damaged"
    for name in cache.store.names():
        if name != NAME and name not in listed:
            yield f"{name} is not listed in {NAME}"


def _offsets(cache: TokenCache) -> Iterator[str]:
    starts = cache.starts
    if starts[0] != 0 or starts[-1] != cache.tokens or (np.diff(starts) < 0).any():
        yield "offsets do not rise from 0 to the number of tokens"


def _tokens(cache: TokenCache) -> Iterator[str]:
    """Check the content digest, and that each document has its markers and no other control token."""
    description, starts = cache.description, cache.starts
    forbidden = np.zeros(cache.vocabulary, np.bool_)
    forbidden[list(description.forbidden)] = True
    markers = (cache.bos is not None) + (cache.eos is not None)
    block, found, wrong = description.blocks["tokens"], 0, bool((np.diff(starts) < markers).any())
    digests, masks = [], []
    for begin in range(0, cache.tokens, block):
        tokens = cache.read(begin, min(begin + block, cache.tokens))
        digests += block_digests(tokens, block)
        if (untrained := cache.read_untrained([(begin, begin + len(tokens))])) is not None:
            masks += block_digests(untrained[0], block)
        if tokens.max() >= cache.vocabulary:
            yield f"tokens {begin:,} and after hold ids that the vocabulary lacks"
            return
        found += int(forbidden[tokens].sum())
        first, last = np.searchsorted(starts, (begin, begin + len(tokens)))
        if cache.bos is not None:
            wrong |= bool((tokens[starts[first:last] - begin] != cache.bos).any())
        first, last = np.searchsorted(starts[1:], (begin, begin + len(tokens)), side="right")
        if cache.eos is not None:
            wrong |= bool((tokens[starts[1:][first:last] - 1 - begin] != cache.eos).any())
    if wrong or found != markers * cache.documents:
        yield f"documents lack BOS ({cache.bos}) or EOS ({cache.eos}), or hold other control tokens"
    offsets = starts.astype(np.uint64)
    blocks = {"tokens": digests, "offsets": block_digests(offsets, description.blocks["offsets"])}
    blocks |= {UNTRAINED: masks} if UNTRAINED in description.blocks else {}
    if content_of(description.dtype, cache.tokens, cache.documents, blocks) != cache.digest:
        yield "its tokens and offsets do not have its content digest"


def _order(cache: TokenCache) -> Iterator[str]:
    digests = [row.tobytes() for row in cache.text_digests()]
    ids = [row.tobytes() for row in cache.ids(0, cache.documents)]
    orders = zip(map(order_of, digests), ids, strict=True)
    if not all(left < right for left, right in pairwise(orders)):
        yield "its documents are not in the order of the format"
    if text_sum(digests) != cache.description.statistics.get("multiset"):
        yield "its text digests are not those that were counted"
