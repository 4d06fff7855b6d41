"""Fitting topics to a sample of documents: vectors, groups, telling terms, names, and a card that says what came out.

Topics are ordered by size, the largest first. The card holds what one wants to see before using them: sizes, terms, the
most central documents, how alike the documents of a topic are, and how much of the grouping another seed finds again
(adjusted Rand index).

Invariants: topics and card are the same for the same documents in the same order, and integers throughout with the
default embedder, so that fitting again gives the same bytes on any machine.
Cost: some 10 s for 20,000 passages and 40 topics on one core; memory: the texts, and 2 bytes per document and
dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa

from transforms.embedding import Embedder, HashedTfidf, directions, document_frequencies, rarity_of
from transforms.spherical_kmeans import ONE, Groups, Nearest, Rows, adjusted_rand, group_rows, nearest, unit_rows
from transforms.topic_terms import names_of, telling_terms
from transforms.topics import Topics, TopicsError, beginnings, identity

CENTRAL: Final = 5
"""Documents that the card names of each topic."""

RARE: Final = 1000
"""A word in less than one of so many documents says nothing of a topic."""

_UNIT: Final = 10_000


@dataclass(frozen=True, slots=True)
class Sampled:
    """Documents to fit topics to: ids, texts, and the language of each where it is known."""

    ids: Sequence[bytes]
    texts: pa.LargeStringArray
    languages: Sequence[str | None] | None = None


@dataclass(frozen=True, slots=True)
class Fitting:
    """How topics are fitted; see `curate.fit_topics`."""

    topics: int
    embedder: Embedder
    min_share: Fraction
    characters: int
    seed: int
    rounds: int


def fit(sampled: Sampled, how: Fitting) -> tuple[Topics, dict[str, Any]]:
    """Return topics of `sampled`, and their card.

    Raises:
        TopicsError: no document has a word.
    """
    texts = beginnings(sampled.texts, how.characters)
    embedder = _fitted(how.embedder, texts)
    rows = unit_rows(directions(embedder, texts))
    some = np.flatnonzero(rows.any(axis=1))
    if not len(some):
        raise TopicsError(f"none of {len(texts):,} documents has words to fit topics to: look at what comes before")
    rows = rows[some]
    groups = _grouped(rows, how, how.seed)
    languages = None if sampled.languages is None else [sampled.languages[row] for row in some.tolist()]
    chosen = cast(pa.LargeStringArray, texts.take(pa.array(some)))
    terms = telling_terms(chosen, groups.labels, len(groups.centres), languages)
    names = names_of(terms)
    found = nearest(rows, groups.centres)
    ids = [sampled.ids[row] for row in some.tolist()]
    again = _grouped(rows, how, how.seed + 1)
    card = {
        "documents": len(texts),
        "without_words": len(texts) - len(some),
        "asked": how.topics,
        "languages": languages is not None,
        "embedder": identity(embedder),
        "adjusted_rand": _decimal(adjusted_rand(groups.labels, again.labels)),
        "topics": [_described(topic, names[topic], terms[topic], ids, found) for topic in range(len(names))],
    }
    return Topics(names, tuple(terms), groups.centres, embedder, how.characters), card


def _fitted(embedder: Embedder, texts: pa.LargeStringArray) -> Embedder:
    """Return the default embedder with the rarity of words in `texts`, any other as it is.

    A word in less than a thousandth of the documents, or in none, weighs nothing: it says nothing of a topic, and all
    such words together are as heavy as the others.
    """
    if not isinstance(embedder, HashedTfidf) or embedder.rarity is not None:
        return embedder
    least = max(1, len(texts) // RARE)
    return embedder.fitted(rarity_of(document_frequencies(texts), len(texts), least=least))


def _grouped(rows: Rows, how: Fitting, seed: int) -> Groups:
    """Return the groups, the largest first."""
    least = -(-len(rows) * how.min_share.numerator // how.min_share.denominator)
    groups = group_rows(rows, how.topics, seed=seed, least=max(least, 1), rounds=how.rounds)
    order = np.argsort(-groups.sizes, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return Groups(groups.centres[order], rank[groups.labels])


def _described(topic: int, name: str, terms: Sequence[str], ids: Sequence[bytes], found: Nearest) -> dict[str, Any]:
    members = np.flatnonzero(found.labels == topic)
    alike = found.similarities[members]
    central = members[np.argsort(-alike, kind="stable")[:CENTRAL]]
    return {
        "name": name,
        "documents": len(members),
        "terms": list(terms),
        "similarity": _decimal(Fraction(int(alike.sum()), max(len(members), 1) * ONE * ONE)),
        "central": [ids[row].hex() for row in central.tolist()],
    }


def _decimal(value: Fraction) -> str:
    """Return `value` with four decimals, rounded down."""
    whole = value.numerator * _UNIT // value.denominator
    return f"{'-' * (whole < 0)}{abs(whole) // _UNIT}.{abs(whole) % _UNIT:04d}"
