"""Held-out text on which mixtures can be compared: of no mixture's private source, and trained on by none of them.

A source that some of the mixtures read and others do not is private: text of it favours who knows it. What is left is
text of sources that all share or none has. A held-out document that a mixture trains on after all, as the same document
(id) or the same text (digest), is left out too, and all is counted. Cost: 32 bytes per document of all caches.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from curate.caches.cache import TokenCache


@dataclass(frozen=True, slots=True)
class Neutral:
    """Documents of a held-out cache that can be used, ascending, and how many others there are, by why."""

    documents: tuple[int, ...]
    private: int
    trained: int


def private_sources(sources: Iterable[Collection[str]]) -> frozenset[str]:
    """Return the sources that some mixtures read and others do not, given those of each."""
    given = [frozenset(one) for one in sources]
    return frozenset().union(*given) - frozenset.intersection(*given) if given else frozenset()


def neutral_documents(
    held: Mapping[str, TokenCache],
    training: Iterable[Mapping[str, TokenCache]],
    source_of: Callable[[bytes], str | None],
    private: Collection[str],
) -> dict[str, Neutral]:
    """Return which documents of each cache of `held` no mixture owns.

    Args:
        held: held-out caches by name.
        training: the caches of each mixture.
        source_of: the source of a document by its id (16 bytes), None where it is not known.
        private: sources that are left out.
    """
    ids: set[bytes] = set()
    texts: set[bytes] = set()
    for cache in (cache for caches in training for cache in caches.values()):
        ids |= _rows(cache.ids(0, len(cache)))
        texts |= _rows(cache.text_digests())
    return {name: _neutral(cache, ids, texts, source_of, private) for name, cache in held.items()}


def _neutral(
    cache: TokenCache,
    ids: set[bytes],
    texts: set[bytes],
    source_of: Callable[[bytes], str | None],
    private: Collection[str],
) -> Neutral:
    chosen, owned, trained = [], 0, 0
    named = zip(cache.ids(0, len(cache)), cache.text_digests(), strict=True)
    for document, (identity, text) in enumerate(named):
        if private and source_of(identity.tobytes()) in private:
            owned += 1
        elif identity.tobytes() in ids or text.tobytes() in texts:
            trained += 1
        else:
            chosen.append(document)
    return Neutral(tuple(chosen), owned, trained)


def _rows(digests: np.ndarray) -> set[bytes]:
    return {row.tobytes() for row in digests}
