"""A cache extended by new documents: a new generation, beside the old one, which stays what it is.

Its content is that of a cache of all documents made at once: they lie in the order of the format, with the same content
digest. What was encoded is not encoded again: tokens are copied, shard by shard. A plan compiled for the old generation
goes on reading the old one; a new plan takes the new one.

Cost: a pass over the tokens of all. Memory: 56 bytes per document, and one zarr shard.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from curate.accounting.statistics import merge_all
from curate.caches.cache import TokenCache
from curate.caches.description import GENERATION
from curate.caches.errors import CacheError, OtherTokenizerError
from curate.caches.layout import LAYOUT, Layout
from curate.caches.standalone import Documents, FromCache, write_cache
from curate.digests import digest_json
from curate.store import Store

SAME: Final = ("tokenizer", "bos_text", "eos_text", "vocabulary", "dtype", "canary")
"""What generations share."""


def extend_cache(
    folder: Path | str | Store, old: TokenCache, new: Sequence[TokenCache], layout: Layout = LAYOUT
) -> TokenCache:
    """Write the cache of the documents of `old` and of all `new` into `folder`, an empty one, and open it.

    Raises:
        OtherTokenizerError: they were made with different tokenizers; the message names what differs.
        CacheError: `folder` is not empty, there is nothing new, or a document is in two of them.
    """
    caches = [old, *new]
    if len(caches) < 2:
        raise CacheError("nothing to extend with: give a cache of new documents")
    for cache in new:
        _check_same(old, cache)
    first = [0, *np.cumsum([len(_generations(cache)) for cache in caches]).tolist()]
    documents = Documents(
        np.concatenate([np.full(len(cache), number, np.int64) for number, cache in enumerate(caches)]),
        np.concatenate([np.arange(len(cache), dtype=np.int64) for cache in caches]),
        np.concatenate([np.diff(cache.starts) for cache in caches]),
        np.concatenate([cache.ids(0, len(cache)) for cache in caches]),
        np.concatenate([cache.text_digests() for cache in caches]),
        np.concatenate(
            [_shifted(cache, first[number]) for number, cache in enumerate(caches)],
        ),
    )
    place = folder if isinstance(folder, Store) else Store(folder)
    return write_cache(place, _like(caches), documents, [FromCache(cache) for cache in caches], layout)


def _shifted(cache: TokenCache, generations: int) -> Any:
    origin = cache.origin(0, len(cache)).copy()
    origin[:, 0] += np.uint64(generations * GENERATION)
    return origin


def _check_same(old: TokenCache, new: TokenCache) -> None:
    pairs = {name: (getattr(old.description, name), getattr(new.description, name)) for name in SAME}
    differing = [name for name, (left, right) in pairs.items() if left != right]
    if differing:
        raise OtherTokenizerError(
            f"{new.store.url('')} cannot extend {old.store.url('')}: they differ in {', '.join(differing)}; tokenize "
            "the new documents with the tokenizer of the old ones"
        )


def _generations(cache: TokenCache) -> list[Mapping[str, Any]]:
    """Return what each generation of a cache consists of."""
    description = cache.description
    if description.generations:
        return list(description.generations)
    sums = {"content": description.content, "tokens": description.tokens, "documents": description.documents}
    return [{"dataset": dict(description.dataset), **sums}]


def _like(caches: Sequence[TokenCache]) -> Any:
    old = caches[0].description
    generations = [generation for cache in caches for generation in _generations(cache)]
    datasets = [generation["dataset"] for generation in generations]
    statistics = merge_all(
        {name: value for name, value in cache.description.statistics.items() if name not in ("lengths", "multiset")}
        for cache in caches
    )
    return replace(
        old,
        key=digest_json({"operation": "extend", "caches": [cache.description.key for cache in caches]}),
        dataset={
            "name": old.dataset["name"],
            "key": digest_json({"operation": "extend", "datasets": [dataset["key"] for dataset in datasets]}),
            "content": digest_json({"datasets": [dataset["content"] for dataset in datasets]}),
        },
        arrays={name: {} for cache in caches for name in cache.description.arrays},
        statistics=statistics,
        generations=generations,
    )
